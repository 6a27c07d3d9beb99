// Signing in, the navigation, and which page is shown.

import { signIn, signOut, whenSignedOut, whoAmI } from "./api.js";
import { button, field, fill, h, hush, problem, tick } from "./dom.js";
import { clock } from "./format.js";
import { Live } from "./live.js";
import { showAsks } from "./asks.js";
import { showConfiguration } from "./configuration.js";
import { drafts } from "./drafts.js";
import { showOverview } from "./overview.js";
import { showServers } from "./servers.js";
import { showTools } from "./tools.js";

const PAGES = {
  overview: ["Overview", showOverview],
  configuration: ["Configuration", showConfiguration],
  tools: ["Tools", showTools],
  asks: ["Asks", showAsks],
  servers: ["Servers", showServers],
};

const head = document.getElementById("head");
const main = document.getElementById("main");
let live = null;
let shown = { name: null, ends: [], to: null };

function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return { name: Object.hasOwn(PAGES, name) ? name : "overview", detail: decoded(rest.join("/")) || null };
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function leave() {
  shown.ends.forEach((end) => end());
  shown = { name: null, ends: [], to: null };
}

// A page that can go to a detail by itself keeps what was typed into it.
function showPage(isNew) {
  const { name, detail } = route();
  if (shown.name === name && shown.to) { shown.to(detail); return; }
  leave();
  hush();
  const [title, show] = PAGES[name];
  document.title = `${title} · console`;
  for (const link of head.querySelectorAll("nav a")) {
    if (link.dataset.page === name) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  const body = h("div", { class: "page" });
  fill(main, h("h1", {}, title), body);
  shown = { name, to: null, ...show(body, live, detail) };
  if (isNew) main.focus();
}

function showHead(who) {
  const state = h("span", { class: "live", role: "status" });
  const links = Object.entries(PAGES).map(([name, [title]]) => h("a", { href: `#/${name}`, "data-page": name }, title));
  const out = who.token && button("Sign out", goOut, { class: "plain" });
  const lost = h("p", { class: "lost", role: "alert" });
  fill(head, h("strong", { class: "brand" }, "session-runtime"), h("nav", { "aria-label": "Pages" }, links),
    h("span", { class: "who" }, state, h("span", {}, who.principal), out), lost);
  live.on("connection", () => {
    state.classList.toggle("lost", !live.connected);
    state.textContent = live.connected ? "live" : "connecting";
    document.body.classList.toggle("stale", live.lostAt !== null);
    fill(lost, live.lostAt && `The daemon has not answered since ${clock(live.lostAt)}: what is below is old. It is tried again by itself.`);
  });
}

async function goOut() {
  try {
    await signOut();
    drafts.forget();
    showSignIn("You are signed out.");
  } catch (error) {
    leave();
    fill(main, h("h1", {}, "Not signed out"), h("p", {}, h("strong", {}, "The session is still open: "), "who opens this browser can use it until it ends by itself."),
      problem(error), h("div", { class: "row" }, button("Sign out once more", goOut), button("Go on", () => showPage(true), { class: "plain" })));
    main.focus();
  }
}

function open(who) {
  drafts.belongTo(who.principal);
  live = new Live(() => showSignIn("The session has ended. Sign in again."));
  showHead(who);
  live.start();
  showPage(false);
  window.onhashchange = () => showPage(true);
}

function showSignIn(why) {
  leave();
  live?.stop();
  document.body.classList.remove("stale");
  window.onhashchange = null;
  document.title = "Sign in · console";
  fill(head, h("strong", { class: "brand" }, "session-runtime"));
  const key = h("input", { type: "password", name: "key", autocomplete: "off", required: true, spellcheck: "false" });
  const place = h("div", {});
  const submit = async (event) => {
    event.preventDefault();
    try {
      const who = await signIn(key.value.trim());
      key.value = "";
      open(who);
    } catch (error) {
      fill(place, problem(error.code === "auth.admin_needed" ? new Error("This key is good, but who it belongs to lacks the role 'admin', which the console needs.") : error));
      key.select();
    }
  };
  fill(main, h("h1", {}, "Sign in"), h("form", { class: "signin", on: { submit } },
    h("p", {}, why ?? "The console is for administrators."),
    field("Key of an administrator", key, "It is exchanged for a session in this browser and not kept."),
    place, h("button", { type: "submit" }, "Sign in")));
  key.focus();
}

document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
window.addEventListener("beforeunload", (event) => { if (drafts.size) event.preventDefault(); });
setInterval(() => { if (live?.connected) tick(); }, 1000);
whenSignedOut(() => showSignIn("The session has ended. Sign in again."));

whoAmI().then(open, (error) => {
  if (error.status === 401) { showSignIn(); return; }
  fill(main, h("h1", {}, "Console"), problem(error), button("Try again", () => location.reload()));
});
