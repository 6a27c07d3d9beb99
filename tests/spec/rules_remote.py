"""Rules of remote tools (RTE), doors (NET), safety (SEC) and insight (OPS)."""

from tests.spec.requirement import Requirement, met

REMOTE_TOOLS: tuple[Requirement, ...] = (
    met(
        "RTE-1",
        "Each MCP server goes through four phases: initialise, discover every page, register the "
        "whole list at once, call. Servers are brought up side by side, and one that is slow, "
        "stuck or dead holds up no other; readiness names those that are missing.",
    ),
    met(
        "RTE-2",
        "Tool and identity together decide on server and session. Each credential has a session "
        "of its own and nothing is cached across identities.",
    ),
    met(
        "RTE-3",
        "Remote tools are named with their server in front, or bare if configured; two equal bare "
        "names are an error, get the prefix, or follow a priority inside a group of servers "
        "declared equal, which also stand in for each other. Each conflict is logged and shown. "
        "Weighted replicas for reading must remain possible.",
    ),
    met(
        "RTE-4",
        "Lists are fetched anew when the server says so, when they grow old, when a method is "
        "unknown, or on demand, and serve new asks; a running ask may try its tool once more if "
        "the schema is the same. If fetching fails the old list stays and is marked stale. "
        "Changes are reported, and a destructive tool with a changed schema waits for approval.",
    ),
    met(
        "RTE-5",
        "One unusable definition is set aside with its reason and the rest of the server's tools "
        "stay. A tool without a description is kept and marked.",
    ),
    met(
        "RTE-6",
        "Each source has limits of concurrency, rate and quota, a breaker that lets a single "
        "probe through, a heartbeat, restarts with growing waits, and a bounded log; its process "
        "group is ended with it and its environment holds only what is configured. Tools of a "
        "source that is down answer at once that they are unavailable for now.",
    ),
    met(
        "RTE-7",
        "Connecting, listing, idling (extended by progress) and the whole call have time limits, "
        "which a tool can override. Cancelling reaches the server and leaves nothing waiting; "
        "progress turns into events.",
    ),
    met(
        "RTE-8",
        "Repeating depends on the kind of failure: never for wrong parameters or internal errors, "
        "once after a refresh for an unknown tool, with growing jittered waits for time limits, "
        "rate limits and lost connections. A call that may have run is repeated only if the "
        "operator says it is read-only or idempotent, or if it carries a key that the server "
        "honours.",
    ),
    met(
        "RTE-9a",
        "Destructive tools are there or not, and are called or wait for a person's consent, as "
        "`access.destructive` says. Beside a call that waits the others of its turn run; then the "
        "ask ends. Where nobody can be asked, what needs consent is refused before anything runs.",
    ),
    met(
        "RTE-9b",
        "A confirmation holds for one form of one tool, its arguments, the principal, the identity "
        "as stated, the conversation of the ask that asked, and a limited time, and is used up by "
        "one request. Whether the call may run is decided anew when it does.",
    ),
    met(
        "RTE-9c",
        "What a server says about its tools can only make them more dangerous than the operator "
        "says, never less.",
    ),
    met(
        "RTE-10",
        "Results may be text, data, tables, or bytes and images, of which the model gets a "
        "description and a reference. Structured results of servers are checked against their "
        "schema, resources become references, and an error stays an error. What comes from outside "
        "is marked as data that nobody vouches for, redacted, cut to size and labelled with its "
        "source.",
    ),
    met(
        "RTE-11",
        "A call of an unknown name is answered with that fact and the closest names that this "
        "identity may use now, and the ask goes on.",
    ),
    met(
        "RTE-12",
        "A deprecated tool names its replacement. The registry can be written out and compared "
        "with exit codes that suit a pipeline. Giving a new generation to a share of the asks "
        "must remain possible.",
    ),
    met(
        "RTE-13",
        "An append-only JSONL log records who did what and when, with redacted arguments, a "
        "digest of the result, duration and error, chained by keyed hashes; the status shows the "
        "head of the chain and a command verifies it.",
    ),
)

