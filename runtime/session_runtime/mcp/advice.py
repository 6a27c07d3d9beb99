"""What an operator should know of a server's list: words about tools that are not there, missing words."""

from collections.abc import Collection, Iterator
from typing import Final

from session_runtime.config.keys import dotted
from session_runtime.config.mcp import McpTool
from session_runtime.mcp.base import Definition
from session_runtime.mcp.naming import Listed
from session_runtime.spelling import hint

MOST_TOLD: Final = 5


def advice(server: Listed) -> Iterator[str]:
    """What an operator should know of a list; names are those of the server."""
    if not server.listings:
        return
    definitions = {
        tool.name: tool for listing in server.listings.values() for tool in listing.tools
    }
    bad = {each.name for listing in server.listings.values() for each in listing.refused}
    for name, words in server.settings.tools.items():
        key = dotted(("mcp", "servers", server.name, "tools", name))
        if name not in definitions and name not in bad:
            yield f"{key}: {_no_such_tool(name, definitions)}"
        elif name in definitions and not _knows(definitions[name], words.idempotency_key):
            yield f"{key}.idempotency_key: the tool has no argument {words.idempotency_key!r}"
    bare = [
        name
        for name, tool in definitions.items()
        if not (tool.description or server.settings.tools.get(name, McpTool()).description)
    ]
    if bare:
        few = ", ".join(repr(name[:100]) for name in bare[:MOST_TOLD])
        more = f" and {len(bare) - MOST_TOLD} more" if len(bare) > MOST_TOLD else ""
        yield (
            f"{server.key}: tools without a description are hardly found: {few}{more}; give them one"
            f" under {server.key}.tools"
        )


def _no_such_tool(name: str, definitions: Collection[str]) -> str:
    way_out = hint(name, definitions)
    return f"the server lists no tool of that name{f'; {way_out}' if way_out else ''}"


def _knows(definition: Definition, argument: str | None) -> bool:
    return argument is None or argument in definition.parameters.get("properties", {})
