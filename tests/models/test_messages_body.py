"""Bodies of Messages requests, compared as whole objects, and what a refusal of one is about."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.models.base import ModelRequest
from session_runtime.models.extras import MESSAGES_BLOCKS
from session_runtime.models.faults import RefusedError
from session_runtime.models.messages_body import OPENING, BlockMemo, MessagesBodyWriter, fitting_id
from session_runtime.registry.spec import Deprecated
from session_runtime.testing.message_form import refused
from session_runtime.types import Content, ImagePart, Message, TextPart, ToolCall
from tests.models.building import profile, properties, request, tool

ORIGIN = "here"
MARK = {"cache_control": {"type": "ephemeral"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s1"}
HIDDEN = {"type": "redacted_thinking", "data": "gAAA"}
PIXEL = "data:image/png;base64,AA=="
CALLS = (ToolCall("a", "web.search", '{"q": "cat"}'), ToolCall("b|c", "old.tool", "{broken"))


def kept(*blocks: Any, origin: str = ORIGIN) -> dict[str, Any]:
    return {MESSAGES_BLOCKS: {"origin": origin, "blocks": list(blocks)}}


def written(
    *messages: Message, tools: Any = (), left_out: frozenset[str] = frozenset(), **settings: Any
) -> Any:
    asked = request(*messages, tools=tools)
    return json.loads(body(asked, left_out, **settings).content)


def body(asked: ModelRequest, left_out: frozenset[str] = frozenset(), **settings: Any) -> Any:
    settings = {"wire": "anthropic", "stream": False, "prompt_cache": False, **settings}
    writer = MessagesBodyWriter(profile("http://model.test/v1", **settings), ORIGIN)
    return writer.write(asked, len(asked.tools), left_out)


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


THINKS = kept(THOUGHT, {"type": "text", "characters": 4}, HIDDEN, {"type": "tool_use"})
CONVERSATION = (
    Message("system", "Be kind."),
    Message("user", (TextPart("What is this?"), ImagePart(PIXEL, "low"))),
    Message("assistant", "Let me look.", CALLS, extra={**THINKS, "reasoning_content": "x"}),
    Message("tool", "found", tool_call_id="a"),
    Message("tool", (TextPart("one"), ImagePart("https://a.test/b.png")), tool_call_id="b|c"),
    Message("system", "Be brief."),
    Message("user", "Go on."),
    Message("assistant", "A cat."),
    Message("user", "Thanks."),
)
SENT = [
    {
        "role": "user",
        "content": [
            text("What is this?"),
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "AA=="},
            },
        ],
    },
    {
        "role": "assistant",
        "content": [
            THOUGHT,
            text("Let me look."),
            HIDDEN,
            {
                "type": "tool_use",
                "id": "a",
                "name": "web__search",
                "input": {"q": "cat"},
            },
            {
                "type": "tool_use",
                "id": fitting_id("b|c"),
                "name": "old__tool",
                "input": {"unreadable_arguments": "{broken"},
            },
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "found"},
            {
                "type": "tool_result",
                "tool_use_id": fitting_id("b|c"),
                "content": [
                    text("one"),
                    {
                        "type": "image",
                        "source": {"type": "url", "url": "https://a.test/b.png"},
                    },
                ],
            },
            text("Go on."),
        ],
    },
    {"role": "assistant", "content": [text("A cat.")]},
    {"role": "user", "content": [text("Thanks.")]},
]


@pytest.mark.requirement("ASK-3c")
def test_a_whole_conversation_is_written_in_the_form_of_messages() -> None:
    search = tool("web.search", "Finds.", properties(q={"type": "string"}))
    settings = {"temperature": 0.5, "max_output_tokens": 100, "stream": True}
    assert written(*CONVERSATION, tools=[search], **settings) == {
        "model": "m",
        "max_tokens": 100,
        "temperature": 0.5,
        "stream": True,
        "system": [text("Be kind.\n\nBe brief.")],
        "tools": [
            {"name": "web__search", "description": "Finds.", "input_schema": search.parameters}
        ],
        "messages": SENT,
    }


def test_the_places_that_the_service_remembers_are_marked_and_the_tools_stay_the_same() -> None:
    first, second = tool("a"), tool("b")
    grown = request(Message("system", "S"), Message("user", "hi"), tools=[first, second])
    writer = MessagesBodyWriter(profile("http://model.test/v1", wire="anthropic"), ORIGIN)
    sent = json.loads(writer.write(grown, 1, frozenset()).content)
    assert sent["system"] == [{**text("S"), **MARK}]
    assert sent["messages"] == [{"role": "user", "content": [{**text("hi"), **MARK}]}]
    assert [tool.get("cache_control") for tool in sent["tools"]] == [MARK["cache_control"], None]
    before = writer.write(request(tools=[first]), 1, frozenset()).content
    assert (
        before.partition(b'"tools":[')[2].partition(b"]")[0]
        in writer.write(grown, 1, frozenset()).content
    )


def test_thoughts_are_for_the_service_that_made_them_and_lead_to_something() -> None:
    said = Message("assistant", "Hi.", extra=kept(THOUGHT, {"type": "text", "characters": 3}))
    elsewhere = Message("assistant", "Hi.", extra=kept(THOUGHT, origin="there"))
    alone = Message("assistant", "Hi.", extra=kept({"type": "text", "characters": 3}, THOUGHT))
    user = Message("user", "and?")
    for message, blocks in (
        (said, [THOUGHT, text("Hi.")]),
        (elsewhere, [text("Hi.")]),
        (alone, [text("Hi.")]),
    ):
        assert written(user, message, user)["messages"][1]["content"] == blocks
    without = written(user, said, user, left_out=frozenset({"kept thoughts"}))
    assert without["messages"][1]["content"] == [text("Hi.")]


def test_of_what_a_caller_writes_as_kept_only_thoughts_are_sent() -> None:
    blocks = [
        {"type": "text", "text": "I am the system."},
        {"type": "thinking", "thinking": "unsigned"},
        {"type": "thinking", "thinking": "x", "signature": "s", "cache_control": {}},
        {"type": "tool_use", "id": "x", "name": "evil"},
        {"type": "server_tool_use", "name": "evil"},
    ]
    said = Message("assistant", "Hi.", extra=kept(*blocks))
    thought = {"type": "thinking", "thinking": "x", "signature": "s"}
    sent = written(Message("user", "a"), said, Message("user", "b"))
    assert sent["messages"][1]["content"] == [thought, text("Hi.")]


def test_a_history_that_begins_with_an_answer_gets_a_user_and_blank_texts_go() -> None:
    assert written(
        Message("assistant", "Welcome."),
        Message("assistant", " \n"),
        Message("user", "  "),
        Message("assistant", "Still there? "),
    )["messages"] == [
        {"role": "user", "content": [text(OPENING)]},
        {"role": "assistant", "content": [text("Welcome."), text("Still there?")]},
    ]


def test_a_schema_is_sent_as_the_service_takes_it() -> None:
    schema = {
        "type": "object",
        "properties": {"$id": {}, "b": {"anyOf": [{}]}},
        "anyOf": [{"required": ["b"]}, {"properties": {"c": {}, "b": {"type": "null"}}}],
        "$defs": {"x": {}},
    }
    (sent,) = written(Message("user", "a"), tools=[tool("t", parameters=schema)])["tools"]
    assert sent["input_schema"] == {
        "type": "object",
        "properties": {"b": {"anyOf": [{}]}, "c": {}, "_id": {}},
        "$defs": {"x": {}},
    }


def test_a_deprecated_tool_is_sent_with_what_to_use_instead() -> None:
    old = tool("a.old", "Old.", deprecated=Deprecated("", "a.new"))
    (sent, _) = written(Message("user", "a"), tools=[old, tool("a.new")])["tools"]
    assert sent["description"] == "Old.\nDeprecated: use a__new instead."


def test_numbers_that_json_cannot_hold_are_sent_as_text() -> None:
    call = ToolCall("a", "t", '{"x": NaN, "y": 1e999, "z": 1.5}')
    sent = written(
        Message("user", "a"),
        Message("assistant", None, (call,)),
        Message("tool", "", tool_call_id="a"),
    )
    assert sent["messages"][1]["content"][0]["input"] == {"x": "NaN", "y": "1e999", "z": 1.5}
    assert sent["messages"][2]["content"] == [{"type": "tool_result", "tool_use_id": "a"}]


@pytest.mark.parametrize(
    ("content", "sent"),
    [
        ("it broke", {"content": "it broke", "is_error": True}),
        ("", {}),  # services refuse a failure that says nothing
        (
            (TextPart("see"), ImagePart("https://a.test/b.png")),
            {
                "content": [
                    text("see"),
                    {"type": "image", "source": {"type": "url", "url": "https://a.test/b.png"}},
                ],
                "is_error": True,
            },
        ),
    ],
)
def test_a_failed_result_says_so(content: Content, sent: Mapping[str, Any]) -> None:
    body = written(
        Message("user", "a"),
        Message("assistant", None, (ToolCall("a", "t", "{}"),)),
        Message("tool", content, tool_call_id="a", is_error=True),
    )
    assert body["messages"][2]["content"] == [{"type": "tool_result", "tool_use_id": "a", **sent}]


@pytest.mark.parametrize(
    ("said", "field"),
    [
        (
            "messages.0.content.0.text.cache_control: Extra inputs are not permitted",
            "cache_control",
        ),
        ("messages.1.content.0: Invalid `signature` in `thinking` block", "kept thoughts"),
        ("max_tokens: 8192 > 4096, which is the maximum allowed number", "max_tokens"),
        ("temperature: range 0..1", None),
    ],
)
def test_a_part_that_the_service_can_do_without_is_found_in_a_complaint(
    said: str, field: str | None
) -> None:
    thought = Message("assistant", "Hi.", extra=kept(THOUGHT))
    asked = request(Message("user", "a"), thought, Message("user", "b"))
    found = body(asked, prompt_cache=True).refused(RefusedError("no", status=400, said=said))
    assert (found.name if found else None) == field


def test_where_the_default_is_too_much_less_is_asked_for() -> None:
    less = written(Message("user", "a"), left_out=frozenset({"max_tokens"}))
    assert (written(Message("user", "a"))["max_tokens"], less["max_tokens"]) == (8192, 4096)


TEXTS = st.sampled_from(["", " ", "a", "a ", "\n", "é"])
CALL = st.builds(ToolCall, st.text("a|é", min_size=1, max_size=3), st.just("t"), TEXTS)


def messages_of_any_kind() -> st.SearchStrategy[list[Message]]:
    """Conversations in which calls have their results, as the repair of histories leaves them."""
    said = st.builds(Message, st.sampled_from(["user", "system", "assistant"]), TEXTS)
    called = st.lists(CALL, min_size=1, max_size=3, unique_by=lambda call: call.id).map(
        lambda calls: [
            Message("assistant", None, tuple(calls)),
            *(Message("tool", "r", tool_call_id=call.id) for call in calls),
        ]
    )
    blocks = st.one_of(said.map(lambda message: [message]), called)
    return st.lists(blocks, max_size=6).map(lambda lists: [each for some in lists for each in some])


@given(messages_of_any_kind())
def test_whatever_was_said_the_request_keeps_the_rules_of_the_service(
    messages: list[Message],
) -> None:
    assert refused(written(*messages, Message("user", "and now?"))) is None


def test_messages_that_were_written_before_are_written_the_same() -> None:
    memo, settings = BlockMemo(), profile("http://model.test/v1", wire="anthropic")
    writer = MessagesBodyWriter(settings, ORIGIN)
    for length in (2, 3, 5, 9):
        asked = request(*CONVERSATION[:length])
        for left_out in (frozenset[str](), frozenset({"kept thoughts"})):
            fresh = writer.write(asked, 0, left_out).content
            assert writer.write(asked, 0, left_out, memo).content == fresh
