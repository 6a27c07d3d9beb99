"""Fifty edits of every kind while three hundred asks run: each ask lives in its own generation."""

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_runtime.testing.conversation import Request, question_of
from session_runtime.testing.replies import Reply, reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from tests.support import manifest
from tests.system.test_daemon import bare_environment

ASKS_PER_EDIT = 6
EDITS = 50
WAIT_S = 60
HANDLES_MORE = 4


@dataclass(frozen=True)
class World:
    """What is on disk and good: what a new ask must see."""

    prompt: str = "prompt 0"
    model: str = "model 0"
    max_tool_calls: int = 64
    denied: str = "nothing"
    port: int = 0
    versions: dict[str, int] = field(default_factory=lambda: dict.fromkeys("abcd", 0))

    @property
    def tools(self) -> list[str]:
        return [f"edition__{name}" for name in sorted(self.versions) if name != self.denied]

    def result(self, tool: str) -> str:
        name = tool.rpartition("__")[2]
        return f"version {self.versions[name]} of {name}"

    def write(self, folder: Path, base_url: str, more: str = "") -> None:
        (folder / "config.toml").write_text(self.toml(base_url, more), encoding="utf-8")

    def toml(self, base_url: str, more: str = "") -> str:
        return (
            "[runtime]\nmax_concurrent_asks = 400\nrecheck_s = 1.0\n"
            f"[ask]\nsystem_prompt = {json.dumps(self.prompt)}\n"
            f"max_tool_calls = {self.max_tool_calls}\n"
            f"[handlers]\npaths = ['tools']\nbundled = false\n"
            f"[models.main]\nbase_url = '{base_url}'\nmodel = '{self.model}'\nmax_retries = 0\n"
            f"[access.rules.one]\ndeny = ['edition.{self.denied}']\n"
            f"[http]\nport = {self.port}\n[trace]\nenabled = false\n"
            f"[skills]\nprefetch_tools = []\n{more}"
        )


@dataclass(frozen=True)
class Ask:
    """An ask that was started when ``world`` was in force as this generation."""

    question: str
    world: World
    generation: int
    task: asyncio.Task[httpx2.Response]


@dataclass
class Stage:
    """A daemon whose files are edited, and asks that run meanwhile."""

    folder: Path
    upstream: Upstream
    url: str
    process: asyncio.subprocess.Process
    client: httpx2.AsyncClient
    gate: asyncio.Event
    world: World = field(default_factory=World)
    handles: int = 0
    last_receipt: int = 1
    asks: list[Ask] = field(default_factory=list)

    @property
    def config(self) -> Path:
        return self.folder / "config.toml"

    def write(self, world: World, more: str = "") -> World:
        world.write(self.folder, self.upstream.base_url, more)
        return world

    async def edited(self, number: int) -> dict[str, Any]:
        """Make one edit, wait for its receipt, start asks; returns the receipt."""
        verdict, edit = KINDS[(number - 1) % len(KINDS)]
        self.world = edit(self, number)
        receipt = await self.receipt(verdict)
        for _ in range(ASKS_PER_EDIT):
            self.start_ask(receipt["generation"])
        await self.upstream.received(len(self.asks))
        return receipt

    def start_ask(self, generation: int) -> Ask:
        question = f"ask {len(self.asks)}"
        asking = self.client.post(f"{self.url}/v1/ask", json={"text": question})
        started = Ask(question, self.world, generation, asyncio.create_task(asking))
        self.asks.append(started)
        return started

    async def ask_once(self) -> None:
        """Have one ask answered: what it opens and the daemon keeps is open from now on."""
        self.gate.set()
        await self.start_ask(generation=1).task
        self.gate.clear()

    async def receipt(self, verdict: str) -> dict[str, Any]:
        """The newest receipt, once it is a later one with this verdict."""
        async with asyncio.timeout(WAIT_S):
            while True:
                last = (await self.status())["config"]["last_receipt"]
                if last["id"] > self.last_receipt and last["verdict"] == verdict:
                    self.last_receipt = last["id"]
                    return dict(last)
                await asyncio.sleep(0.01)

    async def at_rest(self) -> None:
        """Wait until only the generation in force is alive, and files are as few as in the beginning."""
        async with asyncio.timeout(WAIT_S):
            while len((await self.status())["generations"]) > 1:  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(0.01)
            await self.client.aclose()
            while self.footprint()["handles"] > HANDLES_MORE + self.handles:  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(0.01)

    async def status(self) -> dict[str, Any]:
        return dict((await self.client.get(f"{self.url}/v1/status")).json())

    def footprint(self) -> dict[str, int]:
        """What the daemon holds: open files and megabytes."""
        stat = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        handles = sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())
        return {"handles": handles, "MB": int(stat[1]) * os.sysconf("SC_PAGESIZE") >> 20}


Edit = tuple[str, Callable[[Stage, int], World]]


def write_tool(folder: Path, name: str, version: int) -> None:
    tool = folder / "tools" / "edition" / name
    tool.mkdir(parents=True, exist_ok=True)
    code = f"async def execute(args, context):\n    return 'version {version} of {name}'\n"
    (tool / "handler.py").write_text(code)
    (tool / "config.json").write_text(manifest(f"edition.{name}"))


def good(stage: Stage, step: int) -> World:
    world = replace(stage.world, prompt=f"prompt {step}", model=f"model {step}")
    stage.write(world)
    return world


def by_rename(stage: Stage, step: int) -> World:
    world = replace(stage.world, max_tool_calls=65 - stage.world.max_tool_calls)
    new = stage.config.with_suffix(".new")
    new.write_text(world.toml(stage.upstream.base_url), encoding="utf-8")
    new.replace(stage.config)
    return world


