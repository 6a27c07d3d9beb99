"""Reading what a broker keeps of all replicas: what is waited for, and what is left out (NET-6)."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from session_runtime.client import fleet_mqtt
from session_runtime.client.fleet_mqtt import presences
from session_runtime.client.mqtt_line import LineError, Received, Sent
from session_runtime.errors import TransientError
from session_runtime.wire.presence import Presence


@dataclass
class Broker:
    """Keeps messages, which it sends at once; then nothing comes, or the connection ``breaks``."""

    kept: Sequence[Received] = ()
    breaks: bool = False
    topics: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def __call__(self, topics: Sequence[str]) -> AsyncIterator["Broker"]:
        self.topics += topics
        yield self

    async def messages(self) -> AsyncIterator[Received]:
        for message in self.kept:
            yield message
        if self.breaks:
            raise LineError("cut")
        await asyncio.Event().wait()

    async def publish(self, message: Sent) -> None:
        raise AssertionError(f"something was published: {message}")


def told(name: str, state: str = "online", expiry_s: int = 86_390) -> Received:
    body = json.dumps({"replica": name, "state": state, "since": 1, "at": 2}).encode()
    return Received(f"rt/status/{name}", body, retained=True, expiry_s=expiry_s)


@pytest.mark.requirement("NET-7c")
async def test_all_that_is_kept_is_read_and_nothing_is_published() -> None:
    gone = Received("rt/status/r3", b"", retained=True)
    broker = Broker([told("r1"), told("r2", "draining"), gone, told("r2", "offline")])
    found = await presences(broker, "rt", quiet_s=0.01, wall=lambda: 3.0)
    alike = {"told_by": "mqtt", "since": 1.0, "at": 2.0, "age_s": 10.0}
    assert found.left_out == 0
    assert found.presences == (
        Presence("r1", state="ready", **alike),  # type: ignore[arg-type]
        Presence("r2", state="offline", **alike),  # type: ignore[arg-type]
    )
    assert broker.topics == ["rt/status/+"]


@pytest.mark.requirement("NET-7c")
async def test_of_more_replicas_than_are_bearable_those_that_are_offline_give_way_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet_mqtt, "MOST", 2)
    broken = Received("rt/status/r5", b"not json", retained=True)
    kept = [
        told("r1", "offline"),
        told("r2"),
        told("r3", "offline"),
        told("r4"),
        broken,
        told("r2"),
    ]
    found = await presences(Broker(kept), "rt", quiet_s=0.01)
    assert [(each.replica, each.state) for each in found.presences] == [
        *(("r2", "ready"), ("r4", "ready")),
    ]
    assert found.left_out == 3


async def test_a_broker_that_goes_away_is_told_with_the_way_out() -> None:
    with pytest.raises(TransientError, match=r"cut.*subscribe to rt/status/\+") as raised:
        await presences(Broker([told("r1")], breaks=True), "rt")
    assert raised.value.code == "fleet.broker"
