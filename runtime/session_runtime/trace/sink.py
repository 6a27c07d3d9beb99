"""Writes trace records to a file from its own thread: a slow disk never delays an ask."""

import asyncio
import fcntl
import logging
import os
import queue
import stat
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from session_runtime.state_files import make_state_folder, open_state_file, way_out
from session_runtime.trace.record import AskRecord, record_to_json
from session_runtime.wire import to_bytes

_log = logging.getLogger(__name__)

MAX_QUEUED: Final = 1_000
CLOSE_TIMEOUT_S: Final = 5.0
LOOKS: Final = 4
LOOK_S: Final = 0.005
"""A line of another process is whole after so many looks, so long apart, or never."""


class TraceSink:
    """Appends one JSON line per record to ``path`` (mode 0600) and rotates it (OPS-1).

    A file that would grow beyond ``max_bytes`` becomes ``path.1``, that one ``path.2``, and so on;
    ``keep`` of them are kept. Several processes may write to one path. A full disk or an unwritable path
    is logged once, until it works again, and costs records, never an ask. Files belong to whom
    ``state_dir`` belongs, which is the folder of ``path`` if it is not given.
    """

    def __init__(
        self,
        path: Path,
        max_bytes: int,
        keep: int,
        *,
        max_queued: int = MAX_QUEUED,
        state_dir: Path | None = None,
    ) -> None:
        self._file = _TraceFile(path, max_bytes, keep, state_dir)
        self._max_queued = max_queued
        self._queue: queue.SimpleQueue[AskRecord | None] = queue.SimpleQueue()
        self._overflowed = 0
        self._unusable = 0
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="trace-writer", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Records that were not written.

        The queue was full, the sink closed, the record no JSON data, or the disk refused.
        """
        return self._overflowed + self._unusable + self._file.failed

    def write(self, record: AskRecord) -> None:
        """Queue one record; returns at once, and drops the record if the writer is far behind."""
        if self._closed or self._queue.qsize() >= self._max_queued:
            self._tell_overflow()
            self._overflowed += 1
        else:
            self._queue.put(record)

    async def aclose(self) -> None:
        """Write what is queued and close the file; gives up on a disk that hangs after 5 s."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join, CLOSE_TIMEOUT_S)
        if self._thread.is_alive():
            _log.error("%d trace records are lost: the disk does not answer", self._queue.qsize())

    def _run(self) -> None:
        while (record := self._queue.get()) is not None:
            line = self._line(record)
            if line is not None:
                self._file.append(line)
        self._file.close()

    def _line(self, record: AskRecord) -> bytes | None:
        try:
            return to_bytes(record_to_json(record)) + b"\n"
        except Exception as error:  # noqa: BLE001 - no record may end the thread that writes all others
            if not self._unusable:
                _log.error(
                    "the trace of ask %s is lost (%s: %s); more like it are counted, not told",
                    record.ask_id,
                    type(error).__name__,
                    error,
                )
            self._unusable += 1
            return None

    def _tell_overflow(self) -> None:
        if not self._overflowed and not self._closed:
            _log.error(
                "traces are lost: %d wait for a slow disk; more like it are counted, not told",
                self._max_queued,
            )


class _TraceFile:
    """The file itself; used by one thread. ``failed`` counts lines that could not be written."""

    def __init__(
        self, path: Path, max_bytes: int, keep: int, state_dir: Path | None = None
    ) -> None:
        self.failed = 0
        self._state_dir = state_dir or path.parent
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._fd: int | None = None
        self._troubled = False

    def append(self, line: bytes) -> None:
        try:
            _write_all(self._ready_fd(len(line)), line)
        except OSError as error:
            self.failed += 1
            self.close()
            self._tell_trouble(error)
        else:
            self._tell_recovery()

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _ready_fd(self, size: int) -> int:
        if self._fd is not None and not self._is_current(self._fd):
            self.close()
        if self._fd is None:
            self._fd = self._open()
        if 0 < os.fstat(self._fd).st_size > self._max_bytes - size:
            self._rotate(self._fd)
            self.close()
            self._fd = self._open()
        return self._fd

    def _is_current(self, fd: int) -> bool:
        """Whether the path still leads to this file: somebody may have moved or removed it."""
        try:
            return os.path.samestat(os.fstat(fd), self._path.stat())
        except FileNotFoundError:
            return False

    def _open(self) -> int:
        make_state_folder(self._path.parent, self._state_dir)
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        fd = open_state_file(self._path, flags, self._state_dir)
        if stat.S_ISREG(os.fstat(fd).st_mode):
            os.fchmod(fd, 0o600)
        if _is_torn(fd):
            os.write(fd, b"\n")  # what a crash or a full disk left stays alone
        return fd

    def _rotate(self, full: int) -> None:
        """Move all files on, unless another process does, or did since this one was looked at.

        Who moves holds the lock of the file that the path leads to. That one is moved last, so there is no
        other to be locked before all are where they belong; the lock goes when the file is closed.
        """
        if not _locked(full) or not self._is_current(full):
            return
        if self._keep < 1:
            self._path.unlink(missing_ok=True)
            return
        for number in reversed(range(self._keep)):
            with suppress(FileNotFoundError):  # there are not so many yet, or somebody removed it
                self._numbered(number).replace(self._numbered(number + 1))

    def _numbered(self, number: int) -> Path:
        """Name the file that was current ``number`` rotations ago."""
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def _tell_trouble(self, error: OSError) -> None:
        if not self._troubled:
            _log.error(
                "traces cannot be written to %s (%s): asks go on without; %s",
                self._path,
                error.strerror or error,
                way_out(error, self._path, "free space or set another trace.path"),
            )
        self._troubled = True

    def _tell_recovery(self) -> None:
        if self._troubled:
            _log.warning(
                "traces are written to %s again; %d records were lost", self._path, self.failed
            )
        self._troubled = False


def _locked(fd: int) -> bool:
    """Take the lock of a file; tells whether nobody else has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


def _is_torn(fd: int) -> bool:
    """Whether the last line has no end, and gets none: another process may be in the middle of one."""
    for _ in range(LOOKS):
        size = os.fstat(fd).st_size
        if not size or os.pread(fd, 1, size - 1) == b"\n":
            return False
        time.sleep(LOOK_S)
    return True


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
