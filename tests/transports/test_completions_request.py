"""How a request in OpenAI's form becomes an ask, and what of it is refused."""

from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.ask.request import check_request
from session_runtime.errors import RequestError
from session_runtime.transports.http.completions_request import (
    IGNORED,
    REFUSED,
    USED,
    completion_from_json,
)
from session_runtime.types import AskRequest, Identity, ImagePart, Message, TextPart, ToolCall
from tests.transports.configured import fits

HI = [{"role": "user", "content": "hi"}]
ASKED = (Message("user", "hi"),)


def read(**fields: Any) -> AskRequest:
    body = {"model": "main", "messages": HI, **fields}
    assert fits("CompletionRequest", body) == []
    return completion_from_json(body).asked


def problem(**fields: Any) -> str:
    with pytest.raises(RequestError) as caught:
        completion_from_json({"model": "main", "messages": HI, **fields})
    assert caught.value.code == "request.invalid"
    return str(caught.value)


@pytest.mark.requirement("NET-1e")
def test_system_messages_at_the_head_are_instructions_and_the_last_words_of_the_user_the_question() -> (
    None
):
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": [{"type": "text", "text": "Be short."}]},
        {"role": "user", "content": "Hello", "name": "ann"},
        {"role": "assistant", "content": "Hello!", "refusal": None, "tool_calls": None},
        {"role": "system", "content": "It is late."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
            ],
        },
    ]
    picture = (TextPart("What is this?"), ImagePart("data:image/png;base64,AA"))
    assert read(messages=messages) == AskRequest(
        instructions="Be kind.\n\nBe short.",
        history=(
            Message("user", "Hello", extra={"name": "ann"}),
            Message("assistant", "Hello!"),
        ),
        messages=(Message("system", "It is late."), Message("user", picture)),
        model="main",
    )


def test_calls_of_an_earlier_life_and_refusals_stay_in_the_history() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "4", "tool_call_id": "c"},
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "Never."}]},
        *HI,
    ]
    assert read(messages=messages).history == (
        Message("assistant", None, (ToolCall("c", "t", "{}"),)),
        Message("tool", "4", tool_call_id="c"),
        Message("assistant", "No."),
        Message("assistant", (TextPart("Never."),)),
    )


def test_a_user_is_the_identity_and_the_extension_says_the_rest() -> None:
    extension = {
        "identity": {"roles": ["staff"], "channel": "web"},
        "conversation": "c1",
        "deadline_s": 5,
        "silent": True,
        "confirmations": ["t1"],
        "declined": ["t2"],
    }
    asked = read(user="ann", metadata={"order": "7"}, session_runtime=extension)
    assert asked == AskRequest(
        messages=ASKED,
        model="main",
        identity=Identity("ann", frozenset({"staff"}), "web"),
        conversation="c1",
        deadline_s=5.0,
        metadata={"order": "7"},
        silent=True,
        confirmations=("t1",),
        declined=("t2",),
    )


def test_nothing_but_messages_is_needed_and_null_is_nothing() -> None:
    nothing = dict.fromkeys((*USED, *IGNORED, *REFUSED))
    wanted = completion_from_json({**nothing, "messages": HI})
    assert wanted.asked == AskRequest(messages=ASKED)
    assert (wanted.stream, wanted.include_usage, wanted.ignored) == (False, False, ())


def test_a_stream_may_want_its_usage() -> None:
    options = {"include_usage": True, "include_obfuscation": False}
    wanted = completion_from_json({"messages": HI, "stream": True, "stream_options": options})
    assert (wanted.stream, wanted.include_usage) == (True, True)
    assert problem(stream_options=options) == (
        "stream_options: is for streams: set stream to true, or leave it out"
    )


