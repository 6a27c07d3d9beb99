"""``tools``: what tools there are, for everybody or for one identity, and what a query finds."""

import asyncio
import difflib
from collections.abc import Mapping
from typing import Any

import click

from session_runtime.app.runtime import Runtime
from session_runtime.cli.opening import opened
from session_runtime.cli.options import config_option, identity_of, identity_options, json_option
from session_runtime.cli.screen import first_line, print_json, print_text
from session_runtime.errors import RequestError
from session_runtime.types import Identity
from session_runtime.wire import printable

Tool = Mapping[str, Any]


@click.group(name="tools")
def command() -> None:
    """List, show and search the tools; with an identity, those it may use."""


@command.command("list")
@config_option
@json_option
@identity_options
def list_tools(config: str | None, as_json: bool, **identity: Any) -> None:
    """List the tools by name."""
    tools = asyncio.run(_tools(config, identity_of(**identity)))
    if as_json:
        print_json(tools)
        return
    width = max((len(tool["name"]) for tool in tools), default=0)
    for tool in tools:
        click.echo(f"{tool['name']:{width}}  {first_line(tool['description'])}")


@command.command("show")
@click.argument("name")
@config_option
@json_option
@identity_options
def show_tool(name: str, config: str | None, as_json: bool, **identity: Any) -> None:
    """Show the tool NAME with its parameters."""
    tool = asyncio.run(_tool(name, config, identity_of(**identity)))
    if as_json:
        print_json(tool)
        return
    click.echo(f"{tool['name']} ({tool['origin']}, {printable(tool['source'])})")
    print_text(tool["description"])
    for parameter, schema in tool["parameters"].get("properties", {}).items():
        needed = ", required" if parameter in tool["parameters"].get("required", ()) else ""
        kind = schema.get("type", "any") if isinstance(schema, Mapping) else "any"
        click.echo(printable(f"  {parameter}: {kind}{needed}"))


@command.command("search")
@click.argument("query")
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True)
@config_option
@json_option
@identity_options
def search_tools(
    query: str, limit: int, config: str | None, as_json: bool, **identity: Any
) -> None:
    """Find tools for QUERY as tool search does, best first, with what each word brought."""
    found = asyncio.run(_search(config, identity_of(**identity), query, limit))
    if as_json:
        print_json(found)
        return
    for hit in found:
        click.echo(f"{hit['score']:7.3f}  {hit['name']}")
    if not found:
        click.echo("nothing found", err=True)


async def _tools(config: str | None, identity: Identity | None) -> list[dict[str, Any]]:
    async with opened(config) as runtime:
        return runtime.tools(identity)


async def _tool(name: str, config: str | None, identity: Identity | None) -> Tool:
    async with opened(config) as runtime:
        for bad in runtime.generation.catalog.quarantined if identity is None else ():
            if bad.name == name:
                raise RequestError(
                    f"tool {name!r} is left out: {bad.place}: {bad.reason}",
                    code="request.quarantined_tool",
                )
        return _named(name, runtime.tools(identity))


async def _search(
    config: str | None, identity: Identity | None, query: str, limit: int
) -> list[dict[str, object]]:
    async with opened(config) as runtime:
        view = runtime.generation.index.view(_mask(runtime, identity))
        return view.explain(query, limit)


def _mask(runtime: Runtime, identity: Identity | None) -> int:
    if identity is None:
        return (1 << len(runtime.generation.catalog.specs)) - 1
    return runtime.generation.policy.mask(identity)


def _named(name: str, tools: list[dict[str, Any]]) -> Tool:
    by_name = {tool["name"]: tool for tool in tools}
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(name, by_name, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; tools list names all"
    raise RequestError(f"there is no tool {name!r}{hint}", code="request.unknown_tool")
