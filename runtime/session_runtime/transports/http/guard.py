"""Whom a request comes from, decided before anything else of it is looked at (NET-2).

Each way in has a gate. At that of the network, ``keyed`` says what it takes if there are keys and
``keyless`` if there are none, as the configuration in force has it.
"""

import re
from collections.abc import Callable
from typing import Final, Literal, Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from session_runtime.errors import RequestError
from session_runtime.registry.keyring import ADMIN, Keyring
from session_runtime.transports.http.answers import refusal
from session_runtime.transports.http.completions_errors import (
    COMPLETIONS,
    MODELS,
    in_style,
    is_openai,
)
from session_runtime.transports.http.console_sessions import ConsoleSessions
from session_runtime.transports.http.head import check_path, check_size
from session_runtime.transports.http.keyed import check_keyed, owner_of_key
from session_runtime.transports.http.keyless import check_keyless
from session_runtime.transports.http.openai_paths import way_out
from session_runtime.types import LOCAL, Principal

OPEN: Final = frozenset({"/healthz", "/readyz"})
"""Paths that tell nothing but whether the daemon is well, and need no key."""

FOR_CALLERS: Final = frozenset(
    {"/mcp", "/metrics", "/v1/ask", "/v1/asks", "/v1/tools", COMPLETIONS, MODELS}
)
"""Paths for every principal, as are ``INVOKE``, models and all below ``OF_ONE_ASK``; others are admins'."""

CONSOLE: Final = "/console"
CONSOLE_FILES: Final = "/console/files/"
"""The console's own files, the same for everybody: they show nothing of the daemon without a key (OPS-3)."""

OF_ONE_ASK: Final = "/v1/asks/"
INVOKE: Final = re.compile(r"/v1/tools/[^/]+/invoke")


class Gate(Protocol):
    """A way in, which decides whom its requests come from."""

    @property
    def any_key(self) -> bool:
        """Whether its administrators may change every key of the configuration (NET-3)."""

    @property
    def trigger(self) -> Literal["http", "cli"]:
        """What the receipts of reloads say that were asked for here (REL-3)."""

    @property
    def sessions(self) -> ConsoleSessions | None:
        """Those who signed in at the console; None where there is no console (OPS-3)."""

    def check(self, scope: Scope) -> None:
        """Raise RequestError for a request that no endpoint shall see."""

    def admit(self, scope: Scope) -> Principal:
        """Whom the request comes from; raises RequestError if it may not come in.

        An endpoint that waited for a body asks again: keys may have changed meanwhile.
        """


class NetworkGate:
    """The port; ``keys`` gives those of the configuration in force."""

    any_key: Final = False
    trigger: Final = "http"

    def __init__(self, keys: Callable[[], Keyring]) -> None:
        self._keys = keys
        self._sessions = ConsoleSessions()

    @property
    def sessions(self) -> ConsoleSessions:
        """Those who exchanged the key of an administrator for a session (SEC-3)."""
        return self._sessions

    def check(self, scope: Scope) -> None:
        """Refuse who may not come in; whether the daemon is well may be asked without a key."""
        keys = self._keys()
        check_size(scope)
        check_path(scope)
        if keys and is_open(scope["path"]):
            check_keyed(scope)
            return
        principal = self.admit(scope)
        if not _is_for_callers(scope["path"]):
            require_admin(principal)

    def admit(self, scope: Scope) -> Principal:
        """Ask for a key or a session that stands for one, or without keys for a request from this machine."""
        keys = self._keys()
        if keys and self._sessions.are_meant(scope["headers"]):
            check_keyed(scope)
            if (principal := self._sessions.admit(scope, keys)) is not None:
                return principal
        return admit(scope, keys)


class ControlGate:
    """The socket in the state directory: who can open it runs the daemon (NET-4)."""

    any_key: Final = True
    trigger: Final = "cli"
    sessions: Final = None

    def check(self, scope: Scope) -> None:
        """Refuse a head that is too large, and a path that is not what it seems."""
        check_size(scope)
        check_path(scope)

    def admit(self, scope: Scope) -> Principal:
        """Everybody is the operator; no header is looked at."""
        del scope
        return LOCAL


class Guard:
    """ASGI middleware that answers who may not come in, and passes on everybody else."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refused request, pass on any other."""
        try:
            self._gate.check(scope)
        except RequestError as error:
            await in_style(scope["path"], refusal(error))(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def admit(scope: Scope, keys: Keyring) -> Principal:
    """Whom a request that came by the network is from; RequestError if it may not come in."""
    if not keys:
        check_keyless(scope)
        return LOCAL
    check_keyed(scope)
    return owner_of_key(scope["headers"], keys)


def is_open(path: str) -> bool:
    """Whether a path needs no key: what is there tells nothing, and is the same for everybody."""
    return path in OPEN or path in (CONSOLE, CONSOLE + "/") or path.startswith(CONSOLE_FILES)


def _is_for_callers(path: str) -> bool:
    is_below = path.startswith(OF_ONE_ASK) or INVOKE.fullmatch(path) is not None
    return path in FOR_CALLERS or is_below or is_openai(path) or way_out(path) is not None


def require_admin(principal: Principal) -> None:
    """Raise RequestError unless the principal is an administrator."""
    if not principal.admin:
        raise RequestError(
            f"{principal.name!r} lacks the role {ADMIN!r}, which this needs; for every key there are"
            f" {', '.join(sorted(FOR_CALLERS))}",
            code="auth.admin_needed",
        )
