"""From a host to the addresses that a connection may go to; every one of them is checked (SEC-2).

Which addresses are public is decided in ``addresses``.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from session_runtime.errors import ToolError
from session_runtime.threads import in_thread
from session_runtime.toolbox.web.addresses import Address, Openings, is_public, plain

MAX_ADDRESSES: Final = 4
MAX_LISTED: Final = 64
MAX_LOOKUPS: Final = 16

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""From a name to its addresses as text, best first; OSError or UnicodeError if it has none."""


class Resolver:
    """The system's resolver, in at most MAX_LOOKUPS threads at once.

    A silent name server may keep each as long as it likes, and also when nobody waits any more.
    """

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(MAX_LOOKUPS)

    async def __call__(self, name: str) -> Sequence[str]:
        """Give the addresses of a name, when a thread is free."""
        await self._places.acquire()
        try:
            found = in_thread(f"look up {name}", partial(_found, name))
        except RuntimeError:  # the system gives no thread
            self._places.release()
            raise
        found.add_done_callback(self._free)
        return await asyncio.shield(found)  # a thread that is not waited for keeps its place

    def _free(self, found: asyncio.Future[Sequence[str]]) -> None:
        self._places.release()
        found.exception()  # if nobody waited for it, nobody misses it


def _found(name: str) -> Sequence[str]:
    places = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return tuple(str(place[0]) for *_, place in places)


async def checked_addresses(host: str, resolve: Resolve, openings: Openings) -> tuple[Address, ...]:
    """Look a host up once, and give its addresses if all of them may be connected to.

    One that may not spoils the others: a name for both kinds is somebody's attempt to get inside. What a
    name server lists beyond MAX_LISTED is not looked at, and never connected to.
    ToolError ``web.refused`` has the same words for a name that leads inside and for one that does not
    exist, so that nobody can find out what there is inside.
    """
    try:
        found = [plain(each) for each in await _addresses(host, resolve)]
    except (OSError, UnicodeError, ValueError):
        found = []
    if not found or not all(each in openings or _may_be_read(each) for each in found):
        raise ToolError(
            f"{host} has no address on the public internet. If it is spelt right, it cannot be read "
            "from here.",
            code="web.refused",
        )
    return tuple(dict.fromkeys(found))[:MAX_ADDRESSES]


async def _addresses(host: str, resolve: Resolve) -> list[Address]:
    try:
        return [ipaddress.ip_address(host)]
    except ValueError:
        return [ipaddress.ip_address(text) for text in (await resolve(host))[:MAX_LISTED]]


def _may_be_read(address: Address) -> bool:
    return is_public(address) and not is_own(address)


def is_own(address: Address) -> bool:
    """Whether an address is this machine's: its services may trust whoever comes from here.

    The kernel tells which address it would connect from, and nothing is sent: to reach itself, a
    machine uses the very address that it reaches.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return str(probe.getsockname()[0]) == str(address)
    except OSError:
        return False  # there is no way to it at all, or no such protocol here
