"""``serve``: runs the daemon; its life is told in ``app``."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import click

from session_runtime.app.serve import serve
from session_runtime.cli import exits
from session_runtime.cli.options import Files, file_options
from session_runtime.config.origin import EXPLICIT
from session_runtime.errors import ConfigError, Problem

_OPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {"http.host": "--host", "http.port": "--port", "log.format": "--json"}
)


@click.command(name="serve", epilog=exits.TABLE)
@file_options
@click.option("--host", metavar="ADDRESS", help="Address to listen on (http.host).")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port to listen on (http.port).")
@click.option("--json", "as_json", is_flag=True, help="Log JSON, one object per line.")
@click.option(
    "--last-good",
    is_flag=True,
    help="Start with the newest configuration that worked if the file cannot be used.",
)
def command(
    files: Files, host: str | None, port: int | None, as_json: bool, last_good: bool
) -> int:
    """Run the daemon until SIGTERM or SIGINT: the first lets asks finish, the second does not.

    SIGHUP makes it read its configuration again.
    """
    given = {"http.host": host, "http.port": port, "log.format": "json" if as_json else None}
    explicit = {key: value for key, value in given.items() if value is not None}
    try:
        return serve(files.config, explicit, env_file=files.env_file, last_good=last_good)
    except ConfigError as error:
        raise ConfigError(map(_as_option, error.problems)) from None


def _as_option(problem: Problem) -> Problem:
    """Name the option where a value that it gave is wrong."""
    if problem.source != EXPLICIT.source:
        return problem
    return replace(problem, source=_OPTIONS.get(problem.key, problem.source))
