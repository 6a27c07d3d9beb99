"""A handler that forks leaves one daemon: its child answers nobody and takes nothing away."""

import json
import signal
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support import write_handler
from tests.system.test_daemon import daemon

FORKS = """
import os
import warnings

warnings.simplefilter("ignore", DeprecationWarning)  # newer Python warns of a fork beside threads

{}(args, context):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return "in the parent" if child else "in the child"
"""


def forking(folder: Path, definition: str) -> Path:
    """A configuration whose model calls a handler that forks and then repeats its result."""
    code = FORKS.format(definition)
    if "inner" in definition:
        code += "\ndef execute(args, context):\n    return inner(args, context)\n"
    write_handler(folder / "tools", "fork", code=code)
    replies = [{"calls": [{"name": "fork", "arguments": {}}]}, {"text": "done"}]
    (folder / "script.json").write_text(json.dumps({"replies": replies}), encoding="utf-8")
    config = folder / "config.toml"
    config.write_text(
        '[handlers]\npaths = ["tools"]\n[skills]\nprefetch_tools = []\n'
        '[models.main]\nwire = "scripted"\nscript = "script.json"\n'
    )
    return config


async def ask(client: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    answer = await client.post(f"{url}/v1/ask", json={"text": "go"})
    result: dict[str, Any] = answer.json()
    return result


@pytest.mark.parametrize(
    "definition", ["def execute", "async def execute", "async def inner"], ids=str
)
async def test_a_forked_child_answers_nobody(tmp_path: Path, definition: str) -> None:
    async with (
        daemon(forking(tmp_path, definition)) as running,
        httpx2.AsyncClient(trust_env=False, timeout=20) as client,
    ):
        results = [await ask(client, running.url) for _ in range(3)]
        running.process.send_signal(signal.SIGTERM)
        assert await running.process.wait() == 0
    for result in results:
        assert (result["outcome"], result["text"]) == ("answered", "done")
        assert result["new_messages"][2]["content"] == "in the parent"
    trace = (tmp_path / ".session-runtime" / "trace.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["ask_id"] for line in trace] == [r["ask_id"] for r in results]
