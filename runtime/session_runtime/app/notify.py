"""Tells the service manager how the daemon is, as sd_notify(3) describes; when is decided in ``serve``.

Where no service manager asked to be told, nothing is sent. One that cannot be reached is never a reason
to serve less well.
"""

import logging
import os
import socket
import time
from collections.abc import Mapping
from typing import Final

from session_runtime.wire import printable

STATUS_CHARS: Final = 500

_log: Final = logging.getLogger(__name__)


class ServiceManager:
    """The end of the datagram socket that ``NOTIFY_SOCKET`` names, if it is set (REL-8)."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._address = _address(env.get("NOTIFY_SOCKET", ""))
        self._failed = False
        self.watchdog_s = _watchdog_s(env) if self._address is not None else None
        """Within how many seconds a sign of life is expected; None if nobody waits for one."""

    def ready(self, status: str) -> None:
        """Tell that it serves, after starting as after reloading."""
        self._send("READY=1", _status(status))

    def reloading(self) -> None:
        """Tell that a reload that was asked for by a signal begins; ``ready`` ends it."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1_000}")

    def stopping(self, within_s: float, status: str) -> None:
        """Tell that it stops, and how long that may take."""
        self._send(
            "STOPPING=1", f"EXTEND_TIMEOUT_USEC={int(within_s * 1_000_000)}", _status(status)
        )

    def status(self, status: str) -> None:
        """Tell how it is, in one line for people."""
        self._send(_status(status))

    def alive(self) -> None:
        """Give the sign of life."""
        self._send("WATCHDOG=1")

    def _send(self, *assignments: str) -> None:
        if self._address is None:
            return
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        try:
            with socket.socket(socket.AF_UNIX, kind) as sock:
                sock.sendto("\n".join(assignments).encode(), self._address)
        except OSError as error:
            if not self._failed:
                _log.warning("the service manager cannot be told how the daemon is: %s", error)
            self._failed = True
        else:
            self._failed = False


def _address(named: str) -> bytes | None:
    """The address of a path, or of a name in the abstract namespace, which begins with @."""
    if named.startswith("/"):
        return os.fsencode(named)
    if named.startswith("@"):
        return b"\0" + os.fsencode(named[1:])
    if named:
        _log.warning(
            "NOTIFY_SOCKET is %r, which is neither a path nor an @name: it is ignored", named
        )
    return None


def _watchdog_s(env: Mapping[str, str]) -> float | None:
    """Read ``WATCHDOG_USEC``, unless it is meant for another process."""
    text, process = env.get("WATCHDOG_USEC", ""), env.get("WATCHDOG_PID", "")
    if not text or process not in ("", str(os.getpid())):
        return None
    if not text.isdecimal() or int(text) == 0:
        _log.warning("WATCHDOG_USEC is %r and no number of microseconds: it is ignored", text)
        return None
    return int(text) / 1_000_000


def _status(text: str) -> str:
    line = " ".join(printable(text).split())
    return "STATUS=" + (line if len(line) <= STATUS_CHARS else f"{line[:STATUS_CHARS]} ...")
