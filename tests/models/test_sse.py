"""Cutting server-sent events, however the network cut the bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import PermanentError
from session_runtime.models.sse import SseEvent, SseParser


def parsed(*pieces: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [event for piece in pieces for event in parser.feed(piece)] + parser.close()


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [SseEvent("a"), SseEvent("b")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [SseEvent("a"), SseEvent("b")]),
        (b"data: a\r\rdata: b\r\r", [SseEvent("a"), SseEvent("b")]),
        (b"data: a\ndata: b\n\n", [SseEvent("a\nb")]),
        (b"data:a\n\ndata:  b\n\n", [SseEvent("a"), SseEvent(" b")]),
        (b": ping\n\n:\n\ndata: a\n\n", [SseEvent("a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [SseEvent("a")]),
        (b"event: error\nid: 1\nretry: 5\ndata: a\n\n", [SseEvent("a", "error")]),
        (b"event: ping\n\ndata: a\n\n", [SseEvent("a")]),
        (b"data\n\n", [SseEvent("")]),
        (b"data: a\n\ndata: [DONE]", [SseEvent("a"), SseEvent("[DONE]")]),
        ("data: 你好\n\n".encode(), [SseEvent("你好")]),
        (b"data: \xff\n\n", [SseEvent("\ufffd")]),
        (b"nothing\n\n\n", []),
        (b"", []),
    ],
)
def test_events_are_found_in_every_form_that_servers_send(
    stream: bytes, events: list[SseEvent]
) -> None:
    assert parsed(stream) == events


LINES = st.sampled_from(
    [b"data: {}", "data: 好".encode(), b"data", b"event: x", b": note", b"id: 7", b"", b"odd: 1"]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
STREAMS = st.lists(st.tuples(LINES, ENDS).map(b"".join)).map(b"".join)


@pytest.mark.requirement("ASK-3")
@given(stream=STREAMS, data=st.data())
def test_the_events_do_not_depend_on_where_the_bytes_are_cut(
    stream: bytes, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    pieces = [
        stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
    ]
    assert parsed(*pieces) == parsed(stream)


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    parser = SseParser(max_event_bytes=100)
    for _ in range(10):
        parser.feed(b"x" * 10)
    with pytest.raises(PermanentError, match="a line of more than 100 bytes") as caught:
        parser.feed(b"x")
    assert caught.value.code == "model.reply_too_large"


def test_an_event_without_end_is_refused_before_it_fills_the_memory() -> None:
    parser = SseParser(max_event_bytes=100)
    for _ in range(10):
        parser.feed(b"data: 012345678\n")
    with pytest.raises(PermanentError, match="an event of more than 100 bytes") as caught:
        parser.feed(b"data: 01234567890\n")
    assert caught.value.code == "model.reply_too_large"


def test_a_long_stream_of_short_lines_is_accepted() -> None:
    parser = SseParser(max_event_bytes=100)
    assert sum(len(parser.feed(b"data: 0123456789\n\n")) for _ in range(1000)) == 1000


def test_lines_without_content_are_passed_over_and_end_what_came_before() -> None:
    parser = SseParser()
    found = [
        parser.feed(piece) for piece in (b"data: a", b"\n" * 5, b"\n" * 5, b"data: b" + b"\n" * 9)
    ]
    assert found == [[], [SseEvent("a")], [], [SseEvent("b")]]


def test_a_flood_of_empty_lines_is_read_as_a_whole() -> None:
    """With a look at each line of each piece this would take a minute."""
    parser = SseParser()
    flood = b"data: a" + b"\n" * 1_000_000
    assert [len(parser.feed(flood)) for _ in range(100)] == [1] * 100
