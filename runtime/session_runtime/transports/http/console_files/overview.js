// How the daemon is: state, generations, receipts, what asks came to.

import { get } from "./api.js";
import { age, badge, change, empty, fill, h, keyed, long, num, problem, renew, row, section, table } from "./dom.js";
import { clock, count, many, seconds, short } from "./format.js";

export function showOverview(body, live) {
  const cards = h("div", { class: "cards" });
  const notes = h("div", {});
  const generations = h("div", {}), receipts = h("div", {}), sums = h("div", {}), errors = h("div", {});
  fill(body, cards, notes, section("Generations", generations), section("Receipts", receipts), section("Since the start", sums), section("Errors", errors));
  fill(cards, empty("Waiting for the daemon."));
  let last;
  const draw = () => {
    const { status, recent } = live.known;
    if (!status || !recent) return;
    renew(cards, ...cardsOf(status, recent.totals));
    renew(notes, ...notesOf(status));
    renew(generations, generationsOf(status));
    renew(sums, sumsOf(recent.totals));
    renew(errors, errorsOf(recent));
    const receipt = status.config.last_receipt?.id;
    if (receipt !== last) { last = receipt; loadReceipts(receipts); }
  };
  return { ends: [live.on("status", draw), live.on("recent", draw), live.onReturn(() => loadReceipts(receipts))] };
}

function cardsOf(status, totals) {
  const failed = totals.outcomes.failed ?? 0;
  return [
    card("State", status.state, [`${status.name} ${status.version}, for `, age(status.since)], status.state === "ready" ? "good" : "warn"),
    card("Asks running", count(status.asks), `${count(totals.asks)} ended since the start`),
    card("Failed asks", count(failed), totals.asks ? `${((100 * failed) / totals.asks).toFixed(1)} % of those that ended` : "none has ended yet", failed ? "bad" : ""),
    card("Tokens saved", count(totals.tokens_saved), `by tool search; ${count(totals.usage.total_tokens)} used`),
    card("Daemon time", totals.asks ? seconds(totals.daemon_s / totals.asks) : "–", "own time per ask, without model and tools"),
    card("Tools", count(status.tools), `${count(status.quarantined.length)} quarantined`, status.quarantined.length ? "warn" : ""),
    configurationCard(status.config),
  ];
}

function configurationCard({ in_force: isInForce, restart_needed: waiting }) {
  if (!isInForce) return card("Configuration", "rejected", "the last edit cannot be used: what was in force before still is", "bad");
  if (waiting.length) return card("Configuration", "restart needed", `for ${waiting.join(", ")}`, "warn");
  return card("Configuration", "in force", "as the sources say", "good");
}

function card(title, value, more, kind = "") {
  return h("div", { class: `card ${kind}` }, h("span", { class: "title" }, title), h("b", {}, value), h("span", { class: "quiet" }, more));
}

function notesOf(status) {
  const missing = status.servers.filter((server) => server.state && server.state !== "ready").map((server) => `server ${server.name} is ${server.state}`);
  const waiting = status.approvals.waiting.length ? [many(status.approvals.waiting.length, "tool waits for an approval", "tools wait for an approval")] : [];
  const notes = [...missing, ...waiting, ...status.warnings];
  return notes.length ? [h("ul", { class: "notes" }, notes.map((note) => h("li", {}, note)))] : [];
}

function generationsOf(status) {
  return table("Generations that still matter", ["Generation", "Running asks", "Age", "Digest", ""], status.generations.map((each) =>
    keyed(each.generation, row(each.generation, each.asks, age(status.received - each.age_s), h("code", {}, short(each.digest)), each.in_force ? badge("in force", "good") : badge("until its asks end")))));
}

async function loadReceipts(place) {
  try {
    const { receipts } = await get("/v1/config/history", { limit: 20 });
    renew(place, receipts.length ? h("ol", { class: "line" }, told(receipts).map((receipt) => receiptOf(receipt))) : empty("Nothing has been tried yet."));
  } catch (error) { fill(place, problem(error)); }
}

// Without looks at the files that found nothing to do: each edit from here causes one.
export const told = (receipts) => receipts.filter((receipt) => receipt.trigger !== "watch" || receipt.verdict !== "unchanged");

export function verdict(receipt) {
  const kind = { applied: "good", unchanged: "", rejected: "bad", "applied-restart-needed": "warn" }[receipt.verdict];
  return badge(receipt.verdict, kind);
}

export function receiptOf(receipt, ...more) {
  const extra = more.filter((each) => each instanceof Node);
  const tools = Object.entries(receipt.tools).map(([kind, names]) => h("li", {}, `tools ${kind}: ${names.slice(0, 8).join(", ")}${names.length > 8 ? ` and ${names.length - 8} more` : ""}`));
  const changes = receipt.changes.map((each) => {
    const [before, now] = change(each.old, each.new);
    return h("li", {}, h("code", {}, each.key), ": ", before, " → ", now, each.shadowed_by && ` (no effect: ${each.shadowed_by} wins)`);
  });
  const errors = receipt.errors.map((error) => h("li", { class: "bad" }, faultOf(error)));
  return h("li", { "data-key": `receipt ${receipt.id}` },
    h("div", { class: "row" }, h("time", {}, clock(receipt.time)), verdict(receipt), h("span", {}, receipt.trigger),
      h("span", { class: "quiet" }, `generation ${receipt.generation}, ${seconds(receipt.duration_ms / 1000)}`), extra),
    changes.length + errors.length + tools.length > 0 && h("ul", {}, errors, changes, tools));
}

export function faultOf(error) {
  return [error.key && h("code", {}, error.key), error.key && ": ", error.message, error.line && ` (line ${error.line})`];
}

// The same numbers as in /metrics and over all traces.
function sumsOf(totals) {
  if (!totals.asks && !Object.keys(totals.refused).length) return empty("No ask has ended yet.");
  const each = (words, counts) => Object.entries(counts).sort().map(([name, times]) => [`${words} ${name}`, count(times)]);
  const sums = [...each("asks that ended:", totals.outcomes), ...each("asks refused:", totals.refused), ...each("model turns, of", totals.turns),
    ...each("tool calls:", totals.calls), ...each("tool searches:", totals.searches), ["tokens in", count(totals.usage.input_tokens)], ["tokens out", count(totals.usage.output_tokens)],
    ["tokens saved by tool search", count(totals.tokens_saved)], ["time of all asks", seconds(totals.duration_s)], ["of it the daemon's own", seconds(totals.daemon_s)]];
  return table("What all asks came to", ["What", "How much"], sums.map(([what, much]) => row(what, num(much))));
}

function errorsOf(recent) {
  const failed = recent.asks.filter((ask) => ask.error_code).slice(0, 10);
  const codes = Object.entries(recent.totals.errors).sort((one, other) => other[1] - one[1]);
  if (!codes.length) return empty("No ask has failed since the start.");
  return h("div", {},
    h("p", {}, codes.map(([code, times]) => badge(`${code} × ${times}`, "bad"))),
    failed.length > 0 && table("Asks that failed last", ["Started", "Ask", "Code", "Message"], failed.map((ask) =>
      keyed(ask.ask_id, row(h("time", {}, clock(ask.started_at)), h("a", { class: "num", href: `#/asks/${encodeURIComponent(ask.ask_id)}` }, ask.ask_id), h("code", { class: "num" }, ask.error_code), long(ask.error))))));
}
