"""Fetches all pages of a server's list of tools, in bounds whatever the server does (RTE-1, RTE-5)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from session_runtime.errors import PermanentError
from session_runtime.mcp.base import Definition, Listing
from session_runtime.mcp.listed import read_definition, refusal
from session_runtime.mcp.stderr_log import Shown
from session_runtime.registry.catalog import Quarantined
from session_runtime.types import JsonObject

MAX_PAGES: Final = 1_000
MAX_TOOLS: Final = 10_000
MAX_WEIGHT: Final = 32 * 1024 * 1024
MAX_CURSOR_CHARS: Final = 16_384
_SLICE_WEIGHT: Final = 16_384
_LEAST_WEIGHT: Final = 256  # of any definition, for what it costs to look at one at all
_NAMED: Final = 5
_NO_SECRETS: Final = Shown()

_log = logging.getLogger(__name__)

Page = Callable[[str | None], Awaitable[JsonObject]]
"""Asks for the page that a cursor stands for, None for the first, and gives the answer unread."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """All tools of a server, and how long it says that its list is good for, in seconds."""

    listing: Listing
    ttl_s: float | None


async def discover(
    server: str, page: Page, shown: Shown = _NO_SECRETS, secrets: Sequence[str] = ()
) -> Discovered:
    """List all tools of a server, one unusable definition costing only itself.

    A page that names a cursor which was there before is the last one; if it names its own, it is a page
    that was added before. Raises PermanentError ``mcp.bad_result`` for an answer that is no page, and for
    more pages, tools or characters than anybody needs; what ``page`` raises goes through. What people read
    of it is ``shown``; what it is given that is certainly secret, ``secrets``, is in no definition (CFG-4).
    """
    found = _Found(server, shown, secrets)
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        answer = await page(cursor)
        following = _next_cursor(answer)
        if following is not None and following == cursor:
            found.warn_of(following)
            return found.all()
        await found.add(answer)
        if following is None:
            return found.all()
        if following in seen:
            found.warn_of(following)
            return found.all()
        seen.add(following)
        cursor = following
    raise _unusable(f"more than {MAX_PAGES} pages")


class _Found:
    """What was found so far."""

    def __init__(self, server: str, shown: Shown, secrets: Sequence[str]) -> None:
        self._server = server
        self._shown = shown
        self._secrets = secrets
        self._tools: dict[str, Definition] = {}
        self._refused: list[Quarantined] = []
        self._number = 0
        self._weight = 0
        self._ttl_s: float | None = None

    async def add(self, answer: JsonObject) -> None:
        """Add the tools of one page, with a turn for others after every few."""
        tools = answer.get("tools")
        if not isinstance(tools, list):
            raise _unusable(f"a page with {_kind(tools)} instead of tools")
        self._shorten(answer.get("ttlMs"))
        since_turn = 0
        for raw in tools:
            self._number += 1
            if self._number > MAX_TOOLS:
                raise _unusable(f"more than {MAX_TOOLS} tools")
            weight = self._add(raw) + _LEAST_WEIGHT
            self._weight += weight
            since_turn += weight
            if self._weight > MAX_WEIGHT:
                raise _unusable(f"more than {MAX_WEIGHT} characters")
            if since_turn > _SLICE_WEIGHT:
                since_turn = 0
                await asyncio.sleep(0)

    def _add(self, raw: object) -> int:
        try:
            weighed = read_definition(raw, self._secrets)
        except ValueError as error:
            self._refuse(raw, str(error))
            return _SLICE_WEIGHT  # it may have taken long to find the fault
        name = weighed.definition.name
        if name in self._tools:
            reason = "the server lists another tool of this name before it"
            self._refuse(raw, reason)
        else:
            self._tools[name] = weighed.definition
        return weighed.weight

    def _refuse(self, raw: object, reason: str) -> None:
        self._refused.append(refusal(raw, self._number, self._server, reason, self._shown))

    def _shorten(self, ttl_ms: object) -> None:
        if isinstance(ttl_ms, int | float) and not isinstance(ttl_ms, bool):
            ttl_s = min(max(ttl_ms, 0), 10**12) / 1000
            self._ttl_s = ttl_s if self._ttl_s is None else min(self._ttl_s, ttl_s)

    def warn_of(self, cursor: str) -> None:
        """Tell that pages repeat themselves, so that there may be tools behind them."""
        reason = (
            f"the server gave the cursor {self._shown(cursor, 80)!r} twice: no more pages are read"
        )
        self._refused.append(Quarantined("(further pages)", self._server, reason))
        _log.warning("server %s: tools/list: %s", self._server, reason)

    def all(self) -> Discovered:
        """Everything; flags tools without a description, which are kept (RTE-5)."""
        at = asyncio.get_running_loop().time()
        listing = Listing(tuple(self._tools.values()), tuple(self._refused), at)
        bare = listing.undescribed
        if bare:
            names = ", ".join(self._shown(name, 64) for name in bare[:_NAMED])
            _log.warning(
                "server %s: %d tools have no description, such as %s: the model can hardly choose"
                " them, set mcp.servers.%s.tools.NAME.description",
                self._server,
                len(bare),
                names,
                self._server,
            )
        return Discovered(listing, self._ttl_s)


def _next_cursor(answer: JsonObject) -> str | None:
    match answer.get("nextCursor"):
        case None | "":
            return None
        case str() as cursor if len(cursor) <= MAX_CURSOR_CHARS:
            return cursor
        case _:
            raise _unusable(f"a cursor that is no text of at most {MAX_CURSOR_CHARS} characters")


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _unusable(what: str) -> PermanentError:
    return PermanentError(f"tools/list gave {what}", code="mcp.bad_result")
