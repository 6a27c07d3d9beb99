"""A reader of an ask that is kept."""

import asyncio

import pytest

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
