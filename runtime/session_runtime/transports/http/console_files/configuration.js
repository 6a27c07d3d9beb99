// The keys in force, an edit that is checked while it is typed, a file to try, and the history.

import { call, get } from "./api.js";
import { badge, button, change, confirmed, empty, field, fill, h, keyed, long, num, problem, renew, row, section, table, tell } from "./dom.js";
import { shown, visible } from "./format.js";
import { faultOf, receiptOf, told, verdict } from "./overview.js";
import { replayPreview } from "./replay.js";

const PAUSE_MS = 350;
const DEFAULT = "default";
const STEP = 60;
const NOTHING_EDITED = ["Nothing is being edited.", "Choose Edit at a key below. Only limits, lists, search and prompts can be changed here; all else in the file on its machine."];

// What is being edited, by key: it outlives the page, and the session.
const drafts = new Map();

export const hasDrafts = () => drafts.size > 0;

// An edit of one key. `key` is what it was when editing began, `now` what it became meanwhile without this page.
class Draft {
  constructor(key, tag) {
    this.isText = typeof key.value === "string";
    this.text = this.isText ? key.value : visible(JSON.stringify(key.value, null, 1));
    this.isRemoved = false;
    this.takeOver(key, tag);
  }

  takeOver(key, tag) {
    this.key = key;
    this.tag = tag;
    this.now = null;
  }

  // The file may say something else of a key that another source gives, without a change in force.
  compare(key, tag) {
    const isOther = JSON.stringify(key.value) !== JSON.stringify(this.key.value) || (tag !== this.tag && key.shadowed.length > 0);
    if (isOther) this.now = { key, tag }; else this.takeOver(key, tag);
  }

  get value() {
    if (this.isRemoved) return null;
    if (this.isText) return this.text;
    try { return JSON.parse(this.text); } catch { throw new Error(`${this.key.key}: this is no JSON yet. Text stands in double quotes.`); }
  }
}

export function showConfiguration(body, live) {
  const page = new Configuration();
  fill(body, section("Edit", page.editor), section("Keys", page.tools, page.keys), section("Try a file", fileTrial()), section("History", page.history));
  page.drawEditor();
  page.load();
  let receipt;
  const onStatus = (status) => {
    const now = status.config.last_receipt?.id;
    if (receipt !== undefined && receipt !== now) page.load();
    receipt = now;
  };
  return { ends: [live.on("status", onStatus)] };
}

class Configuration {
  constructor() {
    this.editor = h("div", { tabindex: -1 });
    this.keys = h("div", {}, empty("Reading the configuration."));
    this.history = h("div", {});
    this.filter = h("input", { type: "search", name: "filter", on: { input: () => this.drawFirst() } });
    this.given = h("input", { type: "checkbox", name: "given", on: { change: () => this.drawFirst() } });
    this.tools = h("div", { class: "row" }, field("Filter", this.filter), h("label", { class: "check" }, this.given, " only what is given or shadowed"));
    this.most = STEP;
    this.places = new Map();
    this.isGood = false;
    this.trial = h("div", { "aria-live": "polite" });
    this.preview = replayPreview("Replay recorded asks with it", () => ({ body: this.values }));
    this.turn = 0;
  }

  async load() {
    try {
      const [config, history] = await Promise.all([call("GET", "/v1/config"), get("/v1/config/history", { limit: 50 })]);
      this.tag = config.etag;
      this.shown = config.data;
      this.editable = new Set(config.data.editable);
      this.draw();
      this.drawHistory(history.receipts);
      this.compare();
      if (drafts.size) this.check();
    } catch (error) { fill(this.keys, problem(error)); }
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
    if (!drafts.has(name)) {
      drafts.set(name, new Draft(this.shown.keys.find((each) => each.key === name), this.tag));
      this.drawEditor();
    }
    this.places.get(name).input.focus();
  }

  drop(name) {
    drafts.delete(name);
    this.drawEditor();
    this.editor.focus();
    if (drafts.size) this.typed();
  }

