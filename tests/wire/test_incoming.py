import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import RequestError
from session_runtime.types import (
    AskRequest,
    Identity,
    ImagePart,
    Message,
    TextPart,
    ToolCall,
)
from session_runtime.wire import (
    message_from_json,
    message_to_json,
    parse_json,
    request_from_json,
    to_bytes,
)

NAME = st.text(min_size=1, max_size=12)
KNOWN = {
    *("role", "content", "tool_calls", "tool_call_id", "is_error", "id", "type", "function"),
    "recovered",
}
EXTRA = st.dictionaries(NAME.filter(lambda name: name not in KNOWN), st.integers() | st.text())
CALLS = st.builds(
    ToolCall, id=NAME, name=NAME, arguments=st.text(), recovered=st.booleans(), extra=EXTRA
)
IMAGES = st.builds(
    ImagePart, st.text().map(lambda rest: f"https://{rest}"), st.none() | st.just("low")
)
CONTENT = (
    st.none()
    | st.text()
    | st.lists(st.builds(TextPart, st.text()) | IMAGES).map(lambda p: tuple(p))
)
MESSAGES = st.one_of(
    st.builds(Message, st.sampled_from(["system", "user"]), CONTENT, extra=EXTRA),
    st.builds(
        Message,
        st.just("assistant"),
        CONTENT,
        st.lists(CALLS, max_size=3).map(lambda calls: tuple(calls)),
        extra=EXTRA,
    ),
    st.builds(
        Message,
        st.just("tool"),
        CONTENT,
        tool_call_id=st.none() | NAME,
        extra=EXTRA,
        is_error=st.booleans(),
    ),
)


def problems_of(data: object) -> str:
    with pytest.raises(RequestError) as caught:
        request_from_json(data)
    assert caught.value.code == "request.invalid"
    return str(caught.value)


@given(MESSAGES)
@pytest.mark.requirement("INT-2a")
def test_a_message_survives_the_way_out_and_in_again(message: Message) -> None:
    assert message_from_json(parse_json(to_bytes(message_to_json(message)))) == message


@pytest.mark.requirement("INT-2a")
def test_every_field_of_a_request_is_read() -> None:
    data = {
        "messages": [{"role": "user", "content": "hello"}],
        "history": [{"role": "assistant", "content": None, "tool_calls": []}],
        "instructions": "be brief",
        "identity": {"user": "u1", "roles": ["admin", "dev"], "channel": "c", "group": "g"},
        "conversation": "chat-7",
        "model": "fast",
        "deadline_s": 12,
        "metadata": {"source": {"kind": "test"}},
        "silent": True,
    }
    assert request_from_json(data) == AskRequest(
        messages=(Message("user", "hello"),),
        history=(Message("assistant", None),),
        instructions="be brief",
        identity=Identity("u1", frozenset({"admin", "dev"}), "c", "g"),
        conversation="chat-7",
        model="fast",
        deadline_s=12.0,
        metadata={"source": {"kind": "test"}},
        silent=True,
    )


def test_null_counts_as_not_given() -> None:
    fields = ["messages", "history", "instructions", "identity", "conversation", "model"]
    fields += ["deadline_s", "metadata", "silent"]
    assert request_from_json({"text": "hi", **dict.fromkeys(fields)}) == AskRequest("hi")


def test_no_roles_and_unknown_roles_are_told_apart() -> None:
    asked = request_from_json({"text": "hi", "identity": {"user": "u", "roles": []}})
    assert asked.identity == Identity("u", roles=frozenset())
    assert request_from_json({"text": "hi", "identity": {}}).identity == Identity()


