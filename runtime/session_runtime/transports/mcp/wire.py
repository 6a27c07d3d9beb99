"""How tools and outcomes look in MCP; imported late, as the SDK takes a second to be imported."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from session_runtime.registry.spec import ToolSpec
from session_runtime.transports.mcp.outcome import Outcome

TOOLS_PER_PAGE: Final = 100


def page(specs: Sequence[ToolSpec], cursor: str | None) -> types.ListToolsResult:
    """The tools after the one that ``cursor`` names, in wire order; the first ones without a cursor.

    Raises MCPError for a cursor whose tool is not listed any more.
    """
    first = 0 if cursor is None else _after(specs, cursor)
    shown = specs[first : first + TOOLS_PER_PAGE]
    more = first + len(shown) < len(specs)
    return types.ListToolsResult(
        tools=[_tool(spec) for spec in shown], next_cursor=shown[-1].name if more else None
    )


def _after(specs: Sequence[ToolSpec], cursor: str) -> int:
    for position, spec in enumerate(specs):
        if spec.name == cursor:
            return position + 1
    raise MCPError(
        types.INVALID_PARAMS, "the list has changed since this cursor: list from the start"
    )


def _tool(spec: ToolSpec) -> types.Tool:
    """A tool under its canonical name; all hints are given, as an absent one would mean the worst."""
    hints = spec.annotations
    parameters = _plain(spec.parameters)
    return types.Tool(
        name=spec.name,
        description=spec.description,
        input_schema={**parameters, "type": "object"},
        annotations=types.ToolAnnotations(
            read_only_hint=hints.read_only,
            destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent or hints.read_only,
        ),
    )


def _plain(value: Any) -> Any:
    """The same data in dicts and lists, which the SDK asks for."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def result(outcome: Outcome) -> types.CallToolResult:
    """An outcome as the client gets it: messages, then the result; whatever did not run is an error."""
    content: list[types.ContentBlock] = [
        types.TextContent(text=f"Message to the person: {message}") for message in outcome.messages
    ]
    if outcome.image is None:
        content.append(types.TextContent(text=outcome.text))
    else:
        data = base64.b64encode(outcome.image.data).decode("ascii")
        content.append(types.ImageContent(data=data, mime_type=outcome.image.media_type))
    structured = None if outcome.structured is None else dict(outcome.structured)
    return types.CallToolResult(
        content=content, structured_content=structured, is_error=outcome.status != "ok"
    )
