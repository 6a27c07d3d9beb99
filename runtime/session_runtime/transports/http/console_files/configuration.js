// The keys in force, an edit that is checked while it is typed, a file to try, and the history.

import { call, get } from "./api.js";
import { badge, button, change, confirmed, empty, faultIn, field, fill, h, keepingFocus, keyed, lastOnly, long, num, problem, renew, row, section, table, tell } from "./dom.js";
import { drafts, Draft } from "./drafts.js";
import { shown } from "./format.js";
import { faultOf, receiptOf, told, verdict } from "./overview.js";
import { replayPreview } from "./replay.js";

const PAUSE_MS = 350;
const DEFAULT = "default";
const STEP = 60;
const NOTHING_EDITED = ["Nothing is being edited.", "Choose Edit at a key below. Only limits, lists, search and prompts can be changed here; all else in the file on its machine."];

export function showConfiguration(body, live) {
  const page = new Configuration();
  fill(body, section("Edit", page.state, page.editor), section("Keys", page.tools, page.fault, page.keys), section("Try a file", fileTrial()), section("History", page.history));
  page.drawEditor();
  page.load();
  let receipt;
  const onStatus = (status) => {
    page.know(status.config.in_force);
    const now = status.config.last_receipt?.id;
    if (receipt !== undefined && receipt !== now) page.load();
    receipt = now;
  };
  drafts.page = page;
  return { ends: [live.on("status", onStatus), live.onReturn(() => page.load()), () => { drafts.page = null; }] };
}

class Configuration {
  constructor() {
    this.editor = h("div", { tabindex: -1 });
    this.state = h("div", {});
    this.isInForce = true;
    this.lastGood = null;
    this.keys = h("div", {}, empty("Reading the configuration."));
    this.fault = h("div", {});
    this.only = lastOnly();
    this.history = h("div", {});
    this.filter = h("input", { type: "search", name: "filter", on: { input: () => this.drawFirst() } });
    this.given = h("input", { type: "checkbox", name: "given", on: { change: () => this.drawFirst() } });
    this.tools = h("div", { class: "row" }, field("Filter", this.filter), h("label", { class: "check" }, this.given, " only what is given or shadowed"));
    this.most = STEP;
    this.places = new Map();
    this.isGood = false;
    this.trial = h("div", { "aria-live": "polite" });
    this.preview = replayPreview("Replay recorded asks with it", () => ({ body: drafts.values }));
    this.turn = 0;
  }

  // The keys before the history: whoever goes back to an entry of it has seen at least the file of the tag.
  load() {
    return this.only(async () => [await call("GET", "/v1/config"), await get("/v1/config/history", { limit: 50 })], ([config, history]) => {
      fill(this.fault);
      this.tag = config.etag;
      this.shown = config.data;
      this.editable = new Set(config.data.editable);
      this.draw();
      this.drawHistory(history.receipts);
      this.compare();
      if (drafts.size) this.check();
    }, (error) => {
      if (!this.shown) fill(this.keys);
      faultIn(this.fault, error, () => this.load());
    });
  }

  // Whether the file says what is in force; if not, nothing can be applied over it from here.
  know(isInForce) {
    if (isInForce === this.isInForce) return;
    this.isInForce = isInForce;
    this.drawState();
    this.check();
  }

  drawState() {
    const wayOut = this.lastGood ? [", or write what worked into it there: ", h("code", {}, `session-runtime config rollback ${this.lastGood}`)] : [];
    renew(this.state, !this.isInForce && h("div", { class: "problem" }, "The file cannot be used, as the history tells; what was in force before still is. Mend it on its machine", wayOut, "."));
  }

  drawFirst() {
    this.most = STEP;
    this.draw();
  }

  draw() {
    if (!this.shown) return;
    const wanted = this.filter.value.trim().toLowerCase();
    const fits = this.shown.keys.filter((key) => key.key.toLowerCase().includes(wanted) && (!this.given.checked || key.source !== DEFAULT || key.shadowed.length));
    renew(this.keys, h("p", { class: "quiet" }, `${fits.length} of ${this.shown.keys.length} keys; file: ${this.shown.file ?? "none"}`),
      fits.length ? table("Keys in force", ["Key", "Value", "Source", "Acts", ""], fits.slice(0, this.most).map((key) => this.keyRow(key))) : empty("No key fits."),
      fits.length > this.most && button("Show all", () => { this.most = Infinity; this.draw(); }, { "data-key": "more" }));
  }

