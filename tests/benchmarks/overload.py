"""What ten times as many asks as there is room for come to: who is refused how fast, and who is not.

The daemon has room for some asks, and the model thinks 300 to 700 ms, so that it can answer twice as many
in a second. For a while asks arrive at random times (open loop, the same in every run), ten times as many
as that. Before, a third of what it can do is the measure for asks without a load; own time is that without
the model's thinking. Then the flood ends, and one ask after another is made until one is answered. Memory is
looked at ten times a second.
"""

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
from asking import client
from daemon import Daemon, cpu_s, daemon, memory_bytes
from gateway_time import answering, thinks_s
from report import Cell, options, show
from turn_time import QUESTIONS, SEED, THINKS_S, model_process

CONFIG = """
[runtime]
state_dir = "state"
max_concurrent_asks = {room}
[models.main]
base_url = "{url}"
model = "any"
max_retries = 0
"""
TIMES = 10
CALM_S = 5.0
LOOKS_S = 0.1


@dataclass
class Heard:
    """What came of asks: own times and times to a refusal in milliseconds, and what else went wrong."""

    answered_ms: list[float] = field(default_factory=list)
    refused_ms: list[float] = field(default_factory=list)
    without_wait: int = 0
    arriving_s: float = 0.0
    faults: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.answered_ms) + len(self.refused_ms) + len(self.faults)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--room", type=int, default=20, help="how many asks may run at once")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the flood lasts")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, model_process(answering) as url:
        config = Path(temporary) / "config.toml"
        config.write_text(CONFIG.format(room=given.room, url=url), "utf-8")
        with daemon(config) as running:
            rows = asyncio.run(measure(running, given.room, given.seconds))
    show(given, ["figure", "without load", "in the flood", "after it"], rows)


async def measure(running: Daemon, room: int, seconds: float) -> list[list[Cell]]:
    can_do = room / (sum(THINKS_S) / 2)
    async with client() as http:
        await load(http, running, can_do / 3, 1.0)
        calm = await load(http, running, can_do / 3, CALM_S)
        before = memory_bytes(running.process.pid)
        cpu_before = cpu_s(running.process.pid)
        async with memory_of(running) as looks:
            flood = await load(http, running, can_do * TIMES, seconds)
            recovered_ms = await recovery(http, running)
        cpu_ms = (cpu_s(running.process.pid) - cpu_before) / flood.count * 1_000
        after = await load(http, running, can_do / 3, CALM_S)
    if flood.faults or calm.faults or after.faults or calm.refused_ms or after.refused_ms:
        faults = flood.faults + calm.faults + after.faults
        sys.exit(
            f"{len(faults)} asks of {flood.count} went wrong: {Counter(faults).most_common(3)}"
        )
    middle = len(looks) // 2
    return [
        ["asks", calm.count, flood.count, after.count],
        ["asks per second", *(each.count / each.arriving_s for each in (calm, flood, after))],
        ["answered", len(calm.answered_ms), len(flood.answered_ms), len(after.answered_ms)],
        ["refused, with Retry-After", 0, len(flood.refused_ms) - flood.without_wait, 0],
        ["refused, without", 0, flood.without_wait, 0],
        *(
            [
                f"own time of an answered ask, p{percent}, ms",
                *(quantile(each.answered_ms, percent) for each in (calm, flood, after)),
            ]
            for percent in (50, 99)
        ),
        *(
            [f"time to a refusal, p{percent}, ms", "-", quantile(flood.refused_ms, percent), "-"]
            for percent in (50, 99)
        ),
        ["processor time of an ask or refusal, ms", "-", cpu_ms, "-"],
        ["memory at first, MB", before / 1e6, looks[0] / 1e6, "-"],
        ["memory at most in the first half, MB", "-", max(looks[: middle + 1]) / 1e6, "-"],
        ["memory at most in the second, MB", "-", max(looks[middle:]) / 1e6, "-"],
        ["memory at last, MB", "-", looks[-1] / 1e6, memory_bytes(running.process.pid) / 1e6],
        ["from the end of the flood to an answer, own time, ms", "-", "-", recovered_ms],
    ]


async def load(
    http: httpx2.AsyncClient, running: Daemon, per_second: float, seconds: float
) -> Heard:
    """Asks at random times, for so long; returns when all are answered."""
    heard = Heard()
    chance = random.Random(SEED)
    due = started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        while due < started + seconds:
            await asyncio.sleep(due - time.perf_counter())
            group.create_task(one_ask(http, running.url, chance.choice(QUESTIONS), heard))
            due += chance.expovariate(per_second)
        heard.arriving_s = time.perf_counter() - started
    return heard


async def one_ask(http: httpx2.AsyncClient, url: str, question: str, heard: Heard) -> None:
    started = time.perf_counter()
    try:
        answer = await http.post(f"{url}/v1/ask", json={"text": question})
    except httpx2.TransportError as error:
        heard.faults.append(repr(error))
        return
    spent_ms = (time.perf_counter() - started) * 1_000
    if answer.status_code in (429, 503):
        heard.refused_ms.append(spent_ms)
        heard.without_wait += "retry-after" not in answer.headers
    elif answer.status_code == 200 and answer.json()["outcome"] == "answered":
        heard.answered_ms.append(spent_ms - thinks_s(question) * 1_000)
    else:
        heard.faults.append(f"{answer.status_code} {answer.text[:200]}")


async def recovery(http: httpx2.AsyncClient, running: Daemon) -> float:
    """Milliseconds until an ask is answered, without the model's thinking."""
    started, heard = time.perf_counter(), Heard()
    while not heard.answered_ms and not heard.faults:
        await one_ask(http, running.url, QUESTIONS[0], heard)
    return (time.perf_counter() - started - thinks_s(QUESTIONS[0])) * 1_000


@asynccontextmanager
async def memory_of(running: Daemon) -> AsyncIterator[list[int]]:
    """Looks at the daemon's memory as long as the block runs, and once at its end."""
    looks: list[int] = [memory_bytes(running.process.pid)]

    async def look() -> None:
        while True:
            await asyncio.sleep(LOOKS_S)
            looks.append(memory_bytes(running.process.pid))

    looking = asyncio.create_task(look())
    try:
        yield looks
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        looks.append(memory_bytes(running.process.pid))


def quantile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


if __name__ == "__main__":
    main()
