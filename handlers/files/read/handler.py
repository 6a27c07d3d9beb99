"""Reads a text file; which files there are is decided by the operator's roots."""

from contextlib import suppress
from typing import Any

from session_runtime.handler import HandlerContext, ToolError


def execute(args: dict[str, Any], context: HandlerContext) -> str:
    """Give one line that says which lines these are, then the lines as they are."""
    path = args["path"]
    text = decoded(path, context.files.read(path))
    if not text:
        return f"{path} is empty."
    count = text.count("\n") + (not text.endswith("\n"))
    start = int(args.get("line", 1)) - 1
    if start >= count:
        raise ToolError(
            f"{path} has {count} lines: there is no line {start + 1}.",
            code="files.out_of_range",
        )
    end = min(start + int(args.get("lines", count)), count)
    onward = "" if end == count else f" Go on with line {end + 1}."
    shown = text[after(text, start) : len(text) if end == count else after(text, end)]
    return f"{path}, lines {start + 1} to {end} of {count}.{onward}\n{shown}"


def after(text: str, lines: int) -> int:
    """Where ``text`` goes on after so many lines; a list of all lines would hold up other threads."""
    at = 0
    for _ in range(lines):
        at = text.index("\n", at) + 1
    return at


def decoded(path: str, content: bytes) -> str:
    """The text of a file; ToolError ``files.not_text`` for what is none."""
    if b"\0" not in content:
        with suppress(UnicodeDecodeError):
            return content.decode("utf-8")
    raise ToolError(
        f"{path} is no UTF-8 text ({len(content)} bytes): only text can be read.",
        code="files.not_text",
    )
