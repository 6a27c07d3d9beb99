"""Replicas, connections and brokers that go: no ask waits for a silence, none runs twice unsaid (NET-6)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_runtime.client.mqtt import SILENCE_S, MqttClient
from session_runtime.client.mqtt_line import Broker as Address
from session_runtime.errors import TransientError
from tests.system.mosquitto import asker, broker, needs_broker, user_file
from tests.system.test_daemon import Daemon, daemon
from tests.system.test_mqtt import configuration, connected, online
from tests.system.test_mqtt_faults import counts, runs, with_tool

pytestmark = [pytest.mark.soak, needs_broker]

NAMES = ("r1", "r2", "r3")
SOON_S = SILENCE_S / 2
"""What waits for a silence has no answer by then."""


@asynccontextmanager
async def replicas(
    folder: Path, port: int, ports: Mapping[str, int] | None = None, *, seconds: float
) -> AsyncIterator[dict[str, Daemon]]:
    """Three replicas that are there; ``ports`` has other ones than ``port``."""
    async with AsyncExitStack() as stack, asker(port) as one:
        running = {}
        for name in NAMES:
            config = with_tool(folder, (ports or {}).get(name, port), name, seconds=seconds)
            running[name] = await stack.enter_async_context(daemon(config))
        await one.until(lambda: all(online(one, name) for name in NAMES))
        yield running


class Begun:
    """Takes the events of an ask; ``at`` is the replica that runs its tool, once there is one."""

    def __init__(self) -> None:
        self.there = asyncio.Event()

    def __call__(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "tool.started":
            self.there.set()


async def in_hand(running: Daemon) -> int:
    async with httpx2.AsyncClient() as client:
        page: Mapping[str, Any] = (await client.get(f"{running.url}/v1/status")).json()
    return int(page["mqtt"]["in_hand"])


async def at_work(running: Mapping[str, Daemon]) -> str:
    """The name of the replica that has something in hand."""
    [found] = [name for name, each in running.items() if await in_hand(each)]
    return found


@pytest.mark.requirement("NET-6d")
async def test_a_replica_that_is_killed_costs_nobody_a_silence(tmp_path: Path) -> None:
    async with (
        broker(tmp_path) as mosquitto,
        replicas(tmp_path, mosquitto.port, seconds=0.3) as running,
        MqttClient(Address(port=mosquitto.port)) as client,
    ):

        async def many(number: int) -> list[str]:
            asks = (client.ask({"text": "go"}, timeout_s=SOON_S) for _ in range(number))
            return [each.text for each in await asyncio.gather(*asks)]

        before = asyncio.create_task(many(30))
        await connected(running["r1"])
        while not await in_hand(running["r1"]):
            pass
        running["r1"].process.kill()
        after = asyncio.create_task(many(60))
        assert [*await before, *await after] == ["done"] * 90


@pytest.mark.requirement("NET-6b")
async def test_what_a_killed_replica_had_begun_is_run_by_another_which_says_that_it_may_be_twice(
    tmp_path: Path,
) -> None:
    begun = Begun()
    async with (
        broker(tmp_path) as mosquitto,
        replicas(tmp_path, mosquitto.port, seconds=2.0) as running,
        MqttClient(Address(port=mosquitto.port)) as client,
    ):
        asking = asyncio.create_task(client.ask({"text": "go"}, timeout_s=SOON_S, on_event=begun))
        await begun.there.wait()
        killed = await at_work(running)
        running[killed].process.kill()
        answer = await asking
    assert (answer.text, answer.may_have_run_twice, runs(tmp_path)) == ("done", True, 2)
    assert answer.replica != killed


@pytest.mark.requirement("NET-6b")
async def test_a_connection_that_is_back_soon_is_no_reason_to_run_anything_elsewhere(
    tmp_path: Path,
) -> None:
    begun = Begun()
    async with (
        broker(tmp_path) as mosquitto,
        cuttable(mosquitto.port) as (port, cut),
        replicas(tmp_path, mosquitto.port, dict.fromkeys(NAMES, port), seconds=2.0) as running,
        MqttClient(Address(port=mosquitto.port)) as client,
    ):
        asking = asyncio.create_task(client.ask({"text": "go"}, timeout_s=SOON_S, on_event=begun))
        await begun.there.wait()
        cut()
        answer = await asking
        connections = [(await counts(each))["connections"] for each in running.values()]
    assert (answer.text, answer.may_have_run_twice, runs(tmp_path)) == ("done", False, 1)
    assert connections == [2, 2, 2]


@pytest.mark.requirement("NET-6d")
async def test_an_ask_before_there_is_a_replica_is_taken_by_the_first_that_comes(
    tmp_path: Path,
) -> None:
    async with broker(tmp_path) as mosquitto, MqttClient(Address(port=mosquitto.port)) as client:
        with pytest.raises(TransientError, match="no replica takes requests") as nobody:
            await client.ask({"text": "go"}, timeout_s=1)
        asking = asyncio.create_task(client.ask({"text": "go"}, timeout_s=SOON_S))
        async with daemon(with_tool(tmp_path, mosquitto.port)) as running:
            first = await asking
            await mosquitto.kill()
            await running.logged("no connection to the MQTT broker")
            await mosquitto.start()
            second = await client.ask({"text": "go"}, timeout_s=SOON_S)
    assert (nobody.value.code, nobody.value.may_have_run) == ("mqtt.unreachable", False)
    assert [(each.text, each.attempt) for each in (first, second)] == [("done", 1)] * 2


@pytest.mark.requirement("NET-6d")
async def test_a_wrong_password_is_told_by_the_client_and_nothing_may_have_run(
    tmp_path: Path,
) -> None:
    await user_file(tmp_path / "users", "bot", "good")
    lines = f"allow_anonymous false\npassword_file {tmp_path}/users\n"
    async with broker(tmp_path, lines) as mosquitto:
        address = Address(port=mosquitto.port, username="bot", password="bad")
        async with MqttClient(address) as client:
            with pytest.raises(TransientError, match="Not authorized") as caught:
                await client.ask({"text": "go"}, timeout_s=2)
    assert (caught.value.code, caught.value.may_have_run) == ("mqtt.unreachable", False)


@pytest.mark.requirement("NET-6d")
async def test_a_daemon_is_ready_when_it_was_connected_and_stays_so_without_a_broker(
    tmp_path: Path,
) -> None:
    async with broker(tmp_path) as mosquitto:
        await mosquitto.kill()
        async with (
            daemon(configuration(tmp_path, mosquitto.port)) as running,
            httpx2.AsyncClient(base_url=running.url) as client,
        ):
            before = await client.get("/readyz")
            await mosquitto.start()
            await connected(running)
            there = await client.get("/readyz")
            await mosquitto.kill()
            await running.logged("no connection to the MQTT broker")
            after = await client.get("/readyz")
            await mosquitto.start()
    assert [each.status_code for each in (before, there, after)] == [503, 200, 200]
    assert "MQTT broker" in before.json()["error"]["message"]


@pytest.mark.requirement("NET-6d")
async def test_two_daemons_of_one_name_are_told_what_is_wrong(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    async with broker(tmp_path) as mosquitto:
        config = [configuration(tmp_path / each, mosquitto.port) for each in ("a", "b")]
        async with daemon(config[0]) as first, daemon(config[1]):
            await first.logged("does another daemon have the name r1")
            async with httpx2.AsyncClient() as client:
                page = (await client.get(f"{first.url}/v1/status")).json()
    assert page["mqtt"]["name_disputed"] is True


@asynccontextmanager
async def cuttable(port: int) -> AsyncIterator[tuple[int, Callable[[], None]]]:
    """A port that leads to another one, and what cuts all connections through it."""
    pipes: set[asyncio.Task[None]] = set()

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        finally:
            writer.transport.abort()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        pipes.add(asyncio.create_task(pipe(reader, back)))
        pipes.add(asyncio.create_task(pipe(there, writer)))

    def cut() -> None:
        for each in pipes:
            each.cancel()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], cut
        cut()
        await asyncio.wait(pipes)
