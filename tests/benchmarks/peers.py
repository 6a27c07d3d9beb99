"""What others offer for finding tools, each behind the same calls; libraries that are missing are named."""

import asyncio
import importlib.util
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

Tools = list[dict[str, Any]]


class Peer(Protocol):
    """One library with a catalogue in its own form."""

    def open_request(self) -> None:
        """Begin a new request that may see a set of tools not seen before."""

    def first_turn(self) -> int:
        """Work out the tools of a request's first turn; returns how many."""

    def search(self, query: str, limit: int) -> list[str]:
        """Names of the best tools, best first."""


@dataclass(frozen=True)
class PeerLibrary:
    """A library by the name of its package, and how to give it a catalogue; a rule needs no module."""

    package: str
    module: str | None
    load: Callable[[Tools, int], Peer]

    @property
    def present(self) -> bool:
        return self.module is None or importlib.util.find_spec(self.module) is not None


def text_of(tool: dict[str, Any]) -> str:
    """Name, description, and names and descriptions of the parameters on the first level."""
    properties = (tool.get("parameters") or {}).get("properties") or {}
    parts = [tool["name"], tool.get("description") or ""]
    for name, schema in properties.items():
        parts += [name, str(schema.get("description") or "") if isinstance(schema, dict) else ""]
    return " ".join(parts)


class PydanticAi:
    """Local tool search of pydantic-ai: all tools deferred behind ``search_tools``."""

    def __init__(self, tools: Tools, limit: int) -> None:
        from pydantic_ai import ModelRetry, RunContext  # noqa: PLC0415 - only if installed
        from pydantic_ai.models.test import TestModel  # noqa: PLC0415
        from pydantic_ai.tools import ToolDefinition  # noqa: PLC0415
        from pydantic_ai.toolsets import ExternalToolset  # noqa: PLC0415
        from pydantic_ai.toolsets._tool_search import ToolSearchToolset  # noqa: PLC0415
        from pydantic_ai.usage import RunUsage  # noqa: PLC0415

        definitions = [
            ToolDefinition(
                name=tool["name"],
                description=tool.get("description"),
                parameters_json_schema=tool.get("parameters") or {"type": "object"},
                defer_loading=True,
            )
            for tool in tools
        ]
        self._no_words = ModelRetry
        self._context: Any = RunContext(deps=None, model=TestModel(), usage=RunUsage())
        self._loop = asyncio.new_event_loop()
        self._new_toolset = lambda: ToolSearchToolset(
            ExternalToolset(definitions), max_results=limit
        )
        self.open_request()

    def __del__(self) -> None:
        self._loop.close()

    def open_request(self) -> None:
        self._toolset = self._new_toolset()
        self._tools = self._loop.run_until_complete(self._toolset.get_tools(self._context))

    def first_turn(self) -> int:
        return len(self._loop.run_until_complete(self._toolset.get_tools(self._context)))

    def search(self, query: str, limit: int) -> list[str]:
        call = self._toolset.call_tool(
            "search_tools", {"queries": [query]}, self._context, self._tools["search_tools"]
        )
        try:
            found = self._loop.run_until_complete(call)["discovered_tools"]
        except self._no_words:
            return []
        return [tool["name"] for tool in found[:limit]]


class FastMcp:
    """The BM25 search transform of fastmcp, asked without a client in between."""

    def __init__(self, tools: Tools, limit: int) -> None:
        from fastmcp.server.transforms.search.bm25 import (  # noqa: PLC0415 - only if installed
            BM25SearchTransform,
        )
        from fastmcp.tools.base import Tool  # noqa: PLC0415

        self._new_transform = lambda: BM25SearchTransform(max_results=limit)
        self._tools = [
            Tool(
                name=tool["name"],
                description=tool.get("description"),
                parameters=tool.get("parameters") or {"type": "object"},
            )
            for tool in tools
        ]
        self._loop = asyncio.new_event_loop()
        self.open_request()

    def __del__(self) -> None:
        self._loop.close()

    def open_request(self) -> None:
        self._transform = self._new_transform()

    def first_turn(self) -> int:
        return len(self._loop.run_until_complete(self._transform.transform_tools(self._tools)))

    def search(self, query: str, limit: int) -> list[str]:
        found = self._loop.run_until_complete(self._transform._search(self._tools, query))
        return [tool.name for tool in found[:limit]]