def test_what_the_profile_decides_is_ignored_and_named() -> None:
    wanted = completion_from_json({"messages": HI, "temperature": 0, "max_tokens": 5, "seed": None})
    assert wanted.ignored == ("temperature", "max_tokens")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tools", [{"type": "function", "function": {"name": "t"}}]),
        ("tool_choice", "none"),
        ("tool_choice", "required"),
        ("functions", [{"name": "t"}]),
        ("function_call", {"name": "t"}),
        ("n", 2),
        ("n", True),
        ("stop", ["END"]),
        ("response_format", {"type": "json_object"}),
        ("response_format", {"type": "json_schema", "json_schema": {"name": "x"}}),
        ("modalities", ["text", "audio"]),
        ("audio", {"voice": "alloy", "format": "wav"}),
        ("logit_bias", {"50256": -100}),
        ("logprobs", True),
        ("top_logprobs", 2),
        ("store", True),
        ("moderation", {"model": "m"}),
        ("web_search_options", {}),
    ],
)
@pytest.mark.requirement("NET-1e")
def test_what_would_be_a_lie_to_ignore_is_refused(field: str, value: object) -> None:
    assert problem(**{field: value}) == (
        f"{field}: is not supported, as {REFUSED[field][1]}; leave it out"
    )


def test_what_is_not_supported_may_be_sent_where_it_asks_for_nothing() -> None:
    for field, (neutral, _) in REFUSED.items():
        for value in neutral:
            assert read(**{field: value}) == AskRequest(messages=ASKED, model="main")


def test_every_field_of_the_official_client_is_known_here() -> None:
    params = pytest.importorskip("openai.types.chat.completion_create_params")
    official = set(get_type_hints(params.CompletionCreateParamsStreaming))
    assert official <= {*USED, *IGNORED, *REFUSED}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mesages": []}, "the request: unknown field \"mesages\"; did you mean 'messages'?"),
        (
            {"messages": []},
            "messages: is missing or empty: give the conversation, the question last",
        ),
        ({"messages": "hi"}, 'messages: must be a list, not "hi"'),
        (
            {"messages": [{"role": "system", "content": "x"}]},
            "messages: the last message must be of role user: it is the question",
        ),
        (
            {"messages": [*HI, {"role": "assistant", "content": "x"}]},
            "messages: the last message must be of role user: it is the question",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            'messages[0].content[0].type: must be text or image_url, not "input_audio"',
        ),
        ({"user": 7}, "identity.user: must be text, not 7"),
        (
            {"user": "a", "session_runtime": {"identity": {"user": "b"}}},
            "user: is not the one that session_runtime.identity states; give it once",
        ),
        (
            {"session_runtime": {"text": "x"}},
            'session_runtime: unknown field "text"; known are identity, conversation, deadline_s,'
            " silent, confirmations, declined",
        ),
        ({"session_runtime": 7}, "session_runtime: must be an object, not 7"),
        ({"stream": "yes"}, 'stream: must be true or false, not "yes"'),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], message: str) -> None:
    assert problem(**fields) == message


def test_every_problem_is_named_at_once() -> None:
    assert problem(n=2, user=7, messages=[{"role": "x"}]) == (
        "n: is not supported, as there is one answer to a question; leave it out;"
        ' messages[0].role: must be one of system, user, assistant, tool, not "x";'
        " identity.user: must be text, not 7"
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("role", "content", "type", "text", "user", "x")), inner)
    ),
    max_leaves=8,
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(("system", "developer", "user", "assistant", "tool")) | JSON},
        optional={"content": st.text(max_size=3) | JSON, "tool_calls": JSON, "refusal": JSON},
    ),
    max_size=4,
)
FIELDS = st.dictionaries(st.sampled_from((*USED, *IGNORED, *REFUSED)), JSON, max_size=4)


@given(FIELDS, MESSAGES | JSON)
def test_any_json_is_a_request_or_is_refused(fields: dict[str, Any], messages: Any) -> None:
    try:
        asked = completion_from_json({**fields, "messages": messages}).asked
    except RequestError:
        return
    check_request(asked)
    assert [message.role for message in asked.messages].count("user")
