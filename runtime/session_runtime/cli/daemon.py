"""How commands that steer a running daemon find it: by its state directory."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from session_runtime.cli.options import Files, file_options
from session_runtime.cli.reading import reader_of
from session_runtime.client.control import ControlClient

state_dir_option = click.option(
    "--state-dir",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="The folder where the daemon keeps its state, instead of what the configuration says.",
)


def daemon_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a daemon, which the command gets as its argument ``daemon``."""

    @file_options
    @state_dir_option
    @functools.wraps(function)
    def with_daemon(files: Files, state_dir: Path | None, **others: Any) -> Any:
        return function(daemon=daemon_of(files, state_dir), **others)

    return with_daemon


def daemon_of(files: Files, state_dir: Path | None = None) -> ControlClient:
    """The daemon whose state is where the configuration says, even if that is wrong elsewhere."""
    return ControlClient(state_dir or reader_of(files).state_dir())
