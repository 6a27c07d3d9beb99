"""What the daemon adds to a model turn over a bare HTTP client, and how many turns it does per second.

Ask and bare client play the same conversation of four turns at the same time, from this process, at
one model in another: the daemon with 1,000 real tools and tool search, asked over HTTP; the client
with the request bodies that the daemon sent in a rehearsal. Daemon time per turn is the duration of
an ask without the model's thinking, divided by its turns; what is added is that minus the median of
the same for the bare client. Asks arrive at random times (open loop) so that about 50 are in flight.
Then both in turn do as many turns as they can with 50 in flight at a model that does not think.
"""

import asyncio
import multiprocessing
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from asking import asked, client, pointing, prepare
from catalogue_files import folder_or_exit
from conversation import TURNS, speaker
from daemon import Daemon, daemon
from report import Cell, options, show

from session_runtime.testing.upstream import Replies, Upstream

IN_FLIGHT = 50
THINKS_S = (0.3, 0.7)
QUESTIONS = tuple(f"How high is the water at station {number}?" for number in range(20))
PARTS = 3
SEED = 7
Bodies = dict[str, list[bytes]]
Play = Callable[[str], Awaitable[None]]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--tools", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load with thinking")
    parser.add_argument("--burst-seconds", type=float, default=2.0, help="of each without")
    given = parser.parse_args()
    catalogues = folder_or_exit()
    rows: list[list[Cell]] = []
    with tempfile.TemporaryDirectory() as temporary:
        config = prepare(Path(temporary), catalogues, given.tools)
        for stream in (True, False):
            measured = asyncio.run(measure(config, stream, given.seconds, given.burst_seconds))
            rows += [["streamed" if stream else "whole", *row] for row in measured]
    head = ["replies", "figure", "bare client", "session-runtime", "to reach"]
    note = f"{given.tools:,} tools, {TURNS} turns per ask; no ask failed."
    show(given, head, rows, note)


async def measure(
    config: Path, stream: bool, seconds: float, burst_seconds: float
) -> list[list[Cell]]:
    bodies = await rehearsed(config, stream)
    with (
        model_process(partial(conversing, *THINKS_S)) as url,
        daemon(config, pointing(url, stream=stream)) as running,
    ):
        thinking = await under_load(running, url, bodies, seconds)
    with (
        model_process(partial(conversing, 0, 0)) as url,
        daemon(config, pointing(url, stream=stream)) as running,
    ):
        return [*thinking, await as_fast_as_possible(running, url, bodies, burst_seconds)]


async def rehearsed(config: Path, stream: bool) -> Bodies:
    """The bodies that the daemon sends for each question, in order."""
    bodies: Bodies = {}
    async with Upstream(speaker().reply) as upstream, client() as http:
        with daemon(config, pointing(upstream.base_url, stream=stream)) as running:
            for question in QUESTIONS:
                await asked(http, running.url, question)
                bodies[question] = upstream.bodies[-TURNS:]
    return bodies


async def under_load(running: Daemon, url: str, bodies: Bodies, seconds: float) -> list[list[Cell]]:
    """Both players at once; quantiles of each part of the run, and the median of the parts."""
    thinking = speaker(*THINKS_S)
    spent: dict[str, list[float]] = {"bare": [], "daemon": []}

    async def timed(name: str, play: Play, question: str) -> None:
        started = time.perf_counter()
        await play(question)
        own_s = time.perf_counter() - started - thinking.thinks_in_all_s(question)
        spent[name].append(own_s / TURNS * 1_000)

    async with players(running, url, bodies) as (bare, ask):
        before = running.cpu_s()
        async with asyncio.TaskGroup() as group:
            async for question in arrivals(seconds):
                group.create_task(timed("bare", bare, question))
                group.create_task(timed("daemon", ask, question))
        cpu_ms = (running.cpu_s() - before) / len(spent["daemon"]) / TURNS * 1_000
    return [
        *figures_of(spent["bare"], spent["daemon"]),
        ["processor time per turn, ms", "-", cpu_ms, "-"],
    ]


