"""Reads the tool catalogues that the benchmarks use, in place, from the folder TOOL_CATALOGUES.

Each set is a folder with ``tools.jsonl`` (name, description, parameters) and, for the quality of
ranking, ``dev.jsonl`` (kind, query, gold).
"""

import json
import os
import sys
from pathlib import Path
from typing import Any


def folder_or_exit() -> Path:
    """The folder of the catalogues; without one there is nothing to measure."""
    value = os.environ.get("TOOL_CATALOGUES", "")
    if not value:
        print("skipped: TOOL_CATALOGUES names no folder with tool catalogues")
        sys.exit(0)
    return Path(value)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All objects of a file with one JSON object per line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def read_tools(folder: Path, name: str) -> list[dict[str, Any]]:
    """The tools of one set."""
    return read_lines(folder / name / "tools.jsonl")


def grown(tools: list[dict[str, Any]], size: int) -> list[dict[str, Any]]:
    """``size`` tools: the given ones, then the same ones again under new prefixes."""
    rounds = range(-(-size // len(tools)))
    copies = (
        {**tool, "name": f"copy{number}.{tool['name']}" if number else tool["name"]}
        for number in rounds
        for tool in tools
    )
    return [tool for _, tool in zip(range(size), copies, strict=False)]
