"""The description of the HTTP routes against a running daemon: made-up requests, every answer as described.

Schemathesis makes them: right and wrong ones, to the edges of every schema.
"""

import asyncio
import signal
from pathlib import Path

import httpx2
import pytest

from tests.system.test_daemon import ROOT, Daemon, daemon

PROGRAM = ROOT / ".soak" / "fuzz" / "bin" / "st"
RULES = Path(__file__).parent / "fuzz" / "schemathesis.toml"
CONFIG = """
[runtime]
max_concurrent_asks = 4
[http]
max_body_bytes = 65536
[skills]
prefetch_tools = []
[models.main]
wire = "scripted"
script = "script.json"
"""
SEED = 7

pytestmark = [
    pytest.mark.requirement("NET-1a"),
    pytest.mark.skipif(not PROGRAM.exists(), reason="make test did not install Schemathesis"),
]


async def fuzzed(
    folder: Path, running: Daemon, examples: int, *options: str
) -> tuple[int | None, str]:
    """The exit code of Schemathesis, which keeps notes in its folder, and what it found."""
    process = await asyncio.create_subprocess_exec(
        *(str(PROGRAM), "--no-color", "--config-file", str(RULES)),
        *("run", f"{running.url}/openapi.json", f"--max-examples={examples}", f"--seed={SEED}"),
        *("--generation-database=none", "--continue-on-failure", "--warnings=off", *options),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await process.communicate()
    return process.returncode, told.decode()


@pytest.mark.parametrize(
    ("examples", "phases"),
    [
        pytest.param(3, "coverage,fuzzing", id="a few"),
        pytest.param(150, "coverage,fuzzing,stateful", id="many", marks=pytest.mark.soak),
    ],
)
async def test_whatever_is_sent_is_answered_as_the_description_says(
    tmp_path: Path, examples: int, phases: str
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(CONFIG, encoding="utf-8")
    (tmp_path / "script.json").write_text('{"replies": [{"text": "hello"}]}', encoding="utf-8")
    async with daemon(config) as running, httpx2.AsyncClient(trust_env=False, timeout=30) as client:
        assert running.process.stderr is not None
        logging = asyncio.create_task(running.process.stderr.read())
        code, told = await fuzzed(tmp_path, running, examples, f"--phases={phases}", "--no-shrink")
        assert code == 0, told
        good = await client.post(f"{running.url}/v1/ask", json={"text": "hi"})
        running.process.send_signal(signal.SIGTERM)
        log = (await logging).decode()
    assert good.json()["text"] == "hello"
    assert "Traceback" not in log
