"""More than a daemon can carry out, and what nobody should send, by a real broker (NET-6)."""

import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.system.mosquitto import Asker, asker, broker, needs_broker
from tests.system.test_daemon import Daemon, daemon
from tests.system.test_mqtt import online
from tests.system.test_mqtt_faults import REPLY, answered, counts, publish, runs, with_tool

pytestmark = [pytest.mark.soak, needs_broker]


@dataclass
class Tally:
    """Counts answers by their code, ``none`` for results, as they come."""

    one: Asker
    read: int = 0
    codes: Counter[str] = field(default_factory=Counter)

    def total(self) -> int:
        for message in self.one.messages[self.read :]:
            if str(message.topic) == REPLY:
                body = json.loads(bytes(message.payload))  # type: ignore[arg-type]
                self.codes[body.get("error", {"code": "none"})["code"]] += 1
        self.read = len(self.one.messages)
        return self.codes.total()


def memory(running: Daemon) -> int:
    """What the daemon takes, in MiB."""
    status = Path(f"/proc/{running.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1024


@pytest.mark.requirement("NET-6c")
async def test_2000_asks_at_once_of_which_4_may_run_are_told_to_be_busy_in_bounded_memory(
    tmp_path: Path,
) -> None:
    more = "[runtime]\nmax_concurrent_asks = 4\n"
    async with (
        broker(tmp_path) as mosquitto,
        daemon(with_tool(tmp_path, mosquitto.port, seconds=0.2, more=more)) as running,
        asker(mosquitto.port) as one,
    ):
        await one.until(lambda: online(one))
        sizes, tally = [], Tally(one)
        for part in (1, 2):
            keys = [f"{part}/{number}".encode() for number in range(2_000)]
            await asyncio.gather(*(one.ask(key, events="none") for key in keys))
            await one.until(lambda part=part: tally.total() >= part * 2_000)
            sizes.append(memory(running))
    assert tally.codes["none"] == runs(tmp_path) >= 8
    assert tally.codes == {"none": runs(tmp_path), "busy.capacity": 4_000 - runs(tmp_path)}
    assert sizes[1] - sizes[0] <= 30, sizes


@pytest.mark.requirement("NET-6c")
async def test_a_flood_that_nothing_bounds_is_answered_or_dropped_in_bounded_memory(
    tmp_path: Path,
) -> None:
    more = "[runtime]\nmax_concurrent_asks = 4\n"
    body = json.dumps({"text": "go", "metadata": {"fill": "x" * 10_000}}).encode()
    async with (
        broker(tmp_path) as mosquitto,
        daemon(with_tool(tmp_path, mosquitto.port, seconds=0.2, more=more)) as running,
        asker(mosquitto.port) as one,
    ):
        await one.until(lambda: online(one))
        before = memory(running)
        for number in range(5_000):
            await publish(one, str(number).encode(), 0, ResponseTopic=REPLY, body=body)
        await publish(one, b"last", ResponseTopic=REPLY)
        await answered(one, b"last")
        told, after = await counts(running), memory(running)
    assert told["connections"] == 1
    assert after - before < 60, (before, after)


@pytest.mark.requirement("NET-6c")
async def test_requests_of_any_bytes_and_any_properties_are_answered_or_counted(
    tmp_path: Path,
) -> None:
    chance = random.Random(6)
    letters = "aZ09 /{}\"'\\€😀éß\u2028\u200b"

    def text() -> str:
        return "".join(chance.choices(letters, k=chance.randrange(12)))

    async with (
        broker(tmp_path) as mosquitto,
        daemon(with_tool(tmp_path, mosquitto.port)) as running,
        asker(mosquitto.port) as one,
    ):
        await one.until(lambda: online(one))
        for number in range(500):
            names = ["principal", "expires", "signature", "attempt", "events", "type", text()]
            await publish(
                one,
                chance.choice((None, str(number).encode(), chance.randbytes(130))),
                body=chance.choice((chance.randbytes(50), text().encode(), b'{"text": "go"}')),
                ResponseTopic=chance.choice((REPLY, f"{REPLY}/{text()}")),
                UserProperty=[(chance.choice(names), text()) for _ in range(3)],
                MessageExpiryInterval=chance.choice((1, 60, 2**32 - 1)),
                PayloadFormatIndicator=chance.choice((0, 1)),
                ContentType=text(),
            )
        await publish(one, b"last", ResponseTopic=REPLY)
        assert (await answered(one, b"last"))["text"] == "done"
        told = await counts(running)
        running.process.terminate()
        assert running.process.stderr is not None
        log = (await running.process.stderr.read()).decode()
    assert told.pop("connections") == 1
    assert sum(told.values()) == 501
    assert " info " in log
    assert " error " not in log
