"""Whole asks against scripted replies: how turns follow each other and how an ask ends."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from session_runtime import AskRequest, Identity, Message
from session_runtime.testing.replies import reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import (
    MessageSent,
    TextDelta,
    ToolCall,
    ToolFinished,
    ToolsLoaded,
    ToolStarted,
    TurnStarted,
)
from tests.support import (
    HANGS,
    ask,
    calls,
    chat_profile,
    opened,
    says,
    scripted,
    tool_folder,
    write_handler,
)

SEARCH_ON = "[skills]\ntool_search_enabled = true\nprefetch_tools = []\n"
SEARCH_OFF = "[skills]\nprefetch_tools = []\n"


@pytest.fixture
def weather(tmp_path: Path) -> str:
    write_handler(
        tmp_path / "tools",
        "weather.today",
        description="Tells the weather of a city.",
        parameters={
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
        code="def execute(args, context):\n    return f'sunny in {args[\"city\"]}'\n",
    )
    return tool_folder(tmp_path)


@pytest.mark.requirement("TS-6")
@pytest.mark.requirement("INT-3")
async def test_a_found_tool_is_callable_from_the_next_turn_and_answers(
    tmp_path: Path, weather: str
) -> None:
    script = scripted(
        tmp_path,
        calls(("tool_search", {"query": "select:weather.today"})),
        calls(("weather.today", {"city": "Rome"})),
        says("It is sunny."),
    )
    async with opened(tmp_path, weather + SEARCH_ON + script) as runtime:
        asked = await ask(runtime, "How is the weather in Rome?")
    assert (asked.result.outcome, asked.result.text) == ("answered", "It is sunny.")
    assert asked.result.loaded_tools == ("weather.today",)
    assert [t.exposed[-2:] for t in asked.of(TurnStarted)] == [
        ("end", "tool_search"),
        ("tool_search", "weather.today"),
        ("tool_search", "weather.today"),
    ]
    kinds = [e.type for e in asked.events if not isinstance(e, TextDelta)]
    assert kinds == [
        "ask.started",
        "turn.started",
        "tool.started",
        "tools.loaded",
        "tool.finished",
        "turn.started",
        "tool.started",
        "tool.finished",
        "turn.started",
        "ask.finished",
    ]
    assert [e.seq for e in asked.events] == list(range(1, len(asked.events) + 1))


@pytest.mark.requirement("TS-6")
@pytest.mark.requirement("TS-13")
async def test_a_tool_cannot_be_called_in_the_turn_that_loads_it(
    tmp_path: Path, weather: str
) -> None:
    script = scripted(
        tmp_path,
        calls(
            ("tool_search", {"query": "weather"}),
            ("weather.today", {"city": "Rome"}),
        ),
        says("ok"),
    )
    async with opened(tmp_path, weather + SEARCH_ON + script) as runtime:
        asked = await ask(runtime, "weather?")
    refused = asked.of(ToolFinished)[-1]
    assert (refused.name, refused.status, refused.error_code) == (
        "weather.today",
        "refused",
        "tool.not_loaded",
    )
    assert [e.name for e in asked.of(ToolStarted)] == ["tool_search"]
    assert "select:weather.today" in str(asked.result.new_messages[-2].content)


@pytest.mark.requirement("TS-13")
async def test_with_search_off_a_name_that_was_not_sent_is_not_executed(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "secret.wipe", code="raise SystemExit('it ran')\n")
    denied = '[access.rules.r]\ndeny = ["secret.*"]\n'
    script = scripted(tmp_path, calls(("secret.wipe", {})), says("ok"))
    async with opened(tmp_path, tool_folder(tmp_path) + SEARCH_OFF + denied + script) as runtime:
        asked = await ask(runtime, "wipe")
    assert [(e.status, e.error_code) for e in asked.of(ToolFinished)] == [
        ("refused", "tool.unknown")
    ]


@pytest.mark.requirement("ASK-4")
async def test_three_calls_one_good_one_raising_one_beyond_the_limit_get_three_results_in_order(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "good")
    write_handler(tmp_path / "tools", "bad", code="def execute(args, context):\n    1 / 0\n")
    script = scripted(tmp_path, calls(("good", {}), ("bad", {}), ("good", {"x": 1})), says("done"))
    limits = "[ask]\nmax_tool_calls = 2\n"
    async with opened(tmp_path, tool_folder(tmp_path) + SEARCH_OFF + limits + script) as runtime:
        asked = await ask(runtime, "go")
    question, reply, *results, answer = asked.result.new_messages
    assert (question.role, answer.content) == ("user", "done")
    assert [r.tool_call_id for r in results] == [c.id for c in reply.tool_calls]
    texts = [str(r.content) for r in results]
    assert texts[0] == '{"got":{}}'
    assert "ZeroDivisionError" in texts[1]
    assert "limit of 2 tool calls" in texts[2]


@pytest.mark.requirement("ASK-5")
async def test_unreadable_arguments_are_answered_and_their_neighbour_runs(
    tmp_path: Path, weather: str
) -> None:
    script = scripted(
        tmp_path,
        calls(("weather.today", '{"city": "a"'), ("weather.today", {"city": "Rome"})),
        says("done"),
    )
    async with opened(tmp_path, weather + SEARCH_OFF + script) as runtime:
        asked = await ask(runtime, "go")
    texts = [str(m.content) for m in asked.result.new_messages if m.role == "tool"]
    assert "not valid JSON" in texts[0]
    assert texts[1] == "sunny in Rome"
    assert asked.result.outcome == "answered"


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    "raw", ['{"city": "Rome",}', '```json\n{"city": "Rome"}\n```', '"{\\"city\\": \\"Rome\\"}"']
)
async def test_a_repaired_call_is_remembered_as_it_ran(
    tmp_path: Path, weather: str, raw: str
) -> None:
    script = scripted(tmp_path, calls(("weather.today", raw)), says("done"))
    async with opened(tmp_path, weather + SEARCH_OFF + script) as runtime:
        asked = await ask(runtime, "go")
    (call,) = asked.result.new_messages[1].tool_calls
    assert call.arguments == '{"city": "Rome"}'
    assert asked.result.new_messages[2].content == "sunny in Rome"


@pytest.mark.requirement("ASK-7")
async def test_end_alone_ends_the_ask(tmp_path: Path) -> None:
    script = scripted(tmp_path, calls(("end", {}), text="bye"))
    async with opened(tmp_path, SEARCH_OFF + script) as runtime:
        asked = await ask(runtime, "go")
    assert (asked.result.outcome, asked.result.text, asked.result.steps) == ("ended", "bye", 1)


@pytest.mark.requirement("ASK-7")
async def test_end_beside_a_message_is_refused_the_message_is_sent_once_and_the_next_end_ends(
    tmp_path: Path,
) -> None:
    script = scripted(
        tmp_path,
        calls(("send_message", {"text": "hello"}), ("end", {})),
        calls(("end", {})),
    )
    async with opened(tmp_path, SEARCH_OFF + script) as runtime:
        asked = await ask(runtime, "go")
    assert asked.result.outcome == "ended"
    assert asked.result.messages == ("hello",)
    assert [e.text for e in asked.of(MessageSent)] == ["hello"]
    assert [(e.name, e.status) for e in asked.of(ToolFinished)] == [
        ("send_message", "ok"),
        ("end", "refused"),
        ("end", "ok"),
    ]


@pytest.mark.requirement("ASK-7")
async def test_prose_is_nudged_and_delivered_when_the_nudges_are_used_up(tmp_path: Path) -> None:
    script = scripted(tmp_path, says("one"), says("two"), says("three"))
    limits = "[ask]\nrequire_end = true\nmissing_tool_call_retries = 2\n"
    async with opened(tmp_path, SEARCH_OFF + limits + script) as runtime:
        asked = await ask(runtime, "go")
    assert (asked.result.outcome, asked.result.text, asked.result.steps) == (
        "answered",
        "three",
        3,
    )
    assert [m.content for m in asked.result.new_messages] == ["go", "three"]


@pytest.mark.requirement("ASK-4")
async def test_a_flood_of_invented_calls_gets_a_result_each_and_the_ask_goes_on(
    tmp_path: Path,
) -> None:
    script = scripted(tmp_path, calls(*((f"invented_{n}", {}) for n in range(3_000))), says("ok"))
    async with opened(tmp_path, SEARCH_OFF + script) as runtime:
        asked = await ask(runtime, "go")
    codes = [e.error_code for e in asked.of(ToolFinished)]
    assert (codes.count("tool.unknown"), codes.count("limit.calls_in_turn")) == (128, 2_872)
    assert asked.result.outcome == "answered"


@pytest.mark.requirement("ASK-1")
async def test_a_sink_that_raises_does_not_break_the_ask(tmp_path: Path) -> None:
    def broken(event: object) -> None:
        raise RuntimeError("no")

    async with opened(tmp_path, SEARCH_OFF + scripted(tmp_path, says("hi"))) as runtime:
        result = await runtime.ask(AskRequest("go"), broken)
    assert (result.outcome, result.text) == ("answered", "hi")


@pytest.mark.requirement("ASK-1")
@pytest.mark.parametrize(
    ("request_", "code", "says_"),
    [
        (AskRequest(), "request.invalid", "either text or messages"),
        (AskRequest(" "), "request.invalid", "text is empty"),
        (AskRequest("hi", messages=[Message("user", "x")]), "request.invalid", "exactly one"),
        (AskRequest("hi", deadline_s=-1), "request.invalid", "deadline_s is -1"),
        (AskRequest("hi", deadline_s="5"), "request.invalid", "deadline_s is '5': give a number"),  # type: ignore[arg-type]
        (AskRequest(5), "request.invalid", "text is 5: give a string"),  # type: ignore[arg-type]
        (AskRequest("hi", history=[{"role": "user"}]), "request.invalid", "history[0] is dict"),  # type: ignore[list-item]
        (AskRequest("hi", identity=Identity(roles="admin")), "request.invalid", "identity.roles"),  # type: ignore[arg-type]
        (AskRequest("hi", identity=Identity(user=7)), "request.invalid", "identity.user is 7"),  # type: ignore[arg-type]
        (AskRequest("hi", principal="boss"), "request.invalid", "principal is 'boss'"),  # type: ignore[arg-type]
        (AskRequest("hi", model="mian"), "request.unknown_model", "did you mean 'main'"),
    ],
)
async def test_a_wrong_request_is_a_typed_failure_never_an_exception(
    tmp_path: Path, request_: AskRequest, code: str, says_: str
) -> None:
    async with opened(tmp_path, SEARCH_OFF + scripted(tmp_path, says("hi"))) as runtime:
        asked = await ask(runtime, request_)
    assert asked.result.error is not None
    assert (asked.result.outcome, asked.result.error.code) == ("failed", code)
    assert says_ in asked.result.error.message
    assert [e.type for e in asked.events] == ["ask.finished"]


@pytest.mark.requirement("ASK-1")
async def test_a_full_runtime_refuses_at_once_and_says_when_to_come_back(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "hang", code=HANGS)
    limits = "[runtime]\nmax_concurrent_asks = 1\n"
    script = scripted(tmp_path, calls(("hang", {})))
    running = asyncio.Event()
    async with opened(
        tmp_path,
        tool_folder(tmp_path) + SEARCH_OFF + limits + script,
        resources={"cancelled": []},
    ) as runtime:
        first = asyncio.create_task(
            runtime.ask(
                AskRequest("go"), lambda e: running.set() if e.type == "tool.started" else 0
            )
        )
        await running.wait()
        asked = await ask(runtime, "me too")
        first.cancel()
        await asyncio.wait([first])
    assert asked.result.error is not None
    assert (asked.result.error.code, asked.result.error.retryable) == ("busy.capacity", True)
    assert asked.result.error.retry_after_s is not None


@pytest.mark.requirement("ASK-9")
async def test_a_model_that_fails_for_good_is_a_typed_failure_with_the_transcript_so_far(
    tmp_path: Path, weather: str, caplog: pytest.LogCaptureFixture
) -> None:
    script = scripted(
        tmp_path,
        calls(("weather.today", {"city": "Rome"})),
        {"error": {"code": "model.unauthorized", "message": "no key"}},
    )
    async with opened(tmp_path, weather + SEARCH_OFF + script) as runtime:
        asked = await ask(runtime, "go")
    assert asked.result.error is not None
    assert (asked.result.outcome, asked.result.error.code) == ("failed", "model.unauthorized")
    assert [r.message for r in caplog.records] == [
        f"{asked.result.ask_id} failed: no key (model.unauthorized)"
    ]
    assert [m.role for m in asked.result.new_messages] == ["user", "assistant", "tool"]


@pytest.mark.requirement("ASK-4")
async def test_calls_of_one_turn_run_at_the_same_time(tmp_path: Path) -> None:
    meet = (
        "async def execute(args, context):\n"
        "    await context.resources['barrier'].wait()\n"
        "    return 'met'\n"
    )
    write_handler(tmp_path / "tools", "left", code=meet)
    write_handler(tmp_path / "tools", "right", code=meet)
    script = scripted(tmp_path, calls(("left", {}), ("right", {})), says("done"))
    async with opened(
        tmp_path,
        tool_folder(tmp_path) + SEARCH_OFF + script,
        resources={"barrier": asyncio.Barrier(2)},
    ) as runtime:
        asked = await ask(runtime, "go", deadline_s=10)
    assert [m.content for m in asked.result.new_messages if m.role == "tool"] == ["met", "met"]


@pytest.mark.requirement("RTE-11")
async def test_an_invented_name_is_answered_with_near_names_that_may_be_called_now(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "occrra_information")
    write_handler(tmp_path / "tools", "occrr_hidden_information")
    hidden = '[access.rules.r]\ndeny = ["*hidden*"]\n'
    script = scripted(tmp_path, calls(("occcra_information", {})), says("ok"))
    async with opened(tmp_path, tool_folder(tmp_path) + SEARCH_OFF + hidden + script) as runtime:
        asked = await ask(runtime, "go")
    text = str(asked.result.new_messages[2].content)
    assert "occrra_information" in text
    assert "hidden" not in text


@pytest.mark.requirement("ASK-2")
async def test_history_goes_before_the_question_and_is_not_returned(tmp_path: Path) -> None:
    history = [
        Message("user", "earlier"),
        Message("assistant", None, (ToolCall("c1", "gone.tool", "{}"),)),
    ]
    async with opened(tmp_path, SEARCH_OFF + scripted(tmp_path, says("hi"))) as runtime:
        asked = await ask(runtime, AskRequest("now", history=history))
    assert [m.content for m in asked.result.new_messages] == ["now", "hi"]


@pytest.mark.requirement("TS-12")
async def test_loading_is_reported_with_names_once(tmp_path: Path, weather: str) -> None:
    script = scripted(
        tmp_path,
        calls(("tool_search", {"query": "weather"})),
        calls(("tool_search", {"query": "weather"})),
        says("done"),
    )
    async with opened(tmp_path, weather + SEARCH_ON + script) as runtime:
        asked = await ask(runtime, "go")
    assert [e.names for e in asked.of(ToolsLoaded)] == [("weather.today",)]


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    "arguments", ["", "{}", "{ }", "null", '""', '"{}"', "```json\n{}\n```", " " * 20_000]
)
async def test_a_call_that_was_cut_off_before_its_arguments_is_not_run(
    tmp_path: Path, arguments: str
) -> None:
    write_handler(tmp_path / "tools", "count")
    cut = replace(reply_calls(("count", arguments)), finish_reason="length")
    async with Upstream([cut, reply_text("sorry")]) as upstream:
        config = chat_profile(upstream.base_url) + tool_folder(tmp_path) + SEARCH_OFF
        async with opened(tmp_path, config) as runtime:
            asked = await ask(runtime, "how many?")
    assert asked.of(ToolStarted) == []
    assert asked.result.new_messages[2].content == (
        "count was not run: your reply was cut off before its arguments. Call it again."
    )
