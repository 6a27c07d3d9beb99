"""Whole asks through model profiles: who takes over, how many tools go out, how many requests at once."""

import asyncio
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Runtime
from session_runtime.testing.replies import (
    Pace,
    reply_calls,
    reply_error,
    reply_text,
)
from session_runtime.testing.upstream import Upstream
from session_runtime.types import TextDelta, ToolFinished, TurnStarted
from tests.support import ask, opened, tool_folder, write_handler

PLAIN = "[skills]\nprefetch_tools = []\n"
COUNT = """
def execute(args, context):
    context.resources["ran"].append(args)
    return "done"
"""


def profiles(upstreams: Mapping[str, Upstream], **settings: Mapping[str, Any]) -> str:
    """A chat profile per upstream, each falling back to the one behind it; none tries again."""
    lines: list[str] = []
    names = list(upstreams)
    for name, following in zip(names, [*names[1:], None], strict=True):
        values = {"base_url": upstreams[name].base_url, "model": name, "max_retries": 0}
        values |= {"fallback": following} if following else {}
        values |= settings.get(name, {})
        lines += [f"[models.{name}]", *(f"{k} = {json.dumps(v)}" for k, v in values.items())]
    return "\n".join([*lines, ""])


def names_sent(request: Mapping[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in request.get("tools", ())]


def usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}


@pytest.mark.requirement("ASK-9b")
async def test_a_refused_key_makes_the_fallback_answer_for_the_caller_to_see(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        Upstream([reply_error(401, "who are you?")]) as main,
        Upstream([reply_text("hello", usage=usage(5))]) as backup,
    ):
        config = PLAIN + profiles({"main": main, "backup": backup})
        async with opened(tmp_path, config) as runtime:
            asked = await ask(runtime, "hi")
    assert (asked.result.outcome, asked.result.text) == ("answered", "hello")
    turns = [(turn.step, turn.attempt, turn.model) for turn in asked.of(TurnStarted)]
    assert turns == [(1, 1, "main"), (1, 2, "backup")]
    assert (backup.requests[0]["model"], asked.result.usage.input_tokens) == ("backup", 5)
    assert [r.message for r in caplog.records if r.levelno == logging.WARNING] == [
        "model profile 'main' failed (model.unauthorized): 'backup' takes over for the rest of the ask"
    ]


@pytest.mark.requirement("ASK-9b")
async def test_text_that_was_told_before_the_stream_broke_is_void_once_the_fallback_begins(
    tmp_path: Path,
) -> None:
    cut = reply_text("It is half past", pace=Pace(cut_after=3))
    async with Upstream([cut]) as main, Upstream([reply_text("It is noon.")]) as backup:
        config = PLAIN + profiles({"main": main, "backup": backup})
        async with opened(tmp_path, config) as runtime:
            asked = await ask(runtime, "time?")
    told = [e for e in asked.events if isinstance(e, TurnStarted | TextDelta)]
    second = next(at for at, e in enumerate(told) if isinstance(e, TurnStarted) and e.attempt == 2)
    texts = [
        [e.text for e in part if isinstance(e, TextDelta)]
        for part in (told[:second], told[second:])
    ]
    assert ["".join(part) for part in texts] == ["It is ", "It is noon."]
    assert asked.result.text == "It is noon."
    assert asked.result.new_messages[-1].content == "It is noon."


@pytest.mark.requirement("ASK-9b")
@pytest.mark.requirement("ASK-12")
async def test_a_fallback_in_the_second_turn_runs_no_tool_again_and_stays_until_the_ask_ends(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "mail.send", code=COUNT)
    write_handler(tmp_path / "tools", "mail.list", code=COUNT)
    ran: list[object] = []
    calls = [reply_calls(("mail__send", {"n": 1})), reply_error(500, "down")]
    others = [reply_calls(("mail-list", {"n": 2})), reply_text("sent")]
    async with Upstream(calls) as main, Upstream(others) as backup:
        config = PLAIN + tool_folder(tmp_path)
        config += profiles({"main": main, "backup": backup}, backup={"name_separator": "-"})
        async with opened(tmp_path, config, resources={"ran": ran}) as runtime:
            asked = await ask(runtime, "send it")
    assert (asked.result.text, ran) == ("sent", [{"n": 1}, {"n": 2}])
    assert [e.name for e in asked.of(ToolFinished)] == ["mail.send", "mail.list"]
    turns = [(turn.step, turn.attempt, turn.model) for turn in asked.of(TurnStarted)]
    assert turns == [(1, 1, "main"), (2, 1, "main"), (2, 2, "backup"), (3, 1, "backup")]
    assert len({turn.exposed for turn in asked.of(TurnStarted)}) == 1
    assert {"mail-send", "mail-list"} <= set(names_sent(backup.requests[0]))
    _, call, result = backup.requests[0]["messages"]
    assert (call["tool_calls"][0]["function"]["name"], result["content"]) == ("mail-send", "done")


