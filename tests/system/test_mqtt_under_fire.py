"""Many asks over three replicas while the broker and one of them are killed: each gets one answer (NET-6)."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from session_runtime.client.mqtt import MqttAnswer, MqttClient
from session_runtime.client.mqtt_line import Broker
from tests.system.mosquitto import asker, broker, needs_broker
from tests.system.test_daemon import daemon
from tests.system.test_mqtt import configuration, online

pytestmark = [pytest.mark.soak, needs_broker]

ASKS = 2_000
AT_ONCE = 64
NAMES = ("r1", "r2", "r3")


class Crowd:
    """Asks of one client, so many at once; ``reached`` waits until a number of them is answered."""

    def __init__(self, client: MqttClient) -> None:
        self.answers: list[MqttAnswer] = []
        self._client = client
        self._room = asyncio.Semaphore(AT_ONCE)
        self._changed = asyncio.Event()

    async def ask(self, number: int) -> None:
        async with self._room:
            request = {"text": f"What is {number} + 1?"}
            answer = await self._client.ask(request, timeout_s=240)
        assert answer.text == str(number + 1)
        self.answers.append(answer)
        self._changed.set()

    async def reached(self, number: int) -> None:
        while len(self.answers) < number:
            self._changed.clear()
            await self._changed.wait()


def most_runs(folder: Path) -> int:
    """How often the same question ran on the same replica, at most, as the traces tell."""
    counts: Counter[tuple[str, str]] = Counter()
    for name in NAMES:
        text = (folder / name / ".session-runtime" / "trace.jsonl").read_text("utf-8")
        for record in map(json.loads, text.splitlines()):
            counts[name, str(record["turns"][0]["calls"][0]["arguments"])] += 1
    traced = len({question for _, question in counts})
    assert ASKS - AT_ONCE <= traced <= ASKS  # what is killed loses the records of its last answers
    return max(counts.values())


def spread(answers: Sequence[MqttAnswer]) -> list[int]:
    counts = Counter(each.replica for each in answers)
    return [counts[name] for name in NAMES]


@pytest.mark.requirement("NET-6d")
async def test_every_ask_gets_one_answer_whatever_is_killed(tmp_path: Path) -> None:
    async with asyncio.timeout(300), broker(tmp_path) as mosquitto:
        traced = "[trace]\ncontent = true\n"
        files = [configuration(tmp_path, mosquitto.port, traced, name) for name in NAMES]
        async with daemon(files[0]) as first, daemon(files[1]), daemon(files[2]):
            async with asker(mosquitto.port) as watching:
                await watching.until(lambda: all(online(watching, name) for name in NAMES))
            async with MqttClient(Broker(port=mosquitto.port)) as client:
                crowd = Crowd(client)
                async with asyncio.TaskGroup() as group:
                    for number in range(ASKS):
                        group.create_task(crowd.ask(number))
                    await crowd.reached(400)
                    before = spread(crowd.answers)
                    for answered in (500, 900):
                        await crowd.reached(answered)
                        await mosquitto.kill()
                        await mosquitto.start()
                    await crowd.reached(1_300)
                    first.process.kill()
    assert len(crowd.answers) == ASKS
    assert max(before) - min(before) <= 0.1 * sum(before)
    assert most_runs(tmp_path) == 1
    flagged = sum(each.may_have_run_twice for each in crowd.answers)
    assert flagged <= 6 * AT_ONCE
