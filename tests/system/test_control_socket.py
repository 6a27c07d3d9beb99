"""The control socket of a running daemon, and the commands that go through it (NET-4)."""

import asyncio
import json
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.system.test_daemon import Daemon, bare_environment, daemon
from tests.system.test_stopping import busy

pytestmark = pytest.mark.requirement("NET-4")


async def said(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run a command beside the daemon: its exit code, and all that it printed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "session_runtime", *arguments, "--config", "config.toml"),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=bare_environment(),
    )
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


def configured(folder: Path, text: str) -> Path:
    config = folder / "config.toml"
    config.write_text(text, "utf-8")
    return config


def control_client(folder: Path) -> httpx2.AsyncClient:
    transport = httpx2.AsyncHTTPTransport(uds=str(folder / ".session-runtime" / "control.sock"))
    return httpx2.AsyncClient(transport=transport, base_url="http://elsewhere.example", timeout=20)


async def test_the_socket_is_the_users_alone_serves_all_routes_and_goes_with_the_daemon(
    tmp_path: Path,
) -> None:
    socket = tmp_path / ".session-runtime" / "control.sock"
    async with daemon(configured(tmp_path, "[ask]\nmax_steps = 3\n")) as running:
        mode = socket.stat().st_mode
        async with control_client(tmp_path) as client:
            forwarded = {"x-forwarded-for": "10.0.0.1", "origin": "https://evil.example"}
            status = await client.get("/v1/status", headers=forwarded)
            answer = await client.post("/v1/ask", json={"text": "What is 2+3?"})
        running.process.send_signal(signal.SIGTERM)
        assert await running.process.wait() == 0
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
    assert status.json()["state"] == "ready"
    assert answer.json()["text"] == "5"
    assert not socket.exists()


async def test_a_daemon_that_was_killed_leaves_a_socket_that_the_next_one_replaces(
    tmp_path: Path,
) -> None:
    config = configured(tmp_path, "[ask]\nmax_steps = 3\n")
    async with daemon(config) as first:
        first.process.kill()
        await first.process.wait()
    assert (tmp_path / ".session-runtime" / "control.sock").exists()
    assert (await said(tmp_path, "status"))[0] == 69
    async with daemon(config):
        code, text = await said(tmp_path, "status")
    assert (code, "ready, 0 asks run" in text) == (0, True)


@pytest.mark.requirement("REL-3")
async def test_commands_show_and_reload_the_configuration_of_the_daemon(tmp_path: Path) -> None:
    config = configured(tmp_path, '[runtime]\nwatch = "off"\n[ask]\nmax_steps = 3\n')
    async with daemon(config) as running:
        config.write_text('[runtime]\nwatch = "off"\n[ask]\nmax_steps = 4\n[http]\nhost = "::1"\n')
        told = [await said(tmp_path, "config", "check", "--diff")]
        told += [await said(tmp_path, "config", "reload")]
        config.write_text('state_dir = 3\n[runtime]\nstate_dir = ".session-runtime"\n[ask\n')
        told += [await said(tmp_path, "config", "reload")]
        told += [await said(tmp_path, "config", "check", "--diff")]
        told += [await said(tmp_path, "status")]
        listed = await said(tmp_path, "config", "receipts", "--json")
        metrics = await scraped(running)
    edit = "ask.max_steps: 3 -> 4 (acts: next ask)\n"
    waits = 'waits for a restart: http.host: "127.0.0.1" -> "::1"\n'
    fault = "error: config.toml:4: column 5: not valid TOML"
    would_be = "this is what a reload would come to"
    assert told[0] == (0, f"applied-restart-needed: {would_be}\n{edit}{waits}")
    assert told[1] == (0, f"applied-restart-needed: generation 2 is in force\n{edit}{waits}")
    assert (told[2][0], told[3][0]) == (78, 78)
    assert fault in told[2][1]
    assert fault in told[3][1]
    assert told[4][0] == 0
    assert "configuration: its sources have been unusable for" in told[4][1]
    assert "edits are noticed by: off" in told[4][1]
    assert "waits for a restart: http.host" in told[4][1]
    receipts: list[dict[str, Any]] = json.loads(listed[1])
    assert [(each["id"], each["trigger"], each["verdict"]) for each in receipts] == [
        (3, "cli", "rejected"),
        (2, "cli", "applied-restart-needed"),
        (1, "start", "applied"),
    ]
    assert "session_runtime_config_in_force 0" in metrics
    assert 'reloads_total{trigger="cli",verdict="rejected"} 1' in metrics


def left_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def scraped(running: Daemon) -> str:
    async with httpx2.AsyncClient(trust_env=False) as client:
        response = await client.get(f"{running.url}/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return response.text


@pytest.mark.requirement("REL-8a")
async def test_while_it_drains_the_daemon_still_tells_how_it_is(tmp_path: Path) -> None:
    async with busy(tmp_path, drain_timeout_s=20) as one:
        one.running.process.send_signal(signal.SIGTERM)
        await one.logged("new asks are refused")
        code, text = await said(tmp_path, "status")
        one.let_go.set()
        assert await one.running.process.wait() == 0
    assert (code, text.splitlines()[0].partition(": ")[2]) == (0, "draining, 1 asks run")


async def test_a_state_folder_with_a_path_too_long_ends_the_start_with_the_way_out(
    tmp_path: Path,
) -> None:
    deep = tmp_path / ("x" * 80) / ("y" * 80)
    configured(tmp_path, f'[runtime]\nstate_dir = "{deep}"\n')
    code, text = await said(tmp_path, "serve", "--port", "0")
    assert code == 1
    assert "set runtime.state_dir to a folder with a shorter one" in text
    assert "Traceback" not in text
    assert left_in(deep) == ["lock"]
