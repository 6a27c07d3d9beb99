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
  const day = date.toDateString() === new Date().toDateString() ? "" : `${date.toISOString().slice(0, 10)} `;
  return day + date.toTimeString().slice(0, 8);
}

export const short = (digest) => String(digest ?? "").slice(0, 10);

export function shown(value) {
  if (value === null || value === undefined) return "not there";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (text === "") return "(empty)";
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
