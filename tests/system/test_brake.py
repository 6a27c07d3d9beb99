"""The emergency brake as an operator uses it: a daemon, its socket, and two commands."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.system.test_daemon import bare_environment, daemon, working_config


async def command(config: Path, *arguments: str) -> Any:
    """Run a command of the command line; gives the JSON that it prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "session_runtime", *arguments, "--config", str(config), "--json"),
        stdout=asyncio.subprocess.PIPE,
        env=bare_environment(),
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(printed)


async def tools_of(url: str, user: str) -> set[str]:
    async with httpx2.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"{url}/v1/tools", params={"user": user})
    return {tool["name"] for tool in answer.json()["tools"]}


@pytest.mark.requirement("REL-9")
async def test_what_is_revoked_outlives_a_daemon_that_is_killed_until_it_is_lifted(
    tmp_path: Path,
) -> None:
    config = working_config(tmp_path)
    async with daemon(config) as running:
        before = await tools_of(running.url, "ann")
        made = await command(config, "revoke", "math.*", "--reason", "wrong sums")
        assert made["tools"] == ["math.evaluate"]
        assert await tools_of(running.url, "ann") == before - {"math.evaluate"}
        running.process.kill()
        await running.process.wait()
    async with daemon(config) as running:
        assert await tools_of(running.url, "ann") == before - {"math.evaluate"}
        assert [each["pattern"] for each in await command(config, "revoke", "--list")] == ["math.*"]
        assert await command(config, "asks", "list") == []
        await command(config, "revoke", "--lift", "1")
        assert await tools_of(running.url, "ann") == before
