"""Options that several commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from session_runtime.types import Identity

F = TypeVar("F", bound=Callable[..., Any])

config_option = click.option(
    "--config",
    metavar="FILE",
    help="The configuration file; otherwise $SESSION_RUNTIME_CONFIG, or ./config.toml if it is"
    " there.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


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
