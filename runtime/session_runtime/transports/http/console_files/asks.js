// Asks that run and that ended, one of them as a time line, and a try.

import { call, get, stream } from "./api.js";
import { age, badge, button, confirmed, deaf, definitions, empty, field, fill, h, json, keyed, long, num, problem, renew, row, section, table, tell } from "./dom.js";
import { clock, count, many, seconds, visible } from "./format.js";

const KINDS = { answered: "good", ended: "good", failed: "bad", cancelled: "warn", limit: "warn", needs_confirmation: "warn" };
const KEPT = 200;
const FROM_LIVE = 50;
const STEP = 25;
const NAME = 40;

export function showAsks(body, live, detail) {
  return detail ? showOne(body, live, detail) : showAll(body, live);
}

function showAll(body, live) {
  const running = h("div", {});
  const ended = new Ended();
  const leaving = new AbortController();
  fill(body, section("Running", running), section("Try one", tryOne(leaving.signal)), section("Ended", ended.place));
  const drawRunning = ({ asks, received }) => renew(running, asks.length ? runningTable(asks, received) : empty("No ask is running.", "New ones appear here by themselves."));
  return { ends: [live.on("asks", drawRunning), live.on("recent", ({ asks }) => ended.take(asks)), () => leaving.abort()] };
}

const link = (id) => h("a", { class: "num", href: `#/asks/${encodeURIComponent(id)}`, "data-key": id }, id);
const whose = (ask) => long(ask.user ?? ask.principal, NAME);
const cancelling = (ask) => confirmed("Cancel", "Cancel it", () => cancel(ask.ask_id), `cancel ${ask.ask_id}`);

function runningTable(asks, received) {
  return table("Running asks", ["Ask", "Age", "State", "Model", "For", "Turns", "Calls", ""], asks.map((ask) =>
    keyed(ask.ask_id, row(link(ask.ask_id), age(received - ask.age_s), badge(ask.cancelling ? "ending" : ask.state), ask.model, whose(ask), num(count(ask.steps)), num(count(ask.tool_calls)),
      cancelling(ask)))));
}

// The newest come by themselves, those before them when they are wanted.
class Ended {
  constructor() {
    this.place = h("div", {});
    this.newest = [];
    this.older = [];
    this.isWhole = false;
    this.most = STEP;
  }

  take(asks) {
    const known = new Set(asks.map((ask) => ask.ask_id));
    const others = [...this.newest, ...this.older].filter((ask) => !known.has(ask.ask_id));
    const isGap = asks.length === FROM_LIVE && others.length === this.newest.length + this.older.length;
    this.older = isGap ? [] : others.slice(0, KEPT - asks.length);
    this.isWhole &&= !isGap;
    this.newest = asks;
    this.draw();
    if (isGap && this.most > FROM_LIVE) this.tried(() => this.load());
  }

  draw() {
    const all = [...this.newest, ...this.older];
    const mayBeMore = all.length > this.most || (!this.isWhole && all.length >= FROM_LIVE);
    renew(this.place, all.length ? endedTable(all.slice(0, this.most)) : empty("No ask has ended since the start."),
      mayBeMore && button("Show more", () => this.more(), { "data-key": "more" }));
  }

  more() {
    return this.tried(async () => {
      if (!this.isWhole) await this.load();
      this.most += STEP;
      this.draw();
    });
  }

  // All that are remembered; what came meanwhile is newer.
  async load() {
    const { asks } = await get("/v1/recent", { limit: KEPT });
    const known = new Set(asks.map((ask) => ask.ask_id));
    const all = [...this.newest.filter((ask) => !known.has(ask.ask_id)), ...asks];
    this.isWhole = true;
    this.newest = all.slice(0, FROM_LIVE);
    this.older = all.slice(FROM_LIVE, KEPT);
    this.draw();
  }

  async tried(act) {
    try { await act(); } catch (error) { tell(error.message, "bad"); }
  }
}

function endedTable(asks) {
  return table("Ended asks", ["Ask", "Started", "Outcome", "Took", "Daemon", "Turns", "Calls", "Tokens", "Saved", "For"], asks.map((ask) =>
    keyed(ask.ask_id, row(link(ask.ask_id), h("time", {}, clock(ask.started_at)), badge(ask.error_code ?? ask.outcome, KINDS[ask.outcome]), num(seconds(ask.duration_s)), num(seconds(ask.daemon_s)),
      ...[ask.steps, ask.tool_calls, ask.tokens, ask.tokens_saved].map((value) => num(count(value))), whose(ask)))));
}

