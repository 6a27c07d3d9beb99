"""A broker of a test's own, on a loopback port, and a client of it that asks."""

import asyncio
import json
import os
import shutil
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiomqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

PROGRAM = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
NO_DELAY = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)

needs_broker = pytest.mark.skipif(PROGRAM is None, reason="make soak did not install mosquitto")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


class Broker:
    """A mosquitto that keeps nothing, and can be killed and started again."""

    def __init__(self, folder: Path, lines: str) -> None:
        self.port = free_port()
        self._file = folder / "mosquitto.conf"
        self._file.write_text(
            f"listener {self.port} 127.0.0.1\nset_tcp_nodelay true\nmax_queued_messages 100000\n"
            f"user root\n{lines}",
            "utf-8",
        )
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        assert PROGRAM is not None
        self._process = await asyncio.create_subprocess_exec(
            PROGRAM, "-c", str(self._file), stderr=asyncio.subprocess.DEVNULL
        )
        for _ in range(2_000):
            if self._listens():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("mosquitto never listened")

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@asynccontextmanager
async def broker(folder: Path, lines: str = "allow_anonymous true\n") -> AsyncIterator[Broker]:
    """A broker for as long as the block runs."""
    running = Broker(folder, lines)
    await running.start()
    try:
        yield running
    finally:
        await running.kill()


async def user_file(path: Path, name: str, password: str) -> None:
    """A file with one user, as brokers read it."""
    assert PROGRAM is not None
    maker = shutil.which("mosquitto_passwd", path=f"{Path(PROGRAM).parent}:/usr/bin")
    assert maker is not None
    making = await asyncio.create_subprocess_exec(maker, "-b", "-c", str(path), name, password)
    assert await making.wait() == 0


@dataclass
class Asker:
    """A client that has subscribed to its answers and to what replicas say of themselves."""

    client: aiomqtt.Client
    messages: list[aiomqtt.Message] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(
        self, correlation: bytes, text: str = "What is 3 * 4?", *, retain: bool = False, **user: str
    ) -> None:
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.ResponseTopic = "session-runtime/reply/me"
        properties.CorrelationData = correlation
        properties.UserProperty = list(user.items())
        body = json.dumps({"text": text})
        await self.client.publish("session-runtime/ask", body, 1, retain, properties)

    def answers(self, correlation: bytes) -> list[Mapping[str, Any]]:
        """Results and errors under this correlation data, with the user properties."""
        found = []
        for message in self.messages:
            given = vars(message.properties) if message.properties else {}
            about = dict(given.get("UserProperty", ()))
            if given.get("CorrelationData") == correlation and about["type"] in ("result", "error"):
                found.append({**json.loads(bytes(message.payload)), "about": about})  # type: ignore[arg-type]
        return found

    def statuses(self) -> list[Mapping[str, Any]]:
        """What replicas said of themselves, in order."""
        return [
            json.loads(bytes(message.payload))  # type: ignore[arg-type]
            for message in self.messages
            if "/status/" in str(message.topic)
        ]

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds that a message can change."""
        async with asyncio.timeout(60):
            while not holds():
                self.came.clear()
                await self.came.wait()

    async def read(self) -> None:
        async for message in self.client.messages:
            self.messages.append(message)
            self.came.set()


@asynccontextmanager
async def asker(port: int, **options: Any) -> AsyncIterator[Asker]:
    """A client that is connected as long as the block runs."""
    async with aiomqtt.Client(
        "127.0.0.1",
        port,
        protocol=aiomqtt.ProtocolVersion.V5,
        socket_options=NO_DELAY,
        **options,
    ) as client:
        client.pending_calls_threshold = 10_000
        await client.subscribe("session-runtime/reply/me", qos=1)
        await client.subscribe("session-runtime/status/#", qos=1)
        one = Asker(client)
        reading = asyncio.create_task(one.read())
        try:
            yield one
        finally:
            reading.cancel()
            await asyncio.wait([reading])
            if not reading.cancelled():
                reading.exception()
