"""``config init``, ``set``, ``unset``, ``history``, ``diff`` and ``rollback``: edits of the file itself.

They work without a daemon; one that runs notices the file by itself, and is asked before what it would
say. Nothing is written that could not be used.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from session_runtime.cli import exits
from session_runtime.cli.options import (
    Files,
    Number,
    daemon_file_options,
    file_options,
    json_option,
)
from session_runtime.cli.proof import proven
from session_runtime.cli.reading import opened_to_edit, reader_of, state_dir_of
from session_runtime.cli.screen import print_json, value_text
from session_runtime.config import edit as edit_file
from session_runtime.config.edit import Edit
from session_runtime.config.history import ELSEWHERE, FOLDER, History
from session_runtime.config.keys import KeyPath, dotted
from session_runtime.config.models import NEEDS_IT
from session_runtime.config.rollback import KEPT, draft_rollback
from session_runtime.config.starting import starting_config
from session_runtime.config.typed import typed_value
from session_runtime.config.written import REMOVED, Difference
from session_runtime.errors import ConfigError, Problem
from session_runtime.wire import printable

_dry_run = click.option(
    "--dry-run", is_flag=True, help="Check and show what would change; write nothing."
)


@click.command("init", epilog=exits.TABLE)
@click.argument("path", required=False, type=click.Path(path_type=Path))
@file_options
@json_option
def init(path: Path | None, files: Files, as_json: bool) -> None:
    """Write a configuration file with every key, its meaning and its default, commented out."""
    written = edit_file.create(path or reader_of(files).path, starting_config())
    if as_json:
        print_json({"file": str(written), "written": True})
        return
    click.echo(printable(f"wrote {written}"))


@click.command("set", epilog=exits.TABLE, context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("value")
@_dry_run
@daemon_file_options
@json_option
def set_key(key: str, value: str, dry_run: bool, files: Files, as_json: bool) -> None:
    """Give KEY, such as ask.max_steps, the new VALUE in the file; all else in it stays as it is.

    VALUE is TOML; a text needs no quotes, and a list may be separated by commas.
    """
    [path] = edit_file.keys({key: value})
    typed = typed_value(path, value)
    try:
        _edit(path, typed, dry_run, files, as_json)
    except ConfigError as error:
        raise ConfigError([*error.problems, *_together(path, value, error.problems)]) from None


def _together(path: KeyPath, value: str, problems: Iterable[Problem]) -> Iterator[Problem]:
    """How to give at once what only goes together; nothing if it is something else that is wrong."""
    beside = [each.key.rpartition(".") for each in problems if each.message.endswith(NEEDS_IT)]
    missing = [name for table, _, name in beside if table == dotted(path[:-1])]
    if missing and path[:-1]:
        given = ", ".join(
            [f"{path[-1]} = {json.dumps(value)}", *(f"{name} = ..." for name in missing)]
        )
        yield Problem(
            f"give them together: session-runtime config set {dotted(path[:-1])} '{{{given}}}'"
        )


@click.command("unset", epilog=exits.TABLE)
@click.argument("key")
@_dry_run
@daemon_file_options
@json_option
def unset_key(key: str, dry_run: bool, files: Files, as_json: bool) -> None:
    """Take KEY, or a whole table such as models.main, out of the file.

    A whole table goes with all that stands in it, comments and commented-out defaults too.
    """
    [path] = edit_file.keys({key: REMOVED})
    _edit(path, REMOVED, dry_run, files, as_json)


@click.command("history", epilog=exits.TABLE)
@daemon_file_options
@json_option
def history(files: Files, as_json: bool) -> None:
    """List the configurations that worked, the newest first."""
    folder = state_dir_of(files) / FOLDER
    entries = History(folder).entries()
    if as_json:
        print_json([{**asdict(entry), "at": _time(entry.at)} for entry in entries])
        return
    for entry in entries:
        click.echo(printable(f"{entry.number:6}  {_time(entry.at)}  {entry.digest}"))
    if not entries:
        told = f"nothing is kept in {folder}: a daemon keeps every configuration that works; {ELSEWHERE}"
        click.echo(printable(told), err=True)


@click.command("diff", epilog=exits.TABLE)
@click.argument("old", type=Number())
@click.argument("new", type=Number())
@daemon_file_options
@json_option
def diff(old: int, new: int, files: Files, as_json: bool) -> None:
    """Show what the file said otherwise in entry NEW of the history than in entry OLD."""
    found = History(state_dir_of(files) / FOLDER).diff(old, new)
    if as_json:
        print_json([asdict(difference) for difference in found])
        return
    _show(found)
    if not found:
        click.echo("no difference", err=True)


def _included(context: click.Context, option: click.Parameter, text: str | None) -> tuple[str, ...]:
    del context, option
    names = tuple(name.strip() for name in (text or "").split(",") if name.strip())
    for name in names:
        if name not in KEPT:
            raise click.BadParameter(f"{name!r} is none of {', '.join(KEPT)}")
    return names


@click.command("rollback", epilog=exits.TABLE)
@click.argument("number", type=Number())
@click.option(
    "--include",
    metavar="NAMES",
    callback=_included,
    help="Take back keys, access or both (keys,access) too; they stay as they are otherwise.",
)
@_dry_run
@daemon_file_options
@json_option
def rollback(
    number: int, include: tuple[str, ...], dry_run: bool, files: Files, as_json: bool
) -> None:
    """Make the file say what it said in entry NUMBER of the history.

    Comments stay, and so do secrets that are written out in the file.
    """
    reader = reader_of(files)
    file = edit_file.open_file(reader.path, may_be_absent=True)
    kept = History(state_dir_of(files) / FOLDER)
    planned = draft_rollback(file, kept, number, include)
    finish(proven(reader, planned.edit), dry_run, as_json, planned.left)


COMMANDS: Final = (init, set_key, unset_key, history, diff, rollback)
"""To be added to the group ``config``."""


def _edit(path: tuple[str, ...], value: object, dry_run: bool, files: Files, as_json: bool) -> None:
    reader = reader_of(files)
    drafted = edit_file.draft(opened_to_edit(reader), {path: value})
    finish(proven(reader, drafted), dry_run, as_json)


def finish(edit: Edit, dry_run: bool, as_json: bool, left: Sequence[str] = ()) -> None:
    """Write the edit unless it is only to be shown, and tell what was done."""
    if not dry_run:
        edit_file.write(edit)
    written = not (dry_run or edit.changes_nothing)
    for warning in edit.warnings:
        click.echo(f"warning: {printable(str(warning))}", err=True)
    if as_json:
        print_json(_described(edit, written, left))
        return
    _show(edit.differences)
    for name in left:
        click.echo(f"left as in the file: {name} (--include {name} takes it back too)", err=True)
    done = "nothing to change in" if edit.changes_nothing else "would write" if dry_run else "wrote"
    click.echo(printable(f"{done} {edit.file.place}"))


def _described(edit: Edit, written: bool, left: Sequence[str]) -> dict[str, Any]:
    return {
        "file": str(edit.file.place),
        "written": written,
        "changes": [asdict(difference) for difference in edit.differences],
        "left": list(left),
        "warnings": [str(warning) for warning in edit.warnings],
    }


def _show(differences: Iterable[Difference]) -> None:
    for each in differences:
        acts = "" if each.acts is None else f"  # acts: {each.acts}"
        click.echo(printable(f"{each.key}: {value_text(each.old)} -> {value_text(each.new)}{acts}"))


def _time(at: Any) -> str:
    return str(at.isoformat(timespec="seconds"))
