"""Reads a text file; which files there are is decided by the operator's roots."""

import re
from contextlib import suppress
from typing import Any

from session_runtime.handler import HandlerContext, ToolError

LINE = re.compile(r"[^\n]*\n|[^\n]+")


def execute(args: dict[str, Any], context: HandlerContext) -> str:
    """Give one line that says which lines these are, then the lines as they are."""
    path = args["path"]
    lines = LINE.findall(decoded(path, context.files.read(path)))
    if not lines:
        return f"{path} is empty."
    start = int(args.get("line", 1)) - 1
    if start >= len(lines):
        raise ToolError(
            f"{path} has {len(lines)} lines: there is no line {start + 1}.",
            code="files.out_of_range",
        )
    end = min(start + int(args.get("lines", len(lines))), len(lines))
    onward = "" if end == len(lines) else f" Go on with line {end + 1}."
    return (
        f"{path}, lines {start + 1} to {end} of {len(lines)}.{onward}\n{''.join(lines[start:end])}"
    )


def decoded(path: str, content: bytes) -> str:
    """The text of a file; ToolError ``files.not_text`` for what is none."""
    if b"\0" not in content:
        with suppress(UnicodeDecodeError):
            return content.decode("utf-8")
    raise ToolError(
        f"{path} is no UTF-8 text ({len(content)} bytes): only text can be read.",
        code="files.not_text",
    )
