"""How long an edit takes to be in force with many tools, and how long the event loop waits meanwhile.

A runtime in this process watches 5,000 real tools. Each kind of edit is made a few times: saved by
another process, then waited for until a new ask would get it. The event loop is asked every two
milliseconds for its time while that happens; how much later it answers is its lag. Bare reading is a
thread that only reads the same files and parses their JSON; the loop lags behind that as well.
"""

import asyncio
import gc
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from catalogue_files import folder_or_exit
from handler_tree import write_catalogue
from report import Cell, options, show

from session_runtime import Runtime
from session_runtime.generation import Generation

CONFIG = '[runtime]\nstate_dir = "state"\n[handlers]\npaths = ["tools"]\n[trace]\nenabled = false\n'
BEAT_S = 0.002
TOUCHED = 10
LEFT_OUT = 5  # tools of the catalogue whose schema is refused


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--tools", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    catalogues = folder_or_exit()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        write_catalogue(place / "tools", catalogues, given.tools)
        (place / "config.toml").write_text(CONFIG, "utf-8")
        rows = asyncio.run(measure(place, given.runs))
    head = ["edit", "in force after, s", "at most, s", "lag of the loop p99, ms", "at most, ms"]
    show(given, head, rows, f"{given.tools:,} tools; medians of {given.runs} edits.")


@dataclass
class Lags:
    """How much later than asked the loop answered, in milliseconds."""

    values: list[float] = field(default_factory=list)

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.values, n=100, method="inclusive")[98]


async def measure(place: Path, runs: int) -> list[list[Cell]]:
    tools = sorted((place / "tools").rglob("config.json"))
    edits = {
        "a key": (lambda run: edit_key(place, run), lambda seen, run: of_key(seen) == run + 6, 0.3),
        f"{TOUCHED} tools": (lambda run: edit_tools(tools[:TOUCHED], run), shown(TOUCHED), 0.3),
        "all tools": (lambda run: edit_tools(tools, 100 + run), shown(len(tools), 100), 3.0),
    }
    rows: list[list[Cell]] = []
    async with Runtime.open(place / "config.toml", env={}) as runtime:
        gc.collect()
        gc.freeze()  # as the daemon does
        for name, (save, done, limit) in edits.items():
            times, lags = [], Lags()
            for run in range(runs):
                await settled()
                times.append(await in_force_after(runtime, save(run), partial(done, run=run), lags))
            rows.append([name, statistics.median(times), limit, lags.p99, 20])
    lags, times = Lags(), []
    for _ in range(runs):
        async with beating(lags):
            started = time.perf_counter()
            await asyncio.to_thread(bare, tools)
            times.append(time.perf_counter() - started)
    rows.append(["bare reading of all tools", statistics.median(times), "-", lags.p99, "-"])
    return rows


async def in_force_after(
    runtime: Runtime, save: Awaitable[None], done: Callable[[Generation], bool], lags: Lags
) -> float:
    """Seconds from the end of saving until a new ask would get all of it."""
    await save
    saved = time.perf_counter()
    async with beating(lags):
        while not done(runtime.generation):  # noqa: ASYNC110 - asking costs nothing
            await asyncio.sleep(BEAT_S)
        return time.perf_counter() - saved


def of_key(generation: Generation) -> int:
    return generation.settings.skills.tool_search_max_results


def shown(tools: int, first: int = 0) -> Callable[[Generation, int], bool]:
    """Whether this many tools have the description of a run; most edits are seen in one piece."""

    def done(seen: Generation, run: int) -> bool:
        mark = f" Edit {first + run}."
        specs = seen.catalog.specs
        return sum(spec.description.endswith(mark) for spec in specs) >= tools - LEFT_OUT

    return done


async def settled() -> None:
    """Let the file system's clock and the watcher come to rest."""
    await asyncio.sleep(1.0)


async def edit_key(place: Path, run: int) -> None:
    text = f"{CONFIG}[skills]\ntool_search_max_results = {run + 6}\n"
    (place / "config.toml").write_text(text, "utf-8")


async def edit_tools(tools: list[Path], run: int) -> None:
    """Change descriptions in a process of its own, so that only the reload is measured."""
    script = (
        "import json, sys, pathlib\n"
        "for path in map(pathlib.Path, sys.stdin.read().splitlines()):\n"
        "    config = json.loads(path.read_bytes())\n"
        f"    config['function']['description'] += ' Edit {run}.'\n"
        "    path.write_text(json.dumps(config))\n"
    )
    process = await asyncio.create_subprocess_exec(
        "python3", "-c", script, stdin=asyncio.subprocess.PIPE, env={"PATH": os.environ["PATH"]}
    )
    await process.communicate("\n".join(map(str, tools)).encode())


def bare(tools: list[Path]) -> None:
    for config in tools:
        json.loads(config.read_bytes())
        config.with_name("handler.py").read_bytes()


@asynccontextmanager
async def beating(lags: Lags) -> AsyncIterator[None]:
    """Ask the loop for its time again and again."""

    async def beat() -> None:
        while True:
            due = time.perf_counter() + BEAT_S
            await asyncio.sleep(BEAT_S)
            lags.values.append((time.perf_counter() - due) * 1_000)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()


if __name__ == "__main__":
    main()
