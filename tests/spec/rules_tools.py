"""Rules of handlers (REG), tool search (TS) and prefetch (PRE)."""

from tests.spec.requirement import Requirement, met

REGISTRY: tuple[Requirement, ...] = (
    met(
        "REG-1",
        "A folder `<tool>/` or `<group>/<tool>/` below a handlers path is a tool: `config.json` "
        "describes the function, `handler.py` holds `execute(args, context)`, asynchronous or "
        "plain, a plain one running in a thread. The path gives the canonical name, which the "
        "described name must equal in full or in its last part. `agents/` is kept for sub-agents, "
        "folders beginning with `_` or `.` are passed over, and the order is that of the names. "
        "An operator's folder replaces a bundled tool of the same name, and a warning says so. "
        "Bundled tools can be switched off together, and any tool by patterns of enabled and "
        "disabled names.",
    ),
    met(
        "REG-2",
        "Starting imports no handler. The first call does, away from the event loop and once for "
        "all callers that wait for it; an import that failed is tried afresh by the next call, "
        "and its error names file and line.",
    ),
    met(
        "REG-3",
        "The `runtime` object of a `config.json` may state required roles, a feature flag, "
        "whether the tool is destructive, read-only or idempotent, its time limit, aliases, "
        "search hints, examples, a deprecation with replacement, and the largest result. Any "
        "other field is an error.",
    ),
    met(
        "REG-4",
        "When a tool is found, its name, its description and its schema (legal, of type object) "
        "are checked, and a name that occurs twice is refused with both folders named. A bad tool "
        "costs that tool and no other; a configured folder without any usable tool stops the "
        "start with a clear message.",
    ),
    met(
        "REG-5",
        "The catalogue can say which sources there are, which tools each has, what a name stands "
        "for, whether a tool is destructive and how a source is doing. For each tool it counts "
        "calls, successes and failures, total and last duration, keeps the last error and knows "
        "whether the handler was imported.",
    ),
    met(
        "REG-6",
        "Besides folders, tools can be registered by a configured entry that names a function and "
        "its schema, in a file or right there, and by entry points of installed packages that the "
        "configuration lists, each with a `config.json`. All ways import as late as folders do, "
        "make one catalogue with the same rules about names, and obey the same lists of enabled "
        "and disabled names. What the configuration names and is not there at all stops the start; "
        "any other fault costs one tool.",
    ),
    met(
        "REG-7",
        "Arguments are checked against the schema before anything runs; at most five problems are "
        "told, each with its path and in words a model can act on. References to other documents "
        "are never fetched, the size and depth of schemas and arguments are bounded, and patterns "
        "run in linear time or are refused.",
    ),
)

