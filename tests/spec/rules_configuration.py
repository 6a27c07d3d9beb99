"""Rules of configuration (CFG) and of changing it while the daemon runs (REL)."""

from tests.spec.requirement import Requirement, met

CONFIGURATION: tuple[Requirement, ...] = (
    met(
        "CFG-1",
        "The configuration file is UTF-8 TOML; a byte order mark at its start and Windows line "
        "ends do no harm. tomllib reads it and frozen, strict models check it, which know no "
        "extra keys in any table. Every fault is reported in one go, each with the file, the "
        "line, the dotted key, the value found and the closest key that exists.",
    ),
    met(
        "CFG-2",
        "A value comes from the first place that has one: command line or constructor, the "
        "variable `SESSION_RUNTIME__SECTION__KEY`, the key's short variable (such as "
        "`TOOL_SEARCH_ENABLED` or `OPENAI_API_KEY`), the file that `<VARIABLE>_FILE` points to, a "
        "`.env` file that somebody named, `config.toml`, the default. A variable that is set but "
        "empty counts as absent, a list may be JSON or separated by commas, a whole table may be "
        "JSON. In a variable's name everything but letters and digits is `_`; two keys that would "
        "share a variable are an error, and a variable with one of our prefixes that belongs to "
        "no key earns a warning with the closest name.",
    ),
    met(
        "CFG-3a",
        "Of every value it is known where it came from (file and line, variable, secret file, or "
        "the default) and which weaker sources it hides.",
    ),
    met(
        "CFG-3b",
        "When somebody edits a key of the file that a variable overrides, the answer says that "
        "the edit has no effect and names the variable.",
    ),
    met(
        "CFG-4a",
        "A secret is shown nowhere: not in messages, logs, `config show`, HTTP answers, traces or "
        "digests. It is given by a variable, by `<VARIABLE>_FILE`, or as a reference (`env:NAME`, "
        "`file:/path`) within what `runtime.secret_sources` permits; written out in the file it "
        "works and earns a warning. Only whole values are references: the raw text of the file is "
        "never expanded.",
    ),
    met(
        "CFG-4b",
        "In the history of configurations a secret that was written out is masked, and a rollback "
        "keeps the one in force. Files that hold secrets are watched, so that a rotated secret "
        "serves the next ask.",
    ),
    met(
        "CFG-5",
        "Tool search and prefetch are configured by the keys that their users know, with the same "
        "defaults: search off, `send_message` and `end` always loaded, five results (one at "
        "least), `get_current_time` prefetched and then hidden. Notices are off, and the older "
        "key `easter_egg.agent_call_message_enabled` is another spelling of `notices.mode`.",
    ),
    met(
        "CFG-6",
        "Each key states when a change of it acts: at once (logging and daemon-wide admission "
        "alone), with the next ask, or after a restart. The configuration page is generated from "
        "the models. Without a file in the default place the defaults and variables apply; a file "
        "that was named and is not there ends the process with exit code 78.",
    ),
)

RELOAD: tuple[Requirement, ...] = (
    met(
        "REL-1a",
        "Everything that follows from the configuration hangs on one immutable, numbered "
        "generation: settings, catalogue, search index, model profiles, wire names, limits and "
        "prompts; its digest covers no secret. The next one is built and checked completely, "
        "takes over by one change of a reference, and the old one is wound down; if building "
        "fails, nothing of it remains. An ask lives in the generation it began in until its end, "
        "the code of its handlers included.",
    ),
    met(
        "REL-1b",
        "A running daemon replaces its generation in this way when its configuration changes.",
    ),
    met(
        "REL-2",
        "A file that cannot be used - wrong syntax, invalid values, empty, cut short, gone, not "
        "UTF-8 - changes nothing, and emptiness is never read as a wish for defaults. Saving what "
        "is in force already is no reload.",
    ),
    met(
        "REL-3",
        "Each attempt to reload leaves one receipt, which the command line, HTTP, metrics and the "
        "log all read: id, time, what triggered it, digest, verdict, changed keys with old and "
        "new value (secrets masked), errors with their place, duration. A metric tells whether "
        "the file on disk is what is in force, and since when it is not.",
    ),
    met(
        "REL-4",
        "If an edit touches a key that acts after a restart only, the receipt names it with both "
        "values, and everything else in the edit is applied.",
    ),
    met(
        "REL-5",
        "No way of saving goes unnoticed: in place, by rename, as editors do it, by deletion and "
        "new creation, by a swapped link of a mounted folder, through hard links, on mounts that "
        "send no events (within the period of the re-check, five seconds unless configured). A "
        "file that is a mount point itself is followed in place and warned about. Edits during a "
        "reload cause one more, the last content wins, a storm of them costs no lasting memory or "
        "handles, and a watcher that fails is noticed and started again.",
    ),
    met(
        "REL-6",
        "The file has the last word. Configurations that worked are kept in the state directory "
        "and can be listed and compared; going back writes the old content to the file through "
        "the same checks, and says where to change it if the file is read-only. Access rules and "
        "keys go back only when named. A daemon started with a broken file exits with 78 unless "
        "it was told to take the last good one.",
    ),
    met(
        "REL-7",
        "A handler folder that is added, changed or removed leads to a new catalogue. Its files "
        "are read when found and kept by content, and that text is what gets imported, so an ask "
        "runs the code of its own generation. A tool that breaks is set aside alone, its last "
        "good form stays and is marked stale; handlers nobody touched keep their module and its "
        "state.",
    ),
    met(
        "REL-8a",
        "SIGTERM drains: not ready, no new asks, running ones may finish within `drain_timeout_s` and "
        "are then cancelled with a reason; a second signal does not wait. Exit codes are documented.",
    ),
    met(
        "REL-8b",
        "SIGHUP reloads, and systemd is told of readiness, reloading, stopping and being alive where "
        "it asks for it.",
    ),
    met(
        "REL-8c",
        "Processes that the daemon started are ended when it stops, with all that they started in turn and "
        "also where they do not want to, and see the end of their input when it was killed.",
    ),
    met(
        "REL-9",
        "An operator can take a tool away (`revoke PATTERN`) or end asks at once, those that run "
        "included. This is always a command of its own, never follows from an edit, and stays "
        "visible in the status until it is lifted.",
    ),
)
