"""The section [web]; which addresses count as the public internet is decided in ``toolbox.web``."""

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, Field

from session_runtime.config.section import Count, Seconds, Section, Whole, key

_MIB = 1024 * 1024
_HOST_PATTERN = re.compile(r"[a-z0-9_.:*-]+")


def _is_port(port: int) -> int:
    if not 1 <= port <= 65535:
        raise ValueError("is no port: give a number from 1 to 65535")
    return port


def _is_host_pattern(pattern: str) -> str:
    lowered = pattern.lower()
    if not _HOST_PATTERN.fullmatch(lowered):
        raise ValueError(
            "is no pattern of host names: give a name alone, without https:// and without a path,"
            " * for any characters, and letters beyond ASCII as xn--..."
        )
    return lowered


def _is_network(network: str) -> str:
    try:
        ipaddress.ip_network(network)
    except ValueError as error:
        raise ValueError(f"is no network: {error}; write 10.1.0.0/16 or fd00:1::/32") from None
    return network


PageBytes = Annotated[int, Field(ge=1, le=16 * _MIB)]
Port = Annotated[int, AfterValidator(_is_port)]
HostPattern = Annotated[str, AfterValidator(_is_host_pattern)]
Network = Annotated[str, AfterValidator(_is_network)]


class WebSettings(Section):
    """Pages of the public internet, for tools that read them (SEC-2).

    The daemon reads from where it stands, so this is off until it is wanted. Addresses that are not
    public (private networks, this machine, metadata services) are refused whatever name leads there.
    """

    enabled: bool = key(False, "Whether the tool web.fetch is there; needs the extra web.")
    timeout_s: Seconds = key(
        20.0, "The longest that getting a page and reading it may take, in seconds.", network=True
    )
    max_bytes: PageBytes = key(
        2 * _MIB,
        "How much of a page is read, in bytes after decompression; the rest is left out.",
        network=True,
    )
    max_redirects: Whole = key(
        5, "The most redirects that are followed; each is checked anew.", network=True
    )
    max_concurrent: Count = key(
        8, "The most pages that are read at the same time; others wait.", network=True
    )
    ports: tuple[Port, ...] = key((80, 443), "Ports that may be connected to.")
    allow_hosts: tuple[HostPattern, ...] = key(
        (),
        'Patterns of host names that may be read, such as "*.example.org"; empty means all. Names'
        " with letters beyond ASCII are given in their xn-- form.",
    )
    deny_hosts: tuple[HostPattern, ...] = key(
        (), "Patterns of host names that may not be read; these win."
    )
    allow_networks: tuple[Network, ...] = key(
        (),
        'Networks that may be read although they are not public, such as "10.1.0.0/16", or single'
        " addresses: for an intranet. Everybody who may use web.fetch then reads there.",
    )
