"""``tools snapshot`` and ``tools diff``: what tools there are, to be kept, and what changed since (RTE-12).

What counts as a breaking change is decided in ``registry/snapshot``.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from session_runtime.cli import exits
from session_runtime.cli.opening import opened
from session_runtime.cli.options import Files, file_options, json_option
from session_runtime.cli.reading import json_of
from session_runtime.cli.screen import one_line, print_json, print_text
from session_runtime.errors import RequestError, TransientError
from session_runtime.generation import Generation
from session_runtime.mcp.kept_lists import lists_to_json
from session_runtime.registry.snapshot import ToolChange, compare, read_snapshot, snapshot
from session_runtime.types import JsonObject

SAME: Final = 0
COMPATIBLE: Final = 1
BREAKING: Final = 2

_CODES: Final = """\b
Exit codes:
  0    nothing changed
  1    what changed breaks nobody: new tools, other descriptions, more that is taken
  2    something breaks callers: a tool or parameter is gone, required or narrower, or destructive now
  64   a file is no snapshot, or cannot be read
  69   a server is not there, so that its tools are not known
  78   the configuration is wrong"""


@click.command("snapshot", epilog=exits.TABLE)
@click.option(
    "--servers", is_flag=True, help="Write what each server lists instead, for replay --tools."
)
@file_options
@json_option
def snapshot_command(servers: bool, files: Files, as_json: bool) -> None:
    """Write all tools as JSON, the same for the same tools: keep it beside the configuration."""
    found = asyncio.run(_now(files, _lists if servers else _tools))
    if as_json:
        print_json(found)
        return
    print_text(json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False))


@click.command("diff", epilog=_CODES)
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", required=False, type=click.Path(path_type=Path))
@file_options
@json_option
def diff_command(old: Path, new: Path | None, files: Files, as_json: bool) -> int:
    """Compare the snapshots OLD and NEW, or OLD and the tools that there are now."""
    before = _read(old)
    after = asyncio.run(_now(files, _tools)) if new is None else _read(new)
    changes = compare(before, after)
    code = _code(changes)
    if as_json:
        print_json(
            {
                "verdict": ("same", "compatible", "breaking")[code],
                "changes": [asdict(change) for change in changes],
            }
        )
        return code
    for change in changes:
        click.echo(one_line(f"{change.weight:10}  {change.tool} {change.what}"))
    return code


def _code(changes: tuple[ToolChange, ...]) -> int:
    if any(change.weight == "breaking" for change in changes):
        return BREAKING
    return COMPATIBLE if changes else SAME


def _read(path: Path) -> JsonObject:
    data = json_of(path, "tools snapshot writes one that tools diff can read")
    try:
        return read_snapshot(data)
    except ValueError as error:
        raise RequestError(f"{path}: {error}") from error


async def _now(files: Files, of: Callable[[Generation], JsonObject]) -> JsonObject:
    """The tools of the configuration; raises TransientError if a server of them is not there."""
    async with opened(files) as runtime:
        missing = runtime.generation.servers.missing
        if missing:
            raise TransientError(
                f"the tools of {', '.join(missing)} are not known, as the server is not there now",
                code="mcp.down",
            )
        return of(runtime.generation)


def _tools(generation: Generation) -> JsonObject:
    return snapshot(generation.catalog.specs)


def _lists(generation: Generation) -> JsonObject:
    return lists_to_json(generation.servers)
