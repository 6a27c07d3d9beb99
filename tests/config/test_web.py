"""What an operator can say about the web, and how a mistake is told."""

import pytest

from tests.config.conftest import Reader


def test_reading_the_web_is_off_until_it_is_wanted(read: Reader) -> None:
    settings = read('[log]\nlevel = "info"\n').settings.web
    assert (settings.enabled, settings.allow_networks, settings.ports) == (False, (), (80, 443))


def test_lists_may_be_given_by_variables(read: Reader) -> None:
    env = {
        "SESSION_RUNTIME__WEB__PORTS": "80,8080",
        "SESSION_RUNTIME__WEB__DENY_HOSTS": "*.Internal.Example,10.*",
    }
    settings = read(env=env).settings.web
    assert settings.ports == (80, 8080)
    assert settings.deny_hosts == ("*.internal.example", "10.*")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (
            "ports = [80, 0]",
            "web.ports: item 2 is no port: give a number from 1 to 65535 (given: 0)",
        ),
        ("ports = [70000]", "web.ports: item 1 is no port"),
        (
            'allow_hosts = ["https://a.org"]',
            "web.allow_hosts: item 1 is no pattern of host",
        ),
        ('deny_hosts = ["bücher.example"]', "letters beyond ASCII as xn--"),
        ('deny_hosts = [""]', "web.deny_hosts: item 1 is no pattern of host names"),
        ('allow_networks = ["10.0.0.1/8"]', "web.allow_networks: item 1 is no network: 10.0"),
        ('allow_networks = ["intranet"]', "write 10.1.0.0/16 or fd00:1::/32"),
        ("timeout_s = 0", "web.timeout_s: must be more than 0"),
        ("max_bytes = 100000000", "web.max_bytes: must be at most"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_way_out(
    read: Reader, line: str, fault: str
) -> None:
    (problem,) = read.problems(f"[web]\n{line}\n")
    assert fault in problem
    assert "config.toml:2: " in problem


@pytest.mark.requirement("CFG-1")
def test_every_item_that_is_wrong_is_told_with_what_was_given(read: Reader) -> None:
    hint = (
        "is no pattern of host names: give a name alone, without https:// and without a path,"
        " * for any characters, and letters beyond ASCII as xn--..."
    )
    assert read.problems(
        '[web]\nports = [0, 80, 70000]\nallow_hosts = ["a b", "x.org", "c/d"]\n'
        'allow_networks = ["x", "10.0.0.1/8"]\n'
    ) == [
        "config.toml:2: web.ports: item 1 is no port: give a number from 1 to 65535 (given: 0)",
        "config.toml:2: web.ports: item 3 is no port: give a number from 1 to 65535 (given: 70000)",
        f'config.toml:3: web.allow_hosts: item 1 {hint} (given: "a b")',
        f'config.toml:3: web.allow_hosts: item 3 {hint} (given: "c/d")',
        "config.toml:4: web.allow_networks: item 1 is no network: 'x' does not appear to be an IPv4"
        ' or IPv6 network; write 10.1.0.0/16 or fd00:1::/32 (given: "x")',
        "config.toml:4: web.allow_networks: item 2 is no network: 10.0.0.1/8 has host bits set;"
        ' write 10.1.0.0/16 or fd00:1::/32 (given: "10.0.0.1/8")',
    ]
