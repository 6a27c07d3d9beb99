"""``replay``: recorded asks put to a configuration once more, offline; what would differ is told (OPS-2).

What differs is decided in ``replay``; here it is read, counted and printed.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from session_runtime.cli import exits
from session_runtime.cli.opening import checked
from session_runtime.cli.options import Files, file_options, json_option
from session_runtime.cli.reading import looked_at, reader_of
from session_runtime.cli.screen import one_line, print_json
from session_runtime.cli.trace import warn_of_damage
from session_runtime.errors import RequestError
from session_runtime.generation import Generation
from session_runtime.mcp.kept_lists import lists_from_json
from session_runtime.mcp.pool import NOTHING_LISTED, Known
from session_runtime.replay import Replayed, Summary, replay
from session_runtime.trace.reading import Traces
from session_runtime.wire import strict_json

_EPILOG: Final = """\b
Exit codes:
  0    no recorded ask would differ
  1    at least one would
  64   a trace or the lists cannot be read, or there is no ask
  78   the configuration is wrong"""

Show = Callable[[Replayed], None]


def _read_lists(context: click.Context, option: click.Parameter, path: Path | None) -> Known:
    """Read what ``tools snapshot --servers`` wrote; raises RequestError."""
    del context, option
    if path is None:
        return NOTHING_LISTED
    try:
        return lists_from_json(strict_json(path.read_text("utf-8")))
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise RequestError(f"{path}: {error}") from error


lists_option = click.option(
    "--tools",
    "lists",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=_read_lists,
    help="What servers list, written by: tools snapshot --servers. Without it their tools are not known.",
)


@click.command(name="replay", epilog=_EPILOG)
@click.argument(
    "traces", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@lists_option
@file_options
@json_option
def command(traces: Sequence[Path], lists: Known, files: Files, as_json: bool) -> int:
    """Put the asks recorded in TRACE files to the configuration again; tell what would differ.

    Nothing runs, and no model, tool or server is asked: what the model decided is taken from the trace.
    """
    generation = asyncio.run(checked(looked_at(reader_of(files)), lists)).generation
    summary = replayed(generation, traces, _show_json if as_json else _show)
    if as_json:
        print_json({"summary": summary.to_json()})
    else:
        for line in summary_lines(summary):
            click.echo(one_line(line))
    return exits.FAILED if summary.differing else exits.OK


def replayed(generation: Generation, paths: Iterable[Path], show: Show) -> Summary:
    """Replay the traces at these paths with their rotated files, one ask in memory; tell each to ``show``.

    Damaged lines are told on the error stream. Raises RequestError for a file that cannot be read, and if
    there is no ask in any of them.
    """
    summary, each_once = Summary(), _each_once(paths)
    for path in each_once:
        traces = Traces(path)
        if not traces.exists():
            raise RequestError(f"there is no trace at {path}; it must be a plain file")
        for recorded in traces.oldest_first():
            result = replay(generation, recorded.record)
            summary.add(result)
            show(result)
        summary.add_damaged(traces.damaged)
        warn_of_damage(traces)
    if not summary.asks:
        raise RequestError(f"there is no recorded ask in {', '.join(map(str, each_once))}")
    return summary


def _each_once(paths: Iterable[Path]) -> Sequence[Path]:
    """The paths, but none of a rotated file whose trace is among them and brings it along."""
    given = dict.fromkeys(paths)
    return [
        path
        for path in given
        if not (path.suffix[1:].isdecimal() and path.with_suffix("") in given)
    ]


def summary_lines(summary: Summary) -> Iterator[str]:
    """How many asks differ, and in what."""
    uncertain = f"; of {summary.uncertain} not all is known" if summary.uncertain else ""
    yield f"{summary.differing} of {summary.asks} asks would differ{uncertain}"
    for _, what, asks in summary.changes():
        yield f"{asks:6}  {what}"
    for what, asks in summary.unknown():
        yield f"{asks:6}  unknown: {what}"


def _show(result: Replayed) -> None:
    if result.same:
        return
    click.echo(one_line(f"{result.ask_id} of {result.started_at}"))
    for each in result.differences:
        place = f"turn {each.turn}: " if each.turn else ""
        click.echo(one_line(f"  {place}{each.what}"))
    for unknown in result.unknown:
        click.echo(one_line(f"  unknown: {unknown}"))


def _show_json(result: Replayed) -> None:
    if not result.same or result.unknown:
        print_json(result.to_json())
