// Builds elements. Whatever comes from the daemon becomes text, never markup: there is no other way here.

import { excerpts, seconds, since, visible } from "./format.js";

const DEAF_MS = 500;
const GOOD_NEWS_MS = 6000;

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "value") {
      element.value = value;
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...texts(children));
  return element;
}

function texts(children) {
  return children.flat(3).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(visible(child))));
}

// Shows other children.
export function fill(container, ...children) {
  return keepingFocus(container, () => container.replaceChildren(...texts(children)));
}

// Shows the same thing as it is now. Whatever looks the same stays the same element: a press of the mouse, the focus,
// a selection, the scroll position and what is open survive. So what looks the same here must do the same.
export function renew(container, ...children) {
  return keepingFocus(container, () => merge(container, texts(children)));
}

// Who had the focus keeps it: the same element, or the one with its data-key, or else what it was in.
export function keepingFocus(container, change) {
  const active = document.activeElement;
  const around = container.contains(active) ? [active, active.closest(".scroll"), container.closest("[tabindex]")] : [];
  change();
  if (!around.length || document.activeElement === active) return container;
  const heir = [...container.querySelectorAll("[data-key]")].find((each) => each.dataset.key === active.dataset.key);
  (heir ?? around.find((each) => each?.isConnected))?.focus({ preventScroll: true });
  return container;
}

function merge(container, wanted) {
  const left = new Set(container.childNodes);
  const byKey = new Map([...left].filter((old) => old.dataset?.key).map((old) => [old.dataset.key, old]));
  const next = wanted.map((node) => {
    const old = (node.dataset?.key ? [byKey.get(node.dataset.key)] : [...left]).find((each) => left.has(each) && mayBecome(each, node));
    return left.delete(old) ? become(old, node) : node;
  });
  left.forEach((old) => old.remove());
  next.forEach((node, at) => { if (container.childNodes[at] !== node) container.insertBefore(node, container.childNodes[at] ?? null); });
}

// What listens is kept only as it is: what it does cannot be taken over.
function mayBecome(old, node) {
  if (old.nodeName !== node.nodeName || old.nodeType !== Node.ELEMENT_NODE) return old.nodeName === node.nodeName;
  if (node.matches("button, input, select, textarea, form")) return old.isEqualNode(node);
  return ["data-key", "data-question", "tabindex"].every((name) => old.getAttribute(name) === node.getAttribute(name));
}

