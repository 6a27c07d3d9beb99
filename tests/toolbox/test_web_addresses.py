"""The public internet ends where private networks, special uses and translations begin."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import ToolError
from session_runtime.toolbox.web.addresses import Address, Openings, is_public, plain
from session_runtime.toolbox.web.lookup import (
    MAX_ADDRESSES,
    MAX_LISTED,
    MAX_LOOKUPS,
    Resolver,
    checked_addresses,
    is_own,
)
from tests.toolbox.sites import names

pytestmark = pytest.mark.requirement("SEC-2")

V4 = st.integers(0, 2**32 - 1).map(IPv4Address)
V6 = st.integers(0, 2**128 - 1).map(IPv6Address)
NOTHING_OPEN = Openings(())


@pytest.mark.parametrize(
    "text",
    [
        "1.1.1.1",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "168.63.129.15",
        "223.255.255.255",
        "2606:2800:220:1:248:1893:25c8:1946",
        "2001:4860:4860::8888",
        "2a00::1",
        "::ffff:1.1.1.1",
        "64:ff9b::1.1.1.1",
    ],
)
def test_public_addresses(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
        ),
        *("127.0.0.1", "127.255.255.255", "169.254.0.1", "169.254.169.254", "169.254.170.2"),
        *("172.16.0.0", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1"),
        *("192.168.0.0", "192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1"),
        *("203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
        *("100.100.100.200", "168.63.129.16"),
        *("::", "::1", "::127.0.0.1", "::1.1.1.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
        *("::ffff:169.254.169.254", "::ffff:0:1.1.1.1", "64:ff9b::10.0.0.1", "64:ff9b::7f00:1"),
        *("64:ff9b:1::1.1.1.1", "100::1", "2001::1", "2001:0:4136:e378::1", "2001:10::1"),
        *(
            "2001:2::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:101:101::1",
            "3fff::1",
            "3fff:fff::1",
        ),
        *("4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fe80::1%1"),
        *("fec0::1", "ff02::1", "ff0e::1"),
    ],
)
def test_addresses_that_are_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@given(V4)
def test_a_mapped_or_translated_address_is_as_public_as_the_one_inside(inner: IPv4Address) -> None:
    mapped = IPv6Address((0xFFFF << 32) | int(inner))
    translated = IPv6Address((0x64FF9B << 96) | int(inner))
    assert plain(mapped) == inner
    assert is_public(mapped) is is_public(translated) is is_public(inner)


@given(V4 | V6)
def test_what_python_calls_special_is_never_public(address: IPv4Address | IPv6Address) -> None:
    address = plain(address)
    special = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or (address.is_reserved and address not in Openings(["64:ff9b::/96"]))
    )
    assert not (special and is_public(address))


def test_openings_hold_networks_and_addresses_of_both_kinds() -> None:
    openings = Openings(["10.1.0.0/16", "fd00:1::/32", "192.168.0.7"])
    inside = ("10.1.2.3", "::ffff:10.1.2.3", "fd00:1::5", "192.168.0.7")
    assert all(ip_address(text) in openings for text in inside)
    outside = ("10.2.0.0", "64:ff9b::10.1.2.3", "fd00:2::5", "192.168.0.8", "127.0.0.1")
    assert not any(ip_address(text) in openings for text in outside)


@pytest.mark.parametrize(
    "addresses",
    ["1.1.1.1 10.0.0.1", "10.0.0.1 1.1.1.1", "1.1.1.1 ::1", "", "nonsense", "fe80::1%eth0"],
)
async def test_one_bad_address_spoils_the_name(addresses: str) -> None:
    with pytest.raises(ToolError, match=r"^x\.test has no address on the public internet"):
        await checked_addresses("x.test", names(x_test=addresses), NOTHING_OPEN)


async def test_good_addresses_are_kept_in_order_without_repetition_and_in_bounds() -> None:
    known = names(
        x_test="1.1.1.1 ::ffff:1.1.1.1 1.0.0.1", y_test="1.1.1.1 1.1.1.2 1.1.1.3 1.1.1.4 1.1.1.5"
    )
    found = await checked_addresses("x.test", known, NOTHING_OPEN)
    assert found == (ip_address("1.1.1.1"), ip_address("1.0.0.1"))
    assert len(await checked_addresses("y.test", known, NOTHING_OPEN)) == MAX_ADDRESSES


async def test_of_a_name_for_thousands_of_addresses_only_the_first_are_looked_at() -> None:
    looked_at = 0

    class Counted(Openings):
        def __contains__(self, address: Address) -> bool:
            nonlocal looked_at
            looked_at += 1
            return True

    many = " ".join(str(IPv4Address(number)) for number in range(1, 5000))
    await checked_addresses("x.test", names(x_test=many), Counted(()))
    assert looked_at == MAX_LISTED


async def test_a_numeric_host_is_not_looked_up() -> None:
    async def never(name: str) -> Sequence[str]:
        raise AssertionError(name)

    for text in ("1.1.1.1", "2606:4700::1111"):
        assert await checked_addresses(text, never, NOTHING_OPEN) == (ip_address(text),)


def test_this_machine_knows_its_own_addresses() -> None:
    assert is_own(ip_address("127.0.0.1"))
    assert not is_own(ip_address("192.0.2.1"))


async def test_an_address_of_this_machine_is_refused_even_if_it_is_public(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Probe(socket.socket):
        def connect(self, address: object) -> None:
            del address

        def getsockname(self) -> tuple[str, int]:
            return ("1.1.1.1", 9)

    monkeypatch.setattr("session_runtime.toolbox.web.lookup.socket.socket", Probe)
    with pytest.raises(ToolError, match="no address on the public internet"):
        await checked_addresses("1.1.1.1", Resolver(), NOTHING_OPEN)
    await checked_addresses("1.0.0.1", Resolver(), NOTHING_OPEN)


async def test_the_system_knows_where_localhost_is() -> None:
    assert set(await Resolver()("localhost")) <= {"127.0.0.1", "::1"}


async def test_a_name_that_no_resolver_takes_has_no_address() -> None:
    with pytest.raises(ToolError, match="no address on the public internet"):
        await checked_addresses("a" * 64 + ".test", Resolver(), NOTHING_OPEN)


async def test_a_silent_name_server_keeps_only_so_many_threads_however_often_callers_give_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silence = threading.Event()
    asked: list[str] = []

    def getaddrinfo(name: str, *_: object, **__: object) -> list[object]:
        asked.append(name)
        silence.wait()
        raise socket.gaierror

    monkeypatch.setattr("session_runtime.toolbox.web.lookup.socket.getaddrinfo", getaddrinfo)
    resolver = Resolver()
    lookups = [asyncio.create_task(resolver(f"{number}.test")) for number in range(MAX_LOOKUPS)]
    while len(asked) < MAX_LOOKUPS:  # noqa: ASYNC110 - threads have no event of the loop
        await asyncio.sleep(0)
    for lookup in lookups:
        lookup.cancel()
    await asyncio.wait(lookups)
    further = asyncio.create_task(resolver("further.test"))
    for _ in range(1000):
        await asyncio.sleep(0)
    assert "further.test" not in asked
    silence.set()
    with pytest.raises(socket.gaierror):
        await further
    assert asked[-1] == "further.test"