async function cancel(id) {
  try {
    const { data } = await call("DELETE", `/v1/asks/${encodeURIComponent(id)}?reason=an+operator+ended+this+ask`);
    tell(data.cancelled ? `${id} is told to end.` : `${id} had ended already.`);
  } catch (error) { tell(`${id} was not told to end. ${error.message}`, "bad"); }
}

function tryOne(leaving) {
  const text = h("textarea", { rows: 2, required: true, name: "text" });
  const user = h("input", { name: "user" });
  const model = h("select", { name: "model" }, h("option", { value: "" }, "the default one"));
  const place = h("div", {});
  get("/v1/models").then(({ data }) => model.append(...data.map((each) => h("option", { value: each.id }, each.id))), () => {});
  const ask = h("button", { type: "submit" }, "Ask");
  const submit = async (event) => {
    event.preventDefault();
    deaf(ask);
    const line = new EventLine(true);
    fill(place, line.element);
    const identity = user.value.trim() ? { identity: { user: user.value.trim() } } : {};
    const chosen = model.value ? { model: model.value } : {};
    try {
      const asked = { body: { text: text.value, ...identity, ...chosen }, headers: { "idempotency-key": anyKey() }, signal: leaving };
      await stream("POST", "/v1/ask", asked, (each) => line.add(each));
      if (!line.isOver) throw new Error("The daemon ended the connection.");
    } catch (error) { if (!leaving.aborted) line.broke(error); }
  };
  return h("form", { class: "panel", on: { submit } }, field("Question", text), h("div", { class: "row" }, field("As user", user, "empty: as yourself"), field("Model", model)),
    h("div", { class: "row" }, ask, h("small", {}, "It is a real ask: tools are called, and it goes on if you leave this page.")), place);
}

// A key by which the ask goes on without its client.
function anyKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Events in words; with the time if they are told as they come.
class EventLine {
  constructor(isTimed) {
    this.isTimed = isTimed;
    this.list = h("ol", { class: "line" });
    this.answer = h("p", { class: "answer" });
    this.element = h("div", { "aria-live": "polite" }, this.list, this.answer);
    this.begun = performance.now();
  }

  add(event) {
    this.id = event.ask_id;
    if (event.type === "text.delta") { this.answer.append(visible(event.text)); return; }
    const [title, more] = inWords(event);
    this.list.append(h("li", {}, h("div", { class: "row" }, this.isTimed && h("time", {}, `+${seconds((performance.now() - this.begun) / 1000)}`), title), more && h("div", {}, more)));
    if (event.type === "ask.finished") this.end(event.result);
  }

  // What was seen so far stays.
  broke(error) {
    this.element.append(problem(error));
    if (this.id) this.element.append(h("p", {}, "The ask may go on: ", link(this.id)));
  }

  end(result) {
    this.isOver = true;
    if (result.text) this.answer.textContent = visible(result.text);
    this.element.append(h("p", { class: "row" }, badge(result.outcome, KINDS[result.outcome]), result.error && long(`${result.error.code}: ${result.error.message}`),
      h("span", { class: "quiet" }, `${many(result.usage.total_tokens, "token")}`), link(result.ask_id)));
  }
}

function inWords(event) {
  const by = event.agent ? ` (${event.agent})` : "";
  switch (event.type) {
    case "ask.started": return [`started with ${event.model}, generation ${event.generation}`];
    case "prefetch.finished": return [`prefetched ${event.ok.join(", ") || "nothing"}`, Object.keys(event.failed).length ? `failed: ${Object.keys(event.failed).join(", ")}` : null];
    case "turn.started": return [`turn ${event.step}${by}: ${many(event.exposed.length, "tool")} sent to ${event.model}`, long(event.exposed.join(", "))];
    case "tools.loaded": return [`loaded ${event.names.join(", ")}`];
    case "tool.started": return [h("span", {}, "called ", h("code", {}, event.name), by), json(event.arguments)];
    case "tool.finished": return [h("span", {}, h("code", {}, event.name), " ", badge(event.status, event.status === "ok" ? "good" : "bad")), event.error_code];
    case "tool.progress": return [`progress ${event.message ?? ""}`];
    case "confirmation.required": return [h("span", {}, badge("needs consent", "warn"), " ", h("code", {}, event.tool)), json(event.arguments)];
    case "ask.finished": return [`ended: ${event.result.outcome}`];
    default: return [event.type, event.text];
  }
}

