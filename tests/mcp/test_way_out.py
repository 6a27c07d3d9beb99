"""What an operator reads of a server that is down names what to look at."""

import pytest

from session_runtime.config.mcp import McpServer
from session_runtime.mcp.way_out import with_way_out

COMMAND = McpServer(command="x")


@pytest.mark.parametrize(
    ("server", "error", "told"),
    [
        (COMMAND, "", ""),
        (
            COMMAND,
            "it exited with status 3",
            "it exited with status 3; 'session-runtime tools logs shop' shows what it wrote",
        ),
        (COMMAND, "mcp.servers.shop.command: no", "mcp.servers.shop.command: no"),
        (
            McpServer(url="https://shop.example:8/mcp?key=s3cret#part"),
            "ConnectError: nobody",
            "ConnectError: nobody: see mcp.servers.shop.url, https://shop.example:8/mcp",
        ),
        (
            McpServer(url="http://[::1]:8/mcp"),
            "no",
            "no: see mcp.servers.shop.url, http://[::1]:8/mcp",
        ),
    ],
)
def test_an_error_is_told_with_what_to_look_at(server: McpServer, error: str, told: str) -> None:
    assert with_way_out("shop", server, error) == told
