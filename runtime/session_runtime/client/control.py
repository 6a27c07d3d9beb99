"""Speaks to the daemon of a state directory through its control socket (NET-4)."""

import socket
from pathlib import Path
from typing import Any, Final

import httpx2

from session_runtime.errors import PermanentError, RequestError, TransientError
from session_runtime.wire.control import LOCK, SOCKET

TIMEOUT_S: Final = 30.0

LOCKS: Final = Path("/proc/locks")

_TOML: Final = "application/toml"
_REJECTED: Final = 422
"""The answer is a receipt of what could not be put into force."""
_BASE_URL: Final = "http://localhost"


class ControlClient:
    """Asks the daemon that runs with ``state_dir``; blocks, at most ``timeout_s`` for each step."""

    def __init__(self, state_dir: Path, timeout_s: float = TIMEOUT_S) -> None:
        self._state_dir = state_dir
        self._timeout_s = timeout_s

    def request(
        self,
        method: str,
        path: str,
        json: object = None,
        *,
        toml: bytes | None = None,
        patient: bool = False,
    ) -> dict[str, Any]:
        """Send one request, with a body of JSON or TOML or none; give the JSON object of the answer.

        It is waited for without end if ``patient``, as what it asks for may wait for servers of tools.
        Raises TransientError (``daemon.not_running``, ``daemon.no_answer``) and PermanentError
        (``daemon.forbidden``, ``daemon.bad_answer``) if there is no usable answer. An error that the daemon
        tells keeps its code; it is a RequestError if the request is to be changed.
        """
        path_of_socket = str(self._state_dir / SOCKET)
        self._check_there(path_of_socket)
        transport = httpx2.HTTPTransport(uds=path_of_socket)
        timeout = httpx2.Timeout(self._timeout_s, read=None if patient else self._timeout_s)
        try:
            with httpx2.Client(
                transport=transport, base_url=_BASE_URL, timeout=timeout, trust_env=False
            ) as client:
                headers = {} if toml is None else {"content-type": _TOML}
                response = client.request(method, path, json=json, content=toml, headers=headers)
        except httpx2.HTTPError as error:
            raise TransientError(
                f"the daemon did not answer {method} {path}: {str(error) or type(error).__name__}; "
                "look at its log",
                code="daemon.no_answer",
            ) from error
        return _content(response)

    def _check_there(self, address: str) -> None:
        """Connect once for nothing: the HTTP client does not tell why a socket cannot be opened."""
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(self._timeout_s)
                probe.connect(address)
        except PermissionError as error:
            raise PermanentError(
                f"{address} may not be opened by this user: run the command as the user of the daemon",
                code="daemon.forbidden",
            ) from error
        except OSError as error:
            raise TransientError(
                _absent(self._state_dir),
                code="daemon.not_running",
            ) from error


def _absent(state_dir: Path) -> str:
    if _is_locked(state_dir / LOCK):
        return (
            f"a daemon runs with runtime.state_dir {state_dir}, but its {SOCKET} there is gone or another"
            " one by now: restart it"
        )
    return (
        f"no daemon runs with runtime.state_dir {state_dir}: start it, or name its configuration by"
        " --config; if it began with another folder, name that by --state-dir"
    )


def _is_locked(lock: Path) -> bool:
    """Whether a process has locked the file; looks only, as a lock of its own could hinder a start."""
    try:
        inode = lock.stat().st_ino
        locks = LOCKS.read_text("ascii").splitlines()
    except OSError:
        return False
    return any(" FLOCK " in line and f":{inode} " in line for line in locks)


def _content(response: httpx2.Response) -> dict[str, Any]:
    try:
        data = response.json()
    except ValueError:
        data = None
    match data:
        case {"error": {"code": str(code), "message": str(message), **more}} if response.is_error:
            if response.is_client_error:
                raise RequestError(message, code=code)
            retryable = more.get("retryable") is True
            raise (TransientError if retryable else PermanentError)(message, code=code)
        case dict() if response.is_success or response.status_code == _REJECTED:
            return data
    raise PermanentError(
        f"the daemon answered with status {response.status_code} and no JSON object: is it another "
        "version than this command?",
        code="daemon.bad_answer",
    )