DOORS: tuple[Requirement, ...] = (
    met(
        "NET-1a",
        "HTTP offers `POST /v1/ask` (JSON, or server-sent events for those who accept them), `GET "
        "/v1/tools`, `GET /v1/status`, `/healthz`, `/readyz` and `/openapi.json`.",
    ),
    met(
        "NET-1b",
        "HTTP also offers asks as resources: the same request with the same `Idempotency-Key` is one ask, "
        "joined while it runs and answered with its result later; a detached one goes on without its client. "
        "Both can be looked at, followed from any event on, ended, and continued where they wait for "
        "consent, by the principal that made them and by admins (who give no consent for others); for all "
        "others they do not exist. What is kept is bounded in number, size and time, in memory and by "
        "replica; where events are missing, the reader is told how many.",
    ),
    met(
        "NET-1e",
        "Clients of OpenAI's interface ask unchanged: `POST /v1/chat/completions`, whole and streamed, "
        "with usage, and `GET /v1/models`, where profiles are the models and the default one comes first. "
        "The daemon runs the tools; the content is what was sent to the person and the final text, and "
        "what waits for consent is said in words. Who asks follows from the key, for whom from `user` "
        "under `act_for`. A field that could not be ignored without a lie is refused, errors have "
        "OpenAI's form with the right status, and a request whose tools have run is not to be repeated.",
    ),
    met(
        "NET-1f",
        "HTTP also offers `POST /v1/tools/{name}/invoke`, off by default: of the tools that the operator "
        "offers there, a caller calls what principal and stated identity may both use, whatever tool search "
        "would show. The call is an ask without a model: checks, consent, places, deadline, revocation, "
        "record, keys and detaching are those of asks. The outcome is typed, and what is forbidden is "
        "answered like what does not exist. `GET /v1/tools` lists what a principal may use, in pages, with "
        "schemas on request.",
    ),
    met(
        "NET-1g",
        "Backends have an asynchronous client for HTTP. It sends what was cut off, busy or restarted again "
        "under the same key, comes back to a running ask where it was, says if something may have run twice, "
        "and ends the ask of whoever stops waiting. Errors are typed by what has to be done.",
    ),
    met(
        "NET-1h",
        "HTTP also offers the console at `/console`, whose files need no key and show nothing, and to "
        "administrators what it stands on: searches explained, permissions with the rule that decides, asks "
        "that ended, and news as events that end with the key.",
    ),
    met(
        "NET-1d",
        "The runtime is an MCP server in both eras of the protocol, over `/mcp` where the operator wants "
        "it and over standard streams by a command. A client gets the tools that an ask of the same "
        "principal would, by their canonical names, and calls them through the same checks; nothing that "
        "is not permitted can be called. With sessions there is tool search, long results are readable in "
        "parts, and changes are told of; without, all permitted tools stand from the start. Sessions, "
        "messages and calls are bounded, and a session is only for the principal that opened it.",
    ),
    met(
        "NET-1c",
        "HTTP also offers the configuration (`/v1/config` to show it and change keys, below it "
        "`explain`, `history`, `validate`, `reload` and `rollback`) and `/metrics`.",
    ),
    met(
        "NET-2a",
        "Without keys the daemon binds to loopback only, and another host is a configuration "
        "error; it says that it runs without keys and treats callers as administrators. It checks "
        "Host and Origin (an absent Origin is fine), takes bodies as `application/json` only "
        "(a configuration to try is text), pays no heed to Authorization and refuses requests with "
        "forwarding headers.",
    ),
    met(
        "NET-2b",
        "With keys the daemon may listen anywhere. Keys belong to named principals with roles; they "
        "are stored hashed, compared in constant time, and act from the next request on. What a "
        "caller may do is what both the principal and the stated identity may do; to state an "
        "identity needs `act_for` and never adds a right, and a deny rule that needs an attribute "
        "nobody stated applies. What concerns the daemon itself needs the role `admin`. Folders and "
        "references belong to principal and user together.",
    ),
    met(
        "NET-2c",
        "Notes belong to principal and user together: nobody else finds, counts or deletes them. "
        "A caller that states no user is an owner apart from every name.",
    ),
    met(
        "NET-2d",
        "Budgets and rates belong to principal and user together: what one user takes is counted for "
        "nobody else's user of the same name.",
    ),
    met(
        "NET-3",
        "Over the network only harmless keys can be changed (limits, lists, search, prompts), "
        "under If-Match. Commands, paths, imports, base URLs, secrets, keys and access are "
        "changed in the file.",
    ),
    met(
        "NET-4",
        "The command line speaks to the running daemon through a Unix socket in the state "
        "directory that only its owner can open.",
    ),
    met(
        "NET-5a",
        "Bodies and headers are limited in size, number and time, and so are connections and how slowly an "
        "answer may be read. What is over capacity or comes while the daemon stops is answered by 503 with "
        "Retry-After.",
    ),
    met(
        "NET-5b",
        "Asks of a principal that has as many as it may wait for their turn, in a queue that no one user can "
        "fill; beyond that they are answered by 429 with Retry-After. The queues of all principals are "
        "bounded together, so that none can fill them, which is answered by 503. An ask that waits obeys its "
        "deadline, and its place is free as soon as its client is gone.",
    ),
    met(
        "NET-5c",
        "How often a principal and each of its users may ask, for how many tokens a day, and how many asks "
        "of a user run at once is limited, at every door alike and by each replica for itself. An edit acts "
        "on the next ask. What is refused is answered by 429 with a Retry-After after which there is room, "
        "and counted; a bounded number of users is remembered.",
    ),
    met(
        "NET-6a",
        "MQTT 5 carries requests on `<prefix>/ask` with a response topic below `<prefix>/reply/` and "
        "correlation data. Events and then the result, or one error, are published there with the "
        "same correlation data; user properties say what a message is.",
    ),
    met(
        "NET-6b",
        "A replica runs the same request of the same publisher once within its window: a duplicate "
        "joins the running ask or gets the kept answer, which says so. An answer says if its run may "
        "not have been the first. Other requests under the same correlation data are refused. What a "
        "replica has begun is sent again to that one alone, while it is there.",
    ),
    met(
        "NET-6c",
        "Retained requests are refused, and so is what cannot be answered. What is left of a "
        "message's time is the deadline, being busy is answered, a message is acknowledged when it "
        "was answered, and what is too large is told instead of sent.",
    ),
    met(
        "NET-6d",
        "A shared subscription spreads asks over replicas. Each has a retained status with version, "
        "digest, generation and load, and a last will. It connects again after a broker was away, "
        "answers over the next connection, and leaves its group before it drains.",
    ),
    met(
        "NET-6e",
        "With keys, a message is that of the principal whose signature it bears, over body, topics, "
        "correlation data and an expiry that is near. Without, the broker has a loopback address.",
    ),
    met(
        "NET-7a",
        "The commands `serve`, `ask`, `tools` and `config` work without a network, print JSON "
        "where asked to, and end with documented exit codes.",
    ),
    met(
        "NET-7c",
        "`status --fleet` shows every replica's version, configuration, tools, generation, state, load and "
        "last receipt, as the broker keeps them or each answers over HTTP, and warns where they differ, are "
        "offline, stale or reject an edit, with an exit code where asked to. What is read is shown, and "
        "believed in nothing else.",
    ),
    met(
        "NET-7d",
        "`trace` tells the story of one ask and shows the last ones, also as they end, from the files alone. "
        "`doctor` looks at configuration, keys, tools, clock, watching, port, state directory, disk, limits, "
        "extras, models and, where asked to, servers, says of each how it is and what to do, whether a "
        "daemon runs or not, and changes nothing.",
    ),
    met(
        "NET-7b",
        "There are also commands for asks, keys, revocation, status, MCP, audit, replay and evaluation, of "
        "the same kind: every command takes `--config` and `--json`, but for `mcp`, whose output is a "
        "protocol.",
    ),
)

