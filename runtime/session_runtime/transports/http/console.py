"""The operators' console (OPS-3): its files, and signing in and out.

What it shows comes from the same routes that every administrator has.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from session_runtime.errors import RequestError
from session_runtime.registry.keyring import digest_of
from session_runtime.transports.http.answers import HEADERS, json_answer
from session_runtime.transports.http.console_sessions import (
    COOKIE,
    LIFE_S,
    ConsoleSession,
    ConsoleSessions,
)
from session_runtime.transports.http.door import HttpDoor
from session_runtime.transports.http.guard import CONSOLE, CONSOLE_FILES, Gate, require_admin
from session_runtime.transports.http.head import values
from session_runtime.types import Principal

FOLDER: Final = Path(__file__).parent / "console_files"
PAGE: Final = "index.html"
SESSION: Final = "/console/session"
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""What the console's page may do: run its own scripts, call its own daemon, and nothing else (SEC-3)."""

_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".css": "text/css",
        ".html": "text/html",
        ".js": "text/javascript",
        ".svg": "image/svg+xml",
    }
)
_GUARDED: Final[Mapping[str, str]] = MappingProxyType(
    {
        **HEADERS,
        "content-security-policy": POLICY,
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-frame-options": "DENY",
    }
)


def console_routes(door: HttpDoor, gate: Gate) -> list[Route]:
    """All routes of the console; none where nobody can sign in."""
    if gate.sessions is None:
        return []
    files, signing = _Files(FOLDER), _Signing(door, gate, gate.sessions)
    return [
        Route(CONSOLE, files.page, methods=["GET"]),
        Route(CONSOLE + "/", files.page_itself, methods=["GET"]),
        Route(CONSOLE_FILES + "{name}", files.file, methods=["GET"]),
        Route(SESSION, signing.session, methods=["GET", "POST", "DELETE"]),
    ]


class _Files:
    """What the console consists of, read once; the same for everybody."""

    def __init__(self, folder: Path) -> None:
        self._files = {
            path.name: (path.read_bytes(), _TYPES[path.suffix])
            for path in folder.iterdir()
            if path.suffix in _TYPES and not path.name.startswith(".")
        }

    async def page(self, request: Request) -> Response:
        """``GET /console``: the page; it asks for a key before it shows anything."""
        del request
        return self._answer(PAGE)

    async def page_itself(self, request: Request) -> Response:
        """``GET /console/``: as people type it; the page is without the slash."""
        del request
        return Response(status_code=308, headers={**_GUARDED, "location": CONSOLE})

    async def file(self, request: Request) -> Response:
        """``GET /console/files/{name}``: a script, the style or a picture."""
        return self._answer(request.path_params["name"])

    def _answer(self, name: str) -> Response:
        if name not in self._files:
            raise RequestError(f"the console has no file {name[:100]!r}", code="request.not_found")
        content, media_type = self._files[name]
        return Response(content, headers=_GUARDED, media_type=media_type)


class _Signing:
    """Exchanges the key of an administrator for a session, and ends it."""

    def __init__(self, door: HttpDoor, gate: Gate, sessions: ConsoleSessions) -> None:
        self._door = door
        self._gate = gate
        self._sessions = sessions

    async def session(self, request: Request) -> Response:
        """``/console/session``: who is signed in; sign in with a key, or out."""
        principal = self._gate.admit(request.scope)
        require_admin(principal)
        match request.method:
            case "POST":
                return self._begin(request, principal)
            case "DELETE":
                return self._end(request)
            case _:
                found = self._sessions.find(request.scope["headers"], self._door.keys())
                return json_answer(_told(principal, None if found is None else found[0]))

    def _begin(self, request: Request, principal: Principal) -> Response:
        """``POST``: a session for the key in the header Authorization; without keys there is no need."""
        given = values(request.scope["headers"], b"authorization")
        if not self._door.keys() or not given:
            return json_answer(_told(principal, None))
        key = given[0].partition(" ")[2].strip(" \t").encode("latin-1")
        secret, session = self._sessions.open(digest_of(key))
        cookie = _cookie(secret, round(LIFE_S), is_secure=_is_encrypted(request))
        return json_answer(_told(principal, session), 201, {"set-cookie": cookie})

    def _end(self, request: Request) -> Response:
        """``DELETE``: the cookie of the session is worth nothing any more."""
        self._sessions.close(request.scope["headers"])
        cookie = _cookie("", 0, is_secure=_is_encrypted(request))
        return json_answer({}, headers={"set-cookie": cookie})


def _told(principal: Principal, session: ConsoleSession | None) -> dict[str, object]:
    return {
        "principal": principal.name,
        "token": None if session is None else session.token,
        "expires": None if session is None else session.expires,
    }


def _cookie(secret: str, life_s: int, *, is_secure: bool) -> str:
    secure = "; Secure" if is_secure else ""
    return f"{COOKIE}={secret}; Path=/; Max-Age={life_s}; HttpOnly; SameSite=Strict{secure}"


def _is_encrypted(request: Request) -> bool:
    """Whether the browser speaks TLS, with whoever is in front; a lie about it only hides the cookie."""
    headers = request.headers
    return (
        request.url.scheme == "https"
        or headers.get("x-forwarded-proto", "").lower() == "https"
        or headers.get("origin", "").lower().startswith("https://")
    )