function become(old, node) {
  if (old === node || old.isEqualNode(node) || node.dataset?.question !== undefined) return old;
  if (old.nodeType !== Node.ELEMENT_NODE) { old.data = node.data; return old; }
  for (const { name } of [...old.attributes]) if (name !== "open" && !node.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of node.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  merge(old, [...node.childNodes]);
  return old;
}

const told = document.getElementById("told");

// Good news goes by itself, and with its page; bad news stays until it is closed.
export function tell(text, kind = "") {
  clearTimeout(tell.timer);
  told.className = kind;
  fill(told, h("span", {}, text), button("Close", () => fill(told), { class: "plain" }));
  if (kind !== "bad") tell.timer = setTimeout(hush, GOOD_NEWS_MS);
}

export function hush() {
  if (told.className !== "bad") fill(told);
}

// Of questions that are asked one after the other, only the answer to the last one is shown.
export function lastOnly() {
  let turn = 0;
  return async (question, show, fail) => {
    const own = ++turn;
    try {
      const answer = await question();
      if (own === turn) show(answer);
    } catch (error) { if (own === turn) fail(error); }
  };
}

export function section(title, ...children) {
  const id = `s-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), ...children);
}

export function badge(text, kind = "") {
  return h("span", { class: `badge ${kind}` }, text);
}

export function empty(text, more) {
  return h("div", { class: "empty" }, h("p", {}, text), more && h("p", { class: "quiet" }, more));
}

export function problem(error) {
  return h("div", { class: "problem", role: "alert" },
    h("strong", {}, "That did not work. "), error.message, error.code && h("code", {}, ` ${error.code}`));
}

// Why something could not be read; what was read before may stay below it.
export function faultIn(place, error, again) {
  fill(place, problem(error), button("Try again", again, { class: "plain", "data-key": "again" }));
}

// On a phone each row is a card, whose cells say what they are by themselves.
export function table(caption, heads, rows) {
  for (const each of rows) [...each.cells].forEach((cell, at) => { cell.dataset.head = heads[at]; });
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", { role: "table" },
      h("caption", { class: "hidden" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads.map((head) => h("th", { scope: "col", role: "columnheader" }, head)))),
      h("tbody", { role: "rowgroup" }, rows)));
}

export function row(...cells) {
  return h("tr", { role: "row" }, cells.map((cell) => h("td", { role: "cell" }, cell)));
}

// A row of a list that changes: it stays the same row wherever it moves.
export function keyed(key, tr) {
  tr.dataset.key = key;
  return tr;
}

// Stays on one line, with digits that stand below each other.
export function num(text) {
  return h("span", { class: "num" }, text);
}

// How long ago something was, or how long it is until then, in seconds since 1970; goes on by itself.
export function age(at) {
  return h("time", { "data-since": at }, since(at));
}

export function remaining(at) {
  return h("time", { "data-until": at }, seconds(Math.max(0, at - Date.now() / 1000)));
}

export function tick() {
  for (const each of document.querySelectorAll("[data-since]")) each.textContent = since(Number(each.dataset.since));
  for (const each of document.querySelectorAll("[data-until]")) each.textContent = seconds(Math.max(0, Number(each.dataset.until) - Date.now() / 1000));
}

// A long text by its beginning, and whole on demand.
export function long(text, most = 240) {
  const whole = String(text ?? "");
  return whole.length <= most ? whole : cut(`${whole.slice(0, most)}…`, whole);
}

function cut(shown, ...whole) {
  return h("details", { class: "cut" }, h("summary", {}, h("span", { class: "start" }, shown), h("span", { class: "more" })), h("div", { class: "long" }, whole));
}

// An old value and a new one, each around what differs.
export function change(before, now) {
  const [one, other] = excerpts(before, now);
  const side = (tag, part) => {
    const shown = [part.lead, h(tag, {}, part.middle), part.trail];
    return h("span", { class: "value" }, part.isCut ? cut(shown, part.whole) : shown);
  };
  return [side("del", one), side("ins", other)];
}

export function field(label, input, hint) {
  return h("label", { class: "field" }, h("span", {}, label), input, hint && h("small", {}, hint));
}

export function button(text, act, attributes = {}) {
  return h("button", { type: "button", ...attributes, on: { click: act } }, text);
}

// Hears nothing for a moment, so that a double click does not do what nobody has read yet.
export function deaf(element, then = () => {}) {
  element.disabled = true;
  setTimeout(() => { element.disabled = false; then(); }, DEAF_MS);
  return element;
}

// Asks once more in place before it acts; a double click and a key that is held down are no answers.
export function confirmed(text, question, act, key) {
  const place = h("span", { class: "confirm", "data-question": key });
  const once = (then) => (event) => { if (event.detail < 2) then(); };
  const rest = () => { place.replaceChildren(first); first.focus(); };
  const first = button(text, once(() => {
    const no = button("No", once(rest), { class: "plain" });
    const yes = button(question, once(() => { rest(); act(); }), { class: "danger", "data-key": key });
    place.replaceChildren(deaf(yes, () => { if (document.activeElement.contains(no)) no.focus(); }), no);
    no.focus();
  }), { "data-key": key, class: "plain" });
  place.addEventListener("keydown", (event) => { if (event.repeat) event.preventDefault(); });
  place.append(first);
  return place;
}

export function json(value) {
  return h("pre", { tabindex: 0 }, JSON.stringify(value, null, 2));
}

export function definitions(pairs) {
  return h("dl", {}, pairs.filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}
