"""Every defence against a model in a loop: what it comes to, and words that the model can act on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from session_runtime.types import ToolFinished
from tests.support import HANGS, ask, calls, opened, says, scripted, tool_folder, write_handler

SEARCH = "[skills]\nprefetch_tools = []\ntool_search_enabled = true\n"
PLAIN = "[skills]\nprefetch_tools = []\n"
POLL = calls(("poll", {}))
DONE = says("Done.")


def searches(*queries: str) -> list[dict[str, Any]]:
    return [calls(("tool_search", {"query": query})) for query in queries]


@dataclass(frozen=True)
class Defence:
    """Replies and settings that meet it; the code of the last result with words of it; how the ask ends."""

    replies: Sequence[dict[str, Any]]
    code: str | None = None
    words: str = ""
    settings: str = PLAIN
    error: str | None = None
    deadline_s: float | None = None


DEFENCES: Mapping[str, Defence] = {
    "too many turns": Defence(
        [calls(("poll", {"n": n})) for n in range(9)],
        settings=PLAIN + "[ask]\nmax_steps = 2\n",
        error="limit.steps",
    ),
    "too many calls": Defence(
        [calls(("poll", {"n": 1}), ("poll", {"n": 2})), DONE],
        "limit.calls",
        "answer now with what you have",
        settings=PLAIN + "[ask]\nmax_tool_calls = 1\n",
    ),
    "calls after too many calls": Defence(
        [POLL, POLL, DONE],
        "limit.calls",
        "answer now with what you have",
        settings=PLAIN + "[ask]\nmax_tool_calls = 1\n",
        error="limit.calls",
    ),
    "too many calls in a reply": Defence(
        [calls(*[("poll", {"n": n}) for n in range(129)]), DONE],
        "limit.calls_in_turn",
        "make the others in later turns",
        settings=PLAIN + "[ask]\nmax_tool_calls = 500\n",
    ),
    "the same call for the third time": Defence(
        [POLL] * 3 + [DONE], None, "another identical one will be refused"
    ),
    "the same call for the fourth time": Defence(
        [POLL] * 4 + [DONE], "tool.repeated", "change the arguments, or answer"
    ),
    "too many tokens": Defence(
        [POLL, DONE], settings=PLAIN + "[ask]\nmax_total_tokens = 1\n", error="limit.tokens"
    ),
    "no time left": Defence([calls(("hang", {})), DONE], error="limit.deadline", deadline_s=0.2),
    "too many searches": Defence(
        [*searches("poll", "hang", "poll hang"), DONE],
        "tool_search.exhausted",
        "Go on with the tools you have now, or say what you cannot do",
        settings=SEARCH + "tool_search_max_calls = 2\n",
    ),
    "three searches that find nothing": Defence(
        [*searches("qqxz", "zzqq", "xxqz", "poll"), DONE],
        "tool_search.exhausted",
        "Go on with the tools you have now, or say what you cannot do",
        settings=SEARCH,
    ),
    "a search for nothing": Defence(
        [*searches(" "), DONE],
        "tool_search.empty_query",
        "exact names from the directory, or a few keywords",
        settings=SEARCH,
    ),
    "the same search again": Defence(
        [*searches("select:poll", "select:poll"), DONE],
        None,
        '"loaded":[],"already_loaded":["poll"]',
        settings=SEARCH,
    ),
    "a call of a tool that is not loaded": Defence(
        [POLL, DONE],
        "tool.not_loaded",
        "Call tool_search with the query 'select:poll', then call poll in the next turn",
        settings=SEARCH,
    ),
    "the same call of a tool that is not loaded for the fourth time": Defence(
        [POLL] * 4 + [DONE],
        "tool.repeated",
        "'poll' was called 4 times, and it is not loaded: first call tool_search with",
        settings=SEARCH,
    ),
    "a call of a tool that no search can load any more": Defence(
        [*searches("qqxz", "zzqq", "xxqz"), POLL, DONE],
        "tool.not_loaded",
        "poll is not loaded and cannot be loaded any more. The last 3 searches found nothing. Go on",
        settings=SEARCH,
    ),
    "the fourth call of a tool that no search can load any more": Defence(
        [*searches("qqxz", "zzqq", "xxqz"), *[POLL] * 4, DONE],
        "tool.repeated",
        "'poll' was called 4 times, and it cannot be loaded any more: call another one, or answer",
        settings=SEARCH,
    ),
    "a call of no tool": Defence(
        [calls(("pole", {})), DONE],
        "tool.unknown",
        "Similar tools that can be called now: poll",
    ),
    "the same call of no tool for the fourth time": Defence(
        [calls(("pole", {}))] * 4 + [DONE],
        "tool.repeated",
        "'pole' was called 4 times, and there is no such tool here: call another one, or answer",
    ),
    "arguments that are none": Defence(
        [calls(("poll", "oops")), DONE],
        "tool.invalid_arguments",
        "Call it again with a JSON object",
    ),
    "an end beside other calls": Defence(
        [calls(("poll", {}), ("end", {})), DONE],
        "tool.end_not_alone",
        "then call end alone if nothing is left to do",
    ),
}


@pytest.mark.requirement("ASK-8")
@pytest.mark.requirement("TS-12")
@pytest.mark.parametrize("name", DEFENCES)
async def test_a_loop_ends_typed_and_the_model_is_told_what_to_do(
    tmp_path: Path, name: str
) -> None:
    met = DEFENCES[name]
    write_handler(tmp_path / "tools", "poll")
    write_handler(tmp_path / "tools", "hang", code=HANGS)
    text = tool_folder(tmp_path) + scripted(tmp_path, *met.replies) + met.settings
    async with opened(tmp_path, text, resources={"cancelled": []}) as runtime:
        asked = await ask(runtime, "go", deadline_s=met.deadline_s)
    result = asked.result
    outcome = "limit" if met.error else "answered"
    assert (result.outcome, result.error and result.error.code) == (outcome, met.error)
    results = [str(m.content) for m in result.new_messages if m.role == "tool"]
    if met.words:
        assert met.words in results[-1]
        assert asked.of(ToolFinished)[-1].error_code == met.code