  keyRow(key) {
    const shadowed = key.shadowed.map((source) => badge(`shadows ${source}`, "warn"));
    return keyed(key.key, row(h("code", {}, key.key), h("span", { class: "value" }, long(shown(key.value))), [key.source.length < 30 ? num(key.source) : key.source, " ", shadowed], num(key.acts),
      this.editable.has(key.key) && button("Edit", () => this.edit(key.key), { "data-key": `edit ${key.key}`, "aria-label": `Edit ${key.key}`, class: "plain" })));
  }

  edit(name) {
    if (!drafts.byKey.has(name)) {
      drafts.byKey.set(name, new Draft(this.shown.keys.find((each) => each.key === name), this.tag));
      this.drawEditor();
      if (drafts.size > 1) this.typed();
    }
    this.places.get(name).input.focus();
  }

  drop(name) {
    drafts.byKey.delete(name);
    this.drawEditor();
    this.editor.focus();
    if (drafts.size) this.typed();
  }

  // What is edited stays the same element, with the focus in it.
  drawEditor(result) {
    const before = this.places;
    this.places = new Map(drafts.all.map((draft) => [draft.key.key, before.get(draft.key.key)?.draft === draft ? before.get(draft.key.key) : this.placeOf(draft)]));
    if (!drafts.size) { fill(this.editor, result, empty(...NOTHING_EDITED)); return; }
    this.apply = button("Apply", () => this.put(), { disabled: true });
    keepingFocus(this.editor, () => this.editor.replaceChildren(result ?? "", h("div", { class: "panel" }, [...this.places.values()].map((place) => place.element),
      this.trial, h("div", { class: "row" }, this.apply, this.preview.button), this.preview.place)));
    this.preview.forget();
    fill(this.trial, h("p", { class: "quiet" }, "Change a value: it is checked while you type."));
    this.drawDrafts();
  }

  placeOf(draft) {
    const name = draft.key.key;
    const input = h("textarea", { rows: Math.min(12, draft.text.split("\n").length + 1 + Math.floor(draft.text.length / 100)), spellcheck: draft.isText ? "true" : "false", name, value: draft.text, class: draft.isText && "prose",
      "data-key": `draft ${name}`, on: { input: () => { draft.text = input.value; this.typed(); } } });
    const removed = h("input", { type: "checkbox", name: `no ${name}`, on: { change: () => { draft.isRemoved = removed.checked; this.typed(); } } });
    removed.checked = draft.isRemoved;
    const discard = button("Discard", () => this.drop(name), { class: "plain", "aria-label": `Discard ${name}` });
    const hint = h("small", {}), notice = h("div", {});
    const element = h("div", { class: "draft" }, field(name, input), hint, notice, h("div", { class: "row" }, h("label", {}, removed, " take it out of the file"), discard));
    return { draft, element, input, removed, discard, hint, notice };
  }

  compare() {
    drafts.compare(this.shown.keys, this.tag);
    this.drawDrafts();
  }

  drawDrafts() {
    for (const { draft, input, removed, discard, hint, notice } of this.places.values()) {
      input.readOnly = removed.disabled = discard.disabled = drafts.sent.has(draft.key.key);
      fill(hint, draft.isText ? "plain text" : "as JSON", draft.now ? "; when you began: " : "; in force: ", long(shown(draft.key.value), 120), ` from ${draft.key.source}; acts: ${draft.key.acts}`);
      fill(notice, draft.now && this.noticeOf(draft));
    }
    this.allow();
  }

  noticeOf(draft) {
    const take = () => { draft.takeOver(draft.now.key, draft.now.tag); this.drawDrafts(); this.places.get(draft.key.key).input.focus(); };
    return h("div", { class: "problem", role: "alert" }, h("p", {}, "Changed by somebody else while you edit: now ", h("span", { class: "value" }, long(shown(draft.now.key.value))), ` from ${draft.now.key.source}.`),
      h("div", { class: "row" }, button("Seen: go on with mine", take, { class: "plain" }), button("Discard mine", () => this.drop(draft.key.key), { class: "plain" })));
  }

  // Applied is only what was checked, and is an edit of what its author has seen.
  allow() {
    if (this.apply) this.apply.disabled = !this.isGood || drafts.sent.size > 0 || drafts.all.some((draft) => draft.now);
  }

