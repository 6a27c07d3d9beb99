"""``trace``: what became of asks that ended, one as a story or the last ones as lines (OPS-1, NET-7).

Both read the files of the trace, and need neither a daemon nor a network.
"""

import time
from collections.abc import Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

import click

from session_runtime.app.reader import ConfigReader
from session_runtime.cli import exits
from session_runtime.cli.groups import Group
from session_runtime.cli.options import Files, daemon_file_options, json_option
from session_runtime.cli.reading import Look, reader_of
from session_runtime.cli.screen import one_line, print_json
from session_runtime.cli.trace_story import story, summary
from session_runtime.config.history import ELSEWHERE
from session_runtime.config.runtime import TRACE_FILE
from session_runtime.errors import ConfigError, Problem, RequestError
from session_runtime.trace.reading import Damaged, Traced, Traces

LOOK_S: Final = 0.25
_SHOWN_CHARS: Final = 80

trace_option = click.option(
    "--file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The trace to read, instead of the one that the configuration names (trace.path).",
)


@click.group(name="trace", cls=Group)
def command() -> None:
    """Show what became of asks that ended."""


@command.command("show", epilog=exits.TABLE)
@click.argument("ask_id", metavar="ID")
@trace_option
@daemon_file_options
@json_option
def show_trace(ask_id: str, file: Path | None, files: Files, as_json: bool) -> int:
    """Tell the story of the ask ID: what was offered, searched, called, answered and spent."""
    traces = _traces(file, files)
    found = traces.find(ask_id)
    if isinstance(found, Damaged):
        raise RequestError(_unreadable(found, ask_id))
    if found is None:
        raise RequestError(_unknown(traces, ask_id))
    if as_json:
        print_json(found.data)
        return exits.OK
    for line in story(found.record):
        click.echo(line)
    return exits.OK


@command.command("tail", epilog=exits.TABLE)
@click.option("--lines", "-n", type=click.IntRange(0, 10_000), default=10, show_default=True)
@click.option("--follow", "-f", is_flag=True, help="Go on with asks as they end, until Ctrl-C.")
@trace_option
@daemon_file_options
@json_option
def show_tail(lines: int, follow: bool, file: Path | None, files: Files, as_json: bool) -> int:
    """Show the last asks that ended, the oldest first."""
    traces = _traces(file, files, wait=follow)
    with closing(_asks(traces, lines, follow)) as asks:
        _print_all(asks, as_json)
    warn_of_damage(traces)
    return exits.OK


def warn_of_damage(traces: Traces) -> None:
    """Tell on the error stream which lines were left out so far, and why."""
    for each in traces.told:
        click.echo(one_line(f"warning: {each.path}:{each.line}: {each.reason}"), err=True)
    more = traces.damaged - len(traces.told)
    if more:
        click.echo(
            one_line(f"warning: {more} other lines of {traces.path} are damaged too"), err=True
        )


def _print_all(asks: Iterable[Traced], as_json: bool) -> None:
    for each in asks:
        if as_json:
            print_json(each.data)
        else:
            click.echo(summary(each.record))


def _asks(traces: Traces, lines: int, follow: bool) -> Generator[Traced, None, None]:
    """The last asks, then those that end from then on; none is shown twice and none is missed."""
    with traces.growing() as growing:
        last = traces.last(lines)
        yield from last
        seen = {each.record.ask_id for each in last}
        while follow:
            for each in growing.new():
                if each.record.ask_id not in seen:
                    yield each
            seen.clear()  # what was read twice is in the first look only
            time.sleep(LOOK_S)


def _traces(file: Path | None, files: Files, *, wait: bool = False) -> Traces:
    """The trace to read; RequestError if there is none, unless one that will be there is to be waited for."""
    if file is not None:
        return _there(Traces(file), f"there is no trace at {file}")
    reader = reader_of(files)
    try:
        settings = Look(reader)().settings.trace
    except ConfigError as error:
        return _despite(error, reader)
    if not settings.enabled:
        _there(
            Traces(settings.path),
            "asks are not recorded: set trace.enabled to true and restart the daemon; nothing was recorded"
            f" before either ({settings.path})",
        )
        click.echo("note: trace.enabled is false; what was recorded before is read", err=True)
    elif wait:
        return Traces(settings.path)
    return _there(
        Traces(settings.path),
        f"no ask was recorded yet ({settings.path}); an ask is written there when it ends; a daemon's"
        f" trace may be elsewhere: {ELSEWHERE}",
    )


def _despite(error: ConfigError, reader: ConfigReader) -> Traces:
    """The trace in the state directory, as the configuration is wrong; ConfigError where there is none."""
    path = reader.state_dir() / TRACE_FILE
    traces = Traces(path)
    if not traces.exists():
        way_out = Problem(f"there is no trace at {path} either: name one by --file")
        raise ConfigError([*error.problems, way_out])
    for problem in error.problems:
        click.echo(one_line(f"warning: {problem}"), err=True)
    click.echo(one_line(f"note: {path} is read; --file names another trace"), err=True)
    return traces


def _there(traces: Traces, otherwise: str) -> Traces:
    if not traces.exists():
        raise RequestError(otherwise)
    return traces


def _unreadable(damaged: Damaged, ask_id: str) -> str:
    return (
        f"ask {ask_id[:_SHOWN_CHARS]!r} cannot be read: line {damaged.line} of {damaged.path} is damaged:"
        f" {damaged.reason}"
    )


def _unknown(traces: Traces, ask_id: str) -> str:
    shown = repr(ask_id[:_SHOWN_CHARS])
    near = " or ".join(traces.near(ask_id))
    way_out = f"did you mean {near}?" if near else "see session-runtime trace tail"
    return (
        f"no ask {shown} in {traces.path} and its rotated files; it is written when it ends, and the oldest"
        f" files go (trace.keep); {way_out}"
    )
