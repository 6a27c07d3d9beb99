"""Options that several commands share."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from session_runtime.types import Identity

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


class Number(click.IntRange):
    """A whole number of 1 or more, which messages call a number."""

    name = "number"

    def __init__(self) -> None:
        super().__init__(1)


@dataclass(frozen=True, slots=True)
class Files:
    """The files that a command was told to read its configuration from.

    ``state_dir`` is where a daemon keeps its state, absolute; None: where the configuration says.
    """

    config: str | None = None
    env_file: str | None = None
    state_dir: Path | None = None


def file_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--config`` and ``--env-file``, which the command gets as its argument ``files``."""

    @click.option(
        "--config",
        metavar="FILE",
        help="The configuration file; otherwise $SESSION_RUNTIME_CONFIG, or ./config.toml if it is"
        " there.",
    )
    @click.option(
        "--env-file",
        metavar="FILE",
        help="A .env file with variables; otherwise $SESSION_RUNTIME_ENV_FILE.",
    )
    @functools.wraps(function)
    def with_files(config: str | None, env_file: str | None, **others: Any) -> Any:
        return function(files=Files(config, env_file), **others)

    return with_files


def daemon_file_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, with ``--state-dir``: for all that looks at what a daemon has, or keeps."""

    @file_options
    @click.option(
        "--state-dir",
        metavar="FOLDER",
        # whoever may not read it is told by what looks into it
        type=click.Path(path_type=Path, readable=False),
        help="The folder where the daemon keeps its state, instead of what the configuration says.",
    )
    @functools.wraps(function)
    def with_state_dir(files: Files, state_dir: Path | None, **others: Any) -> Any:
        place = None if state_dir is None else state_dir.absolute()
        return function(files=replace(files, state_dir=place), **others)

    return with_state_dir


def identity_options(function: F) -> F:
    """Add ``--user``, ``--role``, ``--channel`` and ``--group``."""
    for option in (
        click.option("--group", metavar="NAME", help="Group the asking user belongs to."),
        click.option("--channel", metavar="NAME", help="Channel the ask comes from."),
        click.option("--role", "roles", metavar="NAME", multiple=True, help="May be repeated."),
        click.option("--user", metavar="NAME", help="Who asks."),
    ):
        function = option(function)
    return function


def identity_of(
    user: str | None, roles: tuple[str, ...], channel: str | None, group: str | None
) -> Identity | None:
    """Return what the options state; None if they state nothing."""
    if user is None and not roles and channel is None and group is None:
        return None
    return Identity(user, frozenset(roles) if roles else None, channel, group)
