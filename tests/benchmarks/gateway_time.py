"""What a gateway adds to one turn of a model, and what it costs: the LiteLLM proxy and the daemon.

Both are one process, ask for a key, and stand between the same client and the same model, which thinks
300 to 700 ms and answers with 60 words. Requests arrive at random times (open loop, the same in every run)
so that about 10, and then 50, are in flight, at one door after the other, in several rounds; added is the
time without the model's thinking, minus the median of the same for the client that asks the model itself.
Then each door is asked by 50 clients at once for what the model need not think about. The daemon has its
bundled tools and sends them to the model; the proxy has none. All is on the loopback interface; the proxy
asks nobody for anything.
"""

import asyncio
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
from asking import client
from conversation import ANSWER
from daemon import bare_environment, cpu_s, daemon, memory_bytes
from report import Cell, options, show
from turn_time import IN_FLIGHT, QUESTIONS, THINKS_S, Play, arrivals, burst, model_process

from session_runtime.registry.keyring import hash_of
from session_runtime.testing.chat_form import as_completion
from session_runtime.testing.conversation import question_of
from session_runtime.testing.replies import Pace, RawReply, reply_text
from session_runtime.testing.upstream import Replies

LITELLM = Path(sys.executable).with_name("litellm")
KEY = f"sr_{secrets.token_hex(22)[:43]}"
MASTER_KEY = f"sk-{secrets.token_hex(24)}"
LOADS = (10, 50)
AT_ONCE = "At once: "
ROUNDS = 3
STARTS_S = 120
PROXY = """
model_list:
  - model_name: main
    litellm_params: {{model: openai/any, api_base: "{url}", api_key: none}}
litellm_settings: {{num_retries: 0, telemetry: false}}
"""
DAEMON = f"""
[runtime]
state_dir = "state"
max_concurrent_asks = 1000
[http.keys.bench]
hash = "{hash_of(KEY)}"
[skills]
tool_search_enabled = true
[models.main]
base_url = "{{url}}"
model = "any"
stream = false
max_retries = 0
"""
OFFLINE = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOG": "ERROR",
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_TELEMETRY": "False",
    "DISABLE_ADMIN_UI": "True",
    "NO_DOCS": "True",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
}


@dataclass
class Door:
    """One way to the model: how a question is put there, whose process it is, what was measured."""

    name: str
    url: str
    body: Callable[[str], Mapping[str, Any]]
    key: str = KEY
    pid: int | None = None
    quantiles: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    cpu_ms: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    async def play(self, http: httpx2.AsyncClient, question: str) -> None:
        """One request that must go well."""
        headers = {"authorization": f"Bearer {self.key}"}
        answer = await http.post(self.url, json=self.body(question), headers=headers)
        if answer.status_code != 200 or ANSWER[:40] not in answer.text:
            sys.exit(f"{self.name} failed: {answer.status_code} {answer.text[:1_000]}")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each load")
    parser.add_argument(
        "--burst-seconds", type=float, default=1.0, help="of each load without thinking"
    )
    given = parser.parse_args()
    if not LITELLM.exists():
        print("skipped: the LiteLLM proxy is not installed")
        return
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        with model_process(answering) as url, doors(place, url) as opened:
            asyncio.run(measure(opened, given.seconds, given.burst_seconds))
            memory = {door.name: memory_bytes(door.pid) for door in opened if door.pid}
    show(given, ["in flight", "figure", *(door.name for door in opened)], figures(opened, memory))


def answering() -> Replies:
    """A model that thinks and then says the same."""
    said = as_completion(reply_text(ANSWER), {}, 1)

    def reply(request: Mapping[str, Any]) -> RawReply:
        return replace(said, pace=Pace(delay_s=thinks_s(question_of(request))))

    return reply


def thinks_s(question: str) -> float:
    """How long the model waits before it answers."""
    if question.startswith(AT_ONCE):
        return 0.0
    shortest_s, longest_s = THINKS_S
    return shortest_s + zlib.crc32(question.encode()) / 2**32 * (longest_s - shortest_s)


def as_completion_request(question: str) -> Mapping[str, Any]:
    return {"model": "main", "messages": [{"role": "user", "content": question}]}


