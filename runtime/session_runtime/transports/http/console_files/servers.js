// The servers of tools: how they are, what they wrote, listing their tools again, connecting anew.

import { call, get } from "./api.js";
import { age, badge, button, confirmed, definitions, empty, fill, h, lastOnly, long, problem, remaining, renew, section, tell } from "./dom.js";
import { count, many } from "./format.js";

const LINES = 200;

export function showServers(body, live, detail) {
  const list = h("div", { class: "cards wide" }), sources = h("div", {}), log = h("div", {});
  fill(body, section("Servers of tools", list), log, section("Other sources", sources));
  const only = lastOnly();
  const to = (name) => (name ? showLog(only, log, name, true) : only(async () => null, () => fill(log)));
  to(detail);
  const draw = ({ servers, routes, received }) => {
    const remote = servers.filter((server) => server.name !== undefined);
    const others = servers.filter((server) => server.name === undefined);
    renew(list, remote.length ? remote.map((server) => serverOf(server, routes[server.id], received)) : empty("No server of tools is configured.", "Add one under [mcp.servers] in the file."));
    renew(sources, others.length ? h("ul", {}, others.map((each) => h("li", {}, `${each.id}: ${many(each.tools, "tool")} `, routes[each.id] && breakerOf(routes[each.id])))) : empty("There are none."));
  };
  return { ends: [live.on("status", draw)], to };
}

function serverOf(server, route, received) {
  const sessions = [["", server], ...(server.credentials ?? []).map((each) => [each.name, each])].filter(([, each]) => each.state);
  return h("article", { class: "card", "aria-label": server.name, "data-key": `server ${server.name}` },
    h("div", { class: "row" }, h("h3", {}, server.name), server.group && badge(server.group)),
    sessions.length ? sessions.map(([credential, session]) => sessionOf(credential, session, received)) : h("p", { class: "quiet" }, "not connected to"),
    route ? breakerOf(route) : h("p", { class: "quiet" }, "No call has gone there yet."),
    h("div", { class: "row" }, h("a", { href: `#/servers/${encodeURIComponent(server.name)}`, "data-key": `log ${server.name}` }, "Log"),
      button("List tools again", () => change(server.name, "refresh"), { "data-key": `refresh ${server.name}`, class: "plain" }),
      confirmed("Restart", "Connect anew", () => change(server.name, "restart"), `restart ${server.name}`)));
}

function breakerOf(route) {
  const kind = { closed: "good", open: "bad", half_open: "warn" }[route.breaker] ?? "warn";
  const refused = Object.entries(route.refused).map(([why, times]) => `${why} ${times}`).join(", ");
  return h("p", { class: "row" }, badge(`breaker ${route.breaker}`, kind), `${many(route.calls, "call")}, ${count(route.failures)} failed, ${count(route.in_flight)} under way, ${count(route.waiting)} wait`, refused && `; not taken: ${refused}`);
}

function sessionOf(credential, session, received) {
  const kind = { ready: "good", connecting: "warn", down: "bad", stopped: "bad" }[session.state] ?? "";
  return h("div", {},
    h("p", { class: "row" }, badge(session.state, kind), credential && `credential ${credential}`, h("span", {}, "for ", age(session.since)), session.stale && badge("old list of tools", "warn")),
    session.error && h("p", { class: "bad" }, long(session.error)),
    session.retry_in_s !== null && h("p", {}, "tries again in ", remaining(received + session.retry_in_s)),
    definitions([["Tools", `${count(session.tools)}${session.refused ? `, ${session.refused} refused` : ""}`], ["Calls now", count(session.calls)],
      ["Failures in a row", count(session.failures)], ["Restarts", count(session.restarts)],
      ["Is", session.server && `${session.server} ${session.version ?? ""}`], ["Protocol", session.protocol], ["Process", session.pid], ["Lines passed over", session.skipped_lines || null]]));
}

async function change(name, what) {
  tell(`${name}: ${what} …`);
  try {
    const { data } = await call("POST", `/v1/servers/${encodeURIComponent(name)}/${what}`);
    tell(`${name}: ${what} done, ${data.receipt?.verdict ?? "no change"}.`);
  } catch (error) { tell(`${name}: ${error.message}`, "bad"); }
}

function showLog(only, place, name, isNew) {
  return only(() => get(`/v1/servers/${encodeURIComponent(name)}/log`, { lines: LINES }), ({ logs }) => {
    const texts = logs.map((log) => [log.credential && h("h3", {}, `credential ${log.credential}`),
      log.lines.length ? h("pre", { class: "log", tabindex: 0 }, log.lines.join("\n")) : empty("It has written nothing.")]);
    fill(place, section("Log", h("div", { class: "panel" },
      h("div", { class: "row" }, h("h3", {}, name), button("Read again", () => showLog(only, place, name, false), { "data-key": "again", class: "plain" }), h("a", { href: "#/servers" }, "Close")),
      texts.length ? texts : empty("It has written nothing."))));
    if (isNew) place.scrollIntoView({ block: "start" });
  }, (error) => fill(place, problem(error)));
}