class Bm25s:
    """bm25s over one text per tool; it has no notion of turns."""

    def __init__(self, tools: Tools, limit: int) -> None:
        import bm25s  # noqa: PLC0415 - only if installed

        self._bm25s = bm25s
        self._names = [tool["name"] for tool in tools]
        self._texts = [text_of(tool) for tool in tools]
        self.open_request()

    def open_request(self) -> None:
        self._retriever = self._bm25s.BM25()
        texts = self._bm25s.tokenize(self._texts, show_progress=False)
        self._retriever.index(texts, show_progress=False)

    def first_turn(self) -> int:
        return 0

    def search(self, query: str, limit: int) -> list[str]:
        words = self._bm25s.tokenize([query], return_ids=False, show_progress=False)
        count = min(limit, len(self._names))
        found, scores = self._retriever.retrieve(words, k=count, show_progress=False)
        pairs = zip(found[0].tolist(), scores[0].tolist(), strict=True)
        return [self._names[at] for at, score in pairs if score > 0]


@dataclass(frozen=True)
class Parts:
    """What the points of one tool are given for."""

    name: str
    name_parts: frozenset[str]
    parameters: str
    descriptions: str


class PointsByPart:
    """A rule of points that chat bots with deferred tools use, built anew for every request.

    Each word of the query brings 10 points if it is a part of the name, else 5 inside a part, else 3
    inside the name; 3 more inside a parameter's name and 2 more inside a description. Words are cut at
    blanks, dots, underscores and hyphens, names at changes of case too; ``+word`` must be found. Ties go
    by name.
    """

    def __init__(self, tools: Tools, limit: int) -> None:
        del limit
        self._definitions = tools
        self.open_request()

    def open_request(self) -> None:
        self._tools = [_parts(tool) for tool in self._definitions]

    def first_turn(self) -> int:
        return 0

    def search(self, query: str, limit: int) -> list[str]:
        words = query.lower().split()
        terms = list(dict.fromkeys(term for word in words for term in _cut(word.lstrip("+"))))
        needed = {term for word in words if word[0] == "+" for term in _cut(word[1:])}
        scored = [
            (-sum(_points(term, tool) for term in terms), tool.name)
            for tool in self._tools
            if all(_points(term, tool) for term in needed)
        ]
        return [name for points, name in sorted(scored)[:limit] if points]


def _parts(tool: dict[str, Any]) -> Parts:
    nodes = list(_schema_nodes(tool.get("parameters")))
    names = [name for node in nodes for name in (_table(node, "properties"))]
    descriptions = [str(node.get("description") or "") for node in nodes]
    by_case = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", tool["name"])
    return Parts(
        tool["name"],
        frozenset(part for word in by_case.lower().split() for part in _cut(word)),
        "\n".join(names).lower(),
        "\n".join([tool.get("description") or "", *descriptions]).lower(),
    )


def _points(term: str, tool: Parts) -> int:
    if term in tool.name_parts:
        points = 10
    elif any(term in part for part in tool.name_parts):
        points = 5
    else:
        points = 3 * (term in tool.name.lower())
    return points + 3 * (term in tool.parameters) + 2 * (term in tool.descriptions)


def _cut(word: str) -> list[str]:
    return [part for part in re.split(r"[._-]", word) if part]


def _table(node: dict[str, Any], key: str) -> dict[str, Any]:
    value = node.get(key)
    return value if isinstance(value, dict) else {}


def _schema_nodes(node: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(node, dict):
        return
    yield node
    inner = [
        *_table(node, "properties").values(),
        *_table(node, "$defs").values(),
        node.get("items"),
    ]
    for key in ("anyOf", "oneOf", "allOf"):
        inner += node.get(key) or ()
    for child in inner:
        yield from _schema_nodes(child)


LIBRARIES = (
    PeerLibrary("pydantic-ai-slim", "pydantic_ai", PydanticAi),
    PeerLibrary("fastmcp", "fastmcp", FastMcp),
    PeerLibrary("bm25s", "bm25s", Bm25s),
    PeerLibrary("points by part", None, PointsByPart),
)


def present_libraries() -> list[PeerLibrary]:
    """The libraries that are installed; their warnings about names are not shown."""
    logging.disable(logging.WARNING)
    return [library for library in LIBRARIES if library.present]


def missing_note() -> str:
    """Which libraries are not installed, as a line to print, or nothing."""
    absent = [library.package for library in LIBRARIES if not library.present]
    return f"Not installed, so left out: {', '.join(absent)}." if absent else ""
