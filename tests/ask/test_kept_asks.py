"""Asks that go on without their client: run once, found again, and forgotten in time."""

import asyncio
import gc
import weakref
from dataclasses import dataclass, field

import pytest

from session_runtime.ask.emitter import Emit
from session_runtime.ask.kept_asks import Bounds, KeptAsk, KeptAsks
from session_runtime.errors import BusyError, RequestError
from session_runtime.types import (
    AskFinished,
    AskRequest,
    AskResult,
    AskStarted,
    ErrorInfo,
    Principal,
    TextDelta,
)

ASKED = AskRequest("hi", principal=Principal("bot"))


@dataclass
class Asks:
    """An ask function that ends when it is told to, and counts."""

    error: str | None = None
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    ran: list[str] = field(default_factory=list)

    async def __call__(self, request: AskRequest, emit: Emit, ask_id: str, chars: int) -> AskResult:
        self.ran.append(ask_id)
        if self.error is not None:
            error = ErrorInfo(self.error, "no")
            return self.finish(AskResult(ask_id, "failed", error=error, refused=True), emit)
        emit(TextDelta(ask_id=ask_id, seq=1, text="x"))
        await self.go_on.wait()
        return self.finish(AskResult(ask_id, "answered", str(request.text)), emit)

    def finish(self, result: AskResult, emit: Emit) -> AskResult:
        emit(AskFinished(ask_id=result.ask_id, seq=2, result=result))
        return result


@pytest.mark.requirement("NET-1b")
async def test_the_same_key_at_once_and_later_is_one_ask() -> None:
    ask = Asks()
    kept = KeptAsks(ask)
    found = await asyncio.gather(*(kept.start(ASKED, key="k", digest=b"d") for _ in range(20)))
    assert len({id(each) for each in found}) == 1
    ask.go_on.set()
    results = await asyncio.gather(*(each.finished() for each in found))
    late = await kept.start(ASKED, key="k", digest=b"d")
    assert (await late.finished(), len(ask.ran)) == (results[0], 1)
    await kept.aclose()


@pytest.mark.requirement("NET-1b")
async def test_a_key_is_the_principal_s_own_and_for_one_content() -> None:
    ask = Asks()
    kept = KeptAsks(ask)
    mine = await kept.start(ASKED, key="k", digest=b"d")
    other = await kept.start(AskRequest("hi", principal=Principal("x")), key="k", digest=b"e")
    assert mine.ask_id != other.ask_id
    with pytest.raises(RequestError) as refused:
        await kept.start(ASKED, key="k", digest=b"e")
    assert refused.value.code == "request.key_reused"
    assert len(ask.ran) == 2
    await kept.aclose()


async def test_who_stops_waiting_does_not_disturb_the_ask() -> None:
    ask = Asks()
    kept = await KeptAsks(ask).start(ASKED)
    waiting = asyncio.create_task(kept.finished())
    await asyncio.sleep(0)
    waiting.cancel()
    ask.go_on.set()
    assert (await kept.finished()).outcome == "answered"


@pytest.mark.parametrize("code", ["busy.capacity", "busy.queue", "busy.draining"])
async def test_what_there_was_no_room_for_is_not_kept_and_may_be_tried_again(code: str) -> None:
    ask = Asks(code)
    kept = KeptAsks(ask)
    refused = await kept.start(ASKED, key="k", digest=b"d")
    assert refused.result is not None
    assert (kept.find(refused.ask_id), len(kept), kept.chars) == (None, 0, 0)
    ask.error = None
    again = await kept.start(ASKED, key="k", digest=b"d")
    assert (again.result, len(ask.ran)) == (None, 2)
    await kept.aclose()


async def ended(kept: KeptAsks, text: str, principal: str = "bot") -> KeptAsk:
    one = await kept.start(AskRequest(text, principal=Principal(principal)), key=text)
    await one.finished()
    return one


async def test_an_ended_ask_is_forgotten_with_its_key_when_its_time_is_up() -> None:
    ask, now = Asks(), [0.0]
    ask.go_on.set()
    kept = KeptAsks(ask, Bounds(keep_s=10.0), lambda: now[0])
    one = await ended(kept, "one")
    assert kept.find(one.ask_id) is one
    assert one.request is None
    now[0] = 10.0
    assert (kept.find(one.ask_id), len(kept), kept.chars) == (None, 0, 0)
    assert (await ended(kept, "one")).ask_id != one.ask_id
    await kept.aclose()


async def test_nobody_need_look_for_an_ended_ask_to_be_forgotten() -> None:
    ask = Asks()
    ask.go_on.set()
    kept = KeptAsks(ask, Bounds(keep_s=0.0))
    await ended(kept, "one")
    timer_is_over = asyncio.Event()
    asyncio.get_running_loop().call_later(0.001, timer_is_over.set)
    await timer_is_over.wait()
    assert (len(kept), kept.chars) == (0, 0)


@pytest.mark.requirement("NET-1b")
async def test_too_many_make_room_at_the_cost_of_whoever_has_most() -> None:
    ask = Asks()
    ask.go_on.set()
    kept = KeptAsks(ask, Bounds(ended=3))
    quiet = await ended(kept, "q", "quiet")
    loud = [await ended(kept, f"l{n}", "loud") for n in range(4)]
    found = [kept.find(each.ask_id) is not None for each in (quiet, *loud)]
    assert found == [True, False, False, True, True]
    small = KeptAsks(ask, Bounds(chars=5_000))
    for _ in range(3):
        await ended(small, "x" * 3_000)
    assert (len(small), small.chars <= 5_000) == (1, True)
    await kept.aclose()
    await small.aclose()
    assert (len(kept), kept.chars, len(small)) == (0, 0, 0)


