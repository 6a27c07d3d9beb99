"""Which IP addresses are the public internet; how names lead to addresses is ``lookup``'s business.

The registries of special addresses are written out here, because what Python calls global differs
between its versions, and because some addresses that are global on paper are not public.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NOT_PUBLIC_V4: Final = (
    "0.0.0.0/8",  # this network; 0.0.0.0 reaches the machine itself
    "10.0.0.0/8",  # private
    "100.64.0.0/10",  # behind a carrier's translation; metadata of Alibaba Cloud
    "127.0.0.0/8",  # loopback
    "168.63.129.16/32",  # the host's services in Azure, global on paper
    "169.254.0.0/16",  # link-local; metadata of most clouds
    "172.16.0.0/12",  # private
    "192.0.0.0/24",  # protocol assignments; metadata of Oracle Cloud
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # relays of 6to4
    "192.168.0.0/16",  # private
    "198.18.0.0/15",  # benchmarks
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, and broadcast
)
_PUBLIC_V6: Final = "2000::/3"  # all that was ever assigned for global unicast
_NOT_PUBLIC_V6: Final = (
    "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4, which holds an IPv4 address
    "3fff::/20",  # documentation
)
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")  # IPv4 as hosts without IPv4 see it


def _networks(texts: Iterable[str]) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


_PUBLIC: Final = ip_network(_PUBLIC_V6)
_SPECIAL: Final = _networks((*_NOT_PUBLIC_V4, *_NOT_PUBLIC_V6))


def plain(address: Address) -> Address:
    """The IPv4 address that an IPv4-mapped IPv6 address means; any other address itself."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def is_public(address: Address) -> bool:
    """Whether an address belongs to the public internet (SEC-2).

    What ``64:ff9b::/96`` translates counts as the IPv4 address inside. Of IPv6, only what is assigned for
    global unicast can be public, which leaves out unique local and link-local addresses and all other
    ways of writing an IPv4 address.
    """
    match plain(address):
        case IPv6Address() as six if six in _TRANSLATED:
            return is_public(IPv4Address(int(six) & 0xFFFF_FFFF))
        case IPv6Address() as six:
            return six.is_global and six in _PUBLIC and not _among(six, _SPECIAL)
        case four:
            return four.is_global and not _among(four, _SPECIAL)


def _among(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)


class Openings:
    """The networks that the operator opened although they are not public."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = _networks(networks)

    def __contains__(self, address: Address) -> bool:
        return _among(plain(address), self._networks)
