"""Gets pages within bounds: which hosts, how many redirects, how long, how much at a time (SEC-2)."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

import httpx2

from session_runtime.config.web import WebSettings
from session_runtime.errors import ToolError
from session_runtime.registry.patterns import Patterns
from session_runtime.services import Fetched, WebPage
from session_runtime.toolbox.web.addresses import Openings
from session_runtime.toolbox.web.body import read_body
from session_runtime.toolbox.web.exchange import Answer, exchange
from session_runtime.toolbox.web.lookup import Resolve, Resolver, checked_addresses
from session_runtime.toolbox.web.reading import MOST_CHARS, PageReader, open_page_reader, read_page
from session_runtime.toolbox.web.target import Target, check_port, parse_target, redirected

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MEDIA_TYPE: Final = re.compile(
    r"\s*([a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,60})\s*(?:;|$)"
)
_CHARSET: Final = re.compile(r""";\s*charset\s*=\s*["']?([a-z0-9_.:-]{2,40})""")
_UNKNOWN_TYPE: Final = "application/octet-stream"


class WebClient:
    """The public internet as ``Web`` offers it; one for all asks of a configuration.

    ``context`` decides which certificates are good, ``look_up`` where names lead: by itself, the system.
    """

    def __init__(
        self,
        settings: WebSettings,
        reader: PageReader,
        context: ssl.SSLContext,
        look_up: Resolve | None = None,
    ) -> None:
        self._settings = settings
        self._reader = reader
        self._context = context
        self._look_up = look_up or Resolver()
        self._allowed = Patterns(settings.allow_hosts or ("*",))
        self._denied = Patterns(settings.deny_hosts)
        self._openings = Openings(settings.allow_networks)
        self._places = asyncio.Semaphore(settings.max_concurrent)

    async def fetch(self, url: str) -> Fetched:
        """Part of ``Web``."""
        async with self._place():
            return await self._follow(parse_target(url))

    async def read(self, url: str, *, links: bool = False) -> WebPage:
        """Part of ``Web``; ToolError ``web.status`` for an answer that is no success."""
        async with self._place():
            fetched = await self._follow(parse_target(url))
            if not 200 <= fetched.status < 300:
                raise ToolError(_status(fetched), code="web.status")
            max_chars = min(self._settings.max_bytes, MOST_CHARS)
            return await read_page(fetched, self._reader, links=links, max_chars=max_chars)

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Wait until there is room for one more, and end it all when the time is up."""
        limit_s = self._settings.timeout_s
        try:
            async with asyncio.timeout(limit_s), self._places:
                yield
        except TimeoutError:
            raise ToolError(
                f"The page could not be read within {limit_s:g} s. It may be too slow or too large; "
                "trying again later may help.",
                code="web.timeout",
            ) from None

    async def _follow(self, target: Target) -> Fetched:
        for _ in range(self._settings.max_redirects + 1):
            outcome = await self._get(target)
            if isinstance(outcome, Fetched):
                return outcome
            target = outcome
        raise ToolError(
            f"The page redirects more than {self._settings.max_redirects} times.",
            code="web.bad_answer",
        )

    async def _get(self, target: Target) -> Fetched | Target:
        """Ask once, after all checks; a target is where the answer leads on."""
        check_port(target, self._settings.ports)
        if target.host in self._denied or target.host not in self._allowed:
            raise ToolError(f"Reading from {target.host} is not allowed here.", code="web.refused")
        addresses = await checked_addresses(target.host, self._look_up, self._openings)
        async with exchange(target, addresses, self._context) as answer:
            location = answer.header("Location")
            if answer.status in _REDIRECTS and location:
                return redirected(target, location)
            return await self._fetched(target, answer)

    async def _fetched(self, target: Target, answer: Answer) -> Fetched:
        max_bytes = self._settings.max_bytes
        body = await read_body(answer.chunks, answer.header("Content-Encoding"), max_bytes)
        content_type = answer.header("Content-Type").lower()
        media_type = _MEDIA_TYPE.match(content_type)
        charset = _CHARSET.search(content_type)
        return Fetched(
            url=target.url,
            status=answer.status,
            media_type=media_type[1] if media_type else _UNKNOWN_TYPE,
            charset=charset[1] if charset else None,
            body=body.content,
            truncated=body.truncated,
        )


def open_web(settings: WebSettings) -> WebClient:
    """The client for a configuration; ConfigError if the HTML parser is missing."""
    return WebClient(settings, open_page_reader(), httpx2.create_ssl_context())


def _status(fetched: Fetched) -> str:
    try:
        phrase = f" {HTTPStatus(fetched.status).phrase}"
    except ValueError:
        phrase = ""
    return f"The page could not be read: the server answered {fetched.status}{phrase}."