  drawEditor(result) {
    this.places.clear();
    if (!drafts.size) { fill(this.editor, result, empty(...NOTHING_EDITED)); return; }
    this.apply = button("Apply", () => this.put(), { disabled: true });
    fill(this.editor, h("div", { class: "panel" }, [...drafts.values()].map((draft) => this.draftOf(draft)), this.trial, h("div", { class: "row" }, this.apply, this.preview.button), this.preview.place));
    this.preview.forget();
    fill(this.trial, h("p", { class: "quiet" }, "Change a value: it is checked while you type."));
    this.drawDrafts();
  }

  draftOf(draft) {
    const name = draft.key.key;
    const input = h("textarea", { rows: Math.min(12, draft.text.split("\n").length + 1 + Math.floor(draft.text.length / 100)), spellcheck: draft.isText ? "true" : "false", name, value: draft.text, class: draft.isText && "prose",
      on: { input: () => { draft.text = input.value; this.typed(); } } });
    const removed = h("input", { type: "checkbox", name: `no ${name}`, on: { change: () => { draft.isRemoved = removed.checked; this.typed(); } } });
    removed.checked = draft.isRemoved;
    const place = { input, hint: h("small", {}), notice: h("div", {}) };
    this.places.set(name, place);
    return h("div", { class: "draft" }, field(name, input), place.hint, place.notice,
      h("div", { class: "row" }, h("label", {}, removed, " take it out of the file"), button("Discard", () => this.drop(name), { class: "plain", "aria-label": `Discard ${name}` })));
  }

  compare() {
    for (const draft of drafts.values()) draft.compare(this.shown.keys.find((each) => each.key === draft.key.key) ?? { ...draft.key, value: null, source: "nowhere", shadowed: [] }, this.tag);
    this.drawDrafts();
  }

  drawDrafts() {
    for (const draft of drafts.values()) {
      const { hint, notice } = this.places.get(draft.key.key);
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
    if (this.apply) this.apply.disabled = !this.isGood || [...drafts.values()].some((draft) => draft.now);
  }

  get values() {
    return Object.fromEntries([...drafts].map(([name, draft]) => [name, draft.value]));
  }

  typed() {
    this.turn += 1; // what is being checked is not what is there any more
    this.isGood = false;
    this.allow();
    this.preview.forget();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), PAUSE_MS);
  }

  async check() {
    const turn = ++this.turn;
    if (!drafts.size) return;
    try {
      const { data } = await call("POST", "/v1/config/validate", { body: this.values });
      if (turn !== this.turn) return;
      fill(this.trial, trialOf(data));
      this.isGood = data.verdict !== "rejected" && data.changes.length + data.restart_needed.length > 0;
      this.allow();
    } catch (error) { if (turn === this.turn) fill(this.trial, problem(error)); }
  }

  // What is typed while it is applied would be lost.
  close(isClosed) {
    for (const { input } of this.places.values()) input.readOnly = isClosed;
  }

  async put() {
    this.apply.disabled = true;
    this.close(true);
    try {
      const { data } = await call("PATCH", "/v1/config", { body: this.values, headers: { "if-match": this.tag } });
      if (data.verdict === "rejected") { fill(this.trial, trialOf(data)); return; }
      drafts.clear();
      this.drawEditor(h("p", { class: "row", role: "status" }, `The edit is ${data.verdict}: generation ${data.generation}.`));
      this.editor.focus();
      this.load();
    } catch (error) {
      const again = error.code === "config.changed" && button("Read the file's state again", () => this.load());
      fill(this.trial, problem(error), again);
      this.allow();
    } finally { this.close(false); }
  }

  drawHistory(receipts) {
    const inForce = receipts.find((receipt) => receipt.entry !== null)?.entry;
    renew(this.history, receipts.length ? h("ol", { class: "line" }, told(receipts).map((receipt) =>
      receiptOf(receipt, receipt.entry !== null && receipt.entry !== inForce && confirmed("Roll back to this", `Write entry ${receipt.entry} into the file`, () => this.back(receipt.entry), `back ${receipt.id}`)))) : empty("Nothing has been tried yet."));
  }

  async back(number) {
    try {
      const { data } = await call("POST", "/v1/config/rollback", { body: { number }, headers: { "if-match": this.tag } });
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
