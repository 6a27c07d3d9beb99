"""An edit of every key that decides about tools; a few of them are what is tried each time."""

from tests.replay.world import CONFIG, edited

ASK = "max_steps = 5"
LIMIT = "max_result_chars = 4000"
SEARCH = "tool_search_enabled = true"
MAIN = "[models.main]"
LOADED = '["send_message", "end", "notes.add"]'
OFF = "tool_search_enabled = false"


def adds(before: str, *lines: str) -> str:
    """The configuration with more lines behind one of it."""
    return edited(before, "\n".join((before, *lines)))


def ends_with(*lines: str) -> str:
    """The configuration with more sections."""
    return "\n".join((CONFIG, *lines, ""))


FEW = {
    "nothing": CONFIG,
    "early calls load": adds(SEARCH, "tool_search_autoload = true"),
    "longer results": edited(LIMIT, "max_result_chars = 40000"),
    "shorter results": edited(LIMIT, "max_result_chars = 2"),
    "no tool search": edited(SEARCH, OFF),
    "a small catalogue": adds(SEARCH, "tool_search_threshold_percent = 50").replace(
        MAIN, f"{MAIN}\ncontext_window = 100000"
    ),
    "a model without search": adds(MAIN, "supports_tool_search = false"),
    "nothing is allowed": ends_with(
        "[access]",
        'default = "deny"',
        "[access.rules.some]",
        'allow = ["send_message", "end", "get_current_time", "weather.*", "shop.*", "clerk"]',
    ),
    "results.read from the start": edited(LOADED, LOADED.replace("]", ', "results.read"]')),
    "a profile takes five tools": adds(MAIN, "max_tools = 5"),
}
MANY = {
    "results as long as they are": edited(LIMIT, "max_result_chars = 15000"),
    "results a little shorter": edited(LIMIT, "max_result_chars = 14999"),
    "the shortest summaries": edited(LIMIT, "max_result_chars = 500"),
    "no summaries": edited(LIMIT, "max_result_chars = 499"),
    "early calls load, and prefetched tools stay": adds(
        SEARCH, "tool_search_autoload = true", "prefetch_tools_hide = false"
    ),
    "early calls load, for few tools": adds(SEARCH, "tool_search_autoload = true").replace(
        MAIN, f"{MAIN}\nmax_tools = 5"
    ),
    "no tool search and short results": edited(SEARCH, OFF).replace(
        LIMIT, "max_result_chars = 600"
    ),
    "prefetched tools stay": adds(SEARCH, "prefetch_tools_hide = false"),
    "a history budget": adds(ASK, "history_tokens = 300"),
    "a short directory": adds(SEARCH, "tool_search_directory_max_tokens = 40"),
    "no directory": adds(SEARCH, "tool_search_directory_max_tokens = 0"),
    "no destructive tools": ends_with("[access]", 'destructive = "deny"'),
    "destructive tools": ends_with("[access]", 'destructive = "allow"'),
    "explained searches": adds(SEARCH, "tool_search_explain = true"),
    "end is not enabled": edited('"send_message", "end", "get', '"send_message", "get'),
    "results.read is not enabled": edited('"results.read", ', ""),
    "fewer are enabled": edited('"weather.*", "payroll', '"weather.past", "payroll'),
    "some are disabled": adds("[handlers]", 'disabled = ["report.*", "notes.add"]'),
    "nothing is bundled": adds("[handlers]", "bundled = false"),
    "another separator": adds(MAIN, 'name_separator = "_x_"'),
    "all are loaded": edited(
        LOADED, LOADED.replace("]", ', "weather.forecast", "shop.item_1", "clerk", "nope"]')
    ),
    "another order": edited(LOADED, '["notes.add", "end", "send_message"]'),
    "nothing is loaded": edited(LOADED, "[]"),
    "end is needed": adds(ASK, "require_end = true"),
    "end is needed at once": adds(ASK, "require_end = true", "missing_tool_call_retries = 0"),
    "end is needed, two chances": adds(ASK, "require_end = true", "missing_tool_call_retries = 2"),
    "synonyms": ends_with("[search]", 'synonyms = ["percentage forecast report"]', "name = 0"),
    "no descriptions": ends_with("[search]", "description = 0"),
    "a prompt": adds(ASK, 'system_prompt = "be brief"'),
    "a rule about others": edited('roles = ["intern"]', 'roles = ["staff"]'),
    "a rule about users": ends_with(
        "[access.rules.both]", 'users = ["bob", "ann"]', 'deny = ["weather.*", "clerk"]'
    ),
    "a rule about a channel": ends_with(
        "[access.rules.web]", 'channels = ["web"]', 'deny = ["shop.*"]'
    ),
    "more calls": edited("max_tool_calls = 5", "max_tool_calls = 8"),
    "fewer calls": edited("max_tool_calls = 5", "max_tool_calls = 2"),
    "more turns": edited(ASK, "max_steps = 20"),
    "fewer turns": edited(ASK, "max_steps = 2"),
    "few tokens": adds(ASK, "max_total_tokens = 700"),
    "a key of other roles": edited('roles = ["staff"]\nact_for', 'roles = ["intern"]\nact_for'),
    "a key for fewer": edited('act_for = ["ann", "bob"]', 'act_for = ["bob"]'),
    "a profile less": edited("[models.other]", "[models.another]"),
    "another default": adds(ASK, 'default_model = "other"'),
    "another takes over": edited('fallback = "main"', 'fallback = "other"'),
    "nobody takes over": edited('fallback = "main"', ""),
    "another takes over, without search": edited('fallback = "main"', 'fallback = "other"').replace(
        "[models.other]", "[models.other]\nsupports_tool_search = false"
    ),
    "one with few tools takes over": edited(
        'fallback = "main"', 'fallback = "main"\nmax_tools = 5'
    ),
    "more is prefetched": edited(
        '"calendar.today"]', '"calendar.today", "files.wipe", "weather.past"]'
    ),
    "something else is prefetched": edited(
        '["get_current_time", "calendar.today"]', '["shop.item_1"]'
    ),
    "something long is prefetched": edited(
        '"calendar.today"]', '"calendar.today", "report.write"]'
    ),
    "nothing is prefetched": edited('["get_current_time", "calendar.today"]', "[]"),
    "more searches": edited("tool_search_max_calls = 3", "tool_search_max_calls = 30"),
    "fewer searches": edited("tool_search_max_calls = 3", "tool_search_max_calls = 1"),
    "more is found": edited("tool_search_max_results = 2", "tool_search_max_results = 9"),
    "less is found": edited("tool_search_max_results = 2", "tool_search_max_results = 1"),
    "more turns are looked at": edited("sticky_turns = 1", "sticky_turns = 9"),
    "no turn is looked at": edited("sticky_turns = 1", "sticky_turns = 0"),
    "short answers": adds(MAIN, "max_output_tokens = 3"),
    "a profile takes four tools": adds(MAIN, "max_tools = 4"),
    "a profile takes six tools": adds(MAIN, "max_tools = 6"),
    "no arguments are kept": edited("content = true", "content = false"),
    "no sub-agent": ends_with("[agents]", "max_depth = 1"),
}