function showOne(body, live, id) {
  const facts = h("div", {}), events = h("div", {});
  fill(body, h("p", {}, h("a", { href: "#/asks" }, "← all asks")), h("h2", {}, id), facts, events);
  let isOver = false, line = null;
  const leaving = new AbortController();
  const follow = () => {
    line = new EventLine(false);
    fill(events, line.element);
    const own = line;
    stream("GET", `/v1/asks/${encodeURIComponent(id)}/events`, { signal: leaving.signal }, (each) => own.add(each)).catch((error) => {
      if (leaving.signal.aborted) return;
      if (error.status) own.element.append(h("p", { class: "quiet" }, error.message)); else own.broke(error);
      own.isBroken = !error.status;
    });
  };
  const draw = async () => {
    if (isOver) return;
    const { asks, received } = live.known.asks ?? { asks: [] };
    const running = asks.find((ask) => ask.ask_id === id);
    if (running) {
      if (!line || (line.isBroken && live.connected)) follow();
      renew(facts, runningOne(running, received));
      return;
    }
    try {
      const record = await get(`/v1/recent/${encodeURIComponent(id)}`);
      isOver = true;
      fill(events);
      fill(facts, story(record));
    } catch (error) { fill(facts, error.status === 404 ? empty("This ask is neither running nor among those that ended last.", "Its trace may tell of it.") : problem(error)); }
  };
  draw();
  return { ends: [live.on("asks", draw), live.on("recent", draw), () => leaving.abort()] };
}

function runningOne(ask, received) {
  return h("div", { class: "panel" }, definitions([["State", badge(ask.cancelling ? "ending" : ask.state)], ["Age", age(received - ask.age_s)], ["Model", ask.model],
    ["Generation", ask.generation], ["For", ask.user ?? ask.principal], ["Turns", ask.steps], ["Calls", ask.tool_calls]]),
  cancelling(ask));
}

function story(record) {
  const total = record.duration_s || 1;
  return h("div", {},
    h("p", { class: "row" }, badge(record.outcome, KINDS[record.outcome]), record.error && long(`${record.error.code}: ${record.error.message}`)),
    definitions([["Started", clock(record.started_at)], ["Took", `${seconds(record.duration_s)}, of which ${seconds(record.daemon_s)} in the daemon`],
      ["By", record.principal], ["For", record.identity.user], ["Model", record.model || null], ["Generation", record.generation],
      ["Tokens", `${count(record.usage.input_tokens)} in (${count(record.usage.cached_tokens)} cached), ${count(record.usage.output_tokens)} out`],
      ["Tool search", record.tool_search.active ? `active, ${count(record.tool_search.deferred)} tools held back` : `not active: ${record.tool_search.rule}`],
      ["Tokens saved", count(record.tokens_saved)]]),
    h("ol", { class: "line" },
      record.prefetch.map((each) => step("prefetch", each.latency_s, total, callOf(each))),
      record.confirmed.map((each) => step("agreed before", each.latency_s, total, callOf(each))),
      record.invoked && step("called by name", record.invoked.latency_s, total, callOf(record.invoked)),
      record.turns.map((turn) => turnOf(turn, total)),
      record.agents.map((agent) => h("li", {}, h("div", { class: "row" }, badge(`sub-agent ${agent.agent}`), agent.outcome), h("ol", { class: "line" }, agent.turns.map((turn) => turnOf(turn, total)))))));
}

function turnOf(turn, total) {
  return step(`turn ${turn.step}`, turn.model_s + turn.tools_s, total,
    h("p", { class: "quiet" }, `${turn.model} took ${seconds(turn.model_s)}, tools ${seconds(turn.tools_s)}; ${many(turn.exposed.length, "tool")} sent, ${many(turn.exposed_tokens, "token")}; ${turn.finish_reason ?? ""}`),
    h("details", {}, h("summary", {}, "Tools sent"), h("p", {}, turn.exposed.join(", "))),
    turn.calls.map(callOf));
}

function step(title, took, total, ...more) {
  return h("li", {}, h("div", { class: "row" }, h("strong", {}, title), h("meter", { min: 0, max: total, value: took, "aria-label": `share of ${title} of the whole time` }), seconds(took)), ...more);
}

function callOf(each) {
  const search = each.search && h("p", {}, `searched “${each.search.query}”: loaded ${each.search.loaded.join(", ") || "nothing"}${each.search.not_found.length ? `; not found ${each.search.not_found.join(", ")}` : ""}`);
  return h("div", { class: "call" }, h("div", { class: "row" }, h("code", {}, each.name), badge(each.error_code ?? each.status, each.status === "ok" ? "good" : "bad"),
    h("span", { class: "quiet" }, `${seconds(each.latency_s)}, ${many(each.result_chars, "character")}, ${many(each.attempts, "attempt")}`)),
  search, each.arguments !== null && !search && json(each.arguments));
}
