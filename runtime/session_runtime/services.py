"""What the runtime offers to handlers beside their arguments, as protocols and values.

The implementations are in ``toolbox`` and ``ask``; a handler reaches them through its context. All are
bound to the identity of one ask: a handler cannot act for somebody else by passing another name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file or folder; ``path`` as ``Files`` takes it, ``writable`` as its root is.

    ``size`` is in bytes, 0 for a folder; ``modified`` in Unix time, None for a root.
    """

    path: str
    kind: Literal["file", "folder"]
    size: int
    modified: float | None
    writable: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """What a folder holds, sorted by name.

    ``others`` counts what tools cannot open: links, devices, names that no path may have; ``truncated``
    says that the folder holds more than was looked at.
    """

    entries: tuple[FileEntry, ...]
    others: int = 0
    truncated: bool = False


class Files(Protocol):
    """The folders that the operator opened to tools (SEC-1).

    A path is ``root/folder/name``: its first part is the name of a root in the configuration. Calls
    block; use them in a plain handler. All raise ToolError with a reason that a model can act on.
    """

    def read(self, path: str) -> bytes:
        """The content of a file, up to the configured size."""

    def write(self, path: str, content: bytes, *, replace: bool) -> None:
        """Write a file whole or not at all, and the folders that it needs.

        With ``replace`` false it must not exist yet.
        """

    def change(self, path: str, edit: Callable[[bytes], bytes]) -> None:
        """Replace a file by what ``edit``, called once, makes of its content.

        Changes of one file wait for each other; one by somebody else meanwhile is ``files.changed``. What
        ``edit`` raises is passed on, and then nothing is changed; it must not use ``Files`` itself.
        """

    def list(self, path: str) -> Listing:
        """What a folder holds; the empty path lists the roots."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer from the web: ``url`` after redirects, ``media_type`` in lower case, the body's bytes.

    ``charset`` is the one that the header names; ``truncated`` tells that there was more than may be read.
    """

    url: str
    status: int
    media_type: str
    charset: str | None
    body: bytes
    truncated: bool


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as text: ``text`` is None for what is none (a picture, a PDF), ``size`` counts its bytes.

    Everything in it was written by strangers. ``url`` and ``truncated`` are those of ``Fetched``.
    """

    url: str
    media_type: str
    title: str
    text: str | None
    size: int
    truncated: bool


class Web(Protocol):
    """Reads pages of the public internet, and nothing that is not public (SEC-2).

    Both raise ToolError with a reason that a model can act on.
    """

    async def fetch(self, url: str) -> Fetched:
        """Get what is at an address, whatever the status of the answer."""

    async def read(self, url: str, *, links: bool = False) -> WebPage:
        """Get a page as readable text, HTML without its markup; with ``links`` they are in the text."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note: ``id`` counts within its owner's notes, ``created`` is Unix time."""

    id: int
    text: str
    tags: tuple[str, ...]
    created: float

    def to_json(self) -> dict[str, object]:
        """The note as tools show it: tags only if there are any, the time in UTC to the second."""
        created = datetime.fromtimestamp(self.created, UTC).isoformat(timespec="seconds")
        tags = {"tags": list(self.tags)} if self.tags else {}
        return {"id": self.id, "text": self.text, **tags, "created": created}


class Notes(Protocol):
    """The notes of one owner. Calls block; all raise ToolError with a reason that a model can act on."""

    def add(self, text: str, tags: tuple[str, ...] = ()) -> Note:
        """Keep a note."""

    def search(self, query: str, limit: int) -> tuple[Note, ...]:
        """The notes that match, best first."""

    def list(self, limit: int, before: int | None = None) -> tuple[Note, ...]:
        """Notes, newest first; ``before`` is the id to continue from."""

    def delete(self, note_id: int) -> Note:
        """Remove a note and return it."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a kept result: its text, where it begins and how long the whole is, in characters."""

    text: str
    offset: int
    total: int


class Results(Protocol):
    """Long results of earlier calls of the same ask, kept until it ends (ASK-8).

    A reference is what the model was given in place of the result; bytes are kept as base64. All
    raise ToolError for a reference that this ask does not have, or whose result had to make room.
    """

    @property
    def max_chars(self) -> int:
        """The longest result that the model is shown; what is returned should not exceed it."""

    def read(self, reference: str, offset: int, length: int) -> Part:
        """At most ``length`` characters from ``offset`` on; ToolError for an offset beyond the end."""

    def find(self, reference: str, text: str, offset: int) -> int | None:
        """Where ``text`` first occurs at or after ``offset``, None if it does not."""

    def tool_of(self, reference: str) -> str | None:
        """The name of the tool that gave a result, None for a reference that there is not. Raises nothing."""


class Agents(Protocol):
    """The sub-agents that may be called in one ask (ASK-11)."""

    async def run(
        self, name: str, arguments: Mapping[str, Any], call_id: str, deadline: float | None
    ) -> str:
        """What an agent answers by ``deadline`` in event-loop time; ToolError if it does not come to that."""


@dataclass(frozen=True, slots=True)
class Services:
    """What is on offer in one ask; None where the operator did not set it up."""

    files: Files | None = None
    web: Web | None = None
    notes: Notes | None = None
    results: Results | None = None
    agents: Agents | None = None
