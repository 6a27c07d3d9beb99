"""``tools import-mcp``: takes the servers of another program's ``mcpServers`` JSON into the file."""

from collections.abc import Mapping
from pathlib import Path

import click

from session_runtime.cli.config_edit import finish
from session_runtime.cli.options import Files, file_options, json_option
from session_runtime.cli.proof import proven
from session_runtime.cli.reading import reader_of
from session_runtime.config import edit as edit_file
from session_runtime.config.keys import KeyPath
from session_runtime.config.mcp_json import servers_of
from session_runtime.errors import RequestError
from session_runtime.wire import parse_json, printable


@click.command("import-mcp")
@click.argument(
    "json_file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False, exists=True)
)
@click.option("--replace", is_flag=True, help="Replace servers that the file has already.")
@click.option("--dry-run", is_flag=True, help="Check and show what would change; write nothing.")
@file_options
@json_option
def command(json_file: Path, replace: bool, dry_run: bool, files: Files, as_json: bool) -> None:
    """Take the servers in FILE, JSON with mcpServers, into [mcp.servers] of the configuration."""
    imported = servers_of(parse_json(json_file.read_bytes()))
    for note in imported.notes:
        click.echo(f"note: {printable(note)}", err=True)
    reader = reader_of(files)
    file = edit_file.open_file(reader.path)
    known = _servers(file.data)
    if not imported.servers:
        raise RequestError(f"no server of {json_file} can be used")
    if not replace and (twice := sorted(known & imported.servers.keys())):
        raise RequestError(
            f"the configuration has {', '.join(twice)} already: --replace takes the new ones"
        )
    changes: dict[KeyPath, object] = {
        ("mcp", "servers", name): table for name, table in imported.servers.items()
    }
    finish(proven(reader, edit_file.draft(file, changes)), dry_run, as_json)


def _servers(data: Mapping[str, object]) -> set[str]:
    mcp = data.get("mcp")
    servers = mcp.get("servers") if isinstance(mcp, Mapping) else None
    return set(servers) if isinstance(servers, Mapping) else set()
