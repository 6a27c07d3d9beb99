"""Handlers run as their authors wrote them: asynchronous on the loop, plain ones in threads."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from session_runtime.errors import TransientError
from session_runtime.handler import HandlerContext
from session_runtime.local.source import MAX_THREADS, LocalSource
from session_runtime.local.threads import Threads
from tests.support import scan_of, write_handler


def source_of(root: Path, previous: LocalSource | None = None, **codes: str) -> LocalSource:
    for name, code in codes.items():
        write_handler(root, name, code=code)
    return LocalSource(scan_of(root), previous)


async def call(
    source: LocalSource, name: str, context: HandlerContext | None = None, **arguments: Any
) -> object:
    spec = source.handlers[name].tool.spec
    return await source.call(spec, arguments, context or HandlerContext())


@pytest.mark.requirement("REG-1")
async def test_an_asynchronous_handler_runs_on_the_event_loop(tmp_path: Path) -> None:
    code = (
        "import asyncio, threading\nasync def execute(args, context):\n"
        "    await asyncio.sleep(0)\n    return threading.get_ident(), args, context.ask_id\n"
    )
    source = source_of(tmp_path, t=code)
    assert await call(source, "t", HandlerContext(ask_id="a1"), x=1) == (
        threading.get_ident(),
        {"x": 1},
        "a1",
    )


@pytest.mark.requirement("REG-1")
async def test_a_plain_handler_runs_in_a_thread_named_after_the_tool(tmp_path: Path) -> None:
    code = "import threading\ndef execute(args, context):\n    return threading.current_thread().name\n"
    assert await call(source_of(tmp_path, t=code), "t") == "tool t"


@pytest.mark.requirement("REG-1")
@pytest.mark.parametrize(
    "code",
    [
        "async def run(args, context):\n    return 5\ndef execute(args, context):\n"
        "    return run(args, context)\n",
        "class Tool:\n    async def __call__(self, args, context):\n        return 5\n"
        "execute = Tool()\n",
    ],
)
async def test_a_function_that_gives_an_awaitable_is_awaited(tmp_path: Path, code: str) -> None:
    assert await call(source_of(tmp_path, t=code), "t") == 5


async def test_arguments_can_be_changed_without_changing_the_callers(tmp_path: Path) -> None:
    source = source_of(tmp_path, t="def execute(args, context):\n    args.clear()\n")
    arguments = {"x": 1}
    await source.call(source.handlers["t"].tool.spec, arguments, HandlerContext())
    assert arguments == {"x": 1}


async def test_messages_and_progress_of_a_thread_arrive_on_the_loop_before_the_result(
    tmp_path: Path,
) -> None:
    seen: list[object] = []

    def note(*what: object) -> None:
        seen.append((threading.get_ident(), *what))

    code = (
        "def execute(args, context):\n    context.progress(1, 2, 'half')\n"
        "    context.emit_message('hello')\n"
    )
    context = HandlerContext(on_progress=note, on_message=note)
    await call(source_of(tmp_path, t=code), "t", context)
    here = threading.get_ident()
    assert seen == [(here, 1, 2, "half"), (here, "hello")]


async def test_what_a_plain_handler_raises_is_raised_to_the_caller(tmp_path: Path) -> None:
    codes = {
        kind: f"def execute(args, context):\n    raise {kind}('why')\n"
        for kind in ("ValueError", "SystemExit", "StopIteration")
    }
    source = source_of(tmp_path, **codes)
    for kind, raised in ((ValueError, "why"), (SystemExit, "why"), (RuntimeError, "StopIteration")):
        name = raised if raised in codes else kind.__name__
        with pytest.raises(kind, match=raised):
            await call(source, name)


async def test_a_hung_thread_is_left_alone_when_the_source_closes(tmp_path: Path) -> None:
    started, release = threading.Event(), threading.Event()
    code = "def execute(args, context):\n    context.resources['hang']()\n"

    def hang() -> None:
        started.set()
        release.wait()

    source = source_of(tmp_path, t=code)
    running = asyncio.create_task(call(source, "t", HandlerContext(resources={"hang": hang})))
    await asyncio.to_thread(started.wait)
    running.cancel()
    await source.aclose()
    with pytest.raises(asyncio.CancelledError):
        await running
    [thread] = [each for each in threading.enumerate() if each.name == "tool t"]
    assert thread.daemon
    release.set()
    thread.join()


@pytest.mark.requirement("REG-2")
async def test_a_changed_tool_gets_new_code_and_an_unchanged_one_keeps_its_state(
    tmp_path: Path,
) -> None:
    counting = (
        "calls = []\ndef execute(args, context):\n    calls.append(1)\n    return len(calls)\n"
    )
    before = source_of(tmp_path, same=counting, edited=counting)
    assert [await call(before, name) for name in ("same", "edited")] == [1, 1]
    (tmp_path / "edited" / "handler.py").write_text(counting.replace("len(calls)", "'new'"))
    after = source_of(tmp_path, before)
    assert [await call(after, name) for name in ("same", "edited")] == [2, "new"]
    assert [await call(before, name) for name in ("same", "edited")] == [3, 2]
    await before.aclose()
    assert await call(after, "same") == 4


async def test_no_more_threads_run_than_there_are_places() -> None:
    threads, release = Threads(2), threading.Event()
    running: list[int] = []
    arrived = threading.Semaphore(0)

    def work(number: int) -> int:
        running.append(number)
        arrived.release()
        release.wait()
        return number

    tasks = [asyncio.create_task(threads.run("w", lambda n=n: work(n))) for n in range(5)]
    for _ in range(2):
        await asyncio.to_thread(arrived.acquire)
    assert len(running) == 2
    release.set()
    assert await asyncio.gather(*tasks) == [0, 1, 2, 3, 4]


async def test_a_cancelled_call_keeps_its_place_until_its_thread_ends() -> None:
    threads, started, release = Threads(1), threading.Event(), threading.Event()

    def hang() -> None:
        started.set()
        release.wait()

    first = asyncio.create_task(threads.run("w", hang))
    await asyncio.to_thread(started.wait)
    first.cancel()
    second = asyncio.create_task(threads.run("w", lambda: "done"))
    await asyncio.sleep(0)
    assert not second.done()
    release.set()
    assert await second == "done"


async def test_a_thread_that_is_done_takes_the_next_function_under_its_name() -> None:
    threads = Threads(2)
    one = await threads.run("one", threading.current_thread)
    names = [await threads.run(name, lambda: threading.current_thread().name) for name in "ab"]
    two = await threads.run("two", threading.current_thread)
    assert (names, two) == (["a", "b"], one)
    threads.close()
    await asyncio.to_thread(one.join)


async def test_a_thread_that_is_at_work_when_all_are_let_go_ends_after_its_function() -> None:
    threads, started, release = Threads(1), threading.Event(), threading.Event()

    def hang() -> threading.Thread:
        started.set()
        release.wait()
        return threading.current_thread()

    running = asyncio.create_task(threads.run("w", hang))
    await asyncio.to_thread(started.wait)
    threads.close()
    release.set()
    await asyncio.to_thread((await running).join)


@pytest.mark.requirement("REG-2")
async def test_a_tool_can_be_imported_while_a_plain_one_hangs_in_every_thread(
    tmp_path: Path,
) -> None:
    arrived, release = threading.Semaphore(0), threading.Event()

    def hang() -> None:
        arrived.release()
        release.wait()

    source = source_of(
        tmp_path,
        plain="def execute(args, context):\n    context.resources['hang']()\n",
        other="async def execute(args, context):\n    return 'done'\n",
    )
    context = HandlerContext(resources={"hang": hang})
    hanging = [asyncio.create_task(call(source, "plain", context)) for _ in range(MAX_THREADS)]
    for _ in hanging:
        await asyncio.to_thread(arrived.acquire)
    assert await call(source, "other") == "done"
    release.set()
    await asyncio.gather(*hanging)


async def test_a_call_that_got_no_thread_in_its_time_says_that_all_are_busy() -> None:
    threads, started, release = Threads(1), threading.Event(), threading.Event()

    def hang() -> None:
        started.set()
        release.wait()

    first = asyncio.create_task(threads.run("w", hang))
    await asyncio.to_thread(started.wait)
    now = asyncio.get_running_loop().time()
    with pytest.raises(TransientError, match="all 1 threads for tools are busy"):
        await threads.run("w", lambda: "ran", now)
    release.set()
    await first
    assert await threads.run("w", lambda: "ran") == "ran"


@pytest.mark.requirement("REG-5")
async def test_a_tool_is_loaded_from_its_first_call_on(tmp_path: Path) -> None:
    source = source_of(tmp_path, t="def execute(args, context): ...\n")
    [spec] = await source.list_tools()
    assert not source.is_loaded(spec)
    await call(source, "t")
    assert source.is_loaded(spec)


async def test_a_bundled_tool_that_becomes_one_of_a_path_is_listed_as_such(tmp_path: Path) -> None:
    write_handler(tmp_path, "t")
    before = LocalSource(scan_of(bundled=tmp_path))
    [spec] = await LocalSource(scan_of(tmp_path), before).list_tools()
    assert spec.origin == "handler"
