"""One scripted ask over all wires, streamed and not: the same events, tools and result (ASK-3)."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskEvent, AskRequest, AskResult
from session_runtime.registry.spec import ToolSpec
from session_runtime.testing.replies import (
    Call,
    ChatReply,
    Reply,
    reply_calls,
    reply_error,
    reply_text,
)
from session_runtime.testing.upstream import Replies, Upstream
from session_runtime.types import (
    AskFinished,
    ImagePart,
    Message,
    TextDelta,
    TextPart,
    ToolCall,
    ToolFinished,
)
from session_runtime.wire.incoming import request_from_json
from session_runtime.wire.outgoing import result_to_json
from tests.support import Asked, ask, chat_profile, opened, write_handler

CODE = "async def execute(args, context):\n    return {'got': args}\n"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
QUERY = '{"query": "select:weather.now,weather.soon"}'
LOADED = (
    '{"loaded":["weather.now","weather.soon"],"already_loaded":[],"not_found":[],'
    '"truncated":false,"total_deferred_tools":2}'
)
PIXEL = "data:image/png;base64,AA"
HISTORY = (
    Message("user", "Hello."),
    Message("assistant", None, (ToolCall("c0", "old.tool", "{}"),), extra={"reasoning": "hm"}),
    Message("tool", "old", tool_call_id="c0"),
    Message("assistant", "Hello!"),
)
PICTURE = Message("user", (TextPart("And here?"), ImagePart(PIXEL, "low")))
SEARCHES = ChatReply("Let me look.", (Call("tool_search", QUERY, "c0"),), USAGE, "tool_calls")
REPLIES: tuple[Reply, ...] = (
    SEARCHES,
    reply_calls(("weather__now", {"city": "Bonn"}), ("weather__soon", '{"city": "Köln",}')),
    reply_text("Sun, then rain.", usage=USAGE),
)
ENDING = (*REPLIES[:2], reply_calls(("end", {})))
WIRES = tuple(itertools.product(("chat", "responses", "anthropic"), (True, False)))


@dataclass(frozen=True)
class Played:
    """A finished ask, what the service was sent, and the tools in the order in which they came."""

    asked: Asked
    requests: tuple[Any, ...]
    tools: tuple[ToolSpec, ...]
    directory: str


def configured(folder: Path, upstream: Upstream, **profile: Any) -> str:
    tools = folder / "tools"
    if not tools.exists():
        for name in ("end", "weather.now", "weather.soon"):
            write_handler(tools, name, parameters=CITY, code=CODE)
    settings = '[ask]\nsystem_prompt = "Be kind."\n'
    skills = "[skills]\ntool_search_enabled = true\nprefetch_tools = []\n"
    handlers = f'[handlers]\nbundled = false\npaths = ["{tools}"]\n'
    return settings + handlers + skills + chat_profile(upstream.base_url, **profile)


async def played(folder: Path, replies: Replies, **profile: Any) -> Played:
    """The ask about the weather."""
    async with (
        Upstream(replies) as upstream,
        opened(folder, configured(folder, upstream, **profile)) as runtime,
    ):
        asked = await ask(runtime, AskRequest(history=HISTORY, messages=(PICTURE,)))
        generation = runtime.generation
    by_name = {spec.name: spec for spec in generation.catalog.specs}
    found = (
        by_name["end"],
        generation.loader.spec,
        by_name["weather.now"],
        by_name["weather.soon"],
    )
    return Played(asked, tuple(upstream.requests), found, directory_of(upstream.requests[0]))


def directory_of(request: Any) -> str:
    """The system message of tool search, as each wire sends it."""
    if "instructions" in request:
        return str(request["instructions"]).removeprefix("Be kind.\n\n")
    if "system" in request:
        return str(request["system"][0]["text"]).removeprefix("Be kind.\n\n")
    return str(request["messages"][1]["content"])


def comparable(asked: Asked) -> list[AskEvent]:
    """Events without the ask's id and numbers, the text in one piece however it was streamed.

    Calls of a turn run side by side: in which order they finish is nobody's promise.
    """
    events: list[AskEvent] = []
    for event in asked.events:
        bare: AskEvent = replace(event, ask_id="", seq=0)
        if isinstance(bare, AskFinished):
            bare = replace(bare, result=comparable_result(bare.result))
        if isinstance(bare, TextDelta) and isinstance(before := events[-1], TextDelta):
            events.pop()
            bare = replace(bare, text=before.text + bare.text)
        events.append(bare)
    return [
        event for kind, group in itertools.groupby(events, type) for event in in_order(kind, group)
    ]


def in_order(kind: type[AskEvent], group: Iterable[AskEvent]) -> list[AskEvent]:
    if kind is not ToolFinished:
        return list(group)
    return sorted(group, key=lambda event: event.call_id if isinstance(event, ToolFinished) else "")


def comparable_result(result: AskResult) -> AskResult:
    return replace(result, ask_id="")


@pytest.mark.requirement("ASK-3b")
@pytest.mark.parametrize("replies", [REPLIES, ENDING], ids=["prose", "end"])
async def test_all_wires_give_the_same_events_and_the_same_result(
    tmp_path: Path, replies: tuple[Reply, ...]
) -> None:
    plays = [await played(tmp_path, replies, wire=wire, stream=how) for wire, how in WIRES]
    assert plays[0].asked.result.outcome == ("answered" if replies is REPLIES else "ended")
    assert plays[0].asked.result.loaded_tools == ("weather.now", "weather.soon")
    for play in plays[1:]:
        assert comparable(play.asked) == comparable(plays[0].asked)
        assert comparable_result(play.asked.result) == comparable_result(plays[0].asked.result)
        assert play.directory == plays[0].directory


@pytest.mark.requirement("ASK-3")
async def test_the_three_requests_of_an_ask_on_the_wire_chat(tmp_path: Path) -> None:
    play = await played(tmp_path, REPLIES, wire="chat", stream=False)
    opening = [
        {"role": "system", "content": "Be kind."},
        {"role": "system", "content": play.directory},
        {"role": "user", "content": "Hello."},
        {**chat_calls(("c0", "old__tool", "{}")), "reasoning": "hm"},
        {"role": "tool", "tool_call_id": "c0", "content": "old"},
        {"role": "assistant", "content": "Hello!"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "And here?"},
                {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
            ],
        },
    ]
    search = [
        {**chat_calls(("call_0", "tool_search", QUERY)), "content": "Let me look."},
        {"role": "tool", "tool_call_id": "call_0", "content": LOADED},
    ]
    weather = [
        chat_calls(
            ("call_1", "weather__now", '{"city": "Bonn"}'),
            ("c1", "weather__soon", '{"city": "Köln"}'),
        ),
        {"role": "tool", "tool_call_id": "call_1", "content": '{"got":{"city":"Bonn"}}'},
        {"role": "tool", "tool_call_id": "c1", "content": '{"got":{"city":"Köln"}}'},
    ]
    tools = [{"type": "function", "function": function(spec)} for spec in play.tools]
    assert play.requests == (
        {"model": "m", "tools": tools[:2], "messages": opening},
        {"model": "m", "tools": tools, "messages": opening + search},
        {"model": "m", "tools": tools, "messages": opening + search + weather},
    )


@pytest.mark.requirement("ASK-3b")
async def test_the_three_requests_of_an_ask_on_the_wire_responses(tmp_path: Path) -> None:
    play = await played(tmp_path, REPLIES, wire="responses", stream=False)
    always = {
        "model": "m",
        "store": True,
        "include": ["reasoning.encrypted_content"],
        "instructions": f"Be kind.\n\n{play.directory}",
    }
    tools = [{"type": "function", **function(spec), "strict": False} for spec in play.tools]
    assert play.requests == (
        {**always, "tools": tools[:2], "input": OPENING_ITEMS},
        {
            **always,
            "tools": tools,
            "previous_response_id": "resp_1",
            "input": [output("c0", LOADED)],
        },
        {
            **always,
            "tools": tools,
            "previous_response_id": "resp_2",
            "input": [
                output("c0", '{"got":{"city":"Bonn"}}'),
                output("c1", '{"got":{"city":"Köln"}}'),
            ],
        },
    )


@pytest.mark.requirement("ASK-3b")
@pytest.mark.parametrize("chain", [True, False])
async def test_without_a_chain_the_third_request_holds_the_whole_ask(
    tmp_path: Path, chain: bool
) -> None:
    def keeps_nothing(request: Any) -> Reply:
        if "previous_response_id" in request:
            return reply_error(404, "gone", code="previous_response_not_found")
        outputs = sum(item["type"] == "function_call_output" for item in request["input"])
        return REPLIES[{1: 0, 2: 1, 4: 2}[outputs]]

    play = await played(tmp_path, keeps_nothing, wire="responses", stream=False, chain=chain)
    chained = await played(tmp_path, REPLIES, wire="responses", stream=False)
    tools = [{"type": "function", **function(spec), "strict": False} for spec in play.tools]
    assert comparable(play.asked) == comparable(chained.asked)
    assert play.requests[-1] == {
        "model": "m",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": f"Be kind.\n\n{play.directory}",
        "tools": tools,
        "input": [
            *OPENING_ITEMS,
            said("Let me look."),
            call("call_0", "tool_search", QUERY),
            output("call_0", LOADED),
            call("call_1", "weather__now", '{"city": "Bonn"}'),
            call("c1", "weather__soon", '{"city": "Köln"}'),
            output("call_1", '{"got":{"city":"Bonn"}}'),
            output("c1", '{"got":{"city":"Köln"}}'),
        ],
    }


@pytest.mark.requirement("ASK-3b")
async def test_reasoning_comes_back_with_the_history_of_the_next_ask_as_json(
    tmp_path: Path,
) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    replies = [replace(SEARCHES, items=(thought,)), reply_text("one"), reply_text("two")]
    async with (
        Upstream(replies) as upstream,
        opened(tmp_path, configured(tmp_path, upstream, wire="responses")) as runtime,
    ):
        first = await ask(runtime, "find it")
        history = result_to_json(first.result)["new_messages"]
        await ask(runtime, request_from_json({"text": "and now?", "history": history}))
    assert "previous_response_id" not in upstream.requests[2]
    assert upstream.requests[2]["input"] == [
        asked_in("find it"),
        thought,
        said("Let me look."),
        call("c0", "tool_search", QUERY),
        output("c0", LOADED),
        said("one"),
        asked_in("and now?"),
    ]


def function(spec: ToolSpec) -> dict[str, Any]:
    """A tool as both wires describe it."""
    return {
        "name": spec.name.replace(".", "__"),
        "description": spec.description,
        "parameters": dict(spec.parameters),
    }


def chat_calls(*calls: tuple[str, str, str]) -> dict[str, Any]:
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def asked_in(text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content}


def said(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content}


def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    item = {"type": "function_call", "call_id": call_id}
    return {**item, "name": name, "arguments": arguments}


def output(call_id: str, text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


OPENING_ITEMS = [
    asked_in("Hello."),
    call("c0", "old__tool", "{}"),
    output("c0", "old"),
    said("Hello!"),
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "And here?"},
            {"type": "input_image", "image_url": PIXEL, "detail": "low"},
        ],
    },
]
