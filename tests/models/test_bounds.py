"""What one reply may hold: a service that goes on and on is stopped, soon and by name."""

import json
from typing import Any

import pytest

from session_runtime.errors import PermanentError, TransientError
from session_runtime.models.base import ModelReply
from session_runtime.models.call_parts import MAX_CALLS, MAX_CHARS, CallAssembly
from session_runtime.models.extras import RESPONSES_ITEMS
from session_runtime.models.reading import ReplyReader
from session_runtime.models.stream import ReplyAssembly
from tests.models import test_reading as chat_form
from tests.models.response_events import added, call, completed, done, gathered, piece, read, sse

TOO_LARGE = "model.reply_too_large"


def delta(**fields: Any) -> bytes:
    chunk = {"choices": [{"delta": {"tool_calls": [fields]}}]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


def refused(body: bytes) -> PermanentError:
    with pytest.raises(PermanentError) as caught:
        chat_form.read(body)
    assert caught.value.code == TOO_LARGE
    return caught.value


CALL = {"function": {"name": "t", "arguments": "{}"}}
TOO_MANY: dict[str, bytes] = {
    "by index": b"".join(delta(index=n, **CALL) for n in range(MAX_CALLS + 1)),
    "by id": b"".join(delta(id=f"x{n}", **CALL) for n in range(MAX_CALLS + 1)),
    "without marks": b"".join(delta(**CALL) for _ in range(MAX_CALLS + 1)),
    "that name nothing": b"".join(delta(index=n) for n in range(MAX_CALLS + 1)),
    "in a whole answer": json.dumps(
        {"choices": [{"message": {"tool_calls": [CALL] * (MAX_CALLS + 1)}}]}
    ).encode(),
}


@pytest.mark.requirement("ASK-8")
@pytest.mark.parametrize("way", TOO_MANY)
def test_more_calls_than_a_reply_may_hold_end_it(way: str) -> None:
    assert str(MAX_CALLS) in str(refused(TOO_MANY[way]))


def test_as_many_calls_as_a_reply_may_hold_are_read() -> None:
    body = b"".join(delta(index=n, **CALL) for n in range(MAX_CALLS)) + b"data: [DONE]\n\n"
    reply: ModelReply = chat_form.read(body)
    assert len({call.id for call in reply.calls}) == MAX_CALLS


def begun_call(**function: str) -> bytes:
    return delta(index=0, function=function)


HALF = "x" * (MAX_CHARS // 2 + 1)
TOO_LONG: dict[str, bytes] = {
    "of one call": begun_call(name="t", arguments=HALF) + begun_call(arguments=HALF),
    "of two calls": delta(index=0, function={"name": "t", "arguments": HALF})
    + delta(index=1, function={"name": "t", "arguments": HALF}),
    "in the older form": b"".join(
        b'data: {"choices": [{"delta": {"function_call": {"arguments": "%b"}}}]}\n\n'
        % HALF.encode()
        for _ in range(2)
    ),
    "a name in endless pieces": b"".join(begun_call(name=f"n{n}") for n in range(1000)),
}


@pytest.mark.requirement("ASK-8")
@pytest.mark.parametrize("way", TOO_LONG)
def test_longer_arguments_than_a_reply_may_hold_end_it(way: str) -> None:
    refused(TOO_LONG[way])


RESPONSES_TOO_LARGE: dict[str, bytes] = {
    "calls that are added": sse(*(added(call(f"x{n}", "{}"), n) for n in range(MAX_CALLS + 1))),
    "items that are done": sse(
        *(done({"type": "reasoning", "id": f"rs_{n}"}, n) for n in range(MAX_CALLS + 1))
    ),
    "calls of the response": sse(completed(*(call(f"x{n}", "{}") for n in range(MAX_CALLS + 1)))),
    "arguments in pieces": sse(added(call("x", "")), *[piece(HALF, "fc_x")] * 2),
    "announcements of one call": sse(
        *(added(call("x", "", id=f"fc_{n}")) for n in range(MAX_CALLS + 1))
    ),
}


@pytest.mark.requirement("ASK-8")
@pytest.mark.parametrize("way", RESPONSES_TOO_LARGE)
def test_a_response_that_goes_on_and_on_is_ended(way: str) -> None:
    with pytest.raises(PermanentError) as caught:
        read(RESPONSES_TOO_LARGE[way])
    assert caught.value.code == TOO_LARGE


def test_a_document_is_bounded_more_closely_than_a_stream() -> None:
    endpoint, told = chat_form.WHERE, list[str]()
    reader = ReplyReader(
        endpoint, "", ReplyAssembly(endpoint), told.append, 10_000, max_document_bytes=1_000
    )
    reader.feed(b'{"choices": ' + b" " * 900)
    with pytest.raises(PermanentError, match="larger than the 1000 bytes") as caught:
        reader.feed(b" " * 100)
    assert caught.value.code == TOO_LARGE


def test_items_nested_to_the_edge_of_what_can_be_read_are_read_or_a_broken_reply() -> None:
    for depth in range(850, 1_000):
        nested = "[" * depth + "]" * depth
        item = (
            f'{{"type": "response.output_item.done", "item": {{"type": "message", "x": {nested}}}}}'
        )
        try:
            read(f"data: {item}\n\n".encode() + sse(completed()))
        except TransientError as error:
            assert error.code == "model.broken_reply"  # noqa: PT017 - most depths can be read


@pytest.mark.parametrize("name", [None, "t"])
def test_pieces_that_might_end_an_object_are_looked_at_once(name: str | None) -> None:
    """With a look at all before it for each piece this would take hours."""
    calls = CallAssembly()
    calls.add_piece({"index": 0, "id": "a", "function": {"name": "t", "arguments": '{"q": "'}})
    more = {"index": 0, "id": "b", "function": {"name": name, "arguments": "}" * 10}}
    for _ in range(100_000):
        calls.add_piece({**more, "id": "a"} if name else more)
    (only,) = calls.calls(frozenset())
    assert len(only.arguments) == 7 + 1_000_000


def test_whole_messages_in_every_chunk_are_read_in_linear_time() -> None:
    """With a look at all calls before it for each chunk this would take hours."""
    chunk = b'data: {"choices": [{"message": {"content": "no"}}]}\n\n'
    body = b"".join(delta(index=n, **CALL) for n in range(MAX_CALLS)) + chunk * 20_000
    reply: ModelReply = chat_form.read(body + b"data: [DONE]\n\n")
    assert (len(reply.calls), reply.text) == (MAX_CALLS, "")


@pytest.mark.parametrize("reason", ["r" * 10_000, "\ud800stop\n"])
def test_a_reason_to_stop_is_kept_short_and_clean(reason: str) -> None:
    body = json.dumps({"choices": [{"message": {"content": "Hi"}, "finish_reason": reason}]})
    kept = chat_form.read(body.encode()).finish_reason
    assert kept is not None
    assert len(kept) <= 64
    assert kept.isprintable()


@pytest.mark.parametrize("sent", ["i" * 10_000, "\ud800", "a b\n"])
def test_an_id_that_cannot_be_sent_back_as_it_came_is_replaced(sent: str) -> None:
    reply = read(sse(completed(call(sent, "{}"))))
    assert [each.id for each in reply.calls] == ["call_0"]


def test_only_so_many_places_of_a_response_are_kept_with_its_message() -> None:
    thought = {"type": "reasoning", "encrypted_content": "gAAA"}
    said = {"type": "message", "content": "Hi", "phase": "commentary"}
    reply = read(sse(completed(thought, *[said] * 5_000)))
    assert len(reply.extra[RESPONSES_ITEMS]["items"]) == 1_000


def test_a_response_id_that_is_endless_is_not_chained_to() -> None:
    assembly, _ = gathered(sse(completed(id="r" * 10_000)))
    assert assembly.response_id is None
