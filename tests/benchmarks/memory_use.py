"""What the daemon holds in memory with 5,000 tools and 500 asks at once, beside a bare client.

Resident memory (RSS) in megabytes. The asks have come to their third turn when the model stops
answering: each has searched, called a tool, and holds a connection on both sides. The bare client is
a process that holds as many requests open with httpx2, each with the body that such an ask sends.
"""

import asyncio
import json
import multiprocessing
import resource
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from asking import asked, client, pointing, prepare
from catalogue_files import folder_or_exit
from conversation import Speaker, speaker
from daemon import daemon, memory_bytes
from report import Cell, options, show

from session_runtime.testing.replies import Pace, RawReply
from session_runtime.testing.upstream import Upstream

HELD_TURN = 2
LIMIT_MB = 300
FULL = "session-runtime, all asks at once"
Figures = dict[str, float]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--tools", type=int, default=5_000)
    parser.add_argument("--asks", type=int, default=500)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    catalogues = folder_or_exit()
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))  # two sockets per ask
    with tempfile.TemporaryDirectory() as temporary:
        config = prepare(Path(temporary), catalogues, given.tools)
        runs = [asyncio.run(measure(config, given.asks)) for _ in range(given.runs)]
    rows: list[list[Cell]] = [
        [what, statistics.median(run[what] for run in runs), LIMIT_MB if what == FULL else "-"]
        for what in runs[0]
    ]
    note = (
        f"{given.tools:,} tools, {given.asks:,} asks, median of {given.runs} runs; no ask failed."
    )
    show(given, ["process", "MB", "at most, MB"], rows, note)


async def measure(config: Path, asks: int) -> Figures:
    holding = Holding(speaker())
    async with Upstream(holding.reply, keep=False) as upstream:
        with daemon(config, pointing(upstream.base_url, stream=True)) as running:
            figures = {"session-runtime, no ask yet": megabytes(running.process.pid)}
            async with client() as http:
                asking = [
                    asyncio.create_task(asked(http, running.url, f"How high is river {number}?"))
                    for number in range(asks)
                ]
                await upstream.received(asks * (HELD_TURN + 1))
                figures[FULL] = megabytes(running.process.pid)
                holding.gate.set()
                await asyncio.gather(*asking)
            figures["session-runtime, asks ended"] = megabytes(running.process.pid)
    return figures | await measure_bare(asks, holding.body)


async def measure_bare(requests: int, body: bytes) -> Figures:
    holding = Holding(speaker())
    async with Upstream(holding.reply, keep=False) as upstream:
        with bare_process(upstream.base_url, requests, body) as (pid, go):
            before = megabytes(pid)
            go.send(None)
            await upstream.received(requests)
            return {
                "bare client, no request yet": before,
                "bare client, all requests at once": megabytes(pid),
            }


class Holding:
    """A model that stops in HELD_TURN until ``gate`` is set; ``body`` is what it was sent then."""

    def __init__(self, model: Speaker) -> None:
        self.gate = asyncio.Event()
        self.body = b""
        self._model = model

    def reply(self, request: Any) -> RawReply:
        turn = sum(message["role"] == "assistant" for message in request["messages"])
        reply = self._model.reply(request)
        if turn != HELD_TURN:
            return reply
        self.body = self.body or json.dumps(request, ensure_ascii=False).encode()
        return replace(reply, pace=Pace(gate=self.gate))


@contextmanager
def bare_process(url: str, requests: int, body: bytes) -> Iterator[tuple[int, Connection]]:
    """A client in a process of its own that sends its requests when it is told."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=send_all, args=(there, url, requests, body)
    )
    process.start()
    here.recv()
    try:
        assert process.pid is not None
        yield process.pid, here
    finally:
        process.kill()
        process.join()


def send_all(told: Connection, url: str, requests: int, body: bytes) -> None:
    async def send() -> None:
        async with client() as http:
            told.send("ready")
            told.recv()
            headers = {"content-type": "application/json"}
            address = f"{url}/chat/completions"
            await asyncio.gather(
                *(http.post(address, content=body, headers=headers) for _ in range(requests))
            )

    asyncio.run(send())


def megabytes(pid: int) -> float:
    return memory_bytes(pid) / 1e6


if __name__ == "__main__":
    main()
