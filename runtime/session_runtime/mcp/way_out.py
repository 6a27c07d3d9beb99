"""What an operator can look at when a server is down; none of it is for models."""

from urllib.parse import urlsplit

from session_runtime.config.keys import dotted
from session_runtime.config.mcp import McpServer


def with_way_out(name: str, server: McpServer, error: str) -> str:
    """The ``error`` of a server, and the command or the key that tells more of it."""
    key = dotted(("mcp", "servers", name))
    if not error or error.startswith(f"{key}."):
        return error  # it names a key already
    if server.url is None:
        return f"{error}; 'session-runtime tools logs {name}' shows what it wrote"
    return f"{error}: see {key}.url, {_address(server.url)}"


def _address(url: str) -> str:
    """An address without its query, which may hold a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"
