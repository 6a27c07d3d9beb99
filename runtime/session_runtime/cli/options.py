"""Options that several commands share."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from session_runtime.types import Identity

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


@dataclass(frozen=True, slots=True)
class Files:
    """The files that a command was told to read its configuration from."""

    config: str | None = None
    env_file: str | None = None


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
