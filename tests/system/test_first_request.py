"""A catalogue of real tools, seen from the model's side of the wire."""

import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from session_runtime import Runtime
from session_runtime.registry.names import canonical_name
from session_runtime.testing.replies import Reply, reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from tests.support import ask, chat_profile, opened, write_handler

MARKER = "zqxmarker"
CATALOGUES = os.environ.get("TOOL_CATALOGUES")
pytestmark = pytest.mark.skipif(
    not CATALOGUES, reason="TOOL_CATALOGUES names no folder of tool catalogues"
)
SKILLS = "[skills]\ntool_search_enabled = true\nprefetch_tools = []\n"


def planted(value: Any, number: int) -> Any:
    """A schema with a unique marker in every description, parameter name and enum value."""
    if isinstance(value, list):
        return [planted(item, number) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {key: planted(item, number) for key, item in value.items()}
    if isinstance(changed.get("description"), str):
        changed["description"] += f" {MARKER}{number}"
    if isinstance(changed.get("properties"), dict):
        renamed = {f"{name}_{MARKER}{number}": v for name, v in changed["properties"].items()}
        changed["properties"] = renamed
        changed["required"] = [f"{name}_{MARKER}{number}" for name in value.get("required") or []]
    return changed


def folder_name(text: str) -> str:
    return re.sub(r"[^\w-]", "_", canonical_name(text)).strip("_") or "x"


def plant_catalogue(root: Path) -> int:
    """Handler folders for every tool of a catalogue of MCP servers; tells how many."""
    source = Path(str(CATALOGUES)) / "livemcp" / "tools.jsonl"
    seen: set[str] = set()
    for number, line in enumerate(source.read_text(encoding="utf-8").splitlines()):
        tool = json.loads(line)
        name = f"{folder_name(tool['server'])}.{folder_name(tool['tool'])}"
        if name.casefold() in seen:
            continue
        seen.add(name.casefold())
        schema = planted(tool["parameters"] or {"type": "object", "properties": {}}, number)
        write_handler(
            root,
            name,
            description=f"{tool['description'] or 'No words.'} {MARKER}{number}",
            parameters=schema,
        )
    return len(seen)


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("catalogue") / "tools"
    assert plant_catalogue(root) > 400
    return root


@asynccontextmanager
async def runtime_on(
    catalogue: Path, folder: Path, upstream: Upstream, stream: bool
) -> AsyncIterator[Runtime]:
    text = f'[handlers]\npaths = ["{catalogue}"]\n{SKILLS}'
    profile = chat_profile(upstream.base_url, stream=stream)
    async with opened(folder, text + profile) as runtime:
        yield runtime


def sent_tools(body: bytes) -> bytes:
    """The bytes of the ``tools`` array without its closing bracket."""
    start = body.index(b'"tools":[') + len(b'"tools":')
    _, end = json.JSONDecoder().raw_decode(body[start:].decode())
    return body[start:].decode()[: end - 1].encode()


@pytest.mark.requirement("TS-3")
@pytest.mark.requirement("TS-4")
@pytest.mark.parametrize("stream", [True, False])
async def test_the_first_request_holds_the_loader_the_pinned_tools_and_names_only(
    catalogue: Path, tmp_path: Path, stream: bool
) -> None:
    async with (
        Upstream([reply_text("hello")]) as upstream,
        runtime_on(catalogue, tmp_path, upstream, stream) as runtime,
    ):
        await ask(runtime, "hello")
        specs = runtime.generation.catalog.specs
    (body,) = upstream.bodies
    (request,) = upstream.requests
    names = [tool["function"]["name"] for tool in request["tools"]]
    assert names == ["send_message", "end", "tool_search"]
    assert MARKER.encode() not in body
    (system,) = [m["content"] for m in request["messages"] if m["role"] == "system"]
    listed = system.split("<available_deferred_tools>\n")[1].split("\n</available")[0].split("\n")
    deferred = sorted(
        (s.name for s in specs if s.name not in names), key=lambda n: (n.casefold(), n)
    )
    assert listed == deferred


@pytest.mark.requirement("TS-11")
@pytest.mark.parametrize("stream", [True, False])
async def test_each_later_tools_array_begins_with_the_bytes_of_the_earlier_one(
    catalogue: Path, tmp_path: Path, stream: bool
) -> None:
    queries = ["send an email", "search music", "weather forecast", "create issue", "图片"]
    replies: list[Reply] = [
        *(reply_calls(("tool_search", {"query": query})) for query in queries),
        reply_text("done"),
    ]
    async with (
        Upstream(replies) as upstream,
        runtime_on(catalogue, tmp_path, upstream, stream) as runtime,
    ):
        asked = await ask(runtime, "work")
    arrays = [sent_tools(body) for body in upstream.bodies]
    assert len(arrays) == len(replies)
    for earlier, later in pairwise(arrays):
        assert later.startswith(earlier)
    assert len({len(array) for array in arrays}) >= 4
    exposed = [t["function"]["name"] for t in upstream.requests[-1]["tools"]]
    assert exposed[2] == "tool_search"
    assert len(exposed) == len(set(exposed)) == 3 + len(asked.result.loaded_tools)
    systems = [[m for m in r["messages"] if m["role"] == "system"] for r in upstream.requests]
    assert all(system == systems[0] for system in systems)
