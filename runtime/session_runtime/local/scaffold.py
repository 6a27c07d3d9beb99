"""Writes the folder of a new tool, whole or not at all; what it should do is its author's business."""

import json
import secrets
import shutil
import stat
from pathlib import Path
from typing import Final

from session_runtime.errors import RequestError
from session_runtime.local.candidate import MANIFEST, registered_fault
from session_runtime.local.code import CODE
from session_runtime.registry.names import TOOL_SEARCH

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

    Raises RequestError for a name that no tool can have and for a place that is taken or no folder;
    OSError if it cannot be written. Whatever happens, no half of it is left for a scan to find.
    """
    if (fault := _name_fault(name)) is not None:
        raise RequestError(f"{name!r} cannot be a name: {fault}")
    folder = root.joinpath(*name.split("."))
    if folder.parent != root and _is_tool(folder.parent):
        raise RequestError(
            f"{folder.parent} is a tool and cannot be a group too: choose another group"
        )
    _refuse_what_is_no_folder(folder.parent)
    if folder.exists() or folder.is_symlink():
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


def _name_fault(name: str) -> str | None:
    if name.casefold() == TOOL_SEARCH:
        return f"{TOOL_SEARCH} is kept for tool search"
    return registered_fault(name)


def _refuse_what_is_no_folder(path: Path) -> None:
    """Look for what is in the way at ``path`` and above."""
    for folder in (path, *path.parents):
        try:
            mode = folder.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except ValueError as error:
            raise RequestError(f"{str(folder)!r} is no folder: {error}") from error
        if not stat.S_ISDIR(mode):
            raise RequestError(f"{folder} is a file, no folder: choose another place")
        return


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