@pytest.mark.requirement("ASK-9b")
async def test_a_loaded_tool_stays_loaded_when_a_fallback_takes_over(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "mail.send", code=COUNT)
    calls = [reply_calls(("tool_search", {"query": "select:mail.send"})), reply_error(403, "no")]
    others = [reply_calls(("mail-send", {})), reply_text("sent")]
    config = "[skills]\nprefetch_tools = []\ntool_search_enabled = true\n" + tool_folder(tmp_path)
    async with Upstream(calls) as main, Upstream(others) as backup:
        config += profiles({"main": main, "backup": backup}, backup={"name_separator": "-"})
        async with opened(tmp_path, config, resources={"ran": []}) as runtime:
            asked = await ask(runtime, "send it")
    assert (asked.result.text, asked.result.loaded_tools) == ("sent", ("mail.send",))
    wires = [names_sent(request) for request in (*main.requests, *backup.requests)]
    first = ["send_message", "end", "tool_search"]
    assert wires == [first, [*first, "mail__send"], [*first, "mail-send"], [*first, "mail-send"]]


@pytest.mark.requirement("ASK-9b")
@pytest.mark.parametrize(
    ("backup", "reason"),
    [
        ({"supports_tool_search": False}, "it does not support tool search, which this ask uses"),
        ({"max_tools": 2}, "it takes at most 2 tools (max_tools), and this request has 3"),
        (
            {"name_separator": "_"},
            "with its name_separator the tool 'tool.search' takes the name of tool_search",
        ),
    ],
)
async def test_a_fallback_that_cannot_go_on_with_tool_search_is_passed_over(
    tmp_path: Path, backup: dict[str, Any], reason: str
) -> None:
    write_handler(tmp_path / "tools", "tool.search")
    config = "[skills]\nprefetch_tools = []\ntool_search_enabled = true\n" + tool_folder(tmp_path)
    async with (
        Upstream([reply_error(401, "no")] * 2) as main,
        Upstream([]) as small,
        Upstream([reply_text("hi")]) as last,
    ):
        chain = {"main": main, "backup": small, "last": last}
        async with opened(tmp_path, config + profiles(chain, backup=backup)) as runtime:
            asked = await ask(runtime, "go")
        assert [turn.model for turn in asked.of(TurnStarted)] == ["main", "last"]
        chain = {"main": main, "backup": small}
        async with opened(tmp_path, config + profiles(chain, backup=backup)) as runtime:
            asked = await ask(runtime, "go")
    assert asked.result.error is not None
    assert asked.result.error.code == "model.unauthorized"
    assert f"its fallback 'backup' cannot take over: {reason}" in asked.result.error.message
    assert small.requests == []


@pytest.mark.requirement("ASK-9b")
async def test_when_all_profiles_fail_the_result_tells_of_each_and_no_secret(
    tmp_path: Path,
) -> None:
    async with (
        Upstream([reply_error(401, "bad key s3cr3t-value")]) as main,
        Upstream([reply_error(429, "slow down", headers={"retry-after": "9"})]) as backup,
    ):
        config = PLAIN + profiles(
            {"main": main, "backup": backup}, main={"headers": {}, "api_key": "s3cr3t-value"}
        ).replace("headers = {}\n", 'headers = { "X-Org" = "s3cr3t-value" }\n')
        async with opened(tmp_path, config) as runtime:
            asked = await ask(runtime, "hi")
    error = asked.result.error
    assert error is not None
    assert (error.code, error.retryable, error.retry_after_s) == ("model.rate_limited", True, 9.0)
    assert error.message == (
        f"model profile 'main' failed: the model at {main.base_url} answered 401: bad key ***; "
        "check the profile's api_key, or its headers (model.unauthorized); "
        f"its fallback 'backup' failed: the model at {backup.base_url} answered 429: slow down "
        "(model.rate_limited)"
    )


@pytest.mark.requirement("ASK-9")
async def test_a_busy_service_is_asked_again_before_anybody_takes_over(tmp_path: Path) -> None:
    busy = reply_error(429, "slow down", headers={"retry-after-ms": "1"})
    async with Upstream([busy, reply_text("hi")]) as main, Upstream([]) as backup:
        config = PLAIN + profiles({"main": main, "backup": backup}, main={"max_retries": 1})
        async with opened(tmp_path, config) as runtime:
            asked = await ask(runtime, "hi")
    assert [(turn.attempt, turn.model) for turn in asked.of(TurnStarted)] == [
        (1, "main"),
        (2, "main"),
    ]
    assert backup.requests == []


@pytest.mark.requirement("ASK-9b")
@pytest.mark.parametrize("cancelled", [True, False])
async def test_nobody_takes_over_at_the_deadline_or_once_the_caller_went_away(
    tmp_path: Path, cancelled: bool
) -> None:
    never = reply_text("late", pace=Pace(gate=asyncio.Event()))
    async with Upstream([never]) as main, Upstream([reply_text("hi")]) as backup:
        config = PLAIN + profiles({"main": main, "backup": backup})
        async with opened(tmp_path, config) as runtime:
            request = AskRequest("hi", deadline_s=None if cancelled else 0.2)
            asking = asyncio.create_task(ask(runtime, request))
            await main.received(1)
            if cancelled:
                asking.cancel()
            await asyncio.wait([asking])
    assert backup.requests == []
    if not cancelled:
        error = asking.result().result.error
        assert error is not None
        assert error.code == "limit.deadline"


