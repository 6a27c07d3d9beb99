"""One validator behind every entrance: the same bytes get the same verdict and the same problems."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_runtime import ConfigError, Runtime
from session_runtime.app.reader import ConfigReader
from session_runtime.cli.opening import checked
from session_runtime.transports.http.door import HttpLimits
from session_runtime.transports.http.guard import ControlGate
from tests.support import write_handler
from tests.system.configurations import CONFIGURATIONS
from tests.transports.stub import calling

pytestmark = pytest.mark.requirement("REL-2")

GOOD = b"[ask]\nmax_steps = 77\n"
MAX_BYTES = 1_000_000
TOML = {"content-type": "application/toml"}

Verdict = tuple[bool, list[Mapping[str, Any]]]
"""Whether it can be used, and what is wrong."""


async def at_start(file: Path) -> Verdict:
    try:
        async with Runtime.open(file, watch=False):
            return True, []
    except ConfigError as error:
        return False, [asdict(problem) for problem in error.problems]


async def at_check(file: Path) -> Verdict:
    """``config check``, without printing."""
    try:
        await checked(ConfigReader(file)())
    except ConfigError as error:
        return False, [asdict(problem) for problem in error.problems]
    return True, []


def of_receipt(receipt: Mapping[str, Any]) -> Verdict:
    return receipt["verdict"] != "rejected", receipt["errors"]


@asynccontextmanager
async def running(file: Path) -> AsyncIterator[tuple[Runtime, httpx2.AsyncClient]]:
    """A runtime that began with a good file."""
    async with (
        Runtime.open(file, watch=False) as runtime,
        calling(runtime, HttpLimits(MAX_BYTES), gate=ControlGate()) as client,
    ):
        yield runtime, client


def prepared(folder: Path) -> Path:
    write_handler(folder / "tools", "good")
    (write_handler(folder / "broken", "bad") / "config.json").write_text("{", "utf-8")
    (folder / "prompt.txt").write_text("Be kind.\n", "utf-8")
    file = folder / "config.toml"
    file.write_bytes(GOOD)
    return file


@pytest.mark.parametrize("name", CONFIGURATIONS)
async def test_every_entrance_comes_to_the_same_verdict(tmp_path: Path, name: str) -> None:
    file, content = prepared(tmp_path), CONFIGURATIONS[name]
    async with running(file) as (runtime, client):
        tried = await client.post("/v1/config/validate", content=content, headers=TOML)
        assert runtime.generation.settings.ask.max_steps == 77
        file.write_bytes(content)
        on_disk = await client.post("/v1/config/validate")
        noticed = (await runtime.live.reload("watch")).to_json()
        asked = await client.post("/v1/config/reload")
    start = await at_start(file)
    verdicts = {
        "check": await at_check(file),
        "validate the text": of_receipt(tried.json()) if content else start,
        "validate the file": of_receipt(on_disk.json()),
        "watch": of_receipt(json.loads(json.dumps(noticed))),
        "reload over HTTP": of_receipt(asked.json()),
    }
    assert verdicts == dict.fromkeys(verdicts, start)
    assert start[0] == (not start[1])
    assert asked.status_code == (200 if start[0] else 422)


def test_the_files_are_many_good_and_bad() -> None:
    assert len(CONFIGURATIONS) > 60
    assert len(set(CONFIGURATIONS.values())) == len(CONFIGURATIONS)
