"""Writes the folder of a new tool, whole or not at all; what it should do is its author's business."""

import json
import secrets
import shutil
from pathlib import Path
from typing import Final

from session_runtime.errors import RequestError
from session_runtime.local.candidate import MANIFEST, registered_fault
from session_runtime.local.folders import CODE

_HANDLER: Final = """\
from session_runtime.handler import ToolError


def execute(args, context):
    words = args["text"].split()
    if not words:
        raise ToolError("The text is blank: give one with words.")
    return {"words": len(words)}
"""


def write_tool(root: Path, name: str) -> Path:
    """Write a small tool that works below ``root`` and give its folder, which must not exist.

    Raises RequestError for a name that no tool can have and for a folder that is taken; OSError if it
    cannot be written. Whatever happens, no half of it is left for a scan to find.
    """
    if (fault := registered_fault(name)) is not None:
        raise RequestError(f"{name!r} cannot be a name: {fault}")
    folder = root.joinpath(*name.split("."))
    if folder.parent != root and _is_tool(folder.parent):
        raise RequestError(
            f"{folder.parent} is a tool and cannot be a group too: choose another group"
        )
    if folder.exists():
        raise RequestError(f"{folder} exists: choose another name, or remove it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = folder.with_name(f".{secrets.token_hex(8)}")  # scans pass over names with a dot
    try:
        unfinished.mkdir()
        (unfinished / CODE).write_text(_HANDLER, "utf-8")
        (unfinished / MANIFEST).write_text(_manifest(name), "utf-8")
        unfinished.rename(folder)
    except OSError:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return folder


def _is_tool(folder: Path) -> bool:
    return (folder / MANIFEST).exists() or (folder / CODE).exists()


def _manifest(name: str) -> str:
    text = {"type": "string", "description": "The text whose words are counted."}
    manifest = {
        "type": "function",
        "function": {
            "name": name,
            "description": "Counts the words of a text.",
            "parameters": {
                "type": "object",
                "properties": {"text": text},
                "required": ["text"],
                "additionalProperties": False,
            },
        },
        "runtime": {"read_only": True},
    }
    return f"{json.dumps(manifest, ensure_ascii=False, indent=2)}\n"
