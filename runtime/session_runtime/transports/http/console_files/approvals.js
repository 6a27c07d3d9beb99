// Tools of servers that changed and wait: what changed, and approving one form of one.

import { call, get } from "./api.js";
import { badge, button, confirmed, empty, fill, h, json, lastOnly, problem, tell } from "./dom.js";

// A form that still waits keeps its panel: what was opened there, and a question that is being answered; but not when
// another form of the same tool came or was approved, as that changes what was before.
export class Approvals {
  constructor(place) {
    this.place = place;
    this.panels = null;
  }

  draw(waiting) {
    const before = this.panels ?? new Map();
    const now = new Map(waiting.map((each) => [`${each.digest} of ${formsOf(each, waiting)}`, each]));
    if (this.panels && before.size === now.size && [...now.keys()].every((key) => before.has(key))) return;
    this.panels = new Map([...now].map(([key, each]) => [key, before.get(key) ?? waitingOne(each)]));
    fill(this.place, waiting.length ? [...this.panels.values()] : empty("No tool waits for an approval.", "A destructive tool of a server waits when its schema has changed."));
  }
}

function formsOf({ server, name }, waiting) {
  const forms = waiting.filter((each) => each.server === server && each.name === name).map((each) => each.digest);
  return [server, name, ...forms.sort()].join(" ");
}

function waitingOne({ name, server, digest }) {
  const changes = h("div", {});
  const only = lastOnly();
  const look = () => only(() => get(`/v1/tools/waiting/${encodeURIComponent(name)}`),
    ({ forms }) => fill(changes, forms.filter((form) => form.digest === digest).map(formOf)), (error) => fill(changes, problem(error)));
  return h("div", { class: "panel" }, h("div", { class: "row" }, h("strong", {}, name), `of ${server}`, h("code", {}, digest.slice(0, 12)),
    button("What changed", look, { "data-key": `look ${name} ${digest}`, class: "plain" }),
    confirmed("Approve", "Approve this form", () => approve(name, digest), `approve ${name} ${digest}`)), changes);
}

function formOf({ before, now }) {
  return h("div", {}, h("h3", {}, "Before"), before ? side(before) : h("p", { class: "quiet" }, "Only its digest is known."), h("h3", {}, "Now"), side(now));
}

function side(form) {
  return [form.destructive && badge("destructive", "warn"), json(form.parameters), form.output && json(form.output)];
}

async function approve(name, digest) {
  try {
    const { data } = await call("POST", "/v1/tools/approve", { body: { name, digest } });
    tell(`${data.approved.join(", ")} approved.`);
  } catch (error) { tell(`${name}: ${error.message}`, "bad"); }
}