@pytest.mark.requirement("NET-1b")
async def test_one_long_result_does_not_push_out_all_short_ones() -> None:
    ask = Asks()
    ask.go_on.set()
    kept = KeptAsks(ask, Bounds(chars=50_000))
    other = await ended(kept, "other's", "other")
    short = [await ended(kept, f"{n}") for n in range(20)]
    long = await ended(kept, "x" * 45_000)
    assert [kept.find(each.ask_id) for each in (other, *short, long)] == [other, *short, None]
    assert (await long.finished()).text == "x" * 45_000
    await kept.aclose()


@pytest.mark.requirement("NET-1b")
async def test_where_characters_are_too_many_whoever_holds_most_of_them_makes_room() -> None:
    ask = Asks()
    ask.go_on.set()
    kept = KeptAsks(ask, Bounds(chars=50_000))
    many = [await ended(kept, f"{n}", "many") for n in range(30)]
    long = [await ended(kept, f"{n}" + "x" * 14_000, "long") for n in range(4)]
    assert all(kept.find(each.ask_id) is each for each in many)
    assert [kept.find(each.ask_id) for each in long] == [None, None, *long[2:]]
    await kept.aclose()


@pytest.mark.requirement("NET-1b")
async def test_an_ask_whose_result_made_room_is_not_run_again_by_its_key() -> None:
    ask, now = Asks(), [0.0]
    ask.go_on.set()
    kept = KeptAsks(ask, Bounds(ended=1, keep_s=10.0), lambda: now[0])
    gone = await ended(kept, "one")
    last = await ended(kept, "two")
    for digest, code in ((b"", "request.gone"), (b"other", "request.key_reused")):
        with pytest.raises(RequestError, match=gone.ask_id) as refused:
            await kept.start(
                AskRequest("one", principal=Principal("bot")), key="one", digest=digest
            )
        assert refused.value.code == code
    assert ask.ran == [gone.ask_id, last.ask_id]
    told = kept.gone(gone.ask_id)
    assert (told and told.principal, kept.gone(last.ask_id)) == ("bot", None)
    now[0] = 10.0
    assert kept.gone(gone.ask_id) is None
    assert (await ended(kept, "one")).ask_id not in (gone.ask_id, last.ask_id)
    await kept.aclose()
    assert kept.gone(last.ask_id) is None


@pytest.mark.requirement("NET-1b")
async def test_what_is_remembered_of_gone_results_is_bounded_at_the_cost_of_whoever_has_most() -> (
    None
):
    ask = Asks()
    ask.go_on.set()
    kept = KeptAsks(ask, Bounds(ended=1, gone=3))
    quiet = await ended(kept, "q", "quiet")
    loud = [await ended(kept, f"l{n}", "loud") for n in range(5)]
    remembered = [kept.gone(each.ask_id) is not None for each in (quiet, *loud)]
    assert remembered == [True, False, False, True, True, False]
    assert (await ended(kept, "l0", "loud")).ask_id != loud[0].ask_id
    await kept.aclose()


@pytest.mark.parametrize(("began", "runs"), [(False, 2), (True, 1)])
async def test_an_ask_whose_time_was_up_before_it_began_may_be_tried_again(
    began: bool, runs: int
) -> None:
    ran: list[str] = []

    async def late(request: AskRequest, emit: Emit, ask_id: str, chars: int) -> AskResult:
        ran.append(ask_id)
        if began:
            emit(AskStarted(ask_id=ask_id, seq=1, generation=1, model="m"))
        result = AskResult(ask_id, "limit", error=ErrorInfo("limit.deadline", "up"))
        emit(AskFinished(ask_id=ask_id, seq=2, result=result))
        return result

    kept = KeptAsks(late)
    for _ in range(2):
        one = await kept.start(ASKED, key="k", digest=b"d")
        assert kept.find(one.ask_id) is one
    assert len(ran) == runs
    await kept.aclose()


async def test_requests_that_are_too_long_together_are_refused_until_one_has_ended() -> None:
    ask = Asks()
    kept = KeptAsks(ask, Bounds(asked_chars=1_000))
    long = AskRequest("x" * 900, principal=Principal("bot"))
    first = await kept.start(long)
    with pytest.raises(BusyError) as refused:
        await kept.start(long, key="k")
    assert (refused.value.code, len(ask.ran)) == ("busy.queue", 1)
    ask.go_on.set()
    await first.finished()
    assert (await (await kept.start(long, key="k")).finished()).outcome == "answered"
    await kept.aclose()


async def test_nothing_holds_on_to_a_forgotten_ask() -> None:
    ask = Asks()
    ask.go_on.set()
    kept = KeptAsks(ask, Bounds(ended=1))
    forgotten = weakref.ref(await ended(kept, "one"))
    await ended(kept, "two")
    await asyncio.sleep(0)
    gc.collect()
    assert forgotten() is None
    await kept.aclose()


async def test_an_ask_whose_task_breaks_has_failed_for_everybody_who_waits() -> None:
    async def broken(request: AskRequest, emit: Emit, ask_id: str, chars: int) -> AskResult:
        emit(TextDelta(ask_id=ask_id, seq=1, text="x"))
        await asyncio.sleep(0)
        raise ZeroDivisionError

    kept = KeptAsks(broken)
    one = await kept.start(ASKED)
    result = await one.finished()
    assert (result.outcome, result.error and result.error.code) == ("failed", "internal")
    assert one.log.next_after(1) is not None
    await kept.aclose()
