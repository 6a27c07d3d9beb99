// Builds elements. Whatever comes from the daemon becomes text, never markup: there is no other way here.

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
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}

// Shows other children; who had the focus by its data-key keeps it, and so does a question that is open.
export function fill(container, ...children) {
  const active = document.activeElement;
  const key = container.contains(active) ? active.dataset.key : undefined;
  const open = [...container.querySelectorAll("[data-open]")];
  container.replaceChildren(...texts(children));
  const places = [...container.querySelectorAll("[data-question]")];
  for (const old of open) places.find((each) => each.dataset.question === old.dataset.question)?.replaceWith(old);
  if (key !== undefined) {
    [...container.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key)?.focus();
  }
  return container;
}

export function tell(text) {
  const place = document.getElementById("told");
  place.textContent = text;
  clearTimeout(tell.timer);
  tell.timer = setTimeout(() => { place.textContent = ""; }, 8000);
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

export function table(caption, heads, rows) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows)));
}

export function row(...cells) {
  return h("tr", {}, cells.map((cell) => h("td", {}, cell)));
}

export function field(label, input, hint) {
  return h("label", { class: "field" }, h("span", {}, label), input, hint && h("small", {}, hint));
}

export function button(text, act, attributes = {}) {
  return h("button", { type: "button", ...attributes, on: { click: act } }, text);
}

// Asks once more in place before it acts.
export function confirmed(text, question, act, key) {
  const place = h("span", { class: "confirm", "data-question": key });
  const ask = () => {
    const yes = button(question, () => { rest(); act(); }, { class: "danger", "data-key": key });
    place.dataset.open = "";
    fill(place, yes, button("No", rest, { class: "plain" }));
    yes.focus();
  };
  const rest = () => {
    delete place.dataset.open;
    fill(place, button(text, ask, { "data-key": key, class: "plain" }));
  };
  rest();
  return place;
}

export function json(value) {
  return h("pre", { tabindex: 0 }, JSON.stringify(value, null, 2));
}

export function definitions(pairs) {
  return h("dl", {}, pairs.filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}
