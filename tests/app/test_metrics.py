"""The numbers of a runtime, as its configuration is edited."""

import asyncio
import re
from pathlib import Path

import pytest

from session_runtime import AskRequest, Runtime
from tests.support import HANGS, calls, opened, scripted, tool_folder, write_handler

pytestmark = pytest.mark.requirement("REL-3")


def read(runtime: Runtime) -> dict[str, float]:
    """Every sample by name and labels, as the text has them."""
    lines = [line for line in runtime.metrics().splitlines() if not line.startswith("#")]
    return {
        name.removeprefix("session_runtime_"): float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines)
    }


def reloads(trigger: str, verdict: str) -> str:
    return f'config_reloads_total{{trigger="{trigger}",verdict="{verdict}"}}'


async def test_whether_the_file_is_in_force_and_for_how_long_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr("time.time", lambda: now)
    async with opened(tmp_path, "[ask]\nmax_steps = 3\n", watch=False) as runtime:
        file = tmp_path / "config.toml"
        start = read(runtime)
        now = 1_010.0
        file.write_text("[ask]\nmax_steps = 0\n", "utf-8")
        await runtime.live.reload("watch")
        now = 1_025.0
        await runtime.live.reload("signal")
        broken = read(runtime)
        now = 1_030.0
        file.write_text("[ask]\nmax_steps = 4\n[trace]\nenabled = false\n", "utf-8")
        await runtime.live.reload("http")
        mended = read(runtime)
        file.write_text("[ask]\nmax_steps = 4\n[trace]\nenabled = true\n", "utf-8")
        await runtime.live.reload("http")
        waiting = read(runtime)
    names = ("config_in_force", "config_rejected_seconds", "generation")
    names += ("config_last_applied_timestamp_seconds", "config_restart_needed")
    assert [start[name] for name in names] == [1, 0, 1, 1_000, 0]
    assert [broken[name] for name in names] == [0, 15, 1, 1_000, 0]
    assert [mended[name] for name in names] == [1, 0, 2, 1_030, 0]
    assert [waiting[name] for name in names] == [1, 0, 2, 1_030, 1]
    assert waiting[reloads("watch", "rejected")] == waiting[reloads("signal", "rejected")] == 1
    assert waiting[reloads("http", "applied")] == waiting[reloads("start", "applied")] == 1
    assert waiting[reloads("http", "applied-restart-needed")] == 1
    assert waiting[reloads("secret", "rejected")] == 0
    assert start.keys() == broken.keys() == waiting.keys()
    assert start["config_hash"] != mended["config_hash"] == waiting["config_hash"]


async def test_what_runs_is_counted_with_the_generations_that_it_keeps(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "hang", code=HANGS)
    text = tool_folder(tmp_path) + scripted(tmp_path, calls(("hang", {})))
    async with opened(tmp_path, text, watch=False, resources={"cancelled": []}) as runtime:
        running = asyncio.Event()
        asking = asyncio.create_task(runtime.ask(AskRequest("go"), lambda _: running.set()))
        await running.wait()
        before = read(runtime)
        (tmp_path / "config.toml").write_text(text + "[ask]\nmax_steps = 3\n", "utf-8")
        await runtime.live.reload("watch")
        after = read(runtime)
        asking.cancel()
        await asyncio.wait([asking])
    names = ("asks_running", "generation", "generations_live", "ready")
    assert [before[name] for name in names] == [1, 1, 1, 1]
    assert [after[name] for name in names] == [1, 2, 2, 1]


async def test_labels_are_few_and_none_comes_from_a_caller(tmp_path: Path) -> None:
    async with opened(tmp_path, "# none\n", watch=False) as runtime:
        text = runtime.metrics()
    labels = re.findall(r'(\w+)="([^"]*)"', text)
    assert {name for name, _ in labels} == {
        "version",
        "trigger",
        "verdict",
        "found",
        "status",
        "outcome",
        "code",
        "family",
        "kind",
        "le",
        "of",
        "result",
    }
    of_asks = 6 + 2 * 17 + 2 * 2 + 4 + 4 + 2 + 2 * 12 + 2 * 10 + 2 * 11 + 2
    assert len(labels) == 1 + 6 + 2 * 8 * 4 + 3 + 4 + 10 + 3 + of_asks
