import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.transports.outbox import Delivery, Outbox
from session_runtime.types import (
    AskEvent,
    AskFinished,
    AskResult,
    MessageSent,
    Notice,
    TextDelta,
    ToolProgress,
)

END = AskFinished(result=AskResult("a", "answered"))


def delta(text: str = "x") -> TextDelta:
    return TextDelta(text=text)


def progress() -> ToolProgress:
    return ToolProgress(call_id="c", done=1.0)


def message(number: int) -> MessageSent:
    return MessageSent(text=str(number))


EVENT: dict[str, Callable[[int], AskEvent]] = {
    "delta": lambda number: TextDelta(text=str(number)),
    "progress": lambda number: ToolProgress(call_id="c", done=number),
    "message": lambda number: MessageSent(text=str(number)),
    "notice": lambda number: Notice(text=str(number)),
}


async def take_if_any(outbox: Outbox) -> list[Delivery]:
    taking = asyncio.create_task(outbox.take())
    await asyncio.sleep(0)
    taking.cancel()
    await asyncio.wait([taking])
    delivery = None if taking.cancelled() else taking.result()
    return [] if delivery is None else [delivery]


async def everything(outbox: Outbox) -> list[Delivery]:
    return [delivery async for delivery in outbox]


@pytest.mark.requirement("ASK-1")
async def test_events_arrive_in_order_and_end_with_the_last_one() -> None:
    outbox = Outbox()
    sent = [delta("a"), message(1), progress(), delta("b"), END]
    for event in [*sent, delta("late")]:
        outbox.emit(event)
    assert await everything(outbox) == [Delivery(event) for event in sent]


async def test_a_waiting_reader_gets_an_event_as_it_comes() -> None:
    outbox = Outbox()
    reading = asyncio.create_task(outbox.take())
    await asyncio.sleep(0)
    outbox.emit(delta("a"))
    assert await reading == Delivery(delta("a"))


async def test_a_cancelled_wait_loses_nothing() -> None:
    outbox = Outbox()
    reading = asyncio.create_task(outbox.take())
    await asyncio.sleep(0)
    outbox.emit(delta("a"))
    reading.cancel()
    await asyncio.wait([reading])
    assert reading.cancelled()
    assert await outbox.take() == Delivery(delta("a"))


@pytest.mark.requirement("ASK-1")
async def test_a_reader_that_lags_loses_text_first_and_is_told_how_much() -> None:
    outbox = Outbox(capacity=4)
    for event in [message(1), delta(), progress(), delta(), delta(), message(2), END]:
        outbox.emit(event)
    assert await everything(outbox) == [
        Delivery(message(1), lost=3),
        Delivery(progress()),
        Delivery(message(2)),
        Delivery(END),
    ]


@pytest.mark.requirement("ASK-1")
async def test_progress_is_lost_when_there_is_no_text_left_to_lose() -> None:
    outbox = Outbox(capacity=2)
    for event in [message(1), progress(), message(2), END]:
        outbox.emit(event)
    assert await everything(outbox) == [
        Delivery(message(1), lost=1),
        Delivery(message(2)),
        Delivery(END),
    ]


async def test_what_is_lost_after_a_delivery_is_told_with_the_next_one() -> None:
    outbox = Outbox(capacity=1)
    outbox.emit(message(1))
    assert await outbox.take() == Delivery(message(1))
    for event in [delta(), delta(), message(2)]:
        outbox.emit(event)
    assert await outbox.take() == Delivery(message(2), lost=2)


async def test_messages_without_end_are_kept_at_the_same_cost_each() -> None:
    outbox, count = Outbox(capacity=1), 100_000
    for number in range(count):  # takes hours if what waits is looked through each time
        outbox.emit(message(number))
        outbox.emit(delta())
    outbox.close()
    first, *others = await everything(outbox)
    assert first == Delivery(message(0), lost=count)
    assert others == [Delivery(message(number)) for number in range(1, count)]


async def test_a_closed_box_ends_after_what_waits() -> None:
    outbox = Outbox()
    outbox.emit(message(1))
    outbox.close()
    outbox.emit(message(2))
    assert await everything(outbox) == [Delivery(message(1))]


async def test_closing_wakes_a_waiting_reader() -> None:
    outbox = Outbox()
    reading = asyncio.create_task(outbox.take())
    await asyncio.sleep(0)
    outbox.close()
    assert await reading is None


@given(
    st.lists(st.sampled_from([*EVENT, "read"]), max_size=80),
    st.integers(1, 6),
)
@pytest.mark.requirement("ASK-1")
async def test_nothing_but_text_and_progress_is_lost_and_losses_add_up(
    steps: list[str], capacity: int
) -> None:
    outbox, sent, got = Outbox(capacity), list[AskEvent](), list[Delivery]()
    for number, step in enumerate(steps):
        if step == "read":
            got += await take_if_any(outbox)
        else:
            sent.append(EVENT[step](number))
            outbox.emit(sent[-1])
    sent.append(END)
    outbox.emit(END)
    got += await everything(outbox)
    arrived = [delivery.event for delivery in got]
    essential = [e for e in sent if not isinstance(e, TextDelta | ToolProgress)]
    assert [e for e in arrived if e in essential] == essential
    assert arrived == [event for event in sent if event in arrived]
    assert len(arrived) + sum(delivery.lost for delivery in got) == len(sent)
