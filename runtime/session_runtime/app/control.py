"""The socket in the state directory through which the command line reaches the daemon (NET-4).

Who may open it is who runs the daemon: everything that comes through it is the operator's.
"""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from session_runtime.errors import StartError
from session_runtime.wire.control import SOCKET

LONGEST: Final = 107
"""The most bytes that the address of a Unix socket can have."""

_OTHERS: Final = 0o177


@contextmanager
def control_socket(state_dir: Path) -> Iterator[socket.socket]:
    """A listening socket that only the user of this process can open; removed on leaving.

    The caller owns ``state_dir``, so that one which is there already is left by a daemon that died.
    Raises StartError naming the path and the way out.
    """
    path = state_dir.absolute() / SOCKET
    if len(os.fsencode(path)) > LONGEST:
        raise _error(
            path,
            f"the path is longer than the {LONGEST} bytes that a socket's may have;"
            " set runtime.state_dir to a folder with a shorter one",
        )
    _remove_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _bind_for_owner(sock, path)
        sock.listen(128)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise _error(path, str(error.strerror)) from error
    try:
        yield sock
    finally:
        sock.close()
        path.unlink(missing_ok=True)


def _bind_for_owner(sock: socket.socket, path: Path) -> None:
    """Make the file with mode 0600, so that there is no moment at which others may open it."""
    before = os.umask(_OTHERS)
    try:
        sock.bind(str(path))
    finally:
        os.umask(before)


def _remove_stale(path: Path) -> None:
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise _error(path, "something else is there; move it away")
        path.unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        raise _error(path, str(error.strerror)) from error


def _error(path: Path, reason: str) -> StartError:
    return StartError(f"cannot listen on {path}: {reason}", code="start.control_socket")