SAFETY: tuple[Requirement, ...] = (
    met(
        "SEC-1",
        "The roots of file tools may not overlap with handlers, configuration or state, which is "
        "checked when configuring. Files are opened without following links, and devices, pipes "
        "and hard links are refused; each user has a root below.",
    ),
    met(
        "SEC-2",
        "Fetching from the web connects to the very address that was checked, checks every "
        "redirect anew, knows mapped and translated addresses and metadata services, ignores "
        "proxy variables and bounds decompression, size and time.",
    ),
    met(
        "SEC-3a",
        "No key is ever read from a URL, and a request that has one there is refused.",
    ),
    met(
        "SEC-3b",
        "Callbacks go only to configured addresses, which a request names and never gives, and only for "
        "principals that may name them. They are signed with a time stamp, follow no redirect, are tried a "
        "bounded number of times with growing pauses and never hold up an ask. Operators see what was not "
        "taken, and nobody sees address or secret.",
    ),
    met(
        "SEC-3c",
        "The console's session is a cookie that no script can read and no other page can use, and changes "
        "need a token besides. It lives for hours and ends with its key. A content policy allows the "
        "console's own files alone, and no markup is made from text.",
    ),
    met(
        "SEC-4a",
        "Names and descriptions of tools, errors of handlers and messages in the log are data: "
        "escaped where they appear, bounded, and never instructions inside a system message.",
    ),
    met(
        "SEC-4b",
        "The same holds for all that remote servers bring in, results and errors included, and for what "
        "callers say of themselves: who they are, their conversation and their metadata.",
    ),
    met(
        "SEC-4c",
        "The console shows all that comes from outside as text: names, descriptions, errors, results and "
        "lines of logs that try to run a script run none.",
    ),
)

INSIGHT: tuple[Requirement, ...] = (
    met(
        "OPS-1a",
        "Every ask leaves a trace, one JSON object per line: turns, tools offered, searches, "
        "calls (redacted), results as digest and size, latency, tokens including cached ones, and "
        "the tokens that tool search saved.",
    ),
    met(
        "OPS-1b",
        "Where configured, traces are also OpenTelemetry spans with the conventional names for "
        "generative models, and the numbers are Prometheus metrics.",
    ),
    met(
        "OPS-2",
        "Recorded asks can be replayed offline and deterministically, under another configuration "
        "too, showing what would differ. An evaluation over cases measures first and fifth hits, "
        "tokens, and tools loaded in vain.",
    ),
    met(
        "OPS-3",
        "Operators have a console in the browser, without a build step and without any other host. It shows "
        "the daemon, its configuration, tools, asks and servers live, and why each is so; tries edits, "
        "searches and asks; and changes what may be changed over the network. Its numbers are those of the "
        "traces. It can be used by the keyboard, in dark and light and on a phone.",
    ),
)
