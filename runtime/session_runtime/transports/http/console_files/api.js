// The one place that calls the daemon: JSON, errors, the token of the session, streams of events.

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let token = null;
let principal = null;
let onSignedOut = () => {};

export function whenSignedOut(listener) { onSignedOut = listener; }

export async function whoAmI() {
  return entered((await call("GET", "/console/session")).data);
}

export async function signIn(key) {
  if (/[^\x20-\x7e\xa0-\xff]/.test(key)) throw new ApiError(0, "", "This is no key: it has characters that no key has, such as … or –. Copy it once more.");
  return entered((await call("POST", "/console/session", { headers: { authorization: `Bearer ${key}` } })).data);
}

function entered(data) {
  ({ token, principal } = data);
  return data;
}

export async function signOut() {
  await call("DELETE", "/console/session");
  token = null;
}

export async function get(path, query = {}) {
  return (await call("GET", path + search(query))).data;
}

export function search(query) {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value].flat().filter((each) => each !== "" && each !== null && each !== undefined).map((each) => [name, each]));
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

export async function call(method, path, { body, type = "application/json", headers = {} } = {}) {
  const response = await send(method, path, { body, type, headers });
  const data = await response.json().catch(() => null);
  const isReceipt = response.status === 422 && data && data.verdict;
  if (!response.ok && !isReceipt) throw failure(response, data);
  return { data, etag: response.headers.get("etag") };
}

async function send(method, path, asked) {
  const response = await attempt(method, path, asked);
  if (response.status === 403 && await isTokenOld(response)) return attempt(method, path, asked);
  return response;
}

// Whoever signs in once more in another tab has another token; this tab takes it, if it is the same principal's.
async function isTokenOld(response) {
  const data = await response.clone().json().catch(() => null);
  if (data?.error?.code !== "auth.console_token") return false;
  const now = (await call("GET", "/console/session")).data;
  if (now.principal !== principal) throw new ApiError(403, "auth.console_token", `Another tab is signed in as ${now.principal} now: load this page again.`);
  token = now.token;
  return true;
}

async function attempt(method, path, { body, type, headers = {}, signal }) {
  const all = { ...headers };
  if (body !== undefined) all["content-type"] = type ?? "application/json";
  if (method !== "GET" && token) all["x-console-token"] = token;
  const content = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  let response;
  try {
    response = await fetch(path, { method, headers: all, body: content, cache: "no-store", credentials: "same-origin", signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "", "The daemon does not answer. Is it running?");
  }
  if (response.status === 401 && path !== "/console/session") onSignedOut();
  return response;
}

function failure(response, data) {
  const error = data?.error;
  return new ApiError(response.status, error?.code ?? "", error?.message ?? `The daemon answered ${response.status}.`);
}

// Reads server-sent events of one answer; gives each to `tell` until the end, or until `signal` ends it.
export async function stream(method, path, { body, headers, signal }, tell) {
  const response = await send(method, path, { body, headers: { ...headers, accept: "text/event-stream" }, signal });
  if (!response.ok) throw failure(response, await response.json().catch(() => null));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      throw error.name === "AbortError" ? error : new ApiError(0, "", "The connection broke.");
    });
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const line = frame.split("\n").find((each) => each.startsWith("data: "));
      if (line) tell(JSON.parse(line.slice(6)));
    }
  }
}
