"""What is known to go wrong between daemons and brokers, with a real one (NET-6)."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiomqtt
import httpx2
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from session_runtime.client.mqtt import MqttClient
from session_runtime.client.mqtt_line import Broker as Address
from session_runtime.errors import RequestError
from tests.system.mosquitto import Asker, asker, broker, needs_broker
from tests.system.test_daemon import Daemon, daemon
from tests.system.test_mqtt import configuration, online

pytestmark = [pytest.mark.soak, needs_broker]

OPEN = "allow_anonymous true\n"
REPLY = "session-runtime/reply/me"
RUNS = """
import asyncio
from pathlib import Path

async def execute(args, context):
    with Path("{file}").open("a") as file:
        file.write("run\\n")
    await asyncio.sleep({seconds})
    return "acted"
"""


def with_tool(
    folder: Path,
    port: int,
    name: str = "r1",
    *,
    seconds: float = 0.0,
    text: str = "done",
    more: str = "",
) -> Path:
    """A configuration whose every ask calls one tool, which notes that in the file ``runs``."""
    tool = folder / name / "tools" / "act"
    tool.mkdir(parents=True)
    (tool / "config.json").write_text(
        '{"type": "function", "function": {"name": "act", "description": "Act."}}'
    )
    code = RUNS.format(file=folder / "runs", seconds=seconds)
    (tool / "handler.py").write_text(code)
    replies = [{"calls": [{"name": "act", "arguments": {}}]}, {"text": text}]
    (folder / name / "script.json").write_text(json.dumps({"replies": replies}))
    scripted = (
        '[handlers]\npaths = ["tools"]\n[models.main]\nwire = "scripted"\nscript = "script.json"\n'
    )
    return configuration(folder, port, more + scripted, name)


def runs(folder: Path) -> int:
    return (folder / "runs").read_text().count("run")


async def publish(one: Asker, correlation: bytes | None, qos: int = 1, **more: Any) -> None:
    """Publish a request with these properties."""
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    if correlation is not None:
        properties.CorrelationData = correlation
    body = more.pop("body", b'{"text": "What is 3 * 4?"}')
    for name, value in more.items():
        setattr(properties, name, value)
    await one.client.publish("session-runtime/ask", body, qos, properties=properties)


async def answered(one: Asker, correlation: bytes) -> Mapping[str, Any]:
    await one.until(lambda: one.answers(correlation))
    return one.answers(correlation)[0]


async def counts(running: Daemon) -> Mapping[str, int]:
    """How messages ended, as the metrics tell; and how often it connected, as ``connections``."""
    async with httpx2.AsyncClient() as client:
        lines = (await client.get(f"{running.url}/metrics")).text.splitlines()
    found = {}
    for line in lines:
        if line.startswith("session_runtime_mqtt_messages_total{"):
            found[line.split('"')[1]] = int(float(line.split()[-1]))
        if line.startswith("session_runtime_mqtt_connections_total"):
            found["connections"] = int(float(line.split()[-1]))
    return found


@pytest.mark.requirement("NET-6b")
async def test_copies_of_a_request_while_it_runs_and_after_it_are_one_run(tmp_path: Path) -> None:
    async with (
        broker(tmp_path) as mosquitto,
        daemon(with_tool(tmp_path, mosquitto.port, seconds=0.5)),
        asker(mosquitto.port) as one,
    ):
        await one.until(lambda: online(one))
        for attempt in ("1", "2", "3"):
            await one.ask(b"1", attempt=attempt)
        first = await answered(one, b"1")
        await one.ask(b"1", attempt="4")
        await one.until(lambda: len(one.answers(b"1")) == 2)
    again = one.answers(b"1")[1]
    assert (first["text"], again["text"], again["about"]["kept"]) == ("done", "done", "yes")
    assert runs(tmp_path) == 1


@pytest.mark.requirement("NET-6c")
async def test_requests_without_a_good_response_topic_are_counted_and_harm_nobody(
    tmp_path: Path,
) -> None:
    deep = f"{REPLY}/{'a/' * 230}b"
    bad: list[dict[str, Any]] = [
        {},
        *({"ResponseTopic": topic} for topic in ("", f"{REPLY}/+", "elsewhere/me", deep)),
    ]
    async with (
        broker(tmp_path) as mosquitto,
        daemon(with_tool(tmp_path, mosquitto.port)) as running,
        asker(mosquitto.port) as one,
    ):
        await one.until(lambda: online(one))
        for properties in bad:
            async with asker(mosquitto.port, timeout=2) as other:
                with suppress(aiomqtt.MqttError):  # a broker may refuse it by itself
                    await publish(other, b"1", **properties)
        await publish(one, None, ResponseTopic=REPLY)
        await publish(one, b"2", ResponseTopic=REPLY)
        assert (await answered(one, b"2"))["text"] == "done"
        told = await counts(running)
    assert (told["connections"], told["refused"]) == (1, 1)
    assert told["no_reply"] >= 3
    assert runs(tmp_path) == 1


@pytest.mark.requirement("NET-6c")
async def test_what_is_larger_than_the_broker_takes_is_told_and_breaks_no_connection(
    tmp_path: Path,
) -> None:
    lines = f"{OPEN}max_packet_size 262144\n"
    async with (
        broker(tmp_path, lines) as mosquitto,
        daemon(with_tool(tmp_path, mosquitto.port, text="x" * 300_000)) as running,
        MqttClient(Address(port=mosquitto.port)) as client,
        asker(mosquitto.port) as one,
    ):
        await one.until(lambda: online(one))
        with pytest.raises(RequestError) as too_large:
            await client.ask({"text": "x" * 2_000_000}, timeout_s=20)
        await one.ask(b"1")
        first = await answered(one, b"1")
        await one.ask(b"1", attempt="2")
        await one.until(lambda: len(one.answers(b"1")) == 2)
        told = await counts(running)
    assert too_large.value.code == "request.too_large"
    again = one.answers(b"1")[1]
    assert [each["error"]["code"] for each in (first, again)] == ["mqtt.answer_too_large"] * 2
    assert "the broker takes 262144" in first["error"]["message"]
    assert (told["connections"], runs(tmp_path)) == (1, 1)


@pytest.mark.requirement("NET-6c")
async def test_a_request_that_is_larger_than_the_daemon_reads_is_refused_once(
    tmp_path: Path,
) -> None:
    more = "max_message_bytes = 700000\n"
    async with (
        broker(tmp_path) as mosquitto,
        daemon(with_tool(tmp_path, mosquitto.port, more=more)) as running,
        asker(mosquitto.port) as one,
    ):
        await one.until(lambda: online(one))
        await one.ask(b"1", "x" * 2_000_000)
        assert (await answered(one, b"1"))["error"]["code"] == "request.too_large"
        await one.ask(b"2")
        assert (await answered(one, b"2"))["text"] == "done"
        told = await counts(running)
    assert (told["connections"], told["refused"], runs(tmp_path)) == (1, 1, 1)


@pytest.mark.requirement("NET-6d")
async def test_a_request_that_the_library_cannot_read_is_not_sent_to_the_daemon_for_ever(
    tmp_path: Path,
) -> None:
    more = "session_expiry_s = 3600\n"
    async with (
        broker(tmp_path) as mosquitto,
        daemon(with_tool(tmp_path, mosquitto.port, more=more)) as running,
        asker(mosquitto.port) as one,
    ):
        await one.until(lambda: online(one))
        poison = [("mark", "\ufeff")]  # good for MQTT 5, and a malformed packet for paho
        await publish(one, b"1", ResponseTopic=REPLY, UserProperty=poison)
        await running.logged("no connection to the MQTT broker")
        await running.logged("connected to the MQTT broker")
        await one.ask(b"2")
        assert (await answered(one, b"2"))["text"] == "done"
        assert (await counts(running))["connections"] <= 3


@pytest.mark.requirement("NET-6b")
async def test_an_ask_that_runs_while_its_broker_is_killed_runs_once_among_many_replicas(
    tmp_path: Path,
) -> None:
    names = ("r1", "r2", "r3")
    begun = asyncio.Event()

    def on_event(event: Mapping[str, Any]) -> None:
        if event["type"] == "tool.started":
            begun.set()

    async with broker(tmp_path) as mosquitto, AsyncExitStack() as stack:
        for name in names:
            config = with_tool(tmp_path, mosquitto.port, name, seconds=4.0)
            await stack.enter_async_context(daemon(config))
        async with asker(mosquitto.port) as one:
            await one.until(lambda: all(online(one, name) for name in names))
        async with MqttClient(Address(port=mosquitto.port), silence_s=1.0) as client:
            asking = asyncio.create_task(client.ask({"text": "go"}, on_event=on_event))
            await begun.wait()
            await mosquitto.kill()
            await mosquitto.start()
            answer = await asking
    assert (answer.text, runs(tmp_path), answer.may_have_run_twice) == ("done", 1, False)


@pytest.mark.requirement("NET-6d")
async def test_a_member_of_the_group_that_is_away_costs_no_request(tmp_path: Path) -> None:
    more = "session_expiry_s = 2\n"
    async with broker(tmp_path) as mosquitto, asker(mosquitto.port) as one:
        files = [with_tool(tmp_path, mosquitto.port, name, more=more) for name in ("r1", "r2")]
        async with daemon(files[0]) as first, daemon(files[1]):
            await one.until(lambda: online(one, "r1") and online(one, "r2"))
            first.process.kill()
            await first.process.wait()
            async with MqttClient(Address(port=mosquitto.port), silence_s=3.0) as client:
                answers = await asyncio.gather(*(client.ask({"text": "go"}) for _ in range(100)))
    assert [(each.text, each.replica) for each in answers] == [("done", "r2")] * 100


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


@pytest.mark.requirement("NET-6d")
async def test_a_connection_that_is_back_soon_is_not_told_to_be_a_replica_that_is_gone(
    tmp_path: Path,
) -> None:
    async with (
        broker(tmp_path) as mosquitto,
        cuttable(mosquitto.port) as (port, cut),
        daemon(with_tool(tmp_path, port)) as running,
        asker(mosquitto.port) as one,
    ):
        await one.until(lambda: online(one))
        cut()
        await running.logged("no connection to the MQTT broker")
        await one.ask(b"1")
        assert (await answered(one, b"1"))["text"] == "done"
        assert (await counts(running))["connections"] == 2
    assert {each["state"] for each in one.statuses()} == {"online"}
