// The keys in force, an edit that is checked while it is typed, a file to try, and the history.

import { call, get } from "./api.js";
import { badge, button, confirmed, empty, field, fill, h, problem, row, section, table, tell } from "./dom.js";
import { shown } from "./format.js";
import { receiptOf, verdict } from "./overview.js";
import { replayPreview } from "./replay.js";

const PAUSE_MS = 350;
const DEFAULT = "default";

export function showConfiguration(body, live) {
  const page = new Configuration();
  fill(body, section("Edit", page.editor), section("Keys", page.tools, page.keys), section("Try a file", fileTrial()), section("History", page.history));
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
    this.editor = h("div", {}, empty("Nothing is being edited.", "Choose Edit at a key below. Only limits, lists, search and prompts can be changed here; all else in the file on its machine."));
    this.keys = h("div", {}, empty("Reading the configuration."));
    this.history = h("div", {});
    this.filter = h("input", { type: "search", name: "filter", on: { input: () => this.draw() } });
    this.given = h("input", { type: "checkbox", name: "given", on: { change: () => this.draw() } });
    this.tools = h("div", { class: "row" }, field("Filter", this.filter), h("label", { class: "check" }, this.given, " only what is given or shadowed"));
    this.drafts = new Map();
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
      if (this.drafts.size) this.check();
    } catch (error) { fill(this.keys, problem(error)); }
  }

  draw() {
    if (!this.shown) return;
    const wanted = this.filter.value.trim().toLowerCase();
    const fits = this.shown.keys.filter((key) => key.key.toLowerCase().includes(wanted) && (!this.given.checked || key.source !== DEFAULT || key.shadowed.length));
    fill(this.keys, h("p", { class: "quiet" }, `${fits.length} of ${this.shown.keys.length} keys; file: ${this.shown.file ?? "none"}`),
      fits.length ? table("Keys in force", ["Key", "Value", "Source", "Acts", ""], fits.map((key) => this.keyRow(key))) : empty("No key fits."));
  }

  keyRow(key) {
    const shadowed = key.shadowed.map((source) => badge(`shadows ${source}`, "warn"));
    return row(h("code", {}, key.key), h("span", { class: "value" }, shown(key.value)), [key.source, " ", shadowed], key.acts,
      this.editable.has(key.key) && button("Edit", () => this.edit(key), { "data-key": `edit ${key.key}`, "aria-label": `Edit ${key.key}`, class: "plain" }));
  }

  edit(key) {
    if (!this.drafts.has(key.key)) {
      const text = JSON.stringify(key.value, null, 1);
      const input = h("textarea", { rows: Math.min(8, text.split("\n").length + 1), spellcheck: "false", name: key.key, value: text, on: { input: () => this.typed() } });
      this.drafts.set(key.key, { key, input });
      this.drawEditor();
    }
    this.drafts.get(key.key).input.focus();
  }

  drop(name) {
    this.drafts.delete(name);
    this.drawEditor();
    this.typed();
  }

  drawEditor() {
    if (!this.drafts.size) { fill(this.editor, empty("Nothing is being edited.", "Choose Edit at a key below.")); return; }
    this.apply = button("Apply", () => this.put(), { disabled: true });
    fill(this.editor, h("div", { class: "panel" },
      [...this.drafts].map(([name, { key, input }]) => h("div", { class: "draft" }, field(name, input, `as JSON; null takes it out of the file. Now ${shown(key.value)} from ${key.source}; acts: ${key.acts}`),
        button("Leave it", () => this.drop(name), { class: "plain", "aria-label": `Leave it: ${name}` }))),
      this.trial, h("div", { class: "row" }, this.apply, this.preview.button), this.preview.place));
    this.preview.forget();
    fill(this.trial, h("p", { class: "quiet" }, "Change a value: it is checked while you type."));
  }

  get values() {
    const values = {};
    for (const [name, { input }] of this.drafts) {
      try { values[name] = JSON.parse(input.value); } catch { throw new Error(`${name}: this is no JSON yet. Text stands in double quotes.`); }
    }
    return values;
  }

  typed() {
    this.apply.disabled = true;
    this.preview.forget();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), PAUSE_MS);
  }

  async check() {
    const turn = ++this.turn;
    if (!this.drafts.size) return;
    try {
      const { data } = await call("POST", "/v1/config/validate", { body: this.values });
      if (turn !== this.turn) return;
      fill(this.trial, trialOf(data));
      this.apply.disabled = data.verdict === "rejected" || !(data.changes.length + data.restart_needed.length);
    } catch (error) { if (turn === this.turn) fill(this.trial, problem(error)); }
  }

  async put() {
    this.apply.disabled = true;
    try {
      const { data } = await call("PATCH", "/v1/config", { body: this.values, headers: { "if-match": this.tag } });
      if (data.verdict === "rejected") { fill(this.trial, trialOf(data)); return; }
      this.drafts.clear();
      this.drawEditor();
      tell(`The edit is ${data.verdict}: generation ${data.generation}.`);
      this.load();
    } catch (error) {
      const again = error.code === "config.changed" && button("Read the file's state again", () => this.load());
      fill(this.trial, problem(error), again);
    }
  }

  drawHistory(receipts) {
    const inForce = receipts.find((receipt) => receipt.entry !== null)?.entry;
    fill(this.history, receipts.length ? h("ol", { class: "line" }, receipts.map((receipt) =>
      receiptOf(receipt, receipt.entry !== null && receipt.entry !== inForce && confirmed("Roll back to this", `Write entry ${receipt.entry} into the file`, () => this.back(receipt.entry), `back ${receipt.id}`)))) : empty("Nothing has been tried yet."));
  }

  async back(number) {
    try {
      const { data } = await call("POST", "/v1/config/rollback", { body: { number }, headers: { "if-match": this.tag } });
      tell(data.verdict === "rejected" ? `The roll-back was rejected: ${data.errors.map((error) => error.message).join("; ")}` : `Rolled back to entry ${number}: ${data.verdict}.`);
      this.load();
    } catch (error) { tell(error.message); }
  }
}

export function trialOf(receipt) {
  const changes = [...receipt.changes, ...receipt.restart_needed.filter((each) => !receipt.changes.some((other) => other.key === each.key))];
  const tools = Object.entries(receipt.tools).map(([kind, names]) => h("p", {}, `tools ${kind}: ${names.join(", ")}`));
  return h("div", { class: "trial" }, h("p", { class: "row" }, "It would be ", verdict(receipt)),
    receipt.errors.map((error) => h("p", { class: "bad" }, error.key && h("code", {}, error.key), error.key && ": ", error.message, error.line && ` (line ${error.line})`)),
    receipt.warnings.map((each) => h("p", { class: "warn" }, each.message)),
    changes.length ? table("What would change", ["Key", "In force", "Would be", "Acts"], changes.map((change) =>
      row(h("code", {}, change.key), h("del", {}, shown(change.old)), h("ins", {}, shown(change.new)), change.shadowed_by ? badge(`no effect: ${change.shadowed_by} wins`, "warn") : change.acts))) : h("p", { class: "quiet" }, "No key would change."), tools);
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
