"""A request that comes again: one run, and the answer of that one (NET-6)."""

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from session_runtime.ask.lengths import chars_of_request
from session_runtime.transports.mqtt.window import Answer, MemoryWindow
from session_runtime.types import AskRequest, AskResult, ErrorInfo
from tests.transports.mqtt.memory import (
    Emit,
    MemoryBroker,
    StubDoor,
    answer,
    asking,
    body_of,
    finish,
    kind_of,
    served,
)

AGAIN = {"events": "none", "attempt": "2"}
QUIET = {"events": "none"}


@dataclass
class Slow:
    """An ask that runs until it is let go; ``ends_as`` is its result if that is not an answer."""

    ends_as: AskResult | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    runs: int = 0

    async def ask(self, request: AskRequest, emit: Emit) -> AskResult:
        self.runs += 1
        self.begun.set()
        await self.go_on.wait()
        if self.ends_as is not None:
            return finish(self.ends_as, emit)
        return await answer(request, emit)


@pytest.mark.requirement("NET-6b")
async def test_the_same_request_again_gets_the_kept_answer_which_says_so() -> None:
    stub = StubDoor()
    async with served(stub) as door:
        [first] = await door.send(asking(properties=QUIET))
        [second] = await door.send(asking(properties=AGAIN))
    assert stub.chars == [chars_of_request(stub.asked[0])]
    said = {**first.properties, "kept": "yes", "attempt": "2"}
    assert second == replace(first, properties=said)


@pytest.mark.requirement("NET-6b")
async def test_the_same_request_while_the_first_still_runs_joins_it() -> None:
    slow = Slow()
    async with served(StubDoor(slow.ask)) as door:
        door.link.deliver(asking(properties=QUIET))
        door.link.deliver(asking(properties=AGAIN))
        await slow.begun.wait()
        slow.go_on.set()
        await door.broker.until(lambda: len(door.link.acknowledged) == 2)
    assert (slow.runs, [kind_of(each) for each in door.broker.answers]) == (1, ["result"])


@pytest.mark.requirement("NET-6b")
async def test_of_copies_that_wait_for_the_same_run_only_the_newest_stays_unacknowledged() -> None:
    slow = Slow()
    async with served(StubDoor(slow.ask)) as door:
        copies = [asking(properties={**AGAIN, "attempt": str(n)}) for n in range(1, 6)]
        for copy in copies:
            door.link.deliver(copy)
        await door.broker.until(lambda: len(door.link.acknowledged) == 3)
        assert door.link.acknowledged == copies[1:4]
        slow.go_on.set()
        await door.broker.until(lambda: len(door.link.acknowledged) == 5)
    assert (slow.runs, [kind_of(each) for each in door.broker.answers]) == (1, ["result"])


@pytest.mark.requirement("NET-6b")
async def test_a_copy_that_comes_while_the_answer_is_on_its_way_gets_the_answer_too() -> None:
    taken = asyncio.Event()
    broker = MemoryBroker(takes_at=taken)
    taken.set()
    async with served(StubDoor(), broker) as door:
        await broker.until(lambda: len(broker.statuses) == 1)
        taken.clear()
        door.link.deliver(asking(properties=QUIET))
        await broker.until(lambda: len(broker.answers) == 1)
        door.link.deliver(asking(properties=AGAIN))
        await broker.until(lambda: len(broker.answers) == 2)
        taken.set()
        await broker.until(lambda: len(door.link.acknowledged) == 2)
    first, second = broker.answers
    assert second == replace(first, properties={**first.properties, "kept": "yes", "attempt": "2"})


