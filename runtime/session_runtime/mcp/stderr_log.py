"""The log of what a server says beside the protocol: bounded, printable, without secrets (RTE-6).

Public: ``StderrLog``, ``Shown``. The file is ``mcp/NAME.log`` in ``runtime.state_dir``, and the one before
it ``mcp/NAME.log.1``. A thread writes it: a slow disk delays neither the event loop nor the server.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from session_runtime.state_files import (
    make_state_folder,
    open_state_file,
    open_state_folder,
    way_out,
)
from session_runtime.threads import in_thread
from session_runtime.trace.redact import MASK, redact_text
from session_runtime.wire import printable

_log = logging.getLogger(__name__)

FOLDER: Final = "mcp"
"""The name of the folder in ``runtime.state_dir``."""

MAX_FILE_BYTES: Final = 1024 * 1024
MAX_LINE_CHARS: Final = 2_000

_MAX_LINE_BYTES: Final = 64 * 1024
_MAX_WAITING_BYTES: Final = 256 * 1024
_FLUSH_S: Final = 0.1
_CLOSE_S: Final = 1.0
_LEAST_SECRET_CHARS: Final = 4


class Shown:
    """How texts of one server are shown to people: on one line, printable, its secrets masked.

    ``secrets`` are the values configured for it; those of fewer than 4 characters are no secrets.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        parts = {part.strip() for secret in secrets for part in (secret, *secret.splitlines())}
        long = (part for part in parts if len(part) >= _LEAST_SECRET_CHARS)
        self._secrets = sorted(long, key=len, reverse=True)

    def __call__(self, text: str | bytes, max_chars: int = MAX_LINE_CHARS) -> str:
        """The text as it may be shown, at most this long; bytes that are no UTF-8 become U+FFFD."""
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        line = printable(" ".join(redact_text(text).split()))
        return line if len(line) <= max_chars else line[:max_chars] + "…"


class StderrLog:
    """Takes bytes as they come and appends their lines, each with its time; used on the event loop.

    What comes faster than it can be written is left out, and the log says how much. Whoever made it closes
    it; where the file cannot be written, that is told once.
    """

    def __init__(
        self,
        path: Path,
        shown: Shown,
        *,
        max_bytes: int = MAX_FILE_BYTES,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._writer = _Writer(path, shown, max_bytes)
        self._now = now
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._left_out = 0
        self._writing: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def write(self, data: bytes) -> bool:
        """Take what the server wrote; False if it was left out, for the writer is far behind."""
        if self._left_out or self._waiting_bytes + len(data) > _MAX_WAITING_BYTES:
            self._left_out += len(data)
            return False
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all(), name="log of a server")
        return True

    async def aclose(self) -> None:
        """Write what is left, also of a line without an end; gives up on a disk that hangs after 1 s."""
        self._closing.set()
        last = asyncio.create_task(self._write_last(), name="log of a server")
        await asyncio.wait((last,), timeout=_CLOSE_S)
        last.cancel()

    async def _write_all(self) -> None:
        """Write until nothing waits, some times a second at most."""
        while self._waiting:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), _FLUSH_S)
            await self._flush(end=False)
        self._writing = None

    async def _write_last(self) -> None:
        if self._writing is not None:
            await self._writing
        await self._flush(end=True)

    async def _flush(self, *, end: bool) -> None:
        data, left_out = b"".join(self._waiting), self._left_out
        self._waiting, self._waiting_bytes, self._left_out = [], 0, 0
        try:
            await in_thread(
                "log of a server",
                partial(self._writer.write, data, left_out, self._now(), end=end),
            )
        except RuntimeError:
            self._left_out += len(data) + left_out  # there is no thread for it now


class _Writer:
    """Makes lines of bytes and appends them to the file; used by one thread at a time."""

    def __init__(self, path: Path, shown: Shown, max_bytes: int) -> None:
        self._path = path
        self._shown = shown
        self._max_bytes = max_bytes
        self._begun = b""  # of a line that has not ended
        self._skip_to_end = False
        self._troubled = False

    def write(self, data: bytes, left_out: int, at: datetime, *, end: bool) -> None:
        """Append the lines that end here, the last one too at the ``end``; never raises OSError."""
        lines = [
            line for line in map(self._shown, self._lines(data, end=end or left_out > 0)) if line
        ]
        if left_out:
            lines.append(f"[{left_out} bytes are left out: they came too fast]")
            self._skip_to_end = True
        if not lines:
            return
        stamp = at.isoformat(timespec="milliseconds")
        try:
            self._append("".join(f"{stamp} {line}\n" for line in lines).encode())
        except OSError as error:
            self._tell(error)

    def _lines(self, data: bytes, *, end: bool) -> list[bytes]:
        *lines, self._begun = (self._begun + data).split(b"\n")
        if self._skip_to_end and lines:
            del lines[0]
            self._skip_to_end = False
        if self._skip_to_end:
            self._begun = b""
        if end or len(self._begun) > _MAX_LINE_BYTES:
            self._skip_to_end = not end
            lines.append(self._begun[:_MAX_LINE_BYTES])
            self._begun = b""
        return [line[:_MAX_LINE_BYTES] for line in lines]

    def _append(self, text: bytes) -> None:
        text, state_dir = text[-self._max_bytes :], self._path.parent.parent
        make_state_folder(self._path.parent, state_dir)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        file = open_state_file(self._path, flags, state_dir)
        try:
            if os.fstat(file).st_size + len(text) > self._max_bytes:
                self._set_aside(state_dir)
                os.close(file)
                file = open_state_file(self._path, flags, state_dir)
            while text:
                text = text[os.write(file, text) :]
        finally:
            os.close(file)

    def _set_aside(self, state_dir: Path) -> None:
        """Give the full file the name of the one before it."""
        folder, name = open_state_folder(self._path.parent, state_dir), self._path.name
        try:
            os.replace(name, f"{name}.1", src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(folder)

    def _tell(self, error: OSError) -> None:
        if not self._troubled:
            _log.warning(
                "what a server says on its standard error cannot be written to %s (%s): it is lost; %s",
                self._path,
                error,
                way_out(error, self._path, "free space or set another runtime.state_dir"),
            )
        self._troubled = True
