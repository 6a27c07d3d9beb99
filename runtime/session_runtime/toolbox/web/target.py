"""What an address in a request means: scheme, host, port and path, or why it is none (SEC-2).

Only the form is judged here; where a host leads is found out in ``lookup``.
"""

import ipaddress
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import httpx2

from session_runtime.errors import ToolError
from session_runtime.toolbox.web.addresses import plain

MAX_URL_CHARS: Final = 4000

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_PORTS: Final = range(1, 65536)
_LABEL: Final = re.compile(r"[a-z0-9_-]{1,63}")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_MAX_NAME_CHARS: Final = 253


@dataclass(frozen=True, slots=True)
class Target:
    """Where one request goes: ``host`` is a name in lower case (IDNA) or a plain IP address.

    ``path`` is what stands in the request line, ``url`` the whole without its fragment.
    """

    scheme: str
    host: str
    port: int
    path: bytes

    @property
    def authority(self) -> str:
        """Host and, unless it is the scheme's own, port: the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The address as text."""
        return f"{self.scheme}://{self.authority}{self.path.decode('ascii')}"


def parse_target(text: str) -> Target:
    """Read an absolute address; ToolError ``web.invalid_url`` says what is wrong with it."""
    with _otherwise("it is not written as one, for example https://example.org/page"):
        return _target(_url(text.strip()))


def redirected(origin: Target, location: str) -> Target:
    """Where ``origin`` sends its reader on; ToolError if that is no address or less safe."""
    with _otherwise("it redirects to something that is no address"):
        target = _target(httpx2.URL(origin.url).join(_url(location)))
    if origin.scheme == "https" and target.scheme == "http":
        raise ToolError(
            f"{origin.host} redirects from https to http, which is not followed. If that is fine, read "
            f"{target.url} itself.",
            code="web.refused",
        )
    return target


def check_port(target: Target, ports: Collection[int]) -> None:
    """Let through only ``ports``; ToolError ``web.refused`` for any other."""
    if target.port not in ports:
        open_ports = ", ".join(map(str, ports)) or "none"
        raise ToolError(
            f"Port {target.port} may not be read from; open ports: {open_ports}.",
            code="web.refused",
        )


@contextmanager
def _otherwise(why: str) -> Iterator[None]:
    """Tell ``why`` for all that the parsers below raise: of addresses, of bytes, of IDNA and of IPv6."""
    try:
        yield
    except (httpx2.InvalidURL, ValueError):
        raise _invalid(why) from None


def _url(text: str) -> httpx2.URL:
    if len(text) > MAX_URL_CHARS:
        raise _invalid(f"it is longer than {MAX_URL_CHARS} characters")
    return httpx2.URL(text)


def _target(url: httpx2.URL) -> Target:
    if url.scheme not in _DEFAULT_PORTS:
        raise _invalid("it must begin with https:// or http://")
    if url.userinfo:
        raise _invalid("it holds a name or password before an @; leave that out")
    port = _DEFAULT_PORTS[url.scheme] if url.port is None else url.port
    if port not in _PORTS:
        raise _invalid("its port is no number from 1 to 65535")
    return Target(url.scheme, _host(url), port, url.raw_path)


def _host(url: httpx2.URL) -> str:
    host = url.raw_host.decode("ascii").lower()
    if ":" in host:
        return _ipv6(host)
    host = host.removesuffix(".")
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _ipv4(host)
    if len(host) > _MAX_NAME_CHARS or not all(_LABEL.fullmatch(label) for label in labels):
        raise _invalid("its host is no name of the internet")
    return host


def _ipv4(host: str) -> str:
    """Take the one usual form alone: others mean different addresses to different programs."""
    try:
        return str(ipaddress.IPv4Address(host))
    except ValueError:
        raise _invalid("its host is a number: write a name, or four numbers up to 255") from None


def _ipv6(host: str) -> str:
    if "%" in host:
        raise _invalid("its host names a network card, which only this machine knows")
    return str(plain(ipaddress.IPv6Address(host)))


def _invalid(why: str) -> ToolError:
    return ToolError(f"This is no address that can be read: {why}.", code="web.invalid_url")
