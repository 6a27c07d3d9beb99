"""The command of the image as a container would run it: read-only, as no root, as process 1 (REL-8)."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from session_runtime.app.serve import LAST_GRACE_S
from session_runtime.registry.keyring import hash_of
from session_runtime.transports.http.server import GRACE_S
from tests.deploy.files import FOLDER, ROOT, UID, environment, last

KEY = "sr_" + "k" * 43
OURS = {
    "SESSION_RUNTIME__HTTP__HOST": "127.0.0.1",
    "SESSION_RUNTIME__HTTP__PORT": "0",
    "SESSION_RUNTIME__HTTP__KEYS__BOT__HASH": hash_of(KEY),
    "SESSION_RUNTIME__MQTT__URL": "mqtt://127.0.0.1:1",
}
"""What differs from the image: where it listens, and a key that the test knows."""

IMAGE = Path(__file__).with_name("image.sh")


def _can_be_contained() -> bool:
    programs = ("unshare", "mount", "chroot")
    if os.geteuid() != 0 or not all(map(shutil.which, programs)):
        return False
    trial = ["unshare", "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "trial", "/mnt"]
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0


pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not _can_be_contained(), reason="this user may not make namespaces"),
]


@dataclass
class Contained:
    """The daemon in its namespaces: its process as seen from outside, where it serves, what ends it."""

    pid: int
    url: str
    outer: asyncio.subprocess.Process

    def status(self, name: str) -> list[str]:
        lines = Path(f"/proc/{self.pid}/status").read_text("ascii").splitlines()
        return next(line for line in lines if line.startswith(f"{name}:")).split()[1:]


def _command(folder: Path) -> list[str]:
    image = environment()
    image["PATH"] = f"/opt/session-runtime/bin:{os.defpath}"
    env = image | OURS | {"PYTHONPATH": "/src/runtime"}
    return [
        *("unshare", "--mount", "--pid", "--fork", "sh", str(IMAGE), str(folder)),
        *(str(ROOT), str(FOLDER / "compose" / "daemon"), sys.prefix, sys.base_prefix, str(UID)),
        *(f"{name}={value}" for name, value in env.items()),
        *(*last("ENTRYPOINT").words(), *last("CMD").words()),
    ]


def _children(pid: int) -> list[int]:
    """The processes that unshare waits for: the first one of the namespace, or none any more."""
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()))


@asynccontextmanager
async def contained(folder: Path) -> AsyncIterator[Contained]:
    outer = await asyncio.create_subprocess_exec(*_command(folder), stderr=asyncio.subprocess.PIPE)
    try:
        url = await _serving(outer)
        [inner] = _children(outer.pid)
        yield Contained(inner, url, outer)
    finally:
        if outer.returncode is None:
            for each in _children(outer.pid):  # it has another user by now, and outlives unshare
                os.kill(each, signal.SIGKILL)
        await outer.communicate()


async def _serving(outer: asyncio.subprocess.Process) -> str:
    assert outer.stderr is not None
    log = b""
    async with asyncio.timeout(60):
        async for line in outer.stderr:
            log += line
            if b"serving on " in line:
                return str(json.loads(line)["message"]).rpartition("serving on ")[2].split()[0]
    raise AssertionError(f"it never served: {log.decode()}")


@pytest.mark.requirement("REL-8a")
async def test_the_command_of_the_image_works_confined_and_ends_with_0_on_a_signal(
    tmp_path: Path,
) -> None:
    async with contained(tmp_path) as running:
        assert running.status("NSpid")[-1] == "1"
        assert set(running.status("Uid")) == {str(UID)}
        assert running.status("CapEff") == ["0000000000000000"]
        async with httpx2.AsyncClient(base_url=running.url, trust_env=False) as client:
            assert (await client.get("/healthz")).status_code == 200
            unready = await client.get("/readyz")  # there is no broker here
            assert (unready.status_code, unready.json()["error"]["code"]) == (503, "busy.not_ready")
            assert (await client.post("/v1/ask", json={"text": "x"})).status_code == 401
            headers = {"authorization": f"Bearer {KEY}"}
            ask = {"text": "What is 3 * 4?"}
            answer = await client.post("/v1/ask", json=ask, headers=headers)
        assert answer.json()["text"] == "12"
        os.kill(running.pid, signal.SIGTERM)
        async with asyncio.timeout(2 * GRACE_S + LAST_GRACE_S):
            assert await running.outer.wait() == 0


async def test_the_health_check_of_the_image_tells_whether_the_daemon_lives(
    tmp_path: Path,
) -> None:
    _, code, source = json.loads(last("HEALTHCHECK").text.partition("CMD ")[2])
    assert code == "-c"
    async with contained(tmp_path) as running:
        check = source.replace("http://127.0.0.1:8040", running.url)
        healthy = await asyncio.create_subprocess_exec(sys.executable, code, check)
        assert await healthy.wait() == 0
    gone = await asyncio.create_subprocess_exec(
        sys.executable, code, check, stderr=asyncio.subprocess.DEVNULL
    )
    assert await gone.wait() == 1
