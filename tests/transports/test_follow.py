"""A reader of an ask that is kept."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_runtime.ask.event_log import EventLog
from session_runtime.transports.follow import AT_ONCE, Follower
from session_runtime.transports.outbox import Delivery
from session_runtime.types import AskFinished, AskResult, TextDelta

FINISHED = AskFinished(ask_id="a", seq=5, result=AskResult("a", "answered"))


def text(seq: int) -> TextDelta:
    return TextDelta(ask_id="a", seq=seq, text="x")


@pytest.mark.requirement("NET-1b")
async def test_a_reader_gets_what_was_then_what_comes_and_the_end() -> None:
    log = EventLog()
    for seq in (1, 2, 3):
        log.emit(text(seq))
    reader = Follower(log, after=1)
    assert [await reader.take(), await reader.take()] == [Delivery(text(2)), Delivery(text(3))]
    next_one = asyncio.create_task(reader.take())
    await asyncio.sleep(0)
    log.emit(text(4))
    log.emit(FINISHED)
    assert [await next_one, await reader.take()] == [Delivery(text(4)), Delivery(FINISHED)]
    assert await reader.take() is None


STEPS = st.lists(st.sampled_from(["emit", "emit", "take"]), max_size=40)


@pytest.mark.requirement("NET-1b")
@settings(deadline=None)
@given(steps=STEPS, after=st.integers(0, 45), most=st.integers(1, 9), texts=st.integers(0, 400))
async def test_a_reader_from_any_event_on_gets_the_rest_in_order_or_is_told_how_much_is_missing(
    steps: list[str], after: int, most: int, texts: int
) -> None:
    log, told, seq = EventLog(most_events=most, most_chars=2_000), [], 0
    reader = Follower(log, after)

    async def read() -> None:
        while (delivery := await reader.take()) is not None:
            told.append(delivery)
            await turn.wait()

    turn = asyncio.Event()
    reading = asyncio.create_task(read())
    for step in (*steps, "end"):
        seq += step != "take"
        if step == "emit":
            log.emit(TextDelta(ask_id="a", seq=seq, text="x" * texts))
        elif step == "end":
            log.emit(AskFinished(ask_id="a", seq=seq, result=FINISHED.result))
        turn.set()
        for _ in range(2 if step == "take" else 0):
            await asyncio.sleep(0)
        turn.clear()
    turn.set()
    await reading
    covered = [n for each in told for n in range(each.event.seq - each.lost, each.event.seq + 1)]
    assert covered == list(range(after + 1, seq + 1))
    assert [each.event.seq for each in told] == sorted({each.event.seq for each in told})


async def test_a_reader_is_told_once_how_much_is_missing() -> None:
    log = EventLog(most_events=2)
    for seq in (1, 2, 3, 4):
        log.emit(text(seq))
    reader = Follower(log)
    assert [await reader.take(), await reader.take()] == [Delivery(text(3), 2), Delivery(text(4))]


async def test_a_closed_reader_ends_and_the_others_go_on() -> None:
    log = EventLog()
    closed, other = Follower(log), Follower(log)
    waiting = [asyncio.create_task(each.take()) for each in (closed, other)]
    await asyncio.sleep(0)
    closed.close()
    assert await waiting[0] is None
    log.emit(text(1))
    assert await waiting[1] == Delivery(text(1))


async def test_a_long_past_is_read_without_holding_up_the_others() -> None:
    log = EventLog()
    for seq in range(1, 3 * AT_ONCE):
        log.emit(text(seq))
    reader, turns = Follower(log), 0

    async def read() -> None:
        for _ in range(2 * AT_ONCE):
            await reader.take()

    reading = asyncio.create_task(read())
    await asyncio.sleep(0)
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns == 2
