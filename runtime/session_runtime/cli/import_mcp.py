"""``tools import-mcp``: takes the servers of another program's ``mcpServers`` JSON into the file."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace as with_changes
from pathlib import Path
from typing import Final

import click

from session_runtime.cli import exits
from session_runtime.cli.config_edit import finish
from session_runtime.cli.options import Files, file_options, json_option
from session_runtime.cli.proof import proven
from session_runtime.cli.reading import json_of, reader_of
from session_runtime.config import edit as edit_file
from session_runtime.config.keys import KeyPath, dotted, sounds_secret
from session_runtime.config.mcp_json import Imported, servers_of
from session_runtime.errors import Problem, RequestError
from session_runtime.trace.redact import mask_secrets
from session_runtime.wire import printable

_PLACEHOLDER: Final = re.compile(r"\$\{[^}]*\}")


@click.command("import-mcp", epilog=exits.TABLE)
@click.argument(
    "json_file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False, exists=True)
)
@click.option("--replace", is_flag=True, help="Replace servers that the file has already.")
@click.option("--dry-run", is_flag=True, help="Check and show what would change; write nothing.")
@file_options
@json_option
def command(json_file: Path, replace: bool, dry_run: bool, files: Files, as_json: bool) -> None:
    """Take the servers in FILE, JSON with mcpServers, into [mcp.servers] of the configuration."""
    imported = _imported(json_file)
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
    edit = proven(reader, edit_file.draft(file, changes))
    told = map(Problem, _written_out(imported.servers))
    finish(with_changes(edit, warnings=(*edit.warnings, *told)), dry_run, as_json)


def _imported(path: Path) -> Imported:
    data = json_of(path, "name the file of another program that has mcpServers")
    try:
        return servers_of(data)
    except (ValueError, RequestError) as error:
        raise RequestError(f"{path}: {error}") from error


def _servers(data: Mapping[str, object]) -> set[str]:
    mcp = data.get("mcp")
    servers = mcp.get("servers") if isinstance(mcp, Mapping) else None
    return set(servers) if isinstance(servers, Mapping) else set()


def _written_out(servers: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    """What looks like a secret where a configuration is not warned of one."""
    for name, table in servers.items():
        for key, value in _texts(table):
            place = dotted(("mcp", "servers", name, *key))
            if key[0] in ("env", "headers"):
                way_out = 'write "env:NAME" or "file:/path" instead'
            else:
                way_out = "give it by env or headers, if the server takes it from there"
            if not sounds_secret(key[-1]) and _holds_secret(value):
                yield f"{place}: the secret itself is in the file; {way_out}"


def _texts(table: Mapping[str, object]) -> Iterator[tuple[KeyPath, str]]:
    for key, value in table.items():
        match value:
            case str():
                yield (key,), value
            case list():
                yield (key,), " ".join(map(str, value))
            case Mapping():
                yield from (((key, inner), str(text)) for inner, text in value.items())


def _holds_secret(text: str) -> bool:
    text = _PLACEHOLDER.sub("", text)
    return mask_secrets(text) != text