@pytest.mark.requirement("NET-6b")
async def test_a_copy_that_waits_for_a_run_that_is_refused_is_refused_as_well() -> None:
    full = ErrorInfo("busy.queue", "full", True, 1.0)
    slow = Slow(AskResult("a1", "failed", error=full, refused=True))
    async with served(StubDoor(slow.ask)) as door:
        door.link.deliver(asking(properties=QUIET))
        door.link.deliver(asking(properties=AGAIN))
        await slow.begun.wait()
        slow.go_on.set()
        await door.broker.until(lambda: len(door.link.acknowledged) == 2)
    told = [(body_of(each)["error"]["code"], each.properties) for each in door.broker.answers]
    assert told == [
        ("busy.queue", {"type": "error", "replica": "r1"}),
        ("busy.queue", {"type": "error", "replica": "r1", "attempt": "2"}),
    ]


@pytest.mark.requirement("NET-6b")
async def test_a_first_run_after_a_repeated_request_says_that_it_may_not_be_the_first_one() -> None:
    async with served(StubDoor()) as door:
        [sent] = await door.send(asking(properties={"events": "none", "attempt": "3"}))
        [again] = await door.send(asking(properties={"events": "none", "attempt": "4"}))
    said = {"type": "result", "seq": "2", "replica": "r1", "attempt": "3", "repeated": "yes"}
    assert sent.properties == said
    assert again.properties == {**said, "attempt": "4", "kept": "yes"}


@pytest.mark.requirement("NET-6b")
async def test_a_run_after_nothing_but_refusals_is_the_first_one() -> None:
    async with served(StubDoor()) as door:
        about = {"events": "none", "attempt": "3", "refused": "2"}
        [first] = await door.send(asking(correlation=b"1", properties=about))
        [unsure] = await door.send(asking(correlation=b"2", properties={**about, "refused": "1"}))
    assert ("repeated" in first.properties, "repeated" in unsure.properties) == (False, True)


@pytest.mark.requirement("NET-6b")
async def test_a_refusal_of_what_the_broker_sends_again_says_that_it_may_have_run() -> None:
    full = AskResult("a1", "failed", error=ErrorInfo("busy.queue", "full", True, 1.0), refused=True)

    async def refuse(request: AskRequest, emit: Emit) -> AskResult:
        return finish(full, emit)

    async with served(StubDoor(refuse)) as door:
        [sent] = await door.send(asking(properties=QUIET, repeated=True))
    assert sent.properties == {"type": "error", "replica": "r1", "repeated": "yes"}


@pytest.mark.requirement("NET-6b")
async def test_a_first_run_of_what_the_broker_sends_again_says_that_it_may_not_be_the_first_one() -> (
    None
):
    async with served(StubDoor()) as door:
        [sent] = await door.send(asking(properties=QUIET, repeated=True))
    assert sent.properties == {"type": "result", "seq": "2", "replica": "r1", "repeated": "yes"}


@pytest.mark.requirement("NET-6b")
async def test_what_the_broker_sends_again_and_still_runs_is_the_first_run() -> None:
    slow = Slow()
    async with served(StubDoor(slow.ask)) as door:
        door.link.deliver(asking(properties=QUIET))
        await slow.begun.wait()
        door.link.deliver(asking(properties=QUIET, repeated=True))
        slow.go_on.set()
        await door.broker.until(lambda: len(door.link.acknowledged) == 2)
    [sent] = door.broker.answers
    assert sent.properties == {"type": "result", "seq": "2", "replica": "r1"}


@pytest.mark.requirement("NET-6b")
async def test_other_requests_under_the_same_correlation_data_are_refused() -> None:
    stub = StubDoor()
    async with served(stub) as door:
        await door.send(asking("hi"))
        [sent] = await door.send(asking("something else"))
    assert (body_of(sent)["error"]["code"], len(stub.asked)) == ("mqtt.correlation_used", 1)


@pytest.mark.requirement("NET-6b")
async def test_the_same_correlation_data_from_somewhere_else_is_another_request() -> None:
    stub = StubDoor()
    async with served(stub) as door:
        await door.send(asking(), replace(asking(), reply="rt/reply/you/1"))
    assert len(stub.asked) == 2


