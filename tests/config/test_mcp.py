"""What an operator can say about servers of tools, and how a mistake is told."""

import pytest

from tests.config.conftest import Reader

TWO = """\
[mcp.servers.shop]
command = "shop-server"
args = ["--read-only"]
cwd = "servers"
env = { SHOP_URL = "https://shop.example", SHOP_TOKEN = "env:SHOP_TOKEN" }
[mcp.servers.shop.credentials.staff]
roles = ["staff"]
env = { SHOP_TOKEN = "env:STAFF_TOKEN" }
[mcp.servers.shop.tools.delete_order]
destructive = true
hard_timeout_s = 5.0
[mcp.servers.maps]
url = "https://maps.example/mcp"
headers = { Authorization = "env:MAPS_TOKEN" }
"""
ENV = {"SHOP_TOKEN": "s-1", "STAFF_TOKEN": "s-2", "MAPS_TOKEN": "Bearer m-3"}


def test_a_server_is_a_command_or_an_address_and_values_are_fetched(read: Reader) -> None:
    servers = read(TWO, env=ENV).settings.mcp.servers
    shop, maps = servers["shop"], servers["maps"]
    assert (shop.command, shop.args) == ("shop-server", ("--read-only",))
    assert shop.cwd == read.folder / "servers"
    assert shop.env["SHOP_TOKEN"].get_secret_value() == "s-1"
    assert shop.credentials["staff"].env["SHOP_TOKEN"].get_secret_value() == "s-2"
    assert shop.tools["delete_order"].destructive is True
    assert maps.headers["Authorization"].get_secret_value() == "Bearer m-3"
    assert list(servers) == ["shop", "maps"]


@pytest.mark.requirement("CFG-4")
def test_no_secret_of_a_server_is_shown_or_part_of_the_digest(read: Reader) -> None:
    snapshot = read(TWO, env=ENV)
    other = read(TWO, env={**ENV, "SHOP_TOKEN": "another"})
    assert snapshot.digest == other.digest
    assert not [secret for secret in ENV.values() if secret in repr(snapshot.settings)]


@pytest.mark.requirement("CFG-2")
def test_every_key_of_a_server_can_be_given_by_a_variable(read: Reader) -> None:
    env = {
        **ENV,
        "SESSION_RUNTIME__MCP__SERVERS__SHOP__MAX_CONCURRENCY": "2",
        "SESSION_RUNTIME__MCP__SERVERS__SHOP__TOOLS__DELETE_ORDER__ENABLED": "false",
        "SESSION_RUNTIME__MCP__SERVERS__NEW__URL": "http://127.0.0.1:9/mcp",
    }
    servers = read(TWO, env=env).settings.mcp.servers
    assert servers["shop"].max_concurrency == 2
    assert servers["shop"].tools["delete_order"].enabled is False
    assert servers["new"].url == "http://127.0.0.1:9/mcp"


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("[mcp.servers.a]\nargs = []", "mcp.servers.a: the server needs command or url"),
        (
            '[mcp.servers.a]\ncommand = "x"\nurl = "http://h/mcp"',
            "mcp.servers.a.url: cannot stand beside command: a server has one of the two",
        ),
        (
            '[mcp.servers.a]\nurl = "http://h/mcp"\nargs = ["x"]',
            "mcp.servers.a: the server has a url, so that args would have no effect",
        ),
        (
            '[mcp.servers.a]\ncommand = "x"\nheaders = { A = "b" }',
            "mcp.servers.a: the server has a command, so that headers would have no effect",
        ),
        (
            '[mcp.servers.a]\nurl = "ftp://h"',
            "mcp.servers.a.url: must be an address that begins with http:// or https://",
        ),
        (
            '[mcp.servers.a]\nurl = "https://me:pw@h/mcp"',
            "mcp.servers.a.url: must hold no user or password: give them as headers",
        ),
        (
            '[mcp.servers."a.b"]\ncommand = "x"',
            "cannot name a server: use up to 48 letters, digits, _ and -",
        ),
        (
            '[mcp.servers.a]\ncommand = "x"\nidle_timeout_s = 9.0\nhard_timeout_s = 8.0',
            "mcp.servers.a: idle_timeout_s must not be longer than hard_timeout_s",
        ),
        (
            '[mcp.servers.a]\ncommand = "x"\n[mcp.servers.a.credentials.c]\nenv = { A = "b" }',
            "mcp.servers.a.credentials.c: the credential needs roles, users or channels",
        ),
        (
            '[mcp.servers.a]\ncommand = "x"\nenv = { "A=B" = "c" }',
            "cannot name a variable: it must not be empty or hold =",
        ),
        ('[mcp.servers.a]\ncomand = "x"', "did you mean command?"),
        (
            '[mcp.servers.a]\ncommand = "x"\ncredentials_only = true',
            "mcp.servers.a: credentials_only leaves nobody who could use the server: add credentials",
        ),
        (
            '[mcp.servers.a]\ncommand = ["npx", "-y", "x"]',
            "mcp.servers.a.command: must be the program alone, as text; what follows it goes into args"
            " (given: a list)",
        ),
        ('[mcpServers.a]\ncommand = "x"', "did you mean mcp.servers?"),
        ('[mcp_servers.a]\ncommand = "x"', "did you mean mcp.servers?"),
        ('[servers.a]\ncommand = "x"', "did you mean mcp.servers?"),
        ('[mcp.a]\ncommand = "x"', "did you mean mcp.servers.a?"),
        ('[shop]\nurl = "http://h/mcp"', "did you mean mcp.servers.shop?"),
        ('[mcp.servers.a]\ncommand = "x"\nnaming = "short"', "prefix"),
    ],
)
def test_a_mistake_is_told_with_its_key_and_the_way_out(
    read: Reader, lines: str, fault: str
) -> None:
    problems = read.problems(f"{lines}\n")
    assert [problem for problem in problems if fault in problem], problems


@pytest.mark.requirement("CFG-4")
def test_a_password_in_an_address_is_never_repeated(read: Reader) -> None:
    (problem,) = read.problems('[mcp.servers.a]\nurl = "https://me:hunter2@h/mcp"\n')
    assert "hunter2" not in problem
