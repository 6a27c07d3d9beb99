"""``config``: whether the configuration is good, what it says, and why."""

import asyncio
from dataclasses import asdict
from typing import Any

import click

from session_runtime.app.runtime import read_config
from session_runtime.cli import exits
from session_runtime.cli.opening import checked
from session_runtime.cli.options import Files, file_options, json_option
from session_runtime.cli.screen import print_json
from session_runtime.config.explain import explain, show
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import ConfigError
from session_runtime.generation import Generation
from session_runtime.wire import printable, to_bytes


@click.group(name="config")
def command() -> None:
    """Check, show and explain the configuration; secrets are masked."""


@command.command("check")
@file_options
@json_option
def check_config(files: Files, as_json: bool) -> int:
    """Prepare everything the configuration asks for, as a start would, and tell what is wrong."""
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
    for explanation in shown:
        value = to_bytes(explanation.value).decode()
        click.echo(printable(f"{explanation.key} = {value}  # {explanation.source}"))


@command.command("explain")
@click.argument("key")
@file_options
@json_option
def explain_config(key: str, files: Files, as_json: bool) -> None:
    """Explain the dotted KEY: its value, where it comes from, what that hides, when it acts."""
    explanation = explain(_read(files), key)
    if as_json:
        print_json(asdict(explanation))
        return
    click.echo(printable(f"{explanation.key} = {to_bytes(explanation.value).decode()}"))
    click.echo(printable(f"source: {explanation.source}"))
    for source in explanation.shadowed:
        click.echo(printable(f"shadowed, no effect: {source}"))
    click.echo(f"an edit acts: {explanation.acts}")


def _read(files: Files) -> ConfigSnapshot:
    """Read the configuration; what was set without effect is told on the error stream."""
    snapshot = read_config(files.config, env_file=files.env_file)
    for warning in snapshot.warnings:
        click.echo(f"warning: {printable(str(warning))}", err=True)
    return snapshot


def _described(generation: Generation) -> dict[str, Any]:
    catalog = generation.catalog
    return {
        "ok": True,
        "digest": generation.digest,
        "tools": len(catalog.specs),
        "warnings": [str(w) for w in (*generation.snapshot.warnings, *generation.warnings)],
        "quarantined": [
            {"name": bad.name, "place": bad.place, "reason": bad.reason}
            for bad in catalog.quarantined
        ],
    }