@pytest.mark.requirement("NET-6d")
async def test_an_ask_outlives_its_connection_and_is_answered_by_the_next_one() -> None:
    slow = Slow()
    async with served(StubDoor(slow.ask)) as door:
        door.link.deliver(asking(properties=QUIET))
        await slow.begun.wait()
        await door.reconnected()
        door.link.deliver(asking(properties=AGAIN))  # as the broker does with what it kept
        slow.go_on.set()
        await door.broker.until(lambda: len(door.link.acknowledged) == 1)
    assert (slow.runs, [kind_of(each) for each in door.broker.answers]) == (1, ["result"])


@pytest.mark.requirement("NET-6b")
async def test_an_answer_that_is_no_longer_kept_is_not_made_by_a_second_run() -> None:
    stub = StubDoor(dedupe_window_bytes=100)
    async with served(stub) as door:
        await door.send(asking(properties=QUIET))
        [sent] = await door.send(asking(properties=AGAIN))
    assert (body_of(sent)["error"]["code"], len(stub.asked)) == ("mqtt.answer_gone", 1)


@pytest.mark.requirement("NET-6c")
async def test_a_full_window_answers_that_it_is_busy() -> None:
    stub = StubDoor(dedupe_window_asks=1)
    async with served(stub) as door:
        await door.send(asking())
        [sent] = await door.send(asking(correlation=b"2"))
    assert (body_of(sent)["error"]["code"], len(stub.asked)) == ("busy.window", 1)


async def test_an_ask_that_breaks_is_forgotten_and_the_door_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = [True]

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        if broken.pop() if broken else False:
            raise RuntimeError("a fault of ours")
        return finish(AskResult("a1", "answered", "now"), emit)

    async with served(StubDoor(ask)) as door:
        door.link.deliver(asking())
        [sent] = await door.send(asking(correlation=b"2"))
        [again] = await door.send(asking())
    assert [body_of(each)["text"] for each in (sent, again)] == ["now", "now"]
    assert "a request could not be answered" in caplog.messages


def test_asks_are_forgotten_after_their_time_unless_they_still_run() -> None:
    now = [0.0]
    window = MemoryWindow(600, lambda: now[0], most=9, most_bytes=100)
    ended, running = (window.begin(("p", "t", each), b"d") for each in (b"1", b"2"))
    assert ended is not None
    window.finish(ended, Answer("result", b"{}", 1))
    window.end(("p", "t", b"1"))
    now[0] = 601.0
    assert window.find(("p", "t", b"1")) is None
    assert window.find(("p", "t", b"2")) is running
    assert len(window) == 1


def test_an_ask_is_remembered_from_its_end_on_however_long_it_took() -> None:
    now, long, short = [0.0], ("p", "t", b"1"), ("p", "t", b"2")
    window = MemoryWindow(600, lambda: now[0], most=9, most_bytes=100)
    for at, who in ((0.0, long), (10.0, short)):
        now[0] = at
        entry = window.begin(who, b"d")
        assert entry is not None
        window.finish(entry, Answer("result", b"{}", 1))
    for at, who in ((20.0, short), (900.0, long)):
        now[0] = at
        window.end(who)
    now[0] = 1_499.0
    assert window.find(long) is not None
    assert window.find(short) is None
    now[0] = 1_501.0
    assert window.find(long) is None


def test_an_answer_that_is_kept_instead_of_another_takes_only_its_own_room() -> None:
    window = MemoryWindow(600, lambda: 0.0, most=9, most_bytes=100)
    first, second = (window.begin(("p", "t", each), b"d") for each in (b"1", b"2"))
    assert first is not None
    assert second is not None
    for size in (60, 10):
        window.finish(first, Answer("result", b"x" * size, 1))
    window.finish(second, Answer("result", b"x" * 60, 1))
    assert first.answer == Answer("result", b"x" * 10, 1)
