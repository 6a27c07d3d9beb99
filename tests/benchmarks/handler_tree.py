"""Writes the tools of a catalogue as handler folders."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from catalogue_files import grown, read_tools

SET = "mcp_all"
MARKER = "imported"
HANDLER = f"""
from pathlib import Path

Path(__file__).with_name({MARKER!r}).touch()

async def execute(args, context):
    return args
"""


def write_catalogue(root: Path, catalogues: Path, size: int) -> None:
    """``size`` real tools, each leaving a file beside it when its code is imported."""
    write_tools(root, grown(read_tools(catalogues, SET), size), HANDLER)


def write_tools(root: Path, tools: Iterable[dict[str, Any]], code: str) -> None:
    """A folder for each tool, below one for its group."""
    for tool in tools:
        group, _, own = tool["name"].rpartition(".")
        folder = root / _folder(group or "other") / _folder(own)
        folder.mkdir(parents=True)
        function = {
            "name": f"{folder.parent.name}.{folder.name}",
            "description": tool["description"] or f"Does {own}.",
            "parameters": tool["parameters"] or {"type": "object", "properties": {}},
        }
        config = json.dumps({"type": "function", "function": function})
        (folder / "config.json").write_text(config, "utf-8")
        (folder / "handler.py").write_text(code, "utf-8")


def imported_tools(root: Path) -> int:
    """How many of the tools below ``root`` had their code imported."""
    return sum(1 for _ in root.rglob(MARKER))


def _folder(name: str) -> str:
    return re.sub(r"[^\w-]", "_", name).strip("_")
