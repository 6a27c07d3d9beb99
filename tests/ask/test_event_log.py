"""What is kept of the events of one ask, and what a reader is told of the rest."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.ask.event_log import EventLog
from session_runtime.types import AskFinished, AskResult, TextDelta

DONE = AskResult("a", "answered", "done")


def filled(log: EventLog, texts: list[str]) -> EventLog:
    for seq, text in enumerate(texts, 1):
        log.emit(TextDelta(ask_id="a", seq=seq, text=text))
    log.emit(AskFinished(ask_id="a", seq=len(texts) + 1, result=DONE))
    return log


@pytest.mark.requirement("NET-1b")
@given(texts=st.lists(st.text(max_size=30), max_size=30), after=st.integers(0, 40))
def test_every_event_after_a_number_is_given_or_counted_as_missing(
    texts: list[str], after: int
) -> None:
    log = filled(EventLog(most_events=8, most_chars=3_000), texts)
    last, seen, given_or_missing = len(texts) + 1, after, 0
    while (found := log.next_after(seen)) is not None:
        event, missing = found
        assert event.seq == seen + missing + 1
        seen, given_or_missing = event.seq, given_or_missing + 1 + missing
    assert given_or_missing == max(0, last - after)
    assert log.chars <= 3_000
    assert log.result == DONE


def test_the_last_event_stays_however_long_it_is() -> None:
    log = EventLog(most_chars=1_000)
    log.emit(TextDelta(ask_id="a", seq=1, text="x"))
    log.emit(AskFinished(ask_id="a", seq=2, result=AskResult("a", "answered", "x" * 5_000)))
    event, missing = log.next_after(0) or (None, 0)
    assert (event and event.type, missing) == ("ask.finished", 1)


async def test_everybody_who_waits_is_told_of_the_next_event() -> None:
    log = EventLog()
    waiting = [asyncio.create_task(log.change()) for _ in range(3)]
    await asyncio.sleep(0)
    log.emit(TextDelta(ask_id="a", seq=1, text="x"))
    await asyncio.gather(*waiting)
