"""Work in threads: how much of it there is at once, and that it learns when nobody waits for it."""

import asyncio
import threading
from dataclasses import dataclass, field

import pytest

from session_runtime.registry.invoke.stoppable import StoppableThreads, Stopped


@dataclass(frozen=True)
class Work:
    """Work that goes on until it is released, and then gives whether it was stopped."""

    started: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    told: list[bool] = field(default_factory=list)

    def __call__(self, stopped: Stopped) -> str:
        self.started.set()
        self.release.wait()
        self.told.append(stopped())
        return threading.current_thread().name


async def test_what_a_function_gives_is_given_and_it_was_not_stopped() -> None:
    threads, work = StoppableThreads(1), Work()
    work.release.set()
    assert (await threads.run("work", work), work.told) == ("work", [False])


async def test_what_a_function_raises_is_raised_and_its_place_is_free_again() -> None:
    threads = StoppableThreads(1)

    def fail(stopped: Stopped) -> None:
        raise TypeError("no such data")

    for _ in range(2):
        with pytest.raises(TypeError, match="no such data"):
            await threads.run("work", fail)


async def test_a_thread_that_cannot_be_started_leaves_its_place_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads, work = StoppableThreads(1), Work()
    work.release.set()

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            await threads.run("work", work)
    assert await threads.run("work", work) == "work"


async def test_a_function_that_nobody_waits_for_is_told_and_keeps_its_place_until_it_ends() -> None:
    threads, first, second = StoppableThreads(1), Work(), Work()
    second.release.set()
    running = asyncio.create_task(threads.run("first", first))
    await asyncio.to_thread(first.started.wait)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    waiting = asyncio.create_task(threads.run("second", second))
    await asyncio.sleep(0)
    assert not second.started.is_set()
    first.release.set()
    assert (await waiting, first.told, second.told) == ("second", [True], [False])


async def test_waiting_for_a_place_ends_when_it_is_cancelled() -> None:
    threads, first, second = StoppableThreads(1), Work(), Work()
    running = asyncio.create_task(threads.run("first", first))
    waiting = asyncio.create_task(threads.run("second", second))
    await asyncio.to_thread(first.started.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    first.release.set()
    await running
    assert not second.started.is_set()


async def test_no_more_functions_run_at_once_than_there_are_places() -> None:
    threads, works = StoppableThreads(2), [Work() for _ in range(5)]
    running = [asyncio.create_task(threads.run("work", work)) for work in works]
    for work in works:
        await asyncio.to_thread(work.started.wait)
        at_work = [each for each in works if each.started.is_set() and not each.told]
        assert len(at_work) <= 2
        work.release.set()
    await asyncio.gather(*running)
