"""What servers list as plain data, to be kept in a file and used where no server can be asked (OPS-2).

How a list is got from a server is decided in ``discover`` and ``listed``.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from session_runtime.mcp.base import Definition, Listing
from session_runtime.mcp.pool import Known
from session_runtime.mcp.servers import Servers
from session_runtime.types import JsonObject

_VERSION: Final = 1
_TEXTS: Final = ("name", "description", "digest", "schema_digest")


def lists_to_json(servers: Servers) -> JsonObject:
    """The usable tools of each server by credential; the same for the same lists."""
    return {
        "version": _VERSION,
        "servers": {
            server.name: {
                credential: [asdict(tool) for tool in sorted(listing.tools, key=lambda t: t.name)]
                for credential, listing in server.listings.items()
            }
            for server in servers.listed
        },
    }


def lists_from_json(data: object) -> Known:
    """Check what ``lists_to_json`` once gave; ValueError for anything else."""
    match data:
        case {"version": 1, "servers": dict(servers)}:
            return {
                (name, credential): Listing(tuple(map(_definition, tools)), (), 0.0)
                for name, lists in _named(servers)
                for credential, tools in _named(lists)
                if isinstance(tools, list)
            }
    raise ValueError("it holds no lists of servers: make it by tools snapshot --servers")


def _named(table: object) -> list[tuple[str, Any]]:
    if not isinstance(table, Mapping):
        raise ValueError("a server has no table of lists")
    return [(str(name), value) for name, value in table.items()]


def _definition(tool: object) -> Definition:
    if not isinstance(tool, dict):
        raise ValueError("a tool is no object")
    texts = {key: text for key in _TEXTS if isinstance(text := tool.get(key), str)}
    if len(texts) < len(_TEXTS):
        raise ValueError(f"a tool needs the texts {', '.join(_TEXTS)}")
    parameters, output = tool.get("parameters"), tool.get("output")
    if not isinstance(parameters, dict) or not (output is None or isinstance(output, dict)):
        raise ValueError(f"the tool {texts['name']!r} needs a schema as parameters")
    destructive = tool.get("destructive") is True
    return Definition(**texts, parameters=parameters, output=output, destructive=destructive)
