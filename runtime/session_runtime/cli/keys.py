"""``keys``: makes, lists and removes the keys that let callers in, in the configuration file (NET-2)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import click

from session_runtime.app.reader import ConfigReader
from session_runtime.cli import exits
from session_runtime.cli.groups import Group
from session_runtime.cli.options import Files, daemon_file_options, json_option
from session_runtime.cli.proof import KEYS, NO_KEY, OPEN, STILL_IN, proven
from session_runtime.cli.reading import Look, looked_at, opened_to_edit, reader_of
from session_runtime.cli.screen import print_json
from session_runtime.config.edit import ConfigFile, draft, judged, open_file, write
from session_runtime.config.http import HttpKey
from session_runtime.config.rewrite import rewritten
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.config.written import REMOVED, value_at
from session_runtime.errors import ConfigError, RequestError
from session_runtime.registry.keyring import hash_of, new_key
from session_runtime.spelling import hint
from session_runtime.wire import printable

_DEFAULTS: Final = b"# defaults alone\n"
_SHOWN_DIGITS: Final = 8
_OPEN_ONLY_WITH_KEYS: Final = frozenset({"http.host", "mqtt.url"})


@click.group(name="keys", cls=Group)
def command() -> None:
    """Make, list and remove the keys that let callers in; see [http.keys]."""


@command.command("add", epilog=exits.TABLE)
@click.argument("name")
@click.option("--role", "roles", metavar="NAME", multiple=True, help="May be repeated.")
@click.option(
    "--act-for", metavar="PATTERN", multiple=True, help="Users it may act for; may be repeated."
)
@click.option("--channel", metavar="NAME", help="Channel of the principal.")
@click.option("--group", metavar="NAME", help="Group of the principal.")
@click.option("--write", "to_file", is_flag=True, help="Add it to the configuration file.")
@daemon_file_options
@json_option
def add_key(name: str, files: Files, to_file: bool, as_json: bool, **more: Any) -> None:
    """Make a key for the principal NAME and print it, this once; the file gets its hash only.

    Without --write, the lines to add to the file go to the error stream.
    """
    reader = reader_of(files)
    file = opened_to_edit(reader) if to_file else _opened_to_show(reader)
    key = new_key()
    entry = {"hash": hash_of(key), **_given(more)}
    _expect_new(name, value_at(file.data, (*KEYS, name)) is not REMOVED)
    edit = draft(file, {(*KEYS, name): entry})
    # what the file says without the key need be no good: some of it is allowed only where there are keys
    snapshot = Look(reader)(edit.content) if to_file else looked_at(reader, edit.content)
    origins = {each.origin.kind for each in snapshot.provenance[(*KEYS, name, "hash")]}
    _expect_new(name, bool(origins - {"config", "default"}))
    if to_file:
        write(proven(reader, edit))
    else:
        judged(edit, Look(reader))
    if as_json:
        print_json({"name": name, "key": key, "hash": entry["hash"], "written": to_file})
        return
    click.echo(key)
    click.echo(_what_next(file, name, entry, to_file), err=True)
    mqtt = snapshot.settings.mqtt
    if mqtt.enabled and name not in mqtt.signers:
        click.echo(f"to ask by MQTT it needs a signing secret too: [mqtt.signers.{name}]", err=True)


def _expect_new(name: str, is_there: bool) -> None:
    if is_there:
        raise RequestError(f"there is a key of {name!r} already: keys revoke it, or choose a name")


def _opened_to_show(reader: ConfigReader) -> ConfigFile:
    """Read the file that lines are shown for; an empty one says as little as none, as it stays as it is.

    To write into it, or to start with it, is another matter: there it may be what a failed save left (REL-2).
    """
    file = open_file(reader.path, may_be_absent=True)
    return replace(file, content=_DEFAULTS) if file.content is not None and file.is_blank else file


@command.command("list", epilog=exits.TABLE)
@daemon_file_options
@json_option
def list_keys(files: Files, as_json: bool) -> None:
    """List the principals with what they may be and do, and the beginning of each hash."""
    keys = looked_at(reader_of(files)).settings.http.keys
    listed = [_shown(name, key) for name, key in keys.items()]
    if as_json:
        print_json(listed)
        return
    width = max(map(len, keys), default=0)
    for each in listed:
        roles, act_for = (", ".join(each[part]) or "-" for part in ("roles", "act_for"))
        line = f"{each['name']:{width}}  {each['hash']}  roles: {roles}  acts for: {act_for}"
        click.echo(printable(line))
    if not listed:
        click.echo("there are no keys: this machine alone may call", err=True)


@command.command("revoke", epilog=exits.TABLE)
@click.argument("name")
@click.option("--last", is_flag=True, help="Do it even if no key is left then.")
@daemon_file_options
@json_option
def revoke_key(name: str, last: bool, files: Files, as_json: bool) -> None:
    """Remove the key of the principal NAME from the configuration file.

    Without any key, everybody on this machine may call, and is an administrator: see --last.
    """
    reader = reader_of(files)
    file = open_file(reader.path, may_be_absent=True)
    snapshot = Look(reader)(file.content)
    _expect_in_file(snapshot, name)
    edit = draft(file, {(*KEYS, name): REMOVED})
    try:
        edit = proven(reader, edit)
    except ConfigError as error:
        if not last:
            _expect_no_need_of_keys(name, error)
        raise
    if not last and not {NO_KEY, STILL_IN}.isdisjoint(edit.warnings):
        raise RequestError(
            f"the key of {name!r} is the last: {OPEN}; add another key first, or say --last"
        )
    write(edit)
    for warning in edit.warnings:
        click.echo(f"warning: {printable(str(warning))}", err=True)
    if as_json:
        print_json({"name": name, "written": True})
        return
    click.echo(printable(f"removed the key of {name} from {reader.path}"))


def _expect_no_need_of_keys(name: str, error: ConfigError) -> None:
    """Raise RequestError if what is wrong without the key is that there is none: others may call then."""
    for problem in error.problems:
        if problem.key in _OPEN_ONLY_WITH_KEYS:
            raise RequestError(
                f"the key of {name!r} is the last: add another key first; without one, {problem.key}:"
                f" {problem.message}"
            )


def _expect_in_file(snapshot: ConfigSnapshot, name: str) -> None:
    keys = snapshot.settings.http.keys
    if name not in keys:
        way_out = hint(name, keys) or "keys list names all"
        raise RequestError(f"there is no key of {name!r}; {way_out}")
    origin = snapshot.provenance[(*KEYS, name, "hash")][0].origin
    if origin.kind != "config":
        raise RequestError(f"the key of {name!r} is given by {origin}: remove it there")


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: list(v) if isinstance(v, tuple) else v for name, v in options.items()}
    return {name: value for name, value in values.items() if value}


def _shown(name: str, key: HttpKey) -> dict[str, Any]:
    return {
        "name": name,
        "roles": list(key.roles),
        "act_for": list(key.act_for),
        "channel": key.channel,
        "group": key.group,
        "hash": key.hash.removeprefix("sha256:")[:_SHOWN_DIGITS],
    }


def _what_next(file: ConfigFile, name: str, entry: Mapping[str, Any], to_file: bool) -> str:
    kept = "the key is shown this once; keep it where the caller finds it"
    if to_file:
        return printable(f"{kept}\nits hash was added to {file.name}")
    lines = rewritten("", {(*KEYS, name): entry})
    or_write = ", or use --write" if file.content not in (None, _DEFAULTS) else ""
    return printable(f"{kept}\nadd to {file.name}{or_write}:\n\n{lines.strip()}")