def permission(stage: Stage, step: int) -> World:
    world = replace(stage.world, denied="a" if stage.world.denied == "nothing" else "nothing")
    stage.write(world)
    return world


def bad_value(stage: Stage, step: int) -> World:
    stage.config.write_text("[ask]\nmax_steps = 0\n")
    return stage.world


def bad_syntax(stage: Stage, step: int) -> World:
    stage.config.write_text(stage.world.toml(stage.upstream.base_url) + "[ask\n")
    return stage.world


def empty(stage: Stage, step: int) -> World:
    stage.config.write_text("")
    return stage.world


def half_written(stage: Stage, step: int) -> World:
    world = replace(stage.world, prompt=f"whole {step}")
    text = world.toml(stage.upstream.base_url)
    with stage.config.open("w", encoding="utf-8") as file:
        file.write(text[: len(text) // 2])
        file.flush()
        file.write(text[len(text) // 2 :])
    return world


def shadowed(stage: Stage, step: int) -> World:
    stage.write(stage.world, f"tool_search_max_results = {step + 10}\n")
    return stage.world


def for_a_restart(stage: Stage, step: int) -> World:
    world = replace(stage.world, port=40_000 + step)
    stage.write(world)
    return world


def tool_changed(stage: Stage, step: int) -> World:
    write_tool(stage.folder, "b", step)
    return replace(stage.world, versions={**stage.world.versions, "b": step})


def tool_added(stage: Stage, step: int) -> World:
    write_tool(stage.folder, f"n{step}", step)
    return replace(stage.world, versions={**stage.world.versions, f"n{step}": step})


def tool_broken(stage: Stage, step: int) -> World:
    (stage.folder / "tools" / "edition" / "c" / "config.json").write_text(f"{{ broken {step}")
    return stage.world


def tool_mended(stage: Stage, step: int) -> World:
    write_tool(stage.folder, "c", step)
    return replace(stage.world, versions={**stage.world.versions, "c": step})


def tool_removed(stage: Stage, step: int) -> World:
    name = max(stage.world.versions, key=lambda name: (name.startswith("n"), name))
    shutil.rmtree(stage.folder / "tools" / "edition" / name)
    left = {key: value for key, value in stage.world.versions.items() if key != name}
    return replace(stage.world, versions=left)


KINDS: tuple[Edit, ...] = (
    ("applied", good),
    ("applied", tool_changed),
    ("rejected", bad_value),
    ("applied", by_rename),
    ("applied", tool_added),
    ("rejected", bad_syntax),
    ("applied", permission),
    ("applied", tool_broken),
    ("rejected", empty),
    ("applied", half_written),
    ("applied", tool_mended),
    ("unchanged", shadowed),
    ("applied-restart-needed", for_a_restart),
    ("applied", tool_removed),
)


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    gate = asyncio.Event()

    async def reply(request: Request) -> Reply:
        """Hold every first turn until the gate opens; then call all there is, then tell the results."""
        results = [message for message in request["messages"] if message["role"] == "tool"]
        if results:
            return reply_text(json.dumps([message["content"] for message in results]))
        await gate.wait()
        return reply_calls(*((name, {}) for name in tools_of(request)))

    limits = httpx2.Limits(max_connections=None)
    async with (
        Upstream(reply) as upstream,
        httpx2.AsyncClient(trust_env=False, timeout=WAIT_S, limits=limits) as client,
    ):
        World().write(folder, upstream.base_url)
        for name in World().versions:
            write_tool(folder, name, 0)
        async with served(folder) as (process, url):
            yield Stage(folder, upstream, url, process, client, gate)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "session_runtime", "serve"),
            *("--config", str(folder / "config.toml")),
            stderr=log,
            env={**bare_environment(), "TOOL_SEARCH_MAX_RESULTS": "2"},
        )
        try:
            async with asyncio.timeout(WAIT_S):
                found = None
                while found is None:
                    await asyncio.sleep(0.01)
                    found = re.search(r"serving on (\S+)", (folder / "log").read_text())
            yield process, found[1]
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


def tools_of(request: Request) -> list[str]:
    return sorted(tool["function"]["name"] for tool in request["tools"])


@pytest.mark.soak
@pytest.mark.requirement("REL-1b")
@pytest.mark.requirement("REL-7")
async def test_every_ask_lives_in_its_own_generation_whatever_is_edited_meanwhile(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as one:
        await one.ask_once()
        before = one.footprint()
        one.handles = before["handles"]
        told = [await one.edited(number) for number in range(1, EDITS + 1)]
        alive = (await one.status())["generations"]
        assert sum(each["asks"] for each in alive) == ASKS_PER_EDIT * EDITS
        assert len(alive) > EDITS // 2
        one.gate.set()
        for ask in one.asks:
            await check(one, ask)
        await one.at_rest()
        after = one.footprint()
    assert [receipt["verdict"] for receipt in told] == [
        verdict for verdict, _ in islice(cycle(KINDS), EDITS)
    ]
    assert [receipt["id"] for receipt in told] == sorted({receipt["id"] for receipt in told})
    print(json.dumps({"before": before, "after": after}))


async def check(one: Stage, ask: Ask) -> None:
    """Prompt, model, tools, permissions, limits and code are those of the ask's own generation."""
    result = (await ask.task).json()
    world = ask.world
    requests = [each for each in one.upstream.requests if question_of(each) == ask.question]
    assert (result["outcome"], result["generation"]) == ("answered", ask.generation)
    assert len(requests) == 2
    for request in requests:
        assert request["messages"][0] == {"role": "system", "content": world.prompt}
        assert (request["model"], tools_of(request)) == (world.model, world.tools)
    ran = [each for each in json.loads(result["text"]) if each.startswith("version")]
    assert ran == [world.result(name) for name in world.tools[: world.max_tool_calls]]
