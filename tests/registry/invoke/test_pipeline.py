"""Whatever a tool does, the caller gets one result in words; only its own cancellation passes."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from session_runtime.errors import BusyError, PermanentError, ToolError, TransientError
from session_runtime.handler import HandlerContext
from session_runtime.local.threads import Threads
from session_runtime.registry.catalog import build_catalog
from session_runtime.registry.invoke.pipeline import Invoker
from session_runtime.registry.registry import Registry, ToolStatistics
from tests.registry.invoke.calling import CONTEXT, SOON_S, invoke, returning, told
from tests.registry.tools import Function, FunctionSource, spec


def raising(error: BaseException) -> Function:
    async def run(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        raise error

    return run


async def hang(arguments: Mapping[str, Any], context: HandlerContext) -> object:
    return await asyncio.Event().wait()


@pytest.mark.requirement("ASK-4")
@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("plain text", "plain text"),
        ("", ""),
        (None, "done"),
        ({"城市": "北京", "t": [1, 2.5, None, True]}, '{"城市":"北京","t":[1,2.5,null,true]}'),
        ([], "[]"),
        (7, "7"),
        (False, "false"),
        ("half \ud800 a character", "half ? a character"),
    ],
)
async def test_text_and_json_data_become_the_content(value: object, content: str) -> None:
    assert told(await invoke(returning(value))) == ("ok", None, content)


@pytest.mark.requirement("ASK-4")
@pytest.mark.parametrize("value", [{1, 2}, object(), {(1, 2): 3}, float("nan"), bytearray()])
async def test_other_values_are_an_error_that_says_what_may_be_returned(value: object) -> None:
    status, code, content = told(await invoke(returning(value)))
    assert (status, code) == ("error", "tool.bad_result")
    assert f"returned a {type(value).__name__}" in content
    assert "text, None, JSON data, bytes, a Table or an Image" in content


@pytest.mark.requirement("ASK-4")
async def test_data_that_holds_itself_is_an_error_too() -> None:
    ring: list[object] = []
    ring.append(ring)
    assert (await invoke(returning(ring))).error_code == "tool.bad_result"


@pytest.mark.requirement("REG-3")
@pytest.mark.parametrize(("own", "shown"), [(None, 100), (10, 10), (600, 599)])
async def test_a_tools_own_limit_of_its_result_wins(own: int | None, shown: int) -> None:
    result = await invoke(returning("天" * 5_000), max_result_chars=own)
    assert (result.status, len(result.content), result.whole_chars) == ("ok", shown, 5_000)


@pytest.mark.requirement("REG-7")
async def test_arguments_are_checked_before_anything_runs() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    ran: list[object] = []

    async def run(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        ran.append(arguments)
        return None

    assert told(await invoke(run, {"n": "x"}, parameters=schema)) == (
        "error",
        "tool.invalid_arguments",
        't was not run: n: must be an integer, got "x". Call it again with corrected arguments.',
    )
    assert ran == []
    assert (await invoke(run, {"n": 1}, parameters=schema)).status == "ok"
    assert ran == [{"n": 1}]


class Unspeakable(Exception):
    """An error that cannot be put into words."""

    def __str__(self) -> str:
        raise ValueError


@pytest.mark.requirement("ASK-4")
@pytest.mark.parametrize(
    ("error", "code", "content"),
    [
        (ToolError("There is no such city."), "tool.failed", "There is no such city."),
        (ToolError("No.", code="weather.no_city"), "weather.no_city", "No."),
        (
            TransientError("it restarts", code="mcp.gone", retry_after_s=3),
            "tool.unavailable",
            "t is not available now: it restarts. Trying again in 3 s may help.",
        ),
        (
            BusyError("full.", retry_after_s=0),
            "tool.unavailable",
            "t is not available now: full. Trying again later may help.",
        ),
        (
            PermanentError("its code is broken", code="tool.import_failed"),
            "tool.import_failed",
            "t was not run: its code is broken. The import will be tried again at the next call; "
            "a fault in the file stays until the file is fixed and read again.",
        ),
        (
            PermanentError("it has no such page", code="mcp.refused"),
            "mcp.refused",
            "t failed: it has no such page. Trying again will not help.",
        ),
        (
            ExceptionGroup("all", [ToolError("Inner words.")]),
            "tool.failed",
            "Inner words.",
        ),
    ],
)
async def test_a_known_failure_says_whether_trying_again_helps(
    error: Exception, code: str, content: str
) -> None:
    assert told(await invoke(raising(error))) == ("error", code, content)


@pytest.mark.requirement("ASK-4")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("no such file"), "ValueError: no such file"),
        (KeyError("x"), "KeyError: 'x'"),
        (RuntimeError(), "RuntimeError"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (asyncio.CancelledError(), "CancelledError"),
        (TimeoutError("upstream"), "TimeoutError: upstream"),
        (Unspeakable(), "Unspeakable: it cannot say why"),
    ],
)
async def test_anything_else_that_a_tool_raises_is_an_error_result(
    error: BaseException, words: str
) -> None:
    status, code, content = told(await invoke(raising(error)))
    assert (status, code) == ("error", "tool.failed")
    assert content == (
        f"t failed: {words}. It may have taken effect in part; the same call will probably fail "
        "again."
    )


@pytest.mark.requirement("ASK-4")
async def test_the_words_of_an_error_are_bounded() -> None:
    assert len((await invoke(raising(ValueError("x" * 100_000)))).content) < 1_200


@pytest.mark.requirement("REG-3")
@pytest.mark.parametrize("limit", [{"timeout_s": SOON_S}, {"own": SOON_S}])
async def test_a_tool_that_takes_too_long_is_stopped(limit: Mapping[str, float]) -> None:
    stopped = asyncio.Event()

    async def run(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        try:
            return await asyncio.Event().wait()
        finally:
            stopped.set()

    tool = spec("t", timeout_s=limit.get("own"))
    catalog = await build_catalog([FunctionSource("here", {tool: run})])
    invoker = Invoker(Registry(), limit.get("timeout_s", 60), 100)
    result = await invoker.invoke(catalog, catalog.lookup("t"), {}, CONTEXT)
    assert (result.status, result.error_code) == ("error", "tool.timeout")
    assert "stopped after 0.01 s" in result.content
    assert stopped.is_set()


async def test_the_deadline_of_the_request_counts_too_and_is_told_to_the_tool() -> None:
    deadlines: list[float | None] = []

    async def run(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        deadlines.append(context.deadline)
        return await asyncio.Event().wait()

    deadline = asyncio.get_running_loop().time() + SOON_S
    result = await invoke(run, context=HandlerContext(deadline=deadline))
    assert result.error_code == "tool.timeout"
    assert deadlines == [deadline]


async def test_nothing_runs_after_the_deadline() -> None:
    past = asyncio.get_running_loop().time() - 1
    assert told(await invoke(returning("late"), context=HandlerContext(deadline=past))) == (
        "error",
        "tool.timeout",
        "t was not run: the time for this request is up.",
    )


async def test_a_tool_that_ignores_being_cancelled_is_left_behind() -> None:
    release = asyncio.Event()

    async def stubborn(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return None

    result = await invoke(stubborn, timeout_s=SOON_S)
    release.set()
    assert result.error_code == "tool.timeout"


async def test_the_cancellation_of_the_caller_reaches_the_tool_and_passes_through() -> None:
    running, cleaned_up = asyncio.Event(), asyncio.Event()
    registry = Registry()

    async def run(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        running.set()
        try:
            return await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned_up.set()

    call = asyncio.create_task(invoke(run, registry=registry))
    await running.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert cleaned_up.is_set()
    assert registry.statistics(spec("t")).last_error == "cancelled"


async def test_cancelling_twice_does_not_wait_for_a_tool_that_ignores_it() -> None:
    running, release = asyncio.Event(), asyncio.Event()

    async def stubborn(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        running.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return None

    tool = spec("t")
    catalog = await build_catalog([FunctionSource("here", {tool: stubborn})])
    invoker = Invoker(Registry(), 60, 100, grace_s=3_600)
    call = asyncio.create_task(invoker.invoke(catalog, catalog.lookup("t"), {}, CONTEXT))
    await running.wait()
    for _ in range(2):
        call.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await call
    release.set()


@pytest.mark.requirement("REG-5")
async def test_every_call_is_counted_whatever_became_of_it() -> None:
    registry = Registry()
    await invoke(returning("x"), registry=registry)
    await invoke(raising(ToolError("No.")), registry=registry)
    after = registry.statistics(spec("t"))
    assert after == ToolStatistics(2, 1, 1, after.total_s, after.last_s, "No.", imported=True)


@pytest.mark.requirement("REG-5")
@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize("late_s", [60, -1])
async def test_a_tool_counts_as_imported_if_its_source_has_its_code(
    loaded: bool, late_s: float
) -> None:
    registry = Registry()
    context = HandlerContext(deadline=asyncio.get_running_loop().time() + late_s)
    await invoke(raising(ValueError()), context=context, registry=registry, loaded=loaded)
    assert registry.statistics(spec("t")).imported is loaded


@pytest.mark.requirement("REG-5")
async def test_a_call_cancelled_during_the_import_does_not_count_as_imported() -> None:
    registry, importing = Registry(), asyncio.Event()

    async def run(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        importing.set()
        return await asyncio.Event().wait()

    call = asyncio.create_task(invoke(run, registry=registry, loaded=False))
    await importing.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    after = registry.statistics(spec("t"))
    assert after == ToolStatistics(1, 0, 1, after.total_s, after.last_s, "cancelled")


@pytest.mark.requirement("ASK-4")
async def test_a_call_whose_time_ends_during_the_import_did_not_run() -> None:
    assert told(await invoke(hang, timeout_s=SOON_S, loaded=False)) == (
        "error",
        "tool.timeout",
        "t was not run: it could not begin within 0.01 s. Trying again later may help.",
    )


@pytest.mark.requirement("ASK-4")
@pytest.mark.parametrize("callers", [1, 500])
async def test_calls_that_never_got_a_thread_are_told_that_they_did_not_run(callers: int) -> None:
    threads, release = Threads(1), threading.Event()
    hung = asyncio.create_task(threads.run("w", release.wait))
    await asyncio.sleep(0)

    async def run(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        return await threads.run("w", lambda: "ran", context.deadline)

    calls = [invoke(run, timeout_s=SOON_S) for _ in range(callers)]
    answers = {told(result) for result in await asyncio.gather(*calls)}
    release.set()
    await hung
    busy = "all 1 threads for tools are busy"
    assert answers <= {
        (
            "error",
            "tool.unavailable",
            f"t is not available now: {busy}. Trying again later may help.",
        ),
        (
            "error",
            "tool.timeout",
            "t was not run: it could not begin within 0.01 s. Trying again later may help.",
        ),
    }