@contextmanager
def doors(place: Path, url: str) -> Iterator[list[Door]]:
    """The ways to the model, all open."""
    config = place / "config.toml"
    config.write_text(DAEMON.format(url=url), "utf-8")
    completions, complete = "/v1/chat/completions", as_completion_request
    with proxy(place, url) as (proxy_url, proxy_pid), daemon(config) as ours:
        pid = ours.process.pid
        yield [
            Door("bare client", f"{url}/chat/completions", complete),
            Door("LiteLLM proxy", f"{proxy_url}{completions}", complete, MASTER_KEY, proxy_pid),
            Door(completions, f"{ours.url}{completions}", complete, pid=pid),
            Door("/v1/ask", f"{ours.url}/v1/ask", lambda question: {"text": question}, pid=pid),
        ]


@contextmanager
def proxy(place: Path, url: str) -> Iterator[tuple[str, int]]:
    """The LiteLLM proxy in front of a model, once it serves: its URL and process."""
    config = place / "proxy.yaml"
    config.write_text(PROXY.format(url=url), "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [str(LITELLM), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)],
        cwd=place,
        env={**bare_environment(), **OFFLINE, "HOME": str(place), "LITELLM_MASTER_KEY": MASTER_KEY},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_it_serves(f"http://127.0.0.1:{port}/health/liveliness", process)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.kill()
        process.wait()


def wait_until_it_serves(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + STARTS_S
    with httpx2.Client(trust_env=False) as http:
        while time.monotonic() < until and process.poll() is None:
            try:
                http.get(url)
            except httpx2.TransportError:
                time.sleep(0.2)
            else:
                return
    sys.exit("the LiteLLM proxy did not start")


async def measure(opened: list[Door], seconds: float, burst_seconds: float) -> None:
    """Each door in turn, round by round."""
    for _ in range(ROUNDS):
        for door in opened:
            async with (
                client() as http
            ):  # a connection kept for too long may be closed as it is used
                await asyncio.gather(*(door.play(http, question) for question in QUESTIONS))
                for in_flight in LOADS:
                    await under_load(http, door, in_flight, seconds)
                door.rates.append(await burst(hasty(http, door), burst_seconds, turns=1))


async def under_load(http: httpx2.AsyncClient, door: Door, in_flight: int, seconds: float) -> None:
    own_ms: list[float] = []

    async def timed(question: str) -> None:
        started = time.perf_counter()
        await door.play(http, question)
        own_ms.append((time.perf_counter() - started - thinks_s(question)) * 1_000)

    before = cpu_s(door.pid) if door.pid else 0.0
    async with asyncio.TaskGroup() as group:
        async for question in arrivals(seconds, turns=1, in_flight=in_flight):
            group.create_task(timed(question))
    cuts = statistics.quantiles(own_ms, n=100, method="inclusive")
    door.quantiles.setdefault(in_flight, []).append((cuts[49], cuts[94]))
    if door.pid:
        door.cpu_ms.append((cpu_s(door.pid) - before) / len(own_ms) * 1_000)


def hasty(http: httpx2.AsyncClient, door: Door) -> Play:
    async def play(question: str) -> None:
        await door.play(http, AT_ONCE + question)

    return play


def figures(opened: list[Door], memory: Mapping[str, int]) -> list[list[Cell]]:
    """The rows of the table, each the median of the rounds."""
    rows: list[list[Cell]] = []
    for in_flight in LOADS:
        for at, percent in enumerate((50, 95)):
            medians = [middle(door, in_flight, at) for door in opened]
            added: list[Cell] = [
                "-",
                *(each - middle(opened[0], in_flight, 0) for each in medians[1:]),
            ]
            rows.append([in_flight, f"time of a request, p{percent}, ms", *medians])
            rows.append([in_flight, f"added, p{percent}, ms", *added])
    rates: list[Cell] = [statistics.median(door.rates) for door in opened]
    cpu: list[Cell] = [statistics.median(door.cpu_ms) if door.pid else "-" for door in opened]
    mega: list[Cell] = [memory[door.name] / 1e6 if door.pid else "-" for door in opened]
    return [
        *rows,
        [IN_FLIGHT, "requests per second, model at once", *rates],
        ["-", "processor time of a request, ms", *cpu],
        ["-", "resident memory, MB", *mega],
    ]


def middle(door: Door, in_flight: int, at: int) -> float:
    """The median over the rounds of a quantile."""
    return statistics.median(each[at] for each in door.quantiles[in_flight])


if __name__ == "__main__":
    main()
