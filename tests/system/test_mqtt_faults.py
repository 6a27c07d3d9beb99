"""What is known to go wrong between daemons and brokers, with a real one (NET-6)."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import aiomqtt
import httpx2
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from session_runtime.client.mqtt import MqttClient
from session_runtime.client.mqtt_line import Broker as Address
from session_runtime.errors import PermanentError, RequestError
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
    topic = more.pop("topic", "ask")
    for name, value in more.items():
        setattr(properties, name, value)
    await one.client.publish(f"session-runtime/{topic}", body, qos, properties=properties)


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
async def test_a_request_that_the_broker_ends_connections_over_costs_no_other_its_answer(
    tmp_path: Path,
) -> None:
    lines = f"{OPEN}message_size_limit 262144\n"  # which mosquitto tells nobody
    async with (
        broker(tmp_path, lines) as mosquitto,
        daemon(with_tool(tmp_path, mosquitto.port, seconds=1.0)) as running,
        MqttClient(Address(port=mosquitto.port)) as client,
        asker(mosquitto.port) as one,
    ):
        await one.until(lambda: online(one))
        others = [asyncio.create_task(client.ask("hi", timeout_s=20)) for _ in range(2)]
        with pytest.raises(PermanentError, match="3 connections broke") as refused:
            await client.ask("x" * 300_000, timeout_s=20)
        answers = await asyncio.gather(*others)
        told = await counts(running)
    assert refused.value.code == "mqtt.not_taken"
    assert [(each.text, each.may_have_run_twice) for each in answers] == [("done", False)] * 2
    assert (told["connections"], runs(tmp_path)) == (1, 2)


@pytest.mark.requirement("NET-6b")
async def test_an_ask_is_ended_by_its_id(tmp_path: Path) -> None:
    begun: asyncio.Queue[str] = asyncio.Queue()
    async with (
        broker(tmp_path) as mosquitto,
        daemon(with_tool(tmp_path, mosquitto.port, seconds=30.0)),
        MqttClient(Address(port=mosquitto.port)) as client,
    ):
        asking = asyncio.create_task(
            client.ask("hi", on_event=lambda event: begun.put_nowait(event["ask_id"]))
        )
        assert await client.cancel(await begun.get())
        assert (await asking).outcome == "cancelled"


@pytest.mark.requirement("NET-6c")
async def test_a_request_that_is_larger_than_the_daemon_reads_is_refused_once(
    tmp_path: Path,
) -> None:
    more = "max_payload_bytes = 700000\n"
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
async def test_what_the_library_cannot_read_is_passed_over_and_breaks_no_connection(
    tmp_path: Path,
) -> None:
    async with (
        broker(tmp_path) as mosquitto,
        daemon(with_tool(tmp_path, mosquitto.port)) as running,
        MqttClient(Address(port=mosquitto.port)) as client,
        aiomqtt.Client("127.0.0.1", mosquitto.port, protocol=aiomqtt.ProtocolVersion.V5) as other,
    ):
        async with asker(mosquitto.port) as one:
            await one.until(lambda: online(one))
        poison = [("mark", "\ufeff")]  # good for MQTT 5, and a malformed packet for paho
        for topic in ("ask", "status/r2"):  # the daemon reads the one, the client the other
            for qos in (0, 1, 1):
                more = {"ResponseTopic": REPLY, "UserProperty": poison}
                await publish(Asker(other), b"1", qos, topic=topic, **more)
        answer = await client.ask({"text": "go"}, timeout_s=30)
        told = await counts(running)
    assert (answer.text, answer.attempt) == ("done", 1)
    assert (told["connections"], told["unreadable"], runs(tmp_path)) == (1, 3, 1)


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
