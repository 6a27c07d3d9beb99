"""``config``: whether the configuration is good, what it says, and why."""

import asyncio
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from session_runtime.app.reader import ConfigReader
from session_runtime.cli import config_edit, config_live, exits, replay
from session_runtime.cli.groups import Group
from session_runtime.cli.opening import Checked, checked
from session_runtime.cli.options import Files, daemon_file_options, json_option
from session_runtime.cli.reading import looked_at, reader_of, source_of
from session_runtime.cli.screen import one_line, print_json
from session_runtime.config.explain import Explanation, explain, explain_section, show
from session_runtime.errors import ConfigError, Problem
from session_runtime.mcp.pool import Known
from session_runtime.replay import Replayed
from session_runtime.wire import printable, to_bytes


@click.group(name="config", cls=Group)
def command() -> None:
    """Check, show, explain and edit the configuration; secrets are masked."""


for each in (*config_edit.COMMANDS, *config_live.COMMANDS):
    command.add_command(each)


@command.command("check", epilog=exits.TABLE)
@click.option(
    "--diff",
    is_flag=True,
    help="Ask the running daemon what the file would change, and change nothing.",
)
@click.option(
    "--replay",
    "traces",
    metavar="TRACE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Tell for how many of the asks recorded there something would change, and what. May be repeated.",
)
@replay.lists_option
@daemon_file_options
@json_option
def check_config(
    diff: bool,
    traces: Sequence[Path],
    lists: Known,
    files: Files,
    as_json: bool,
) -> int:
    """Prepare everything the configuration asks for, as a start from this shell; tell what is wrong."""
    if diff and traces:
        raise click.UsageError(
            "--diff asks the daemon, and --replay asks nobody: give one of them."
        )
    if diff:
        return config_live.would_change(files, as_json)
    reader = reader_of(files)
    try:
        prepared = _checked(reader, lists)
        found = _described(prepared)
    except ConfigError as error:
        if not as_json:
            raise
        print_json({"ok": False, "problems": [asdict(problem) for problem in error.problems]})
        return exits.CONFIG
    told = replay.replayed(prepared.generation, traces, _not_shown) if traces else None
    if as_json:
        print_json(found if told is None else {**found, "replay": told.to_json()})
        return exits.OK
    _warn(found)
    if found["not_contacted"]:
        names = ", ".join(found["not_contacted"])
        click.echo(f"note: servers are not contacted by this check: {names}", err=True)
    read = printable(source_of(reader))
    click.echo(f"ok: {found['tools']} tools, digest {found['digest']} ({read})")
    for line in () if told is None else replay.summary_lines(told):
        click.echo(one_line(line))
    return exits.OK


def _checked(reader: ConfigReader, lists: Known) -> Checked:
    """Prepare everything; where a secret is missing, ConfigError tells also what else would be wrong."""
    try:
        snapshot = reader(absent="fault here")
    except ConfigError as error:
        raise ConfigError([*error.problems, *_besides(error, reader, lists)]) from None
    return asyncio.run(checked(snapshot, lists))


def _besides(error: ConfigError, reader: ConfigReader, lists: Known) -> Iterable[Problem]:
    """What is wrong apart from secrets that this shell lacks; tools that are broken are warned of."""
    try:
        looked = reader(absent="warning")
    except ConfigError:
        return ()  # more is wrong with the file itself, and all of that is told already
    absent = {str(each) for each in error.problems}
    try:
        prepared = asyncio.run(checked(looked, lists))
    except ConfigError as more:
        return more.problems
    _warn(_described(prepared), but=absent)
    return ()


def _warn(found: Mapping[str, Any], but: Container[str] = ()) -> None:
    unusable = [f"{tool['place']}: {tool['reason']}" for tool in found["quarantined"]]
    for warning in (*found["warnings"], *unusable):
        if warning not in but:
            click.echo(f"warning: {printable(warning)}", err=True)


def _not_shown(replayed: Replayed) -> None:
    """Each ask for itself is told by the command ``replay``."""


_of_daemon = click.option(
    "--daemon", "of_daemon", is_flag=True, help="Ask the running daemon what it has in force."
)


@command.command("show", epilog=exits.TABLE)
@_of_daemon
@daemon_file_options
@json_option
def show_config(of_daemon: bool, files: Files, as_json: bool) -> None:
    """Show every key with its source, as a start from this shell would find it.

    A running daemon has its own environment, and waits for a restart with some keys: see --daemon.
    """
    shown = config_live.in_force(files) if of_daemon else show(looked_at(reader_of(files)))
    if as_json:
        print_json([asdict(explanation) for explanation in shown])
        return
    _list(shown)


@command.command("explain", epilog=exits.TABLE)
@click.argument("key")
@_of_daemon
@daemon_file_options
@json_option
def explain_config(key: str, of_daemon: bool, files: Files, as_json: bool) -> None:
    """Explain the dotted KEY: its value, where it comes from, what that hides, when it acts.

    Of a section, such as models or models.main, all keys are listed with values and sources. It is
    told what a start from this shell would find, unless the --daemon is asked.
    """
    explanation = config_live.explained(files, key) if of_daemon else _explained(files, key)
    if not isinstance(explanation, Explanation):
        _tell_section(key, explanation, as_json)
        return
    if as_json:
        print_json(asdict(explanation))
        return
    click.echo(printable(f"{explanation.key} = {to_bytes(explanation.value).decode()}"))
    click.echo(printable(f"source: {explanation.source}"))
    for source in explanation.shadowed:
        click.echo(printable(f"shadowed, no effect: {source}"))
    click.echo(f"an edit acts: {explanation.acts}")
    if not of_daemon:
        click.echo(printable(f"read: {source_of(reader_of(files))}"))


def _explained(files: Files, key: str) -> Explanation | tuple[Explanation, ...]:
    snapshot = looked_at(reader_of(files))
    section = explain_section(snapshot, key)
    return explain(snapshot, key) if section is None else section


def _tell_section(name: str, section: Sequence[Explanation], as_json: bool) -> None:
    if as_json:
        print_json([asdict(explanation) for explanation in section])
        return
    _list(section)
    if not section:
        click.echo(printable(f"nothing is set in [{name}]"), err=True)


def _list(shown: Iterable[Explanation]) -> None:
    for explanation in shown:
        value = to_bytes(explanation.value).decode()
        click.echo(printable(f"{explanation.key} = {value}  # {explanation.source}"))


def _described(found: Checked) -> dict[str, Any]:
    generation, catalog = found.generation, found.generation.catalog
    warnings = (*generation.snapshot.warnings, *generation.warnings, *found.unimportable)
    return {
        "ok": True,
        "digest": generation.digest,
        "tools": len(catalog.specs),
        "warnings": [str(warning) for warning in warnings],
        "not_contacted": list(generation.servers.untried),
        "quarantined": [
            {"name": bad.name, "place": bad.place, "reason": bad.reason}
            for bad in catalog.quarantined
        ],
    }
