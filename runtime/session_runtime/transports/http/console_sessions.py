"""Who signed in at the console: sessions that stand for the key of an administrator (SEC-3).

A browser has one as a cookie that no script can read, and a token beside it that another page cannot know.
Where the cookie is set is decided in ``console``, what its owner may do in ``guard``.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.types import Scope

from session_runtime.errors import RequestError
from session_runtime.registry.keyring import Keyring
from session_runtime.transports.http.head import RawHeaders, values
from session_runtime.types import Principal

COOKIE: Final = "session_runtime_console"
TOKEN_HEADER: Final = "x-console-token"
LIFE_S: Final = 4 * 3600.0
MOST_SESSIONS: Final = 64

_READING: Final = frozenset({"GET", "HEAD"})
_MOST_COOKIES: Final = 8


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """One browser that signed in: ``key`` is the digest of its key, ``expires`` in seconds since 1970.

    ``token`` comes with every request of it that changes something.
    """

    key: bytes
    token: str
    expires: float


class ConsoleSessions:
    """All sessions of one process, in its memory only; the event loop's alone.

    A session is good as long as its key lets an administrator in: a key that is replaced, revoked or
    lowered ends it. Of more than MOST_SESSIONS the oldest ends.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._sessions: dict[
            bytes, ConsoleSession
        ] = {}  # by the digest of the cookie, oldest first

    def open(self, key: bytes) -> tuple[str, ConsoleSession]:
        """Begin a session for the key of this digest; gives what its cookie holds, too."""
        now = self._clock()
        self._sessions = {
            at: session for at, session in self._sessions.items() if session.expires > now
        }
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        secret = secrets.token_urlsafe(32)
        session = ConsoleSession(key, secrets.token_urlsafe(32), now + LIFE_S)
        self._sessions[_digest(secret.encode())] = session
        return secret, session

    def are_meant(self, headers: RawHeaders) -> bool:
        """Whether a request comes with a session and no key: a key that is sent counts alone."""
        return not values(headers, b"authorization") and bool(_given(headers))

    def find(self, headers: RawHeaders, keys: Keyring) -> tuple[ConsoleSession, Principal] | None:
        """The session that a request comes with, and whose it is; None if there is no good one."""
        if not self.are_meant(headers):
            return None
        for cookie in _given(headers):
            at = _digest(cookie)
            session = self._sessions.get(at)
            if session is None:
                continue
            owner = keys.holder(session.key)
            if owner is not None and owner.admin and session.expires > self._clock():
                return session, owner
            del self._sessions[at]
        return None

    def admit(self, scope: Scope, keys: Keyring) -> Principal | None:
        """Whom a request with a session comes from; None if it has none that is good.

        Raises RequestError (``auth.console_token``) for a change without the session's token, as a page
        that cannot read that might have sent it.
        """
        found = self.find(scope["headers"], keys)
        if found is None:
            return None
        session, owner = found
        if scope["method"] not in _READING:
            given = values(scope["headers"], TOKEN_HEADER.encode())
            if len(given) != 1 or not _same(given[0], session.token):
                raise RequestError(
                    f"a session of the console changes something only with the header {TOKEN_HEADER}:"
                    " get the token from /console/session",
                    code="auth.console_token",
                )
        return owner

    def close(self, headers: RawHeaders) -> None:
        """End the session that a request comes with."""
        for cookie in _given(headers):
            self._sessions.pop(_digest(cookie), None)


def _given(headers: RawHeaders) -> list[bytes]:
    """What the cookies of our name hold; browsers may send several, of several paths."""
    pairs = (
        pair.strip().partition("=")
        for header in values(headers, b"cookie")
        for pair in header.split(";")
    )
    found = [value.encode("latin-1") for name, _, value in pairs if name == COOKIE and value]
    return found[:_MOST_COOKIES]


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("latin-1"), token.encode())
