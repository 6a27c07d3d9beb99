// The catalogue, one tool, who may use it, and a search as the model would make it.

import { Approvals } from "./approvals.js";
import { get } from "./api.js";
import { badge, button, definitions, empty, faultIn, field, fill, h, json, keyed, lastOnly, long, num, problem, renew, row, section, table } from "./dom.js";
import { count, many, seconds } from "./format.js";

const PAGE = 500;
const SHOWN = 100;
const PAUSE_MS = 3000;

export function showTools(body, live, detail) {
  const who = new Who();
  const found = h("div", {}), one = h("div", {}), bad = h("div", {}), waiting = h("div", {}), list = h("div", {}, empty("Reading the catalogue."));
  const filter = h("input", { type: "search", name: "filter", on: { input: () => catalogue.draw() } });
  const catalogue = new Catalogue(list, filter, who);
  fill(body,
    section("As identity", who.form(() => { catalogue.load(); to(chosen); })),
    section("Search playground", playground(who, found), found),
    one,
    section("Catalogue", field("Filter by name, source or description", filter), catalogue.fault, list),
    section("Quarantine", bad),
    section("Waiting for approval", waiting));
  const approvals = new Approvals(waiting);
  let chosen;
  const only = lastOnly();
  const to = (name) => { const isNew = name !== chosen; chosen = name; showTool(only, one, name, who, isNew); };
  catalogue.load();
  to(detail);
  let digest;
  const onStatus = (status) => {
    renew(bad, quarantineOf(status.quarantined));
    approvals.draw(status.approvals.waiting);
    const now = status.generations.find((each) => each.in_force)?.digest;
    if (digest && digest !== now) catalogue.load();
    digest = now;
  };
  const again = rarely(() => { catalogue.load(); if (chosen) to(chosen); });
  let ended;
  const onRecent = ({ totals }) => {
    if (ended !== undefined && ended !== totals.asks) again.soon();
    ended = totals.asks;
  };
  return { ends: [live.on("status", onStatus), live.on("recent", onRecent), live.onReturn(() => { who.load(); catalogue.load(); if (chosen) to(chosen); }), again.end], to };
}

// Does what many events ask for, once in a while.
function rarely(act) {
  let timer = null;
  return {
    soon: () => { timer ??= setTimeout(() => { timer = null; act(); }, PAUSE_MS); },
    end: () => clearTimeout(timer),
  };
}

// For whom everything on the page is looked at, and by which principal it would be asked.
class Who {
  constructor() {
    this.principal = h("select", { name: "principal" }, h("option", { value: "" }, "nobody in particular"));
    this.load();
    this.user = h("input", { name: "user" });
    this.roles = h("input", { name: "roles" });
    this.channel = h("input", { name: "channel" });
    this.group = h("input", { name: "group" });
  }

  load() {
    if (this.principal.length === 1) get("/v1/principals").then(({ principals }) => this.principal.append(...principals.map(optionOf)), () => {});
  }

  get query() {
    const roles = this.roles.value.split(",").map((role) => role.trim()).filter(Boolean);
    return { principal: this.principal.value, user: this.user.value.trim(), role: roles, channel: this.channel.value.trim(), group: this.group.value.trim() };
  }

  get isStated() { return Object.values(this.query).some((value) => value.length); }

  form(changed) {
    const submit = (event) => { event.preventDefault(); changed(); };
    return h("form", { class: "row panel", on: { submit } }, field("Asked by", this.principal, "who has a key"), field("User", this.user), field("Roles", this.roles, "with commas between"),
      field("Channel", this.channel), field("Group", this.group), h("button", { type: "submit" }, "Look as this one"));
  }
}

function optionOf({ name, roles }) {
  return h("option", { value: name }, roles.length ? `${name} (${roles.join(", ")})` : name);
}

class Catalogue {
  constructor(place, filter, who) {
    this.place = place;
    this.filter = filter;
    this.who = who;
    this.fault = h("div", {});
    this.tools = null;
    this.allowed = null;
    this.most = SHOWN;
    this.turn = 0;
  }

  async load() {
    const turn = ++this.turn;
    try {
      const tools = [];
      for (let after = ""; after !== null;) {
        const page = await get("/v1/tools", { after, limit: PAGE });
        tools.push(...page.tools);
        after = page.next ?? null;
      }
      const allowed = this.who.isStated ? new Set((await get("/v1/access", this.who.query)).tools) : null;
      if (turn !== this.turn) return;
      fill(this.fault);
      this.tools = tools;
      this.allowed = allowed;
      this.draw();
    } catch (error) { if (turn === this.turn) this.fail(error); }
  }

  fail(error) {
    if (!this.tools) fill(this.place);
    faultIn(this.fault, error, () => this.load());
  }

  draw() {
    if (!this.tools) return;
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = this.tools.filter((tool) => words.every((word) => `${tool.name} ${tool.source} ${tool.description}`.toLowerCase().includes(word)));
    if (!fits.length) { renew(this.place, empty(this.tools.length ? "No tool fits the filter." : "There is no tool in the catalogue.")); return; }
    const whose = this.allowed ? `; this identity may use ${count(this.allowed.size)} in all` : "";
    renew(this.place,
      h("p", { class: "quiet" }, `${count(fits.length)} of ${count(this.tools.length)} tools${whose}`),
      table("Tools", ["Tool", "Source", "State", "Calls", "Failed", "Mean", "What it is"], fits.slice(0, this.most).map((tool) => toolRow(tool, this.allowed))),
      fits.length > this.most && button("Show more", () => { this.most += SHOWN; this.draw(); }, { "data-key": "more" }));
  }
}