TOOL_SEARCH: tuple[Requirement, ...] = (
    met(
        "TS-1",
        "Tool search is off unless configured; the main model then gets every tool it may use. It "
        "changes what the model sees and nothing else: registration, execution, aliases, remote "
        "connections and direct invocation stay as they are, and sub-agents never use it.",
    ),
    met(
        "TS-2",
        "Each ask has a session of its own, opened on the tools that are left after permissions "
        "and feature flags. A tool that was filtered out cannot be noticed in the directory, the "
        "index, counts, ranks, errors or suggestions: its name is answered exactly as one that "
        "was never registered.",
    ),
    met(
        "TS-3",
        "The first turn offers `tool_search`, the always-loaded tools that exist (same spelling "
        "first, then any case) and those prefetch tools that are not hidden or failed. Loading "
        "the configuration warns about always-loaded names that match nothing, with the closest "
        "name, and about an `end` that cannot be reached although `require_end` is on.",
    ),
    met(
        "TS-4",
        "All other names stand in one system message inside `<available_deferred_tools>`, one per "
        "line and sorted, escaped and bounded in length, with no word of their descriptions or "
        "schemas, and the text stays the same to the byte during the ask. If it would exceed "
        "`tool_search_directory_max_tokens` (a token counted as four characters), the largest "
        "groups shrink first, each to a line with its pattern and the number of its tools.",
    ),
    met(
        "TS-5",
        "`tool_search` takes `query` and, if wanted, `max_results`, and nothing else. A search "
        "that ran answers with compact JSON of exactly `loaded`, `already_loaded`, `not_found`, "
        "`truncated` and `total_deferred_tools`, the last being the number at the start of the "
        "ask; letters outside ASCII are kept. With `tool_search_explain` a sixth field, `hint`, "
        "gives the closest permitted names, the sources that are down and what can be called now.",
    ),
    met(
        "TS-6",
        "What a search loads can be called from the next turn on, and not in the same one. Loaded "
        "tools only grow in number and are forgotten when the ask ends; a changed registry does "
        "not reach an ask that runs. A call that comes too early is refused, and with "
        "`tool_search_autoload` loads its tool for the next turn.",
    ),
    met(
        "TS-7",
        "A query is tried as `select:` with names (any case, blanks and quotes allowed, each name "
        "by exact spelling, then any case, then wire name or alias, without doubles, missing ones "
        "returned as they were written), then as one complete name, alias or wire name, then as "
        "keywords; the first that fits decides. `max_results` can only lower the configured cap, "
        "which binds `select:` as well and counts new tools; `truncated` tells that more matched. "
        "An empty query is an error in the arguments.",
    ),
    met(
        "TS-8",
        "Keywords and names are split by one rule: normalised, case-folded, cut at blanks, dots, "
        "underscores, hyphens, camelCase and between letters and digits, the joined form kept; "
        "Chinese text counts by single characters and pairs. A word after `+` must occur in the "
        "name, the parameters' names or a description, as stem at most, never by synonym or "
        "correction. A compound word that matches a name brings no hits from descriptions alone; "
        "a name with every word of the query comes before all else, then configured weights "
        "decide, then the name. Only visible tools enter the statistics, so the same query on the "
        "same visible tools has the same answer in every process.",
    ),
    met(
        "TS-9",
        "Matches that can be called already are listed under `already_loaded`, `tool_search` "
        "being no exception. When nothing matches, `not_found` holds the query as a whole.",
    ),
    met(
        "TS-10",
        "If a permitted tool is really called `tool_search`, or would be on the wire, the log "
        "gets an error and that ask sends the full list, with neither directory nor prompt rule. "
        "The full list is also sent when nothing would be deferred, when the profile does not "
        "support tool search, and when the deferred schemas are smaller than the configured share "
        "of the context window. It can be asked which of these decided.",
    ),
    met(
        "TS-11",
        "The list of tools on the wire only grows at its end: the tools of the first turn, "
        "`tool_search`, then loaded ones in the order of loading. What was sent before is "
        "repeated byte for byte, so that a provider's prefix cache stays warm.",
    ),
    met(
        "TS-12",
        "Searching runs no tool. The tool's description and the prompt rule tell the model that "
        "loading is not doing, that `select:` with an exact name is best, that the newest turn's "
        "tools are what counts, and to call now what it loaded. A repeated query is answered from "
        "memory; after `tool_search_max_calls` searches or three misses in a row, further ones "
        "are refused in plain words with the advice to go on with what is there.",
    ),
    met(
        "TS-13",
        "A turn can run exactly the tools that were sent with it, whether the call came natively "
        "or was recovered from text, and whether search was on, off or fell back. Before sending, "
        "the list is checked once more: no tool twice, and the loader if and only if something is "
        "held back.",
    ),
    met(
        "TS-14",
        "A session is a view on the index of its generation: a mask of permitted tools with "
        "statistics that are cached for a bounded number of masks. An ask copies no index and "
        "builds none.",
    ),
)

PREFETCH: tuple[Requirement, ...] = (
    met(
        "PRE-1",
        "Before the first turn the permitted prefetch tools run side by side, without arguments "
        "and each within `prefetch_timeout_s`. Results stand in one system message, in the "
        "configured order, for the whole ask; `prefetch_tools_hide` then removes those tools from "
        "every list, index and count. A failure has a type (exception, time limit, cancelled, not "
        "found, invalid), puts no result in the message, is not tried again in that ask and "
        "leaves the tool visible in all turns.",
    ),
    met(
        "PRE-2",
        "Prefetch behaves alike whether tool search is on, off, or fell back to the full list.",
    ),
)
