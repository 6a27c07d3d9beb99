"""Finds lines in text files; which files there are is decided by the operator's roots."""

import time
from collections import deque
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from session_runtime.handler import HandlerContext, ToolError

MAX_FILES = 5_000
MAX_BYTES = 100_000_000
MAX_SECONDS = 10.0
LINE_CHARS = 300
DEFAULT_LIMIT = 50


def execute(args: dict[str, Any], context: HandlerContext) -> dict[str, object]:
    """Give the lines in the order of the folders, and say what was not looked at."""
    search = Search(context, args.get("name", "*"))
    limit = int(args.get("limit", DEFAULT_LIMIT))
    lines = search.lines(args.get("path", ""), args["text"], args.get("ignore_case", True))
    found = list(islice(lines, limit + 1))
    result: dict[str, object] = {"matches": found[:limit], "files": search.files}
    skipped = {"skipped": search.skipped} if search.skipped else {}
    return result | {"truncated": len(found) > limit or search.stopped} | skipped


class Search:
    """One walk through folders, bounded in files, bytes and time."""

    def __init__(self, context: HandlerContext, name: str) -> None:
        self._files = context.files
        self._name = name
        self._until = time.monotonic() + MAX_SECONDS
        self._bytes = 0
        self.files = 0
        self.skipped = 0
        self.stopped = False

    def lines(self, path: str, text: str, ignore_case: bool) -> Iterator[dict[str, object]]:
        """The lines that hold ``text``; ToolError if ``path`` itself cannot be read."""
        wanted = text.casefold() if ignore_case else text
        for file in self._walk(path):
            content = self._text(file)
            if content is None or wanted not in (content.casefold() if ignore_case else content):
                continue
            for number, line in enumerate(each_line(content), 1):
                if wanted in (line.casefold() if ignore_case else line):
                    yield {"path": file, "line": number, "text": line.strip()[:LINE_CHARS]}

    def _walk(self, path: str) -> Iterator[str]:
        try:
            top = self._files.list(path)
        except ToolError as error:
            if error.code != "files.wrong_kind":
                raise
            yield path
        else:
            yield from self._below(top)

    def _below(self, listing: Any) -> Iterator[str]:
        """The files of a folder and of those below it, a level after the other."""
        folders: deque[str] = deque()
        while listing is not None:
            self.skipped += listing.others
            self.stopped |= listing.truncated
            for entry in listing.entries:
                if self._is_over():
                    self.stopped = True
                    return
                if entry.kind == "folder":
                    folders.append(entry.path)
                elif fnmatchcase(entry.path.rpartition("/")[2], self._name):
                    yield entry.path
            listing = self._next(folders)

    def _next(self, folders: deque[str]) -> Any:
        """What the next folder holds that can still be listed; None if there is none."""
        while folders:
            try:
                return self._files.list(folders.popleft())
            except ToolError:
                self.skipped += 1
        return None

    def _text(self, path: str) -> str | None:
        """The text of a file; None if it is none, too large, or has gone."""
        try:
            content = self._files.read(path)
            self.files += 1
            self._bytes += len(content)
            if b"\0" not in content:
                return content.decode("utf-8")
        except (ToolError, UnicodeDecodeError):
            pass
        self.skipped += 1
        return None

    def _is_over(self) -> bool:
        return (
            self.files + self.skipped >= MAX_FILES
            or self._bytes >= MAX_BYTES
            or time.monotonic() >= self._until
        )


def each_line(text: str) -> Iterator[str]:
    """The lines of ``text``, one at a time: a list of them would hold up other threads."""
    at = 0
    while (end := text.find("\n", at)) >= 0:
        yield text[at:end]
        at = end + 1
    yield text[at:]