function toolRow(tool, allowed) {
  const { calls, failed, total_ms: total } = tool.statistics;
  return keyed(tool.name, row(h("a", { href: `#/tools/${encodeURIComponent(tool.name)}` }, tool.name), tool.source,
    tool.revoked ? badge("revoked", "bad") : badge(tool.state, tool.state === "ready" ? "good" : "warn"),
    num(count(calls)), failed ? badge(count(failed), "bad") : "0", num(calls ? seconds(total / calls / 1000) : "–"),
    [allowed && !allowed.has(tool.name) && badge("not for this identity", "bad"), ...marks(tool)]));
}

function marks(tool) {
  return [tool.destructive && badge("destructive", "warn"), tool.read_only && badge("read-only"), tool.deprecated && badge("deprecated", "warn"),
    tool.feature && badge(`feature ${tool.feature}`), ...tool.requires.map((role) => badge(`needs ${role}`))].filter(Boolean);
}

function showTool(only, place, name, who, isNew) {
  const question = async () => name && Promise.all([get("/v1/access", { ...who.query, tool: name }), find(name)]);
  return only(question, (answer) => {
    if (!answer) { fill(place); return; }
    const [access, { tools }] = answer;
    const tool = tools.find((each) => each.name === name);
    renew(place, section("One tool", h("div", { class: "panel", "data-key": `tool ${name}` },
      h("div", { class: "row" }, h("h3", {}, name), h("a", { href: "#/tools" }, "Close")),
      h("p", { class: "row" }, badge(access.allowed ? "allowed" : "not allowed", access.allowed ? "good" : "bad"), who.isStated ? "for this identity: " : "for one who states nothing: ", access.why),
      tool && toolDetails(tool))));
    if (isNew) place.scrollIntoView({ block: "nearest" });
  }, (error) => fill(place, problem(error)));
}

// A page of the list goes on behind a name: it begins with this one behind what comes just before it.
async function find(name) {
  const last = name.charCodeAt(name.length - 1);
  const before = `${name.slice(0, -1)}${String.fromCharCode(last - 1)}~`;
  return get("/v1/tools", { after: before, limit: PAGE, schemas: true });
}

function toolDetails(tool) {
  const { calls, ok, failed, last_ms: last, last_error: error } = tool.statistics;
  return h("div", {}, h("div", { class: "long" }, long(tool.description, 1000)),
    definitions([["Source", tool.source], ["Origin", tool.origin], ["Found at", tool.place], ["Also called", tool.aliases.join(", ") || null],
      ["Calls", `${count(calls)}, ${count(ok)} good, ${count(failed)} failed`], ["Last took", calls ? seconds(last / 1000) : null], ["Last error", error && long(error)],
      ["Instead", tool.deprecation?.replacement], ["What it is", marks(tool).length ? marks(tool) : null]]),
    h("details", {}, h("summary", {}, "Parameters"), json(tool.parameters)));
}

function quarantineOf(tools) {
  if (!tools.length) return empty("Every tool that was found can be used.");
  return table("Tools that cannot be used", ["Tool", "Where", "Why"], tools.map((tool) => row(tool.name, tool.place, [tool.stale && badge("an older form is used", "warn"), long(tool.reason)])));
}

function playground(who, place) {
  const query = h("input", { type: "search", name: "query", required: true });
  const only = lastOnly();
  const submit = (event) => {
    event.preventDefault();
    only(() => get("/v1/search", { ...who.query, query: query.value }), (found) => fill(place, foundOf(found)), (error) => fill(place, problem(error)));
  };
  return h("form", { class: "row panel", on: { submit } }, field("What the model would search for", query), h("button", { type: "submit" }, "Search"));
}

function foundOf(found) {
  const { tokens } = found;
  const active = found.rule === "deferred";
  return h("div", { class: "panel" },
    h("p", {}, active ? badge("tool search active", "good") : badge(`tool search not active: ${found.rule}`, "warn"),
      ` ${count(found.permitted)} tools permitted, model ${found.model}, generation ${found.generation}`),
    definitions([["Sent at first", `${count(found.exposed.length)} tools, ${count(tokens.exposed)} tokens`], ["Directory", active ? `${count(tokens.directory)} tokens` : null],
      ["Answer of the search", active ? `${count(tokens.answer)} tokens` : null], ["Loaded by it", active ? `${count(tokens.loaded)} tokens from the next turn on` : null],
      ["The whole list", `${count(tokens.full_list)} tokens in every turn`]]),
    found.answer !== null && [h("h3", {}, "The answer, as the model reads it"), h("pre", { tabindex: 0 }, found.answer)],
    h("h3", {}, "Matches"), found.matches.length ? table("Matches", ["Tool", "Score", "What spoke for it", "Tokens"], found.matches.map(matchRow)) : empty("Nothing matches."),
    found.loaded.map((tool) => h("details", {}, h("summary", {}, `${tool.wire_name}: ${count(tool.tokens)} tokens`), h("p", { class: "long" }, tool.description), json(tool.parameters))),
    found.directory && h("details", {}, h("summary", {}, "The directory"), h("pre", { tabindex: 0 }, found.directory)));
}

function matchRow(match) {
  const parts = match.parts.map((part) => h("span", { class: "part" }, `${part.word} in ${part.field} ${part.score.toFixed(3)}`));
  return row(match.name, num(match.score.toFixed(3)), parts, num(count(match.tokens)));
}
