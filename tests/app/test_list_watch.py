"""Lists of servers that change come into force soon, not too often, and whatever goes wrong (RTE-4)."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from session_runtime.app.servers import ListWatch
from session_runtime.config.receipt import Receipt, Trigger
from session_runtime.generation.builder import PreparedGeneration
from session_runtime.registry import approvals
from tests.generation.sites import Site, servers, site
from tests.mcp.links import listing


@dataclass
class Clock:
    """Seconds that pass when the test says so."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def watching(
    place: Site, pauses: "Pauses", clock: Clock | None = None
) -> AbstractAsyncContextManager[None]:
    """Put lists into force meanwhile."""
    watch = ListWatch(
        place.builder.lists_changed,
        lambda: place.generation,
        place.live,
        pauses,
        clock or Clock(),
    )
    return watch.running()


class Pauses:
    """Waits that end when the test says so."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.begun = asyncio.Semaphore(0)
        self.go = asyncio.Semaphore(0)

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        self.begun.release()
        await self.go.acquire()

    async def past(self) -> None:
        async with asyncio.timeout(20):
            await self.begun.acquire()
        self.go.release()


@pytest.mark.requirement("RTE-4")
async def test_many_changes_of_lists_are_few_generations_and_the_last_one_is_in_force(
    tmp_path: Path,
) -> None:
    async with site(tmp_path, servers("a"), a=listing("x")) as place:
        pauses, link = Pauses(), place.board.last("a")
        place.builder.lists_changed.clear()
        async with watching(place, pauses):
            for number in range(50):
                link.lists(listing(f"tool{number}"))
            await pauses.past()
            async with asyncio.timeout(20):
                await pauses.begun.acquire()
            assert (place.generation.number, place.tools) == (2, ["a.tool49"])
            for number in range(50, 100):
                link.lists(listing(f"tool{number}"))
            pauses.go.release()
            await pauses.past()
            await pauses.past()
            assert (place.generation.number, place.tools) == (3, ["a.tool99"])
        assert pauses.asked[:4] == [0.1, 0.4, 0.1, 0.9]


@pytest.mark.requirement("RTE-4")
async def test_lists_that_never_come_to_rest_come_into_force_ever_more_seldom_until_they_do(
    tmp_path: Path,
) -> None:
    async with site(tmp_path, servers("a"), a=listing("x")) as place:
        pauses, link, clock = Pauses(), place.board.last("a"), Clock()
        place.builder.lists_changed.clear()
        async with watching(place, pauses, clock):
            for number in range(8):
                link.lists(listing(f"tool{number}"))
                await pauses.past()
                await pauses.past()
            clock.now += 29.0
            link.lists(listing("still"))
            await pauses.past()
            await pauses.past()
            clock.now += 30.0
            link.lists(listing("first"))
            await pauses.past()
            async with asyncio.timeout(20):
                await pauses.begun.acquire()
            assert place.tools == ["a.first"]
    between = [0.1 + seconds for seconds in pauses.asked[1::2]]
    assert between == pytest.approx([0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0, 0.5])


@pytest.mark.requirement("RTE-4")
async def test_a_list_that_comes_while_another_one_is_put_into_force_comes_into_force_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(tmp_path, servers("a"), a=listing("x")) as place:
        pauses, link, refresh = Pauses(), place.board.last("a"), place.live.refresh
        lists = iter(("second",))

        async def meanwhile(trigger: Trigger) -> Receipt:
            receipt = await refresh(trigger)
            for name in lists:
                link.lists(listing(name))
            return receipt

        monkeypatch.setattr(place.live, "refresh", meanwhile)
        async with watching(place, pauses):
            link.lists(listing("first"))
            for _ in range(4):
                await pauses.past()
            assert place.tools == ["a.second"]


async def test_what_changed_and_is_in_force_already_is_not_built_again(tmp_path: Path) -> None:
    async with site(tmp_path, servers("a"), a=listing("x")) as place:
        pauses = Pauses()
        async with watching(place, pauses):
            place.builder.lists_changed.set()
            await pauses.past()
            await pauses.past()
        assert [receipt.trigger for receipt in place.live.receipts.newest()] == ["start"]


@pytest.mark.requirement("RTE-4")
async def test_a_list_that_comes_between_preparing_and_publishing_is_looked_at_again(
    tmp_path: Path,
) -> None:
    async with site(tmp_path, servers("a", wait_s=0.01)) as place:
        prepared = await place.builder.prepare(place.live.snapshot, frozenset(), "refresh")
        place.board.last("a").lists(listing("late"))
        place.builder.lists_changed.clear()  # as whoever heeds it does while the old one is in force
        prepared.commit()
        assert place.builder.lists_changed.is_set()
        async with watching(place, pauses := Pauses()):
            await pauses.past()
            async with asyncio.timeout(20):
                await pauses.begun.acquire()
            assert place.tools == ["a.late"]


@pytest.mark.requirement("RTE-4")
async def test_lists_that_could_not_be_put_into_force_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(tmp_path, servers("a"), a=listing("x")) as place:
        pauses, prepare, faults = Pauses(), place.builder.prepare, [RuntimeError("no thread")]

        async def failing(*given: Any) -> PreparedGeneration:
            for fault in faults:
                raise fault
            return await prepare(*given)

        async def broken(trigger: Trigger) -> Receipt:
            raise RuntimeError("it broke")

        monkeypatch.setattr(place.builder, "prepare", failing)
        async with watching(place, pauses):
            with monkeypatch.context() as patch:
                patch.setattr(place.live, "refresh", broken)
                place.board.last("a").lists(listing("y"))
                await pauses.past()
                await pauses.past()
            await pauses.past()
            await pauses.past()
            assert place.tools == ["a.x"]
            faults.clear()
            await pauses.past()
            await pauses.past()
            assert place.tools == ["a.y"]


@pytest.mark.requirement("RTE-4")
async def test_lists_come_into_force_although_there_is_no_thread_to_keep_their_forms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_thread() -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(approvals, "Worker", no_thread)
    async with site(tmp_path, servers("a"), a=listing(), state=True) as place:
        place.board.last("a").lists(listing("y"))
        receipt = await place.live.refresh("servers")
        await asyncio.sleep(0)
        assert (receipt.verdict, place.tools) == ("applied", ["a.y"])
        assert place.live.receipts.newest()[0] == receipt
    assert "would forget them: can't start new thread" in caplog.text
