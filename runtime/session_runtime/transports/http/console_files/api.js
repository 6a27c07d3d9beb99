// The one place that calls the daemon: JSON, errors, the token of the session, streams of events.

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let token = null;
let onSignedOut = () => {};

export function whenSignedOut(listener) { onSignedOut = listener; }

export async function whoAmI() {
  const { data } = await call("GET", "/console/session");
  token = data.token;
  return data;
}

export async function signIn(key) {
  const { data } = await call("POST", "/console/session", { headers: { authorization: `Bearer ${key}` } });
  token = data.token;
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

async function send(method, path, { body, type, headers = {}, signal }) {
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
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const line = frame.split("\n").find((each) => each.startsWith("data: "));
      if (line) tell(JSON.parse(line.slice(6)));
    }
  }
}