def test_image_parts_are_read() -> None:
    parts = [
        {"type": "text", "text": "what is this"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
    ]
    asked = request_from_json({"messages": [{"role": "user", "content": parts}]})
    expected = (TextPart("what is this"), ImagePart("data:image/png;base64,AA", "low"))
    assert asked.messages[0].content == expected


def test_unknown_fields_of_messages_and_calls_are_kept() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    data = {
        "role": "assistant",
        "content": None,
        "reasoning": "because",
        "tool_calls": [{**call, "signature": "s"}],
    }
    message = message_from_json(data)
    assert message.extra == {"reasoning": "because"}
    assert message.tool_calls[0].extra == {"signature": "s"}
    assert message_to_json(message) == data


def test_a_call_without_arguments_has_empty_ones() -> None:
    for function in ({"name": "f"}, {"name": "f", "arguments": None}):
        data = {"role": "assistant", "tool_calls": [{"id": "c", "function": function}]}
        assert message_from_json(data).tool_calls == (ToolCall("c", "f", ""),)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, "the request: must be an object, not null"),
        ([1], "the request: must be an object, not a list of 1"),
        ({}, "nothing is asked; give 'text', or 'messages'"),
        ({"messages": []}, "nothing is asked"),
        ({"text": ""}, "text: is blank"),
        ({"text": " \n"}, "text: is blank"),
        ({"text": 5}, "text: must be text, not 5"),
        (
            {"text": "a", "messages": [{"role": "user", "content": "b"}]},
            "'text' and 'messages' are both given; give one of them",
        ),
        ({"txt": "hi"}, "unknown field \"txt\"; did you mean 'text'?"),
        ({"text": "a", "confirmation": []}, "did you mean 'confirmations'?"),
        ({"text": "a", "confirmations": "t"}, 'confirmations: must be a list, not "t"'),
        (
            {"text": "a", "declined": ["t", 5]},
            "declined[1]: must be a token of at most 200 characters",
        ),
        ({"text": "a", "confirmations": [""]}, "confirmations[0]: must be a token"),
        ({"text": "a", "declined": ["t" * 201]}, "declined[0]: must be a token"),
        ({"text": "a", "confirmations": ["t"] * 33}, "confirmations: has 33 tokens, at most 32"),
        ({"text": "a", "silent": 1}, "silent: must be true or false, not 1"),
        ({"text": "a", "deadline_s": 0}, "deadline_s: must be a number of seconds above 0, not 0"),
        ({"text": "a", "deadline_s": True}, "deadline_s: must be a number of seconds"),
        (
            {"text": "a", "deadline_s": "5"},
            'deadline_s: must be a number of seconds above 0, not "5"',
        ),
        ({"text": "a", "model": ""}, "model: is blank"),
        ({"text": "a", "conversation": "x" * 257}, "conversation: has 257 characters, at most 256"),
        ({"text": "a", "metadata": [1]}, "metadata: must be an object, not a list of 1"),
        ({"text": "a", "metadata": {"x": "y" * 70_000}}, "metadata: is larger than 65536 bytes"),
        ({"text": "a", "identity": "me"}, 'identity: must be an object, not "me"'),
        ({"text": "a", "identity": {"usr": "u"}}, "unknown field \"usr\"; did you mean 'user'?"),
        ({"text": "a", "identity": {"user": ""}}, "identity.user: is blank"),
        ({"text": "a", "identity": {"roles": "admin"}}, "identity.roles: must be a list"),
        ({"text": "a", "identity": {"roles": ["a", 5]}}, "identity.roles[1]: must be a name"),
        ({"text": "a", "history": {}}, "history: must be a list, not an object"),
        ({"text": "a", "history": [7]}, "history[0]: must be an object, not 7"),
        ({"text": "a", "history": [{}] * 10_001}, "history: has 10001 items"),
        (
            {"messages": [{"role": "bot", "content": "a"}]},
            'messages[0].role: must be one of system, user, assistant, tool, not "bot"',
        ),
        ({"messages": [{"role": "user", "content": {}}]}, "messages[0].content: must be text"),
        (
            {"messages": [{"role": "user", "content": [{"type": "file"}]}]},
            'messages[0].content[0].type: must be text or image_url, not "file"',
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "messages[0].content[0].text: is missing",
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": {"url": "file:///etc"}}],
                    }
                ]
            },
            "messages[0].content[0].image_url.url: must begin with https: or data:",
        ),
        (
            {"messages": [{"role": "user", "content": "a", "tool_calls": [{}]}]},
            "messages[0].tool_calls: only a message of role assistant may have them",
        ),
        (
            {"messages": [{"role": "user", "content": "a", "is_error": True}]},
            "messages[0].is_error: only a message of role tool may have it",
        ),
        (
            {"messages": [{"role": "user", "content": "a", "tool_call_id": "c"}]},
            "messages[0].tool_call_id: only a message of role tool may have it",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]}]},
            "messages[0].tool_calls[0].function.name: is missing",
        ),
    ],
)
def test_a_wrong_request_is_refused_by_field_value_and_way_out(data: object, problem: str) -> None:
    assert problem in problems_of(data)


def test_all_problems_are_named_at_once() -> None:
    data = {"text": 1, "model": 2, "identity": {"roles": 3}}
    assert problems_of(data) == (
        "text: must be text, not 1; identity.roles: must be a list, not 3;"
        " model: must be text, not 2"
    )


def test_a_flood_of_problems_is_cut() -> None:
    assert problems_of({f"field{n}": n for n in range(10_000)}).endswith("; and more")


def test_long_values_are_shortened_in_messages() -> None:
    assert len(problems_of({"text": "a", "silent": "x" * 10_000})) < 200


@given(
    st.dictionaries(
        st.sampled_from(["text", "messages", "history", "identity"]),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(sorted(KNOWN)), inner, max_size=4)
            ),
        ),
    )
)
def test_any_json_is_read_or_refused(data: dict[str, Any]) -> None:
    with contextlib.suppress(RequestError):
        request_from_json(data)


@pytest.mark.requirement("INT-2b")
def test_a_request_may_confirm_and_decline_calls() -> None:
    longest, many = "t" * 200, [f"t{number}" for number in range(32)]
    data = {"text": "yes", "confirmations": many, "declined": [longest]}
    assert request_from_json(data) == AskRequest(
        "yes", confirmations=tuple(many), declined=(longest,)
    )


def test_a_token_that_is_refused_is_not_repeated() -> None:
    assert "secret" not in problems_of({"text": "a", "confirmations": ["secret" * 50]})
