"""How commands that steer a running daemon find it: by its state directory."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from session_runtime.app.reader import ConfigReader
from session_runtime.cli.options import Files, file_options
from session_runtime.client.control import ControlClient


def daemon_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a daemon, which the command gets as its argument ``daemon``."""

    @file_options
    @click.option(
        "--state-dir",
        metavar="FOLDER",
        type=click.Path(path_type=Path),
        help="The folder where the daemon keeps its state, instead of what the configuration says.",
    )
    @functools.wraps(function)
    def with_daemon(files: Files, state_dir: Path | None, **others: Any) -> Any:
        return function(daemon=ControlClient(state_dir or _state_dir(files)), **others)

    return with_daemon


def _state_dir(files: Files) -> Path:
    """Where the configuration says that the daemon keeps its state, even if it is wrong elsewhere."""
    return ConfigReader(files.config, env_file=files.env_file).state_dir()
