"""The section [web]; which addresses count as the public internet is decided in ``toolbox.web``."""

import ipaddress
import re
from typing import Annotated

from pydantic import Field, field_validator

from session_runtime.config.section import Count, Seconds, Section, Whole, key

_MIB = 1024 * 1024
_HOST_PATTERN = re.compile(r"[a-z0-9_.:*-]+")

PageBytes = Annotated[int, Field(ge=1, le=16 * _MIB)]


class WebSettings(Section):
    """Pages of the public internet, for tools that read them (SEC-2).

    The daemon reads from where it stands, so this is off until it is wanted. Addresses that are not
    public (private networks, this machine, metadata services) are refused whatever name leads there.
    """

    enabled: bool = key(
        False, "Whether the tool web.fetch is there; needs the extra session-runtime[web]."
    )
    timeout_s: Seconds = key(
        20.0, "The longest that getting a page and reading it may take, in seconds."
    )
    max_bytes: PageBytes = key(
        2 * _MIB, "How much of a page is read, in bytes after decompression; the rest is left out."
    )
    max_redirects: Whole = key(5, "The most redirects that are followed; each is checked anew.")
    max_concurrent: Count = key(8, "The most pages that are read at the same time; others wait.")
    ports: tuple[int, ...] = key((80, 443), "Ports that may be connected to.")
    allow_hosts: tuple[str, ...] = key(
        (),
        'Patterns of host names that may be read, such as "*.example.org"; empty means all. Names'
        " with letters beyond ASCII are given in their xn-- form.",
    )
    deny_hosts: tuple[str, ...] = key((), "Patterns of host names that may not be read; these win.")
    allow_networks: tuple[str, ...] = key(
        (),
        'Networks that may be read although they are not public, such as "10.1.0.0/16", or single'
        " addresses: for an intranet. Everybody who may use web.fetch then reads there.",
    )

    @field_validator("ports")
    @classmethod
    def _are_ports(cls, ports: tuple[int, ...]) -> tuple[int, ...]:
        for port in ports:
            if not 1 <= port <= 65535:
                raise ValueError(f"{port} is no port: give numbers from 1 to 65535")
        return ports

    @field_validator("allow_hosts", "deny_hosts")
    @classmethod
    def _are_host_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        lowered = tuple(pattern.lower() for pattern in patterns)
        for pattern in lowered:
            if not _HOST_PATTERN.fullmatch(pattern):
                raise ValueError(
                    f'"{pattern}" is no pattern of host names: give a name alone, without https:// and'
                    " without a path, * for any characters, and letters beyond ASCII as xn--..."
                )
        return lowered

    @field_validator("allow_networks")
    @classmethod
    def _are_networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        for network in networks:
            try:
                ipaddress.ip_network(network)
            except ValueError as error:
                raise ValueError(
                    f'"{network}" is no network: {error}; write 10.1.0.0/16 or fd00:1::/32'
                ) from None
        return networks
