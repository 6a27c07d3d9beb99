"""Ten edits of the recorded configuration, each with what it changes and for how many of 55 asks."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.replay.world import CONFIG, edited

TOKENS = "another number of tokens of tools"
HELD = "(held back until it is searched for)"
OFF = "(tool search is not used: off)"


@dataclass(frozen=True)
class Edit:
    """A configuration text, and the number of asks by what would differ in them."""

    text: str
    changes: Mapping[str, int]


EDITS = {
    "a rule denies tools to a channel": Edit(
        CONFIG.replace(
            "[http.", '[access.rules.web]\nchannels = ["web"]\ndeny = ["payroll.*"]\n[http.', 1
        ),
        {
            TOKENS: 26,
            "directory: 19 -> 18 tools": 26,
            "a search does not load payroll.list any more (denied by access.rules.web)": 3,
            "call of payroll.list: ran -> tool.unknown (denied by access.rules.web)": 2,
        },
    ),
    "a search loads fewer tools": Edit(
        edited("tool_search_max_results = 2", "tool_search_max_results = 1"),
        {
            TOKENS: 9,
            "a search does not load weather.past any more": 8,
            "a search answers something else, and loads the same tools": 6,
            f"call of weather.past: tool.invalid_arguments -> tool.not_loaded {HELD}": 1,
            "a search does not load results.read any more": 1,
        },
    ),
    "fewer turns": Edit(
        edited("max_steps = 5", "max_steps = 2"),
        {"ends as answered -> limit.steps": 23, "ends as limit.steps in another turn": 1},
    ),
    "fewer calls": Edit(
        edited("max_tool_calls = 5", "max_tool_calls = 2"),
        {
            "call of notes.add: ran -> limit.calls": 2,
            "call of send_message: ran -> limit.calls": 1,
            "ends as answered -> limit.calls": 1,
            "ends as limit.steps -> limit.calls": 1,
        },
    ),
    "fewer tokens": Edit(
        edited("max_tool_calls = 5", "max_tool_calls = 5\nmax_total_tokens = 1"),
        {
            "ends as answered -> limit.tokens": 32,
            "ends as needs_confirmation -> limit.tokens": 7,
            "ends as ended -> limit.tokens": 2,
            "ends as limit.steps -> limit.tokens": 1,
        },
    ),
    "no tool search": Edit(
        edited("tool_search_enabled = true", "tool_search_enabled = false"),
        {
            "another number of tools exposed": 50,
            TOKENS: 50,
            "tool search on (deferred) -> off (off)": 50,
            f"call of tool_search: searched -> tool.unknown {OFF}": 29,
            "call of weather.forecast: tool.not_loaded -> ran": 5,
            "call of tool_search: tool_search.exhausted -> tool.repeated": 1,
            "call of weather.past: tool.not_loaded -> ran": 1,
        },
    ),
    "another tool from the start": Edit(
        edited(', "notes.add"]', ', "weather.forecast"]'),
        {
            f"notes.add no longer exposed {HELD}": 50,
            "weather.forecast exposed now (loaded from the start)": 50,
            TOKENS: 50,
            "another directory of 19 tools": 32,
            "another directory of 18 tools": 18,
            "a search does not load weather.forecast any more": 8,
            "call of weather.forecast: tool.not_loaded -> ran": 5,
            f"call of notes.add: ran -> tool.not_loaded {HELD}": 2,
            "call of notes.add: limit.calls -> tool.repeated": 1,
            "call of notes.add: ran -> tool.repeated": 1,
        },
    ),
    "a prefetch less": Edit(
        edited(', "calendar.today"]', "]"),
        {
            "calendar.today is not prefetched any more": 50,
            TOKENS: 50,
            "directory: 19 -> 20 tools": 32,
            "directory: 18 -> 19 tools": 18,
        },
    ),
    "nothing is loaded again": Edit(
        edited("tool_search_sticky_turns = 1", "tool_search_sticky_turns = 0"),
        {
            f"call of weather.past: ran -> tool.not_loaded {HELD}": 1,
            f"weather.past no longer exposed {HELD}": 1,
            TOKENS: 1,
        },
    ),
    "destructive tools need no consent": Edit(
        CONFIG.replace("[http.", '[access]\ndestructive = "allow"\n[http.', 1),
        {
            "call of files.wipe: tool.needs_confirmation -> ran": 8,
            "ends as needs_confirmation -> open": 7,
        },
    ),
    "another default model": Edit(
        edited("max_steps = 5", 'max_steps = 5\ndefault_model = "other"'),
        {"model profile main -> other": 48},
    ),
    "a key may act for fewer": Edit(
        edited('act_for = ["ann", "bob"]', 'act_for = ["bob"]'),
        {"the request is refused: auth.act_for": 1},
    ),
    "fewer searches": Edit(
        edited("tool_search_max_calls = 3", "tool_search_max_calls = 2"),
        {"call of tool_search: searched -> tool_search.exhausted": 1, TOKENS: 1},
    ),
    "a sub-agent has fewer tools": Edit(
        edited(
            'deny = ["payroll.*"]',
            'deny = ["payroll.*"]\n[access.rules.shop]\nchannels = ["web"]\ndeny = ["shop.item_3"]',
        ),
        {
            TOKENS: 44,
            "directory: 19 -> 18 tools": 26,
            "directory: 18 -> 17 tools": 18,
            "sub-agent clerk: shop.item_3 no longer given (denied by access.rules.shop)": 1,
        },
    ),
    "nobody takes over": Edit(
        edited('fallback = "main"', ""),
        {"when model profile shaky fails, main does not take over any more": 1},
    ),
    "a profile takes fewer tools": Edit(
        edited("[models.other]", "max_tools = 5\n[models.other]"),
        {
            TOKENS: 16,
            "a search does not load weather.past any more": 8,
            f"results.read no longer exposed {HELD}": 5,
            "call of tool_search: searched -> tool_search.full": 1,
            "call of tool_search: tool_search.exhausted -> tool_search.full": 1,
            f"call of weather.past: tool.invalid_arguments -> tool.not_loaded {HELD}": 1,
            f"call of weather.past: ran -> tool.not_loaded {HELD}": 1,
            "sub-agent clerk cannot begin: model.too_many_tools": 1,
            f"weather.past no longer exposed {HELD}": 2,
            "a search does not load results.read any more": 1,
        },
    ),
    "a profile takes too few tools": Edit(
        edited("[models.other]", "max_tools = 3\n[models.other]"),
        {
            "ends as answered -> model.too_many_tools": 37,
            "ends as needs_confirmation -> model.too_many_tools": 7,
            "ends as ended -> model.too_many_tools": 2,
            "when model profile shaky fails, main does not take over any more: it takes at most 3 tools"
            " (max_tools), and this request has 4": 1,
            "ends as limit.steps -> model.too_many_tools": 1,
            "ends as model.broken -> model.too_many_tools": 1,
        },
    ),
    "an answer needs end": Edit(
        edited("max_steps = 5", "max_steps = 5\nrequire_end = true"),
        {"ends as answered -> open": 36, "ends as answered -> limit.steps": 3},
    ),
    "descriptions are not searched": Edit(
        CONFIG.replace("[http.", "[search]\ndescription = 0\n[http.", 1),
        {"a search does not load payroll.list any more": 1, TOKENS: 1},
    ),
}
