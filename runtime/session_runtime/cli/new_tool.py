"""``tools new``: writes the folder of a tool that works, and says how it gets into the catalogue."""

import json
from pathlib import Path

import click

from session_runtime.app.reader import DEFAULT_CONFIG
from session_runtime.app.runtime import bundled_handlers
from session_runtime.cli import exits
from session_runtime.cli.options import Files, file_options, json_option
from session_runtime.cli.reading import looked_at, reader_of
from session_runtime.cli.screen import print_json
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import RequestError
from session_runtime.local.scaffold import write_tool
from session_runtime.wire import printable

_DEFAULT_FOLDER = Path("tools")


@click.command("new", epilog=exits.TABLE)
@click.argument("name")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    help="The folder of tools to write into; otherwise the first of [handlers] paths, or ./tools.",
)
@file_options
@json_option
def command(name: str, folder: Path | None, files: Files, as_json: bool) -> None:
    """Write the folder of a new tool NAME, such as echo or shop.price."""
    snapshot = looked_at(reader_of(files))
    paths = snapshot.settings.handlers.paths
    root = folder or next(iter(paths), _DEFAULT_FOLDER)
    if root.resolve().is_relative_to(bundled_handlers().resolve()):
        raise RequestError(
            f"{root} is where the tools are that come with session-runtime: name another folder by --dir"
        )
    try:
        tool = write_tool(root, name)
    except PermissionError as error:
        raise RequestError(
            f"{error.filename}: {error.strerror}: name another folder by --dir"
        ) from error
    in_paths = root.resolve() in [path.resolve() for path in paths]
    next_steps = (
        f"wrote {tool}: say in config.json what the tool is, and do it in handler.py",
        f"try it: session-runtime tools show {name}" if in_paths else _to_use(root, snapshot),
    )
    if as_json:
        print_json({"name": name, "folder": str(tool), "in_paths": in_paths, "next": next_steps})
        return
    for step in next_steps:
        click.echo(printable(step))


def _to_use(root: Path, snapshot: ConfigSnapshot) -> str:
    """Say which line of the configuration file takes the folder in, beside those it has."""
    file = snapshot.path or DEFAULT_CONFIG.absolute()
    named = [_relative(path, file.parent) for path in (*snapshot.settings.handlers.paths, root)]
    paths = json.dumps(named, ensure_ascii=False)
    return f"to use it, write under [handlers] in {file.name}: paths = {paths}"


def _relative(path: Path, folder: Path) -> str:
    """Write a path as the configuration file in ``folder`` would."""
    absolute = path.absolute()
    return str(absolute.relative_to(folder) if absolute.is_relative_to(folder) else absolute)
