"""From a host to the addresses that a connection may go to; every one of them is checked (SEC-2).

Which addresses are public is decided in ``addresses``.
"""

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from session_runtime.errors import ToolError
from session_runtime.threads import in_thread
from session_runtime.toolbox.web.addresses import Address, Openings, is_public, plain

MAX_ADDRESSES: Final = 4

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""From a name to its addresses as text, best first; OSError or UnicodeError if it has none."""


async def resolve(name: str) -> Sequence[str]:
    """Ask the system's resolver, in a thread that a silent name server may keep as long as it likes."""
    found = await in_thread(
        f"look up {name}", partial(socket.getaddrinfo, name, None, type=socket.SOCK_STREAM)
    )
    return tuple(str(place[0]) for *_, place in found)


async def checked_addresses(host: str, resolve: Resolve, openings: Openings) -> tuple[Address, ...]:
    """Look a host up once, and give its addresses if all of them may be connected to.

    One that may not spoils the others: a name for both kinds is somebody's attempt to get inside.
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
        return [ipaddress.ip_address(text) for text in await resolve(host)]


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
