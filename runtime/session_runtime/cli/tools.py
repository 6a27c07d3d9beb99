"""``tools``: what tools there are, for everybody or for one identity, and what a query finds.

How a new one is written is decided in ``new_tool``.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from session_runtime.cli import exits, import_mcp, new_tool, servers, tools_diff
from session_runtime.cli.groups import Group
from session_runtime.cli.opening import opened
from session_runtime.cli.options import (
    Files,
    file_options,
    identity_of,
    identity_options,
    json_option,
)
from session_runtime.cli.screen import first_line, print_json, print_text
from session_runtime.cli.waiting import waiting_lines
from session_runtime.errors import RequestError
from session_runtime.spelling import hint
from session_runtime.types import Identity
from session_runtime.wire import printable, to_bytes

Tool = Mapping[str, Any]

_LAYERS: Final = {
    1: "every word is in its name, group or aliases",
    2: "the query is another form of its name",
    3: "the query names it in full",
}
_PLACES: Final = {
    "name": "in its name",
    "namespace": "in its group",
    "aliases": "in its aliases",
    "hints": "in its search_hints or examples",
    "description": "in its description",
    "parameters": "in the names of its parameters",
    "parameter_descriptions": "in the descriptions of its parameters",
    "enums": "in the values that its parameters allow",
}
_NO_WORD: Final = (
    ": no tool that may be used here has enough of these words, or of what means the same:"
    " give the tool that is meant search_hints with them"
)


@click.group(name="tools", cls=Group)
def command() -> None:
    """List, show and search the tools; with an identity, those it may use. Write a new one."""


command.add_command(new_tool.command)
command.add_command(tools_diff.snapshot_command)
command.add_command(tools_diff.diff_command)
for _each in servers.COMMANDS:
    command.add_command(_each)
command.add_command(import_mcp.command)


@command.command("list", epilog=exits.TABLE)
@file_options
@json_option
@identity_options
def list_tools(files: Files, as_json: bool, **identity: Any) -> None:
    """List the tools by name."""
    tools = asyncio.run(_tools(files, identity_of(**identity)))
    if as_json:
        print_json(tools)
        return
    width = max((len(tool["name"]) for tool in tools), default=0)
    for tool in tools:
        click.echo(
            f"{tool['name']:{width}}  {_source(tool)}{_age(tool)}{first_line(tool['description'])}"
        )


@command.command("show", epilog=exits.TABLE)
@click.argument("name")
@file_options
@json_option
@identity_options
def show_tool(name: str, files: Files, as_json: bool, **identity: Any) -> None:
    """Show the tool NAME with its parameters; one that waits for an approval, with what changed."""
    tool = asyncio.run(_tool(name, files, identity_of(**identity)))
    if as_json:
        print_json(tool)
        return
    if "forms" in tool:
        click.echo(printable(f"{name} is left out: it changed and waits for an approval"))
        for line in waiting_lines(tool):
            click.echo(printable(line))
        return
    state = "" if tool["state"] == "ready" else f", {tool['state']}"
    click.echo(printable(f"{tool['name']} ({tool['origin']}, {tool['place']}{state})"))
    print_text(tool["description"])
    for line in _stated(tool):
        click.echo(printable(line))
    for parameter, schema in tool["parameters"].get("properties", {}).items():
        needed = ", required" if parameter in tool["parameters"].get("required", ()) else ""
        click.echo(printable(f"  {parameter}: {_kind(schema)}{needed}"))


@command.command("search", epilog=exits.TABLE)
@click.argument("query")
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True)
@click.option(
    "--explain", is_flag=True, help="Show what each score is made of; --json always does."
)
@file_options
@json_option
@identity_options
def search_tools(
    query: str, limit: int, explain: bool, files: Files, as_json: bool, **identity: Any
) -> None:
    """Find tools for QUERY as tool search does, best first."""
    if not query.strip():
        raise click.UsageError("QUERY is empty: give a name or a few keywords")
    found = asyncio.run(_search(files, identity_of(**identity), query, limit))
    if as_json:
        print_json(found)
        return
    for hit in found:
        click.echo(printable(f"{hit['score']:7.3f}  {hit['name']}"))
        for part in hit["parts"] if explain else ():
            if round(part["score"], 3):
                click.echo(printable(f"{part['score']:16.3f}  {_reason(part)}"))
    if not found:
        click.echo(f"nothing found{_NO_WORD if explain else ''}", err=True)


def _reason(part: Mapping[str, Any]) -> str:
    """Say what brought a part of a score."""
    match part:
        case {"field": "layer", "score": layer}:
            return _LAYERS[int(layer)]
        case {"field": "similar", "word": word}:
            return f"{word}: a synonym or a correction of it"
        case {"field": "group"}:
            return "another tool of its group matches better"
        case {"field": "phrase", "word": words}:
            return f"{words}: side by side in one of its texts"
        case _:
            return f"{part['word']}: {_PLACES.get(part['field'], part['field'])}"


def _source(tool: Tool) -> str:
    """Where a tool of a server comes from, and that it cannot be called now if so."""
    if tool["origin"] != "mcp":
        return ""
    state = "" if tool["state"] == "ready" else f" is {tool['state']}"
    return f"[{tool['source']}{state}] "


def _stated(tool: Tool) -> Iterator[str]:
    """What is stated of a tool besides its description and parameters."""
    if tool["destructive"]:
        yield "destructive: it waits for a confirmation"
    if "deprecation" in tool:
        yield _deprecation(tool["deprecation"])


def _deprecation(told: Mapping[str, Any]) -> str:
    reason = f": {told['reason']}" if told["reason"] else ""
    instead = f"; use {told['replacement']}" if told["replacement"] else ""
    return f"deprecated{reason}{instead}"


def _age(tool: Tool) -> str:
    return "(deprecated) " if tool["deprecated"] else ""


def _kind(schema: object) -> str:
    """Say in a few words which values a JSON Schema allows."""
    match schema:
        case {"enum": list(options)}:
            return " or ".join(map(_json, options))
        case {"const": value}:
            return _json(value)
        case {"anyOf": list(forms)} | {"oneOf": list(forms)}:
            return " or ".join(map(_kind, forms))
        case {"type": "array", "items": {} as items}:
            return f"array of {_kind(items)}"
        case {"type": str(name)}:
            return name
        case {"type": list(names)}:
            return " or ".join(map(str, names))
        case False:
            return "none"
        case _:
            return "any"


def _json(value: object) -> str:
    return to_bytes(value).decode()


async def _tools(files: Files, identity: Identity | None) -> list[dict[str, Any]]:
    async with opened(files) as runtime:
        return runtime.tools(identity)


async def _tool(name: str, files: Files, identity: Identity | None) -> Tool:
    async with opened(files) as runtime:
        waiting = [each.name for each in runtime.generation.servers.waiting]
        if identity is None and name in waiting:
            return runtime.approval.show(name)
        for bad in runtime.generation.catalog.quarantined if identity is None else ():
            if bad.name == name:
                raise RequestError(
                    f"tool {name!r} is left out: {bad.place}: {bad.reason}",
                    code="request.quarantined_tool",
                )
        return _named(name, runtime.tools(identity))


async def _search(
    files: Files, identity: Identity | None, query: str, limit: int
) -> list[dict[str, Any]]:
    async with opened(files) as runtime:
        index, policy = runtime.generation.index, runtime.generation.policy
        mask = index.full_mask if identity is None else policy.mask(identity)
        return index.view(mask).explain(query, limit)


def _named(name: str, tools: list[dict[str, Any]]) -> Tool:
    by_name = {tool["name"]: tool for tool in tools}
    if name in by_name:
        return by_name[name]
    way_out = hint(name, by_name, 3) or "tools list names all"
    raise RequestError(f"there is no tool {name!r}; {way_out}", code="request.unknown_tool")
