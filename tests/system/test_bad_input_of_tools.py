"""A tool that misbehaves costs its own call: its neighbours have their results and the next ask works."""

import threading
from pathlib import Path

import pytest

from session_runtime.types import ToolFinished
from tests.support import (
    Asked,
    ask,
    calls,
    opened,
    says,
    scripted,
    tool_folder,
    write_handler,
)
from tests.system.leftovers import nothing_left

PLAIN = "def execute(args, context):\n    {}\n"
ASYNC = "import asyncio\n\nasync def execute(args, context):\n    {}\n"
DEEP = "value = 1\n    for _ in range(10_000):\n        value = [value]\n    return value"

# the handler, the code of its error, words of its result
FAULTS = {
    "raises": (PLAIN.format("1 / 0"), "tool.failed", "ZeroDivisionError: division by zero"),
    "raises SystemExit": (PLAIN.format("raise SystemExit(3)"), "tool.failed", "SystemExit"),
    "raises on the loop": (ASYNC.format("raise KeyboardInterrupt"), "tool.failed", "Keyboard"),
    "cancels itself": (
        ASYNC.format("raise asyncio.CancelledError"),
        *("tool.failed", "CancelledError"),
    ),
    "hangs": (
        ASYNC.format("await asyncio.Event().wait()"),
        *("tool.timeout", "was stopped after 0.2 s without a result"),
    ),
    "returns an object": (PLAIN.format("return object()"), "tool.bad_result", "returned a object"),
    "returns data too deep": (PLAIN.format(DEEP), "tool.bad_result", "returned a list"),
    "has no function": ("x = 1\n", "tool.import_failed", "no function execute"),
    "cannot be read": ("def execute(:\n", "tool.import_failed", "handler.py line 1"),
    "raises at its import": ("1 / 0\n", "tool.import_failed", "handler.py line 1"),
    "exits at its import": ("raise SystemExit\n", "tool.import_failed", "SystemExit"),
}


def configuration(folder: Path, code: str, *, timeout_s: float = 30.0) -> str:
    """A model that calls ``bad`` between two calls of ``good`` and then says that it is done."""
    write_handler(folder / "tools", "bad", code=code, runtime={"timeout_s": timeout_s})
    write_handler(folder / "tools", "good")
    turn = calls(("good", {"n": 1}), ("bad", {}), ("good", {"n": 2}))
    return (
        tool_folder(folder)
        + "[skills]\nprefetch_tools = []\n"
        + scripted(folder, turn, says("done"))
    )


def results(asked: Asked) -> list[str]:
    return [str(m.content) for m in asked.result.new_messages if m.role == "tool"]


@pytest.mark.requirement("ASK-4")
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_tool_that_fails_is_told_to_the_model_and_loses_nothing(
    tmp_path: Path, fault: str
) -> None:
    code, error_code, words = FAULTS[fault]
    text = configuration(tmp_path, code, timeout_s=0.2 if fault == "hangs" else 30.0)
    with nothing_left():
        async with opened(tmp_path, text) as runtime:
            rounds = [await ask(runtime, "go") for _ in range(2)]
    for asked in rounds:
        assert (asked.result.outcome, asked.result.text) == ("answered", "done")
        first, bad, last = results(asked)
        assert (first, last) == ('{"got":{"n":1}}', '{"got":{"n":2}}')
        assert words in bad
        (finished,) = [e for e in asked.of(ToolFinished) if e.name == "bad"]
        assert (finished.status, finished.error_code) == ("error", error_code)


async def test_a_plain_tool_that_never_returns_holds_up_nobody(tmp_path: Path) -> None:
    blocks = PLAIN.format("context.resources['release'].wait()")
    release = threading.Event()
    text = configuration(tmp_path, blocks, timeout_s=0.2)
    async with opened(tmp_path, text, resources={"release": release}) as runtime:
        first = await ask(runtime, "go")
        again = await ask(runtime, "go")
        release.set()
    for asked in (first, again):
        assert asked.result.text == "done"
        good, bad, also_good = results(asked)
        assert (good, also_good) == ('{"got":{"n":1}}', '{"got":{"n":2}}')
        assert "bad was stopped after 0.2 s without a result" in bad


async def test_a_result_of_megabytes_is_cut_for_the_model(tmp_path: Path) -> None:
    text = configuration(tmp_path, PLAIN.format("return 'x' * 5_000_000"))
    async with opened(tmp_path, text) as runtime:
        asked = await ask(runtime, "go")
    _, long, _ = results(asked)
    assert len(long) < 25_000
    assert "5000000" in long