@pytest.mark.requirement("ASK-12b")
async def test_more_tools_than_a_profile_takes_fail_before_anything_is_sent(tmp_path: Path) -> None:
    for n in range(3):
        write_handler(tmp_path / "tools", f"t{n}")
    config = f"{PLAIN}tool_search_always_loaded = []\n{tool_folder(tmp_path)}bundled = false\n"
    async with Upstream([]) as main, Upstream([]) as backup:
        config += profiles({"main": main, "backup": backup}, main={"max_tools": 2})
        async with opened(tmp_path, config) as runtime:
            asked = await ask(runtime, "hi")
            warnings = runtime.status()["warnings"]
    assert asked.result.error is not None
    assert (asked.result.error.code, asked.result.error.message) == (
        "model.too_many_tools",
        "model profile 'main' takes at most 2 tools (max_tools), and this request has 3: "
        "turn on tool search with skills.tool_search_enabled",
    )
    assert warnings == [
        "models.main.max_tools: without tool search the 3 tools are sent in each request, of which "
        "this profile takes 2: asks of those who may use more fail"
    ]
    assert (main.requests, backup.requests, asked.of(TurnStarted)) == ([], [], [])


@pytest.mark.requirement("ASK-12b")
async def test_searches_load_what_a_profile_takes_and_the_ask_goes_on(tmp_path: Path) -> None:
    for n in range(4):
        write_handler(tmp_path / "tools", f"t{n}")
    replies = [
        reply_calls(("tool_search", {"query": "select:t0,t1,t2"})),
        reply_calls(("tool_search", {"query": "select:t3"})),
        reply_text("I have what I need."),
    ]
    config = f"{tool_folder(tmp_path)}bundled = false\n"
    config += "[skills]\nprefetch_tools = []\ntool_search_enabled = true\n"
    config += "tool_search_threshold_percent = 100\n"
    async with Upstream(replies) as main:
        config += profiles({"main": main}, main={"max_tools": 3, "context_window": 100_000})
        async with opened(tmp_path, config) as runtime:
            asked = await ask(runtime, "hi")
            assert not any("max_tools" in warning for warning in runtime.status()["warnings"])
    assert (asked.result.outcome, asked.result.loaded_tools) == ("answered", ("t0", "t1"))
    assert [len(names_sent(request)) for request in main.requests] == [1, 3, 3]
    codes = [(e.status, e.error_code) for e in asked.of(ToolFinished)]
    assert codes == [("ok", None), ("refused", "tool_search.full")]
    assert '"truncated":true' in str(main.requests[1]["messages"][-1]["content"])


@pytest.mark.requirement("ASK-12b")
async def test_pinned_tools_that_leave_no_room_to_load_are_warned_about(tmp_path: Path) -> None:
    config = "[skills]\nprefetch_tools = []\ntool_search_enabled = true\n"
    config += '[models."my model"]\nwire = "offline"\nmax_tools = 3\n'
    async with opened(tmp_path, config) as runtime:
        assert runtime.status()["warnings"] == [
            'models."my model".max_tools: tool_search and 2 tools of skills.tool_search_always_loaded '
            "leave no room for any other tool in the 3 that this profile takes"
        ]


@pytest.mark.requirement("INT-1b")
async def test_a_request_that_waits_for_its_turn_ends_at_the_deadline_and_leaves_its_place(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    held = reply_text("first", pace=Pace(gate=gate))
    async with Upstream([held, reply_text("third")]) as main:
        config = PLAIN + profiles({"main": main}, main={"max_concurrency": 1})
        async with opened(tmp_path, config) as runtime:
            first = asyncio.create_task(ask(runtime, "one"))
            await main.received(1)
            second = await ask(runtime, "two", deadline_s=0.1)
            third = asyncio.create_task(ask(runtime, "three"))
            gate.set()
            texts = [(await task).result.text for task in (first, third)]
    assert second.result.error is not None
    assert (second.result.outcome, second.result.error.code) == ("limit", "limit.deadline")
    assert texts == ["first", "third"]
    assert len(main.requests) == 2


@pytest.mark.requirement("OPS-1a")
async def test_the_trace_tells_which_profile_was_asked_in_each_turn(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "t")
    calls = [reply_calls(("t", {})), reply_error(401, "no")]
    async with Upstream(calls) as main, Upstream([reply_text("ok")]) as backup:
        config = PLAIN + tool_folder(tmp_path) + profiles({"main": main, "backup": backup})
        path = tmp_path / "config.toml"
        path.write_text(config)
        async with Runtime.open(path, env={}) as runtime:
            await ask(runtime, "go")
    (line,) = (tmp_path / ".session-runtime" / "trace.jsonl").read_text().splitlines()
    record = json.loads(line)
    turns = [(turn["model"], turn["attempts"]) for turn in record["turns"]]
    assert (record["model"], turns) == ("main", [("main", 1), ("backup", 2)])
