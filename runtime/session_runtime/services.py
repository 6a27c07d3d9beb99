"""What the runtime offers to handlers beside their arguments, as protocols and values.

The implementations are in ``toolbox`` and ``ask``; a handler reaches them through its context. All are
bound to the identity of one ask: a handler cannot act for somebody else by passing another name.
"""

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file or folder; ``path`` as ``Files`` takes it, ``size`` in bytes, ``modified`` in Unix time."""

    path: str
    kind: Literal["file", "folder"]
    size: int
    modified: float


class Files(Protocol):
    """The folders that the operator opened to tools (SEC-1).

    A path is ``root/folder/name``: its first part is the name of a root in the configuration. Calls
    block; use them in a plain handler. All raise ToolError with a reason that a model can act on.
    """

    def read(self, path: str) -> bytes:
        """The content of a file, up to the configured size."""

    def write(self, path: str, content: bytes, *, replace: bool) -> None:
        """Write a file whole or not at all; with ``replace`` false it must not exist yet."""

    def entries(self, path: str) -> tuple[FileEntry, ...]:
        """What a folder holds, sorted by name; the empty path lists the roots."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer from the web: ``url`` after redirects, ``media_type`` in lower case, the body's bytes."""

    url: str
    status: int
    media_type: str
    charset: str | None
    body: bytes
    truncated: bool


class Web(Protocol):
    """Reads pages of the public internet (SEC-2)."""

    async def fetch(self, url: str) -> Fetched:
        """Get a page; ToolError tells why it cannot be had or may not be read."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note: ``id`` counts within its owner's notes, ``created`` is Unix time."""

    id: int
    text: str
    tags: tuple[str, ...]
    created: float


class Notes(Protocol):
    """The notes of one owner. Calls block; all raise ToolError with a reason for the model."""

    def add(self, text: str, tags: tuple[str, ...] = ()) -> Note:
        """Keep a note."""

    def search(self, query: str, limit: int) -> tuple[Note, ...]:
        """The notes that match, best first."""

    def list(self, limit: int, before: int | None = None) -> tuple[Note, ...]:
        """Notes, newest first; ``before`` is the id to continue from."""

    def delete(self, note_id: int) -> Note:
        """Remove a note and return it."""


class Results(Protocol):
    """Long results of earlier calls of the same ask, kept until it ends (ASK-8)."""

    def read(self, reference: str, offset: int, length: int) -> str:
        """A part of a kept result; ToolError for a reference that this ask does not have."""


@dataclass(frozen=True, slots=True)
class Services:
    """What is on offer in one ask; None where the operator did not set it up."""

    files: Files | None = None
    web: Web | None = None
    notes: Notes | None = None
    results: Results | None = None
