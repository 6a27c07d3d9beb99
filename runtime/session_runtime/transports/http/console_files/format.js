// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const count = (value) => whole.format(value ?? 0);

export function seconds(value) {
  if (value < 1) return `${whole.format(value * 1000)} ms`;
  if (value < 90) return `${value.toFixed(1)} s`;
  if (value < 5400) return `${whole.format(value / 60)} min`;
  if (value < 172800) return `${whole.format(value / 3600)} h`;
  return `${whole.format(value / 86400)} d`;
}

export const since = (at) => seconds(Math.max(0, Date.now() / 1000 - at));

export function clock(at) {
  const date = typeof at === "number" ? new Date(at * 1000) : new Date(at);
  const day = date.toDateString() === new Date().toDateString() ? "" : `${dayOf(date)} `;
  return day + date.toTimeString().slice(0, 8);
}

// The day where the browser is, as is the time beside it.
function dayOf(date) {
  return [date.getFullYear(), date.getMonth() + 1, date.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
}

export const short = (digest) => String(digest ?? "").slice(0, 10);

export const many = (value, one, more = `${one}s`) => `${count(value)} ${value === 1 ? one : more}`;

// Characters that are not seen, or that turn the reading of others around, as JSON writes them.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\u{e0000}-\u{e0fff}]/gu;

export function visible(text) {
  return String(text).replaceAll("\r\n", "\n").replace(HIDDEN, (each) =>
    each.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""));
}

export function shown(value) {
  if (value === null || value === undefined) return "not set";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text === "" ? "(empty)" : text;
}

const SHORT = 60;
const AROUND = 40;
const MOST = 300;

// Two values as they are compared: `lead` and `trail` are what both have around the `middle`, where they differ.
export function excerpts(before, now) {
  const [one, other] = [before, now].map((value) => [...shown(value)]);
  const isSpace = inkOf(one) === inkOf(other);
  if (Math.max(one.length, other.length) <= SHORT && !isSpace) return [one, other].map((all) => ({ lead: "", middle: all.join(""), trail: "", isCut: false }));
  const least = Math.min(one.length, other.length);
  let start = 0, end = 0;
  while (start < least && one[start] === other[start]) start += 1;
  while (end < least - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  const middles = [one, other].map((all) => all.slice(start, all.length - end));
  const isSpaceOnly = isSpace || inkOf(middles[0]) === inkOf(middles[1]);
  return [one, other].map((all, at) => excerpt(all, start, all.length - end, isSpaceOnly || inkOf(middles[at]) === ""));
}

const inkOf = (characters) => characters.join("").replace(/\s/g, "");

// White space as marks, where nothing else differs; "∅" for none at all.
const MARKS = { " ": "·", "\n": "↵\n", "\t": "⇥\t" };
const marked = (text) => text.replace(/\s/g, (each) => MARKS[each] ?? `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`) || "∅";

function excerpt(all, start, end, isMarked) {
  const [from, to] = [Math.max(0, start - AROUND), Math.min(all.length, end + AROUND)];
  const middle = all.slice(start, end);
  const most = middle.slice(0, MOST).join("");
  return {
    lead: (from > 0 ? "…" : "") + all.slice(from, start).join(""),
    middle: (isMarked ? marked(most) : most) + (middle.length > MOST ? "…" : ""),
    trail: all.slice(end, to).join("") + (to < all.length ? "…" : ""),
    isCut: from > 0 || to < all.length || middle.length > MOST,
    whole: all.join(""),
  };
}