def figures_of(bare: list[float], ours: list[float]) -> list[list[Cell]]:
    """The rows of a load: what a turn takes in both, and what the daemon adds to the bare median."""
    floor = statistics.median(bare)
    added = [value - floor for value in ours]
    return [
        *(
            [
                f"time per turn, p{percent}, ms",
                in_parts(bare, percent),
                in_parts(ours, percent),
                "-",
            ]
            for percent in (50, 95)
        ),
        *(
            [f"added to a turn, p{percent}, ms", "-", in_parts(added, percent), f"at most {limit}"]
            for percent, limit in ((50, 2), (95, 8))
        ),
    ]


async def as_fast_as_possible(
    running: Daemon, url: str, bodies: Bodies, seconds: float
) -> list[Cell]:
    async with players(running, url, bodies) as (bare, ask):
        rounds = [(await burst(bare, seconds), await burst(ask, seconds)) for _ in range(PARTS)]
    theirs, ours = (statistics.median(rates) for rates in zip(*rounds, strict=True))
    return ["turns per second, model at once", theirs, ours, "at least 400"]


async def burst(play: Play, seconds: float, turns: int = TURNS) -> float:
    """Turns per second with IN_FLIGHT conversations at any time."""
    done = 0
    started = time.perf_counter()

    async def go_on() -> None:
        nonlocal done
        while time.perf_counter() < started + seconds:
            await play(QUESTIONS[done % len(QUESTIONS)])
            done += 1

    await asyncio.gather(*(go_on() for _ in range(IN_FLIGHT)))
    return done * turns / (time.perf_counter() - started)


async def arrivals(
    seconds: float, turns: int = TURNS, in_flight: int = IN_FLIGHT
) -> AsyncIterator[str]:
    """Questions at random times, the same in every run, enough to keep so many in the air."""
    chance = random.Random(SEED)
    per_second = in_flight / (turns * sum(THINKS_S) / 2)
    due = started = time.perf_counter()
    while due < started + seconds:
        await asyncio.sleep(due - time.perf_counter())
        yield chance.choice(QUESTIONS)
        due += chance.expovariate(per_second)


def in_parts(values: list[float], percent: int) -> float:
    """The median over the parts of a run of a percentile within each."""
    size = -(-len(values) // PARTS)
    parts = [values[start : start + size] for start in range(0, len(values), size)]
    return statistics.median(
        statistics.quantiles(part, n=100, method="inclusive")[percent - 1] for part in parts
    )


@asynccontextmanager
async def players(running: Daemon, url: str, bodies: Bodies) -> AsyncIterator[tuple[Play, Play]]:
    """The bare client and the daemon, both warm."""
    async with client() as to_model, client() as to_daemon:

        async def bare(question: str) -> None:
            for body in bodies[question]:
                headers = {"content-type": "application/json"}
                async with to_model.stream(
                    "POST", f"{url}/chat/completions", content=body, headers=headers
                ) as reply:
                    await reply.aread()
                    reply.raise_for_status()

        async def ask(question: str) -> None:
            await asked(to_daemon, running.url, question)

        await asyncio.gather(*(play(question) for question in QUESTIONS for play in (bare, ask)))
        yield bare, ask


@contextmanager
def model_process(replying: Callable[[], Replies]) -> Iterator[str]:
    """A model in a process of its own, which makes what it replies there; gives its base URL."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=serve_model, args=(there, replying)
    )
    process.start()
    try:
        yield here.recv()
    finally:
        process.kill()
        process.join()


def serve_model(told: Connection, replying: Callable[[], Replies]) -> None:
    async def serve() -> None:
        async with Upstream(replying(), keep=False) as upstream:
            told.send(upstream.base_url)
            await asyncio.Event().wait()

    asyncio.run(serve())


def conversing(shortest_s: float, longest_s: float) -> Replies:
    """The model of the conversation."""
    return speaker(shortest_s, longest_s).reply


if __name__ == "__main__":
    main()
