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
            "web.ports: 0 is no port: give numbers from 1 to 65535 (given: a list)",
        ),
        ("ports = [70000]", "web.ports: 70000 is no port"),
        (
            'allow_hosts = ["https://a.org"]',
            'web.allow_hosts: "https://a.org" is no pattern of host',
        ),
        ('deny_hosts = ["bücher.example"]', "letters beyond ASCII as xn--"),
        ('deny_hosts = [""]', 'web.deny_hosts: "" is no pattern of host names'),
        ('allow_networks = ["10.0.0.1/8"]', 'web.allow_networks: "10.0.0.1/8" is no network'),
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
