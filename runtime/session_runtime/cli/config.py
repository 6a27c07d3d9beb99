"""``config``: whether the configuration is good, what it says, and why."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from session_runtime.app.runtime import read_config
from session_runtime.cli import config_edit, config_live, exits
from session_runtime.cli.opening import Checked, checked
from session_runtime.cli.options import Files, file_options, json_option
from session_runtime.cli.screen import print_json
from session_runtime.config.explain import Explanation, explain, explain_section, show
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import ConfigError
from session_runtime.wire import printable, to_bytes


@click.group(name="config")
def command() -> None:
    """Check, show, explain and edit the configuration; secrets are masked."""


for each in (*config_edit.COMMANDS, *config_live.COMMANDS):
    command.add_command(each)


@command.command("check")
@click.option(
    "--diff",
    is_flag=True,
    help="Ask the running daemon what the file would change, and change nothing.",
)
@click.option(
    "--state-dir",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="With --diff, the folder of the daemon, if the file names another one.",
)
@file_options
@json_option
def check_config(diff: bool, state_dir: Path | None, files: Files, as_json: bool) -> int:
    """Prepare everything the configuration asks for, as a start would, and tell what is wrong."""
    if diff:
        return config_live.would_change(files, state_dir, as_json)
    try:
        found = _described(asyncio.run(checked(files)))
    except ConfigError as error:
        if not as_json:
            raise
        print_json({"ok": False, "problems": [asdict(problem) for problem in error.problems]})
        return exits.CONFIG
    if as_json:
        print_json(found)
        return exits.OK
    unusable = [f"{tool['place']}: {tool['reason']}" for tool in found["quarantined"]]
    for warning in (*found["warnings"], *unusable):
        click.echo(f"warning: {printable(warning)}", err=True)
    click.echo(f"ok: {found['tools']} tools, digest {found['digest']}")
    return exits.OK


@command.command("show")
@file_options
@json_option
def show_config(files: Files, as_json: bool) -> None:
    """Show every key in force with its source."""
    shown = show(_read(files))
    if as_json:
        print_json([asdict(explanation) for explanation in shown])
        return
    _list(shown)


@command.command("explain")
@click.argument("key")
@file_options
@json_option
def explain_config(key: str, files: Files, as_json: bool) -> None:
    """Explain the dotted KEY: its value, where it comes from, what that hides, when it acts.

    Of a section, such as models or models.main, all keys are listed with values and sources.
    """
    snapshot = _read(files)
    section = explain_section(snapshot, key)
    if section is not None:
        _explain_section(key, section, as_json)
        return
    explanation = explain(snapshot, key)
    if as_json:
        print_json(asdict(explanation))
        return
    click.echo(printable(f"{explanation.key} = {to_bytes(explanation.value).decode()}"))
    click.echo(printable(f"source: {explanation.source}"))
    for source in explanation.shadowed:
        click.echo(printable(f"shadowed, no effect: {source}"))
    click.echo(f"an edit acts: {explanation.acts}")


def _explain_section(name: str, section: Sequence[Explanation], as_json: bool) -> None:
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


def _read(files: Files) -> ConfigSnapshot:
    """Read the configuration; what was set without effect is told on the error stream."""
    snapshot = read_config(files.config, env_file=files.env_file)
    for warning in snapshot.warnings:
        click.echo(f"warning: {printable(str(warning))}", err=True)
    return snapshot


def _described(found: Checked) -> dict[str, Any]:
    generation, catalog = found.generation, found.generation.catalog
    warnings = (*generation.snapshot.warnings, *generation.warnings, *found.unimportable)
    return {
        "ok": True,
        "digest": generation.digest,
        "tools": len(catalog.specs),
        "warnings": [str(warning) for warning in warnings],
        "quarantined": [
            {"name": bad.name, "place": bad.place, "reason": bad.reason}
            for bad in catalog.quarantined
        ],
    }
