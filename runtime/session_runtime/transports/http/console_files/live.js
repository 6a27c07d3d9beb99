// What the daemon tells of itself all the time; comes back when the connection is lost.

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 15000;

export class Live {
  constructor(onEnded) {
    this.known = {};
    this.listeners = new Map();
    this.connected = false;
    this.lostAt = null;
    this.onEnded = onEnded;
    this.wait = FIRST_WAIT_MS;
  }

  start() {
    this.source = new EventSource("/v1/live");
    this.source.addEventListener("open", () => { this.wait = FIRST_WAIT_MS; this.say(true); });
    this.source.addEventListener("error", () => this.again());
    this.source.addEventListener("ended", () => { this.stop(); this.onEnded(); });
    for (const name of ["status", "asks", "recent"]) {
      this.source.addEventListener(name, (event) => {
        this.known[name] = { ...JSON.parse(event.data), received: Date.now() / 1000 };
        this.tell(name);
      });
    }
  }

  again() {
    this.say(false);
    this.source.close();
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      if (await this.mayCome()) this.start(); else this.again();
    }, this.wait);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT_MS);
  }

  // Whether the daemon answers; a session that is gone ends it all.
  async mayCome() {
    try {
      const response = await fetch("/console/session", { cache: "no-store" });
      if (response.status === 401 || response.status === 403) { this.stop(); this.onEnded(); }
      return response.ok;
    } catch { return false; }
  }

  stop() {
    clearTimeout(this.timer);
    this.source?.close();
    this.again = () => {};
  }

  // `lostAt` is since when nothing is heard of the daemon.
  say(connected) {
    this.lostAt = connected ? null : this.lostAt ?? new Date();
    this.connected = connected;
    this.tell("connection");
  }

  tell(name) { this.listeners.get(name)?.forEach((listener) => listener(this.known[name])); }

  // Calls `listener` now, if something is known, and with all news; gives what ends that.
  on(name, listener) {
    if (!this.listeners.has(name)) this.listeners.set(name, new Set());
    this.listeners.get(name).add(listener);
    if (name === "connection" || this.known[name]) listener(this.known[name]);
    return () => this.listeners.get(name).delete(listener);
  }

  // Calls `act` whenever the daemon answers again; gives what ends that.
  onReturn(act) {
    let was = this.connected;
    return this.on("connection", () => {
      if (this.connected && !was) act();
      was = this.connected;
    });
  }
}
