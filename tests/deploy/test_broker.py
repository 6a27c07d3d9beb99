"""The broker and the daemon of compose.yaml, as they are shipped, on this machine (NET-6)."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiomqtt
import pytest

from session_runtime.client.mqtt import MqttClient, Signer
from session_runtime.client.mqtt_line import Broker as Address
from tests.deploy.files import FOLDER
from tests.system.mosquitto import asker, broker, needs_broker, user_file
from tests.system.test_daemon import bare_environment, daemon

pytestmark = [pytest.mark.soak, needs_broker]

PASSWORD = "a password"
SECRET = "a signing secret of 32 characters"


@dataclass
class Shipped:
    """The broker of compose.yaml: its port, and the environment of a replica beside it."""

    port: int
    config: Path
    env: dict[str, str]


def _moved(name: str, folder: Path) -> str:
    """A shipped file, with every path in it in ``folder``."""
    text = (FOLDER / "compose" / name).read_text("utf-8")
    return text.replace("/run/secrets", str(folder)).replace("/mosquitto/config", str(folder))


@asynccontextmanager
async def shipped(folder: Path) -> AsyncIterator[Shipped]:
    """Mosquitto with the shipped files, but on a port of the test's."""
    await user_file(folder / "broker_users", "replica", PASSWORD)
    await user_file(folder / "more_users", "bot", PASSWORD)
    _write(folder)
    lines = _moved("broker/mosquitto.conf", folder).replace("listener 1883\n", "")
    async with broker(folder, lines) as mosquitto:
        yield Shipped(
            mosquitto.port,
            folder / "config.toml",
            {
                "SESSION_RUNTIME__MQTT__URL": f"mqtt://127.0.0.1:{mosquitto.port}",
                "SESSION_RUNTIME__HTTP__HOST": "127.0.0.1",
                "SESSION_RUNTIME__RUNTIME__SECRET_SOURCES": json.dumps([f"file:{folder}"]),
            },
        )


def _write(folder: Path) -> None:
    with (folder / "broker_users").open("a") as users:
        users.write((folder / "more_users").read_text("utf-8"))
    (folder / "replica_password").write_text(PASSWORD, "utf-8")
    (folder / "bot_signing_secret").write_text(SECRET, "utf-8")
    (folder / "acl").write_text(_moved("broker/acl", folder), "utf-8")
    (folder / "config.toml").write_text(_moved("daemon/config.toml", folder), "utf-8")


async def fleet(beside: Shipped) -> Any:
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "session_runtime", "status", "--fleet", "--json"),
        *("--config", str(beside.config)),
        stdout=asyncio.subprocess.PIPE,
        env=bare_environment() | beside.env,
    )
    out, _ = await running.communicate()
    return json.loads(out)


@pytest.mark.requirement("NET-6e")
async def test_a_backend_with_its_name_and_secret_is_answered(tmp_path: Path) -> None:
    async with shipped(tmp_path) as beside, daemon(beside.config, **beside.env) as running:
        await running.logged("connected to the MQTT broker")
        address = Address("127.0.0.1", beside.port, username="bot", password=PASSWORD)
        async with MqttClient(address, signer=Signer("bot", SECRET), name="bot") as client:
            request = {"text": "What is 3 * 4?", "identity": {"user": "tg-17"}}
            answer = await client.ask(request, timeout_s=30)
        page = await fleet(beside)
    assert answer.text == "12"
    assert [each["state"] for each in page["replicas"]] == ["ready"]
    assert page["warnings"] == []


async def test_nobody_comes_in_without_a_password(tmp_path: Path) -> None:
    async with shipped(tmp_path) as beside:
        with pytest.raises(aiomqtt.MqttError, match="Not authorized"):
            async with asker(beside.port):
                pass


async def test_a_backend_cannot_say_how_a_replica_is_nor_read_requests(tmp_path: Path) -> None:
    async with shipped(tmp_path) as beside:
        bot = {"username": "bot", "password": PASSWORD}
        async with asker(beside.port, **bot) as one:
            await one.client.subscribe("session-runtime/ask", qos=1)
            await one.client.subscribe("session-runtime/reply/bot/#", qos=1)
            await one.client.publish("session-runtime/status/r1", b"{}", 1, retain=True)
            await one.client.publish("session-runtime/ask", b"{}", 1)
            replica = {"username": "replica", "password": PASSWORD}
            async with asker(beside.port, **replica) as other:
                await other.client.publish("session-runtime/reply/bot/1", b"mark", 1)
                await one.until(lambda: one.messages)
    assert [str(message.topic) for message in one.messages] == ["session-runtime/reply/bot/1"]
    assert other.messages == []
