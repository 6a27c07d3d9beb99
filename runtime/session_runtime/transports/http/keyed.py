"""What a daemon with keys asks of every request: a key, in one header and nowhere else (NET-2, SEC-3).

Hosts and proxies are free, forwarding headers are not read. A web page of another host is refused.
"""

from typing import Final
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.types import Scope

from session_runtime.config.http import KEY_SHAPE
from session_runtime.errors import RequestError
from session_runtime.registry.keyring import Keyring
from session_runtime.transports.http.head import RawHeaders, one_host, values
from session_runtime.types import Principal

_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
_NAMES_OF_KEYS: Final = frozenset(
    {"accesstoken", "apikey", "authorization", "authtoken", "bearer", "token", "xapikey"}
)


def check_keyed(scope: Scope) -> None:
    """Raise RequestError for the web page of another host, and for a key in the URL."""
    host = one_host(scope["headers"])
    for origin in values(scope["headers"], b"origin"):
        if host is None or not _is_page_of(origin, host):
            raise RequestError(
                f"the origin {origin[:100]!r} is another host: web pages from elsewhere are not served",
                code="request.origin",
            )
    if _holds_a_key(scope["raw_path"], scope["query_string"]):
        raise RequestError(
            "the URL has what looks like a key, and URLs are kept in logs: send it in the header"
            " Authorization: Bearer KEY, and replace a key that was in a URL",
            code="auth.in_url",
        )


def owner_of_key(headers: RawHeaders, keys: Keyring) -> Principal:
    """Whose key came with the request; raises RequestError that says no more than that none did."""
    given = values(headers, b"authorization")
    scheme, _, key = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    if scheme.casefold() != "bearer" or not key.strip(" \t"):
        raise RequestError(
            "no key was sent: send one in the header Authorization: Bearer KEY", code="auth.missing"
        )
    owner = keys.owner(key.strip(" \t").encode("latin-1"))
    if owner is None:
        raise RequestError("the key is not known", code="auth.unknown")
    return owner


def _is_page_of(origin: str, host: str) -> bool:
    scheme, _, authority = origin.casefold().partition("://")
    port = _DEFAULT_PORTS.get(scheme)
    if port is None:
        return False
    return authority.removesuffix(port) == host.casefold().removesuffix(port)


def _holds_a_key(path: bytes, query: bytes) -> bool:
    if KEY_SHAPE.search(unquote_to_bytes(path + b"?" + query).decode("latin-1")):
        return True
    names = (name for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    return any(_squashed(name) in _NAMES_OF_KEYS for name in names)


def _squashed(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "")
