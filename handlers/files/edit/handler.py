"""Replaces a passage of a text file; where that is allowed is decided by the operator's roots."""

from contextlib import suppress
from typing import Any

from session_runtime.handler import HandlerContext, ToolError

from .changes import diff, places

MAX_CHARS = 4_000_000


def execute(args: dict[str, Any], context: HandlerContext) -> str:
    """Replace the passage and show what became different."""
    edit = Edit(args["path"], args["old"], args["new"], every=args.get("replace_all", False))
    context.files.change(args["path"], edit)
    return diff(args["path"], edit.before, edit.after)


class Edit:
    """One change of a file's bytes; remembers the text before and after."""

    def __init__(self, path: str, old: str, new: str, *, every: bool) -> None:
        self._path, self._old, self._new, self._every = path, old, new, every
        self.before = self.after = ""

    def __call__(self, content: bytes) -> bytes:
        """Give the changed content; ToolError if the passage is not there, or not just once."""
        self.before = self._decoded(content)
        old, new = self._old, self._new
        ends = self.before.count("\r\n")
        if ends and (ends == self.before.count("\n") or old not in self.before):
            old, new = with_line_ends(old), with_line_ends(new)
        self._check(places(self.before, old), len(new) - len(old))
        self.after = self.before.replace(old, new)
        if self.after == self.before:
            raise ToolError("Old and new passage are the same.", code="files.no_change")
        return self.after.encode("utf-8")

    def _check(self, lines: list[int], growth: int) -> None:
        """Refuse unless there is one occurrence, or all are meant, and each may grow that much."""
        if not lines:
            raise ToolError(
                f"{self._path} does not hold the old passage. Read the file again and copy it exactly.",
                code="files.no_match",
            )
        if len(lines) > 1 and not self._every:
            where = ", ".join(map(str, lines[:10])) + (", ..." if len(lines) > 10 else "")
            raise ToolError(
                f"{self._path} holds the old passage {len(lines)} times, beginning in lines {where}. "
                "Add neighbouring lines so that it is unique, or set replace_all.",
                code="files.not_unique",
            )
        if len(self.before) + len(lines) * growth > MAX_CHARS:
            raise ToolError(
                f"{self._path} would have more than {MAX_CHARS} characters.", code="files.too_large"
            )

    def _decoded(self, content: bytes) -> str:
        if b"\0" not in content:
            with suppress(UnicodeDecodeError):
                return content.decode("utf-8")
        raise ToolError(
            f"{self._path} is no UTF-8 text: only text can be edited.", code="files.not_text"
        )


def with_line_ends(text: str) -> str:
    """The text with the line ends of Windows, as the file has them."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n")
