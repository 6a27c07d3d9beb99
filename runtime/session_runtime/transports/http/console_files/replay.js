// What an edit would change of the asks that were recorded last, before it is applied.

import { call } from "./api.js";
import { badge, button, empty, fill, h, problem, row, table } from "./dom.js";
import { clock, count } from "./format.js";

const SHOWN = 30;

// A button and the place of its answer; what is to be tried is asked for when the button is pressed.
export function replayPreview(label, wanted) {
  const place = h("div", { "aria-live": "polite" });
  let turn = 0;
  const forget = () => { turn += 1; fill(place); };
  const ask = async () => {
    const own = ++turn;
    fill(place, h("p", { class: "quiet" }, "Replaying recorded asks: no model and no tool is asked."));
    try {
      const { data } = await call("POST", "/v1/config/replay", wanted());
      if (own === turn) fill(place, previewOf(data));
    } catch (error) { if (own === turn) fill(place, problem(error)); }
  };
  return { place, forget, button: button(label, ask, { class: "plain" }) };
}

function previewOf({ receipt, replay, why_not: whyNot }) {
  if (receipt.verdict === "rejected") return empty("It cannot be used, so there is nothing to replay.");
  if (!replay) return empty("Nothing was replayed.", whyNot);
  const { asks, differ, uncertain, changes, unknown, examples } = replay;
  return h("div", { class: "trial" },
    h("p", { class: "row" }, badge(`${count(differ)} of ${count(asks)}`, differ || uncertain ? "warn" : "good"), " recorded asks would change",
      replay.out_of_time && h("span", { class: "quiet" }, "there was no time for older ones"),
      uncertain > 0 && h("span", { class: "quiet" }, `of ${count(uncertain)} not all is known`)),
    changes.length > 0 && table("What would change", ["Asks", "Of", "What"], changes.slice(0, SHOWN).map((each) => row(count(each.asks), each.kind, each.what))),
    changes.length > SHOWN && h("p", { class: "quiet" }, `and ${count(changes.length - SHOWN + replay.changes_not_named)} more`),
    unknown.length > 0 && h("details", { open: !differ }, h("summary", {}, "What is not known"), h("ul", {}, unknown.map((each) => h("li", {}, `${count(each.asks)}: ${each.what}`)))),
    examples.map(exampleOf));
}

function exampleOf(ask) {
  return h("details", {}, h("summary", {}, `${ask.ask_id} of ${clock(ask.started_at)}`),
    h("p", {}, h("a", { href: `#/asks/${encodeURIComponent(ask.ask_id)}` }, "The ask as it was")),
    h("ul", {}, ask.differences.map((each) => h("li", {}, each.turn ? `turn ${each.turn}: ` : "", each.what))));
}
