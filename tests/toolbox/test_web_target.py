"""An address means one place, however it is written, or it is refused with the reason."""

import socket
from collections.abc import Callable
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import ToolError
from session_runtime.toolbox.web.target import MAX_URL_CHARS, Target, parse_target, redirected

pytestmark = pytest.mark.requirement("SEC-2")


def unless_refused(parse: Callable[[], Target]) -> Target | None:
    """What ``parse`` gives, None if it says that this is no address."""
    try:
        return parse()
    except ToolError as error:
        if error.code != "web.invalid_url":
            raise
        return None


def parsed(text: str) -> Target | None:
    """The address that a text is, if it is one."""
    return unless_refused(lambda: parse_target(text))


@pytest.mark.parametrize(
    ("text", "target", "url"),
    [
        ("http://a.org", Target("http", "a.org", 80, b"/"), "http://a.org/"),
        (" HTTPS://A.org:443/x ", Target("https", "a.org", 443, b"/x"), "https://a.org/x"),
        ("http://a.org:443", Target("http", "a.org", 443, b"/"), "http://a.org:443/"),
        ("http://a.org.:/", Target("http", "a.org", 80, b"/"), "http://a.org/"),
        ("http://a_b.org/?q=1#x", Target("http", "a_b.org", 80, b"/?q=1"), "http://a_b.org/?q=1"),
        (
            "https://bücher.example/ü ü?a=ß",
            Target("https", "xn--bcher-kva.example", 443, b"/%C3%BC%20%C3%BC?a=%C3%9F"),
            "https://xn--bcher-kva.example/%C3%BC%20%C3%BC?a=%C3%9F",
        ),
        ("http://例子.测试", Target("http", "xn--fsqu00a.xn--0zwm56d", 80, b"/"),
         "http://xn--fsqu00a.xn--0zwm56d/"),
        ("http://1.2.3.4:81", Target("http", "1.2.3.4", 81, b"/"), "http://1.2.3.4:81/"),
        ("http://[2606:4700:0::1]/", Target("http", "2606:4700::1", 80, b"/"), "http://[2606:4700::1]/"),
        ("http://a.org/../../etc", Target("http", "a.org", 80, b"/etc"), "http://a.org/etc"),
    ],
)  # fmt: skip
def test_addresses_that_can_be_read(text: str, target: Target, url: str) -> None:
    parsed = parse_target(text)
    assert (parsed, parsed.url) == (target, url)
    assert parse_target(url) == target


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must begin with https:// or http://"),
        ("a.org/x", "must begin with"),
        ("//a.org/x", "must begin with"),
        ("ftp://a.org", "must begin with"),
        ("file:///etc/passwd", "must begin with"),
        ("javascript:alert(1)", "must begin with"),
        ("http:a.org", "no name of the internet"),
        ("http:///x", "no name of the internet"),
        ("http://", "no name of the internet"),
        ("http://.", "no name of the internet"),
        ("http://a..org", "no name of the internet"),
        ("http://exa%6dple.org", "no name of the internet"),
        ("http://a.org\\@b.org", "a name or password before an @"),
        ("http://a b.org", "no name of the internet"),
        ("http://" + "a." * 130 + "org", "no name of the internet"),
        ("http://user@a.org", "a name or password before an @"),
        ("http://user:pass@a.org", "a name or password before an @"),
        ("http://a.org:port/", "not written as one"),
        ("http://a.org/\r\nHost: b.org", "not written as one"),
        ("http://a.org/\0", "not written as one"),
        ("http://256.1.1.1", "not written as one"),
        ("http://[1.2.3.4]", "not written as one"),
        ("http://[::1", "not written as one"),
        ("http://２.example/\ud800", "not written as one"),
        ("http://2130706433", "its host is a number"),
        ("http://0x7f000001", "its host is a number"),
        ("http://127.1", "its host is a number"),
        ("http://0177.0.0.1", "not written as one"),
        ("http://[fe80::1%25eth0]", "a network card"),
        ("http://[fe80::1%25ü]", "not written as one"),
        ("http://a.org:0", "its port is no number from 1 to 65535"),
        ("http://a.org:65536", "its port is no number from 1 to 65535"),
        ("http://a.org:-1", "its port is no number from 1 to 65535"),
        ("http://a.org/" + "x" * MAX_URL_CHARS, f"longer than {MAX_URL_CHARS} characters"),
    ],
)
def test_what_is_no_address_is_told_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(
        ToolError, match=f"This is no address that can be read: .*({why})"
    ) as caught:
        parse_target(text)
    assert caught.value.code == "web.invalid_url"