  typed() {
    this.turn += 1; // what is being checked is not what is there any more
    this.isGood = false;
    this.allow();
    this.preview.forget();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), PAUSE_MS);
  }

  wait() {
    this.isGood = false;
    fill(this.trial, h("p", { class: "quiet" }, "It is checked when the file can be used again."));
    this.allow();
  }

  async check() {
    const turn = ++this.turn;
    if (!drafts.size) return;
    if (!this.isInForce) { this.wait(); return; }
    try {
      const { data } = await call("POST", "/v1/config/validate", { body: drafts.values });
      if (turn !== this.turn) return;
      fill(this.trial, trialOf(data));
      this.isGood = data.verdict !== "rejected" && data.changes.length + data.restart_needed.length > 0;
      this.allow();
    } catch (error) { if (turn === this.turn) fill(this.trial, problem(error)); }
  }

  put() {
    drafts.send(this.tag);
    this.drawDrafts();
  }

  // What came of an edit that was sent, perhaps from this page when it was opened before.
  sent({ receipt, error }) {
    if (receipt && receipt.verdict !== "rejected") {
      const isTyping = this.editor.contains(document.activeElement) && document.activeElement.matches("textarea:not([readonly])");
      this.isGood = false;
      this.drawEditor(h("p", { class: "row", role: "status" }, `The edit is ${receipt.verdict}: generation ${receipt.generation}.`));
      if (!isTyping) this.editor.focus();
      this.load();
      return;
    }
    fill(this.trial, receipt ? trialOf(receipt) : problem(error), error?.code === "config.changed" && button("Read the file's state again", () => this.load()));
    if (this.shown) this.compare();
  }

  // Whoever says yes to a question has seen the file of its tag: with another one, the question goes.
  drawHistory(receipts) {
    const inForce = this.lastGood = receipts.find((receipt) => receipt.entry !== null)?.entry;
    this.drawState();
    const tag = this.tag;
    const isAsked = () => this.history.querySelector("button.danger") !== null;
    const before = isAsked();
    const rollback = ({ id, entry }) => confirmed("Roll back to this", `Write entry ${entry} into the file`, () => this.back(entry, tag), `back ${id} ${tag}`);
    renew(this.history, receipts.length ? h("ol", { class: "line" }, told(receipts).map((receipt) =>
      receiptOf(receipt, receipt.entry !== null && receipt.entry !== inForce && rollback(receipt)))) : empty("Nothing has been tried yet."));
    if (before && !isAsked()) tell("The file has been changed: look at the history before you roll back.", "bad");
  }

  async back(number, tag) {
    try {
      const { data } = await call("POST", "/v1/config/rollback", { body: { number }, headers: { "if-match": tag } });
      if (data.verdict === "rejected") tell(`The roll-back was rejected: ${data.errors.map((error) => error.message).join("; ")}`, "bad");
      else tell(`Rolled back to entry ${number}: ${data.verdict}.`);
      this.load();
    } catch (error) { tell(`Nothing was rolled back. ${error.message}`, "bad"); }
  }
}

export function trialOf(receipt) {
  const changes = [...receipt.changes, ...receipt.restart_needed.filter((each) => !receipt.changes.some((other) => other.key === each.key))];
  const tools = Object.entries(receipt.tools).map(([kind, names]) => h("p", {}, `tools ${kind}: ${names.join(", ")}`));
  return h("div", { class: "trial" }, h("p", { class: "row" }, "It would be ", verdict(receipt)),
    receipt.errors.map((error) => h("p", { class: "bad" }, faultOf(error))),
    receipt.warnings.map((each) => h("p", { class: "warn" }, each.message)),
    changes.length ? table("What would change", ["Key", "In force", "Would be", "Acts"], changes.map((each) =>
      row(h("code", {}, each.key), ...change(each.old, each.new), each.shadowed_by ? badge(`no effect: ${each.shadowed_by} wins`, "warn") : num(each.acts)))) : h("p", { class: "quiet" }, "No key would change."), tools);
}

// A whole file is only tried here: it is put into force on its machine.
function fileTrial() {
  const text = h("textarea", { rows: 6, spellcheck: "false", name: "file" });
  const place = h("div", { "aria-live": "polite" });
  let timer, turn = 0;
  const preview = replayPreview("Replay recorded asks with this file", () => (text.value.trim() ? { body: text.value, type: "text/plain" } : {}));
  const check = async (body) => {
    const own = ++turn;
    try {
      const { data } = await call("POST", "/v1/config/validate", body === null ? {} : { body, type: "text/plain" });
      if (own === turn) fill(place, trialOf(data));
    } catch (error) { if (own === turn) fill(place, problem(error)); }
  };
  text.addEventListener("input", () => { preview.forget(); clearTimeout(timer); timer = setTimeout(() => check(text.value), PAUSE_MS); });
  return h("div", { class: "panel" }, field("A configuration file", text, "It is checked as if it were the file, while you type; nothing is kept."),
    h("div", { class: "row" }, button("Check the file on disk", () => check(null), { class: "plain" }), preview.button), place, preview.place);
}
