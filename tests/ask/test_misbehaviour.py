"""Every known misbehaviour of models and servers, on every wire, streamed or not: the ask still ends well."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskResult
from session_runtime.testing.conversation import Request, messages_of
from session_runtime.testing.misbehaviour import MISBEHAVIOURS, WIRES, misbehave
from session_runtime.testing.replies import Reply, reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import Message, TextDelta, ToolFinished
from tests.support import Asked, ask, chat_profile, opened, tool_folder, write_handler

RECORDS = """
async def execute(args, context):
    context.resources["ran"].append(dict(args))
    return "ok"
"""
Q = {"type": "object", "properties": {"q": {"type": "string"}}}  # so that a call may lack what came
RIGHT = reply_calls(("probe", {"q": "a"}), ("probe", {"q": "b"}))
MARKUP = (
    "tool_call",
    "<function",
    "<invoke",
    "TOOL_CALLS",
    "think",
    "```",
    '"arguments"',
    "I should",
    "probe(",
    "DSML",
    "<|",
    "function_call",
)


@dataclass(frozen=True)
class End:
    """How an ask is to end: with what ran, and the code of each result; else with an error."""

    ran: tuple[str | None, ...] = ()
    codes: tuple[str | None, ...] = ()
    outcome: str = "answered"
    error: str | None = None


RUNS = End(("a", "b"), (None, None))
BLANK = End((None, None), (None, None))
WRONG = End((), ("tool.invalid_arguments",) * 2)
UNKNOWN = End((), ("tool.unknown",) * 2)
EMPTY = End(outcome="failed", error="model.empty_answer")
BROKEN = End(outcome="failed", error="model.broken_reply")
LOST = End(outcome="failed", error="model.connection_lost")
NO_API = End(outcome="failed", error="model.not_an_api")
BUSY = End(outcome="failed", error="model.rate_limited")
DOWN = End(outcome="failed", error="model.unavailable")

ENDS: Mapping[str, End] = {
    **{name: RUNS for name in MISBEHAVIOURS if name.startswith(("text_", "thinking_"))},
    **{name: WRONG for name in MISBEHAVIOURS if name.startswith("arguments_")},
    **{name: EMPTY for name in MISBEHAVIOURS if name.endswith("_half")},
    "thinking_endless": EMPTY,
    "arguments_empty": BLANK,
    "arguments_null": BLANK,
    "arguments_object": RUNS,
    "arguments_fenced": RUNS,
    "arguments_comma": RUNS,
    "arguments_twice": RUNS,
    "index_missing": RUNS,
    "index_shared": RUNS,
    "id_missing": RUNS,
    "id_repeated": RUNS,
    "marks_missing": RUNS,
    "name_late": RUNS,
    "name_in_pieces": RUNS,
    "name_repeated": RUNS,
    "name_unknown": UNKNOWN,
    "name_empty": UNKNOWN,
    "call_repeated": RUNS,
    "interleaved": RUNS,
    "empty_deltas": RUNS,
    "finish_missing": RUNS,
    "finish_stop_with_calls": RUNS,
    "finish_length": RUNS,
    "finish_calls_without_calls": EMPTY,
    "end_empty": RUNS,
    "end_missing": RUNS,
    "end_of_calls_missing": RUNS,
    "arguments_blank_first": RUNS,
    "arguments_as_parameters": RUNS,
    "index_counts": RUNS,
    "index_counts_names": RUNS,
    "index_word": RUNS,
    "index_before": RUNS,
    "index_behind": RUNS,
    "id_shared_by_turns": RUNS,
    "id_new_in_each_piece": RUNS,
    "pieces_astray": RUNS,
    "end_blank": RUNS,
    "schema_parameters": RUNS,
    "schema_args": WRONG,
    "schema_flat": WRONG,
    "schema_answer": RUNS,
    "reply_empty": EMPTY,
    "reply_blank": EMPTY,
    "cut_stream": LOST,
    "no_json": BROKEN,
    "web_page": NO_API,
    "nothing": BROKEN,
    "error_inside": DOWN,
    "status_429": BUSY,
    "status_500": DOWN,
}
STREAMED: Mapping[str, End] = {
    "pieces_astray": WRONG,
    "id_new_in_each_piece": End((), ("tool.invalid_arguments",) * 6),
}
"""Where the pieces of a stream do not tell enough, while the same reply in one piece does."""

CELLS = [
    (name, wire, stream)
    for name, misbehaviour in MISBEHAVIOURS.items()
    if "native" in misbehaviour.modes
    for wire in misbehaviour.wires
    for stream in (True, False)
]


IN_WORDS = [
    (name, mode)
    for name, misbehaviour in MISBEHAVIOURS.items()
    for mode in ("text", "json_schema")
    if mode in misbehaviour.modes
]


def end_of(name: str, *, stream: bool) -> End:
    return STREAMED.get(name, ENDS[name]) if stream else ENDS[name]


@dataclass
class Played:
    """An ask whose first reply misbehaves: how it ended, what ran, what the server was sent."""

    asked: Asked
    ran: list[Any] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)


async def played(
    folder: Path, first: str | Reply, wire: str, stream: bool, mode: str = "native"
) -> Played:
    write_handler(folder / "tools", "probe", parameters=Q, code=RECORDS)
    replies = [misbehave(first, RIGHT) if isinstance(first, str) else first]

    def reply(request: Request) -> Reply:
        return replies.pop() if replies else reply_text("done")

    ran: list[Any] = []
    async with Upstream(reply) as upstream:
        begun = first == "text_after_closing"  # nothing else says where this thinking began
        settings = {"wire": wire, "call_mode": mode, "starts_thinking": begun}
        profile = chat_profile(upstream.base_url, stream=stream, **settings)
        text = tool_folder(folder) + profile + "[skills]\nprefetch_tools = []\n"
        async with opened(folder, text, resources={"ran": ran}) as runtime:
            asked = await ask(runtime, "go")
        return Played(asked, ran, upstream.requests)


def test_the_table_has_a_row_for_each_misbehaviour() -> None:
    assert ENDS.keys() == MISBEHAVIOURS.keys()
    assert {wire for _, wire, _ in CELLS} == set(WIRES)


@pytest.mark.requirement("ASK-4")
@pytest.mark.requirement("ASK-5")
@pytest.mark.requirement("ASK-6")
@pytest.mark.parametrize(("name", "wire", "stream"), CELLS)
async def test_an_ask_ends_with_a_right_answer_or_a_typed_outcome(
    tmp_path: Path, name: str, wire: str, stream: bool
) -> None:
    end, found = end_of(name, stream=stream), await played(tmp_path, name, wire, stream)
    result = found.asked.result
    assert (result.outcome, result.error and result.error.code) == (end.outcome, end.error)
    assert [arguments.get("q") for arguments in found.ran] == list(end.ran)
    assert [each.error_code for each in found.asked.of(ToolFinished)] == list(end.codes)
    assert result.text == ("done" if end.codes else "")
    check_pairs(result.new_messages)
    for request in found.requests[1:]:
        check_sent(request, end)
    check_markup(found.asked, result)


@pytest.mark.requirement("ASK-4")
@pytest.mark.requirement("ASK-6")
@pytest.mark.parametrize(("name", "mode"), IN_WORDS)
async def test_an_ask_ends_likewise_where_tools_are_told_in_words(
    tmp_path: Path, name: str, mode: str
) -> None:
    wire = next(iter(MISBEHAVIOURS[name].wires))
    end, found = (
        end_of(name, stream=True),
        await played(tmp_path, name, wire, stream=True, mode=mode if wire == "chat" else "text"),
    )
    result = found.asked.result
    assert (result.outcome, result.error and result.error.code) == (end.outcome, end.error)
    assert [arguments.get("q") for arguments in found.ran] == list(end.ran)
    assert [each.error_code for each in found.asked.of(ToolFinished)] == list(end.codes)
    check_pairs(result.new_messages)
    check_markup(found.asked, result)


def check_pairs(messages: tuple[Message, ...]) -> None:
    """Each call has one result, right behind it and in the order of the calls."""
    made = [call.id for message in messages for call in message.tool_calls]
    answered = [message.tool_call_id for message in messages if message.role == "tool"]
    assert made == answered
    assert max(Counter(made).values(), default=1) == 1


def check_sent(request: Request, end: End) -> None:
    """What the service is sent holds each result once; a chain holds the calls."""
    sent = messages_of(request)
    results = [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    calls = [call["id"] for message in sent for call in message.get("tool_calls") or ()]
    assert len(results) == len(end.codes)
    if "previous_response_id" not in request:
        assert calls == results
        assert not any(mark in json.dumps(sent) for mark in ("<tool_call", "<invoke", "<function"))


def check_markup(asked: Asked, result: AskResult) -> None:
    """Neither the pieces of text nor the result shows markup or thinking."""
    shown = "".join(event.text for event in asked.of(TextDelta)) + result.text
    assert not any(mark in shown for mark in MARKUP), shown


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("thinking_tags", "reasoning_content"),
        ("text_after_thinking", "reasoning_content"),
        ("text_after_closing", "reasoning_content"),
        ("thinking_apart", "reasoning_content"),
        ("thinking_apart_too", "reasoning"),
    ],
)
async def test_the_service_gets_the_thinking_back_beside_the_calls_it_led_to(
    tmp_path: Path, name: str, field: str
) -> None:
    found = await played(tmp_path, name, "chat", stream=True)
    (answer,) = [m for m in found.requests[1]["messages"] if m["role"] == "assistant"]
    assert (answer["content"], answer[field]) == (None, "I should call a tool.")


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("broken", ['{"q": "a"', 'query = """x"""'])
async def test_a_good_call_runs_beside_a_broken_one_which_is_told_what_is_wrong(
    tmp_path: Path, wire: str, broken: str
) -> None:
    reply = reply_calls(("probe", broken), ("probe", {"q": "good"}))
    found = await played(tmp_path, reply, wire, stream=True)
    assert found.ran == [{"q": "good"}]
    told, ran = [m for m in found.asked.result.new_messages if m.role == "tool"]
    assert "not valid JSON" in str(told.content)
    assert (ran.content, found.asked.result.text) == ("ok", "done")


def test_an_unknown_misbehaviour_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(KeyError, match="text_hermes"):
        misbehave("text_herms", RIGHT)
