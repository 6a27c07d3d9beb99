"""The official JavaScript client of OpenAI's interface against the daemon; `make soak` installs it."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from tests.system.test_daemon import daemon, working_config
from tests.system.test_published_servers import INSTALLED

SCRIPT = Path(__file__).parent / "published" / "openai_client.cjs"
LIBRARY = INSTALLED / "node_modules" / "openai"
NODE = shutil.which("node")

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(NODE is None, reason="there is no node here"),
    pytest.mark.skipif(not LIBRARY.exists(), reason=f"make soak did not install {LIBRARY}"),
]


@pytest.mark.requirement("NET-1e")
async def test_the_javascript_client_asks_whole_and_streamed_and_gets_the_same(
    tmp_path: Path,
) -> None:
    async with daemon(working_config(tmp_path)) as running, asyncio.timeout(60):
        process = await asyncio.create_subprocess_exec(
            *(str(NODE), str(SCRIPT), str(INSTALLED), f"{running.url}/v1", "What is 15% of 2480?"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    told = json.loads(out)
    assert "372" in told["whole"]
    assert told == {
        "models": ["offline"],
        "whole": told["whole"],
        "reason": "stop",
        "streamed": told["whole"],
        "collected": told["whole"],
        "sameUsage": True,
        "refused": {"kind": "NotFoundError", "status": 404, "code": "model_not_found"},
    }
