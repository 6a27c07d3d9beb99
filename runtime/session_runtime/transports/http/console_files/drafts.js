// What is being edited: it outlives the page, and a session that ends by itself.

import { call } from "./api.js";
import { tell } from "./dom.js";
import { visible } from "./format.js";

// An edit of one key. `key` is what it was when editing began, `now` what it became meanwhile without this page.
export class Draft {
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

// One edit for each key. `sent` are those that are on their way to the daemon: nobody changes them meanwhile. `own` are
// the values that an edit from here brought into force just now: they are nobody else's.
class Drafts {
  constructor() {
    this.forget();
  }

  forget() {
    this.byKey = new Map();
    this.sent = new Set();
    this.own = new Map();
    this.page = null;
  }

  // Nobody goes on with what somebody else began in this browser.
  belongTo(principal) {
    if (this.owner !== principal) this.forget();
    this.owner = principal;
  }

  get size() { return this.byKey.size; }

  get all() { return [...this.byKey.values()]; }

  get values() { return Object.fromEntries(this.all.map((draft) => [draft.key.key, draft.value])); }

  // Writes all there are into the file that `tag` stands for; what came of it, as a receipt or an error, is told to the
  // page that is shown then. What was begun meanwhile stays.
  async send(tag) {
    const sent = this.sent = new Set(this.byKey.keys());
    let came;
    try {
      const { data, etag } = await call("PATCH", "/v1/config", { body: this.values, headers: { "if-match": tag } });
      came = { receipt: data };
      if (sent === this.sent && data.verdict !== "rejected") this.applied(data, tag, etag);
    } catch (error) { came = { error }; }
    if (sent !== this.sent) return;
    this.sent = new Set();
    if (this.page) this.page.sent(came); else tellOf(came);
  }

  applied(receipt, before, now) {
    this.sent.forEach((name) => this.byKey.delete(name));
    for (const each of [...receipt.changes, ...receipt.restart_needed]) this.own.set(each.key, JSON.stringify(each.new));
    for (const draft of this.all) if (draft.tag === before) draft.tag = now;
  }

  // Compares all with the keys as they are, when nothing is on its way any more.
  compare(keys, tag) {
    if (this.sent.size) return;
    for (const draft of this.all) {
      const name = draft.key.key;
      const key = keys.find((each) => each.key === name) ?? { ...draft.key, value: null, source: "nowhere", shadowed: [] };
      if (this.own.get(name) === JSON.stringify(key.value)) draft.takeOver(key, tag); else draft.compare(key, tag);
    }
    this.own.clear();
  }
}

function tellOf({ receipt, error }) {
  if (error) tell(`The edit was not applied. ${error.message}`, "bad");
  else tell(`The edit is ${receipt.verdict}.`, receipt.verdict === "rejected" ? "bad" : "");
}

export const drafts = new Drafts();