def spelt(address: IPv4Address, parts: int, bases: list[str]) -> str:
    """The address in one of the forms that inet_aton takes: ``parts`` numbers, in any base."""
    whole = int(address)
    numbers = [whole >> (24 - 8 * place) & 0xFF for place in range(parts - 1)]
    numbers.append(whole & (1 << (8 * (5 - parts))) - 1)
    forms = {"hex": hex, "HEX": lambda n: f"0X{n:X}", "octal": lambda n: f"0{n:o}", "decimal": str}
    return ".".join(forms[base](number) for base, number in zip(bases, numbers, strict=False))


BASES = st.lists(st.sampled_from(["hex", "HEX", "octal", "decimal"]), min_size=4, max_size=4)


@given(
    st.integers(0, 2**32 - 1).map(IPv4Address), st.integers(1, 4), BASES, st.sampled_from(["", "."])
)
def test_no_spelling_of_a_number_means_another_host_than_it_says(
    address: IPv4Address, parts: int, bases: list[str], end: str
) -> None:
    text = spelt(address, parts, bases)
    assert socket.inet_aton(text) == address.packed
    target = parsed(f"http://{text}{end}/")
    assert target is None or target.host == text == str(address)


@given(st.text("0123456789abcdefxX.:[]%@/\\ １。", max_size=20))
def test_a_host_that_the_system_takes_for_a_number_is_refused_or_plain(text: str) -> None:
    target = parsed(f"http://{text}/")
    if target is None:
        return
    try:
        packed = socket.inet_aton(target.host)
    except (OSError, UnicodeError):
        return
    assert str(IPv4Address(packed)) == target.host


# Text of any kind, and text of the characters that parts of addresses begin and end with.
ANY = st.text(max_size=80) | st.text(
    "a1.:/?#[]@%\\-_xX é。１٣\u200d\u00ad\ud800\t\r\0", max_size=20
)
ORIGINS = st.sampled_from(
    [
        "http://a.org/x/y?z",
        "http://[2606:4700::1]:8443/a",
        "http://a.org//b",
        "http://a.org/" + "é" * 3980,
    ]
)


@given(ANY)
def test_any_text_is_an_address_or_a_reason(text: str) -> None:
    for attempt in (text, f"http://{text}", f"http://[{text}", f"https://a.org{text}"):
        target = parsed(attempt)
        if target is not None:
            assert 0 < target.port < 65536
            assert target.url.isascii()
            assert target.url.isprintable()


@given(ORIGINS, ANY)
def test_any_text_redirects_somewhere_or_nowhere(origin: str, text: str) -> None:
    for location in (text, f"//{text}", f"//[{text}", f"http://{text}", f"http:////{text}"):
        target = unless_refused(lambda at=location: redirected(parse_target(origin), at))
        assert target is None or (target.scheme in ("http", "https") and 0 < target.port < 65536)


@pytest.mark.parametrize("location", ["http:////[x", "//[::1", "http:////x[_a]。。:["])
def test_a_redirect_to_what_is_no_address_is_told_as_one(location: str) -> None:
    with pytest.raises(ToolError, match="redirects to something that is no address") as caught:
        redirected(parse_target("http://a.org/"), location)
    assert caught.value.code == "web.invalid_url"


@pytest.mark.parametrize("host", ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]"])
def test_a_mapped_address_is_known_by_its_plain_form_to_every_rule(host: str) -> None:
    assert parse_target(f"http://{host}/").host == "127.0.0.1"
