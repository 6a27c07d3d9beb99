"""The replicas of a fleet beside each other, as one command sees them (NET-6)."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from session_runtime.client.fleet import MOST
from session_runtime.registry.keyring import hash_of
from tests.support import write_handler
from tests.system.mosquitto import Asker, asker, broker, needs_broker
from tests.system.test_daemon import Daemon, bare_environment, daemon

KEY = "sr_" + "k" * 43
ADMIN = f'[http.keys.ops]\nhash = "{hash_of(KEY)}"\nroles = ["admin"]\n'


async def fleet(config: Path, *options: str, **env: str) -> tuple[int, Any]:
    """Exit code and page of the command."""
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "session_runtime", "status", "--fleet", "--json", "--check"),
        *("--config", str(config), *options),
        stdout=asyncio.subprocess.PIPE,
        env=bare_environment() | env,
    )
    out, _ = await running.communicate()
    return running.returncode or 0, json.loads(out)


def kinds(page: Any) -> list[str]:
    return [each["kind"] for each in page["warnings"]]


def states(page: Any) -> dict[str, str]:
    return {each["replica"]: each["state"] for each in page["replicas"]}


@asynccontextmanager
async def replicas(config: Path, *names: str) -> AsyncIterator[dict[str, Daemon]]:
    """Daemons of one configuration, each with a name and a state directory of its own."""
    async with AsyncExitStack() as stack:
        running = {}
        for name in names:
            env = {
                "SESSION_RUNTIME__MQTT__CLIENT_ID": name,
                "SESSION_RUNTIME__RUNTIME__STATE_DIR": str(config.parent / name),
            }
            running[name] = await stack.enter_async_context(daemon(config, **env))
        yield running


@pytest.mark.requirement("NET-7c")
async def test_replicas_are_asked_over_http_with_the_key_of_an_admin(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'{ADMIN}[fleet]\nadmin_from = "env:FLEET_API_KEY"\n', "utf-8")
    async with replicas(config, "a", "b") as running:
        urls = [option for each in running.values() for option in ("--url", each.url)]
        code, page = await fleet(config, *urls, FLEET_API_KEY=KEY)
        assert (code, page["warnings"]) == (0, [])
        assert set(states(page).values()) == {"ready"}
        code, page = await fleet(config, *urls, FLEET_API_KEY="sr_" + "x" * 43)
    assert (code, kinds(page)) == (1, ["empty", "unknown", "unknown"])


@pytest.mark.soak
@needs_broker
@pytest.mark.requirement("NET-7c")
async def test_three_replicas_are_alike_until_one_differs_rejects_stops_or_dies(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "one")
    config = tmp_path / "config.toml"
    async with broker(tmp_path) as mosquitto, asker(mosquitto.port) as one:
        config.write_text(
            f'[runtime]\nwatch = "off"\n[handlers]\npaths = ["tools"]\n'
            f"[mqtt]\nenabled = true\nurl = 'mqtt://127.0.0.1:{mosquitto.port}'\n",
            "utf-8",
        )
        async with replicas(config, "r1", "r2", "r3") as running:
            await one.until(lambda: len(said(one, "online")) == 3)
            code, page = await fleet(config)
            assert (code, kinds(page)) == (0, [])
            assert states(page) == dict.fromkeys(("r1", "r2", "r3"), "ready")

            write_handler(tmp_path / "tools", "two")
            await _reload(one, running["r1"], "r1", lambda told: told["generation"] == 2)
            code, page = await fleet(config)
            assert (code, kinds(page)) == (1, ["tools"])

            good = config.read_text("utf-8")
            config.write_text(f"{good}[ask]\nmax_steps = 0\n", "utf-8")
            await _reload(one, running["r2"], "r2", lambda told: told["rejected_since"])
            config.write_text(good, "utf-8")
            code, page = await fleet(config)
            assert (code, kinds(page)) == (1, ["tools", "rejected"])

            running["r3"].process.terminate()
            assert await running["r3"].process.wait() == 0
            running["r2"].process.kill()
            await one.until(lambda: said(one, "offline") >= {"r2", "r3"})
            code, page = await fleet(config)
            assert states(page) == {"r1": "ready", "r2": "offline", "r3": "offline"}
            assert [each["replicas"] for each in page["warnings"]] == [["r2"], ["r3"]]
            code, page = await fleet(config, "--stopped-ok")
            assert (code, page["warnings"][0]["text"]) == (
                1,
                "r2 is offline, and did not say goodbye",
            )


@pytest.mark.soak
@needs_broker
@pytest.mark.requirement("NET-7c")
async def test_statuses_that_are_too_large_or_too_many_are_told_of(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    async with broker(tmp_path) as mosquitto, asker(mosquitto.port) as one:
        config.write_text(
            f"[mqtt]\nenabled = true\nurl = 'mqtt://127.0.0.1:{mosquitto.port}'\n", "utf-8"
        )
        await one.client.publish("session-runtime/status/large", b"x" * 200_000, 1, True)
        code, page = await fleet(config)
        assert (code, kinds(page)) == (1, ["empty", "unknown"])
        assert page["warnings"][1]["text"] == "large: its status has more than 16384 bytes"
        for number in range(MOST + 9):
            told = {"replica": f"r{number}", "state": "offline", "since": 1.0}
            await one.client.publish(f"session-runtime/status/r{number}", json.dumps(told), 1, True)
        code, page = await fleet(config, "--stopped-ok")
    assert (code, kinds(page), states(page)["large"]) == (
        1,
        ["empty", "left_out", "unknown"],
        "unknown",
    )
    assert page["warnings"][1]["text"].startswith("10 more statuses were not looked at")


def said(one: Asker, state: str) -> set[str]:
    return {each["replica"] for each in one.statuses() if each["state"] == state}


async def _reload(one: Asker, running: Daemon, name: str, holds: Any) -> None:
    """Have one replica read its configuration; go on when the broker was told what came of it."""
    running.process.send_signal(signal.SIGHUP)
    await one.until(
        lambda: any(
            each["replica"] == name and each["state"] == "online" and holds(each)
            for each in one.statuses()
        )
    )
