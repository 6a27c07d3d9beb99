"""``eval``: how well tool search finds the right tools, in a configuration, a file of tools, or two of them.

What is measured is decided in ``evaluation``, how it looks in ``eval_text``.
"""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from session_runtime.cli import exits
from session_runtime.cli.eval_text import Named, changed_cases, missed_cases, table
from session_runtime.cli.opening import opened
from session_runtime.cli.options import (
    Files,
    file_options,
    identity_of,
    identity_options,
    json_option,
)
from session_runtime.cli.reading import looked_at, reader_of
from session_runtime.cli.screen import one_line, print_json
from session_runtime.errors import RequestError, TransientError
from session_runtime.evaluation import (
    Case,
    Change,
    Outcome,
    Subject,
    by_kind,
    compare,
    evaluate,
    figures,
    read_cases,
    read_catalogue,
)
from session_runtime.types import Identity

_TOLD: Final = 10
_NEAR_SOUGHT: Final = 200  # looking for a near name costs as much as some queries

_EPILOG: Final = """\b
CASES has one case per line:
  {"query": "will it rain", "gold": ["weather.forecast"], "kind": "chat", "id": 7}
kind and id may be absent.

\b
Exit codes:
  0    measured
  1    R@5 is below --fail-under
  64   CASES or the file of tools is wrong, or cannot be read
  69   a server is not there, so that its tools are not known
  78   the configuration is wrong"""

Unknown = Sequence[tuple[Case, str, str | None]]


@dataclass(frozen=True, slots=True)
class _Source:
    """Where the tools of an evaluation come from, and for whom."""

    files: Files
    catalogue: Path | None
    identity: Identity | None

    @property
    def name(self) -> str:
        """What it is called in a report: the file of its settings."""
        path = reader_of(self.files).path
        return self.files.config or (path.name if path.exists() else "defaults")


class _Percent(click.FloatRange):
    """A number between bounds; click holds ``nan``, which is below nothing, to be within any."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self.min}<=x<={self.max}.", param, ctx)
        return float(number)


@click.command(name="eval", epilog=_EPILOG)
@click.argument("cases_file", metavar="CASES", type=click.Path(path_type=Path))
@click.option(
    "--catalogue",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Take the tools from FILE, one definition per line, instead of those of the configuration.",
)
@click.option(
    "--against",
    metavar="FILE",
    help="Compare with this other configuration: which cases are better or worse than there.",
)
@click.option(
    "--fail-under",
    metavar="R5",
    type=_Percent(0, 100),
    help="Exit with 1 if R@5 over all cases is below this, in percent.",
)
@file_options
@json_option
@identity_options
def command(
    cases_file: Path,
    catalogue: Path | None,
    against: str | None,
    fail_under: float | None,
    files: Files,
    as_json: bool,
    **identity: Any,
) -> int:
    """Measure how well tool search finds the right tools for the queries in CASES."""
    cases = read_cases(cases_file)
    ours = _Source(files, catalogue, identity_of(**identity))
    if catalogue is not None and ours.identity is not None:
        raise RequestError("the tools of a file are for everybody: leave out the identity")
    subject = _subject(ours)
    unknown = _unknown(subject, cases)
    now, before = _named(ours, subject, cases), None
    if against is not None:
        theirs = replace(ours, files=replace(files, config=against))
        before = _named(theirs, _subject(theirs), cases)
    if as_json:
        print_data(now, before, unknown)
    else:
        print_report(now, before, unknown, cases_file)
    return _verdict(figures(now.outcomes).recall_5, fail_under)


def _named(source: _Source, subject: Subject, cases: Sequence[Case]) -> Named:
    return Named(source.name, subject.view.count, evaluate(subject, cases))


def print_report(ours: Named, before: Named | None, unknown: Unknown, path: Path) -> None:
    """Print a table of figures and the cases that deserve a look."""
    for case, name, near in unknown[:_TOLD]:
        meant = f"; did you mean {near!r}?" if near else ""
        click.echo(one_line(f"warning: {path}:{case.line}: no tool {name!r}{meant}"), err=True)
    if unknown:
        lines = len({case.line for case, _, _ in unknown})
        where = f"{len(unknown)}, in {lines} of {len(ours.outcomes)} cases"
        click.echo(
            f"warning: wanted names that no tool has: {where}; they count as not found", err=True
        )
    for line in table([ours] if before is None else [before, ours]):
        click.echo(one_line(line))
    if before is None:
        told_cases = missed_cases(ours.outcomes)
    else:
        told_cases = changed_cases(compare(before.outcomes, ours.outcomes))
    for line in told_cases:
        click.echo(one_line(line))


def print_data(ours: Named, before: Named | None, unknown: Unknown) -> None:
    """Print everything as JSON, each case too."""
    data: dict[str, object] = {
        **_figures(ours),
        "unknown": [
            {"line": case.line, "name": name, "nearest": near} for case, name, near in unknown
        ],
        "cases": [_case(outcome) for outcome in ours.outcomes],
    }
    if before is not None:
        changes = compare(before.outcomes, ours.outcomes)
        data["against"] = _figures(before)
        data |= {
            verdict: [_change(change) for change in changes if change.verdict == verdict]
            for verdict in ("better", "worse")
        }
    print_json(data)


def _verdict(recall_5: float, fail_under: float | None) -> int:
    if fail_under is None or recall_5 >= fail_under:
        return exits.OK
    click.echo(f"error: R@5 is {recall_5:.2f}, below {fail_under:g}", err=True)
    return exits.FAILED


def _subject(source: _Source) -> Subject:
    if source.catalogue is None:
        return asyncio.run(_configured(source))
    read = read_catalogue(source.catalogue)
    for line, name in read.repeated[:_TOLD]:
        told = f"{source.catalogue}:{line}: {name!r} is there already: the first one counts"
        click.echo(one_line(f"warning: {told}"), err=True)
    return Subject.of_tools(read.specs, looked_at(reader_of(source.files)).settings)


async def _configured(source: _Source) -> Subject:
    async with opened(source.files) as runtime:
        generation = runtime.generation
        if missing := generation.servers.missing:
            raise TransientError(
                f"the tools of {', '.join(missing)} are not known, as the server is not there now",
                code="mcp.down",
            )
        return Subject.of_generation(generation, source.identity)


def _unknown(subject: Subject, cases: Iterable[Case]) -> Unknown:
    nearest: dict[str, str | None] = {}
    found = subject.unknown(cases)
    for _, name in found:
        if name not in nearest and len(nearest) < _NEAR_SOUGHT:
            nearest[name] = next(iter(subject.view.nearest(name)), None)
    return [(case, name, nearest.get(name)) for case, name in found]


def _figures(named: Named) -> dict[str, object]:
    kinds = {kind: asdict(of_kind) for kind, of_kind in by_kind(named.outcomes).items()}
    return {
        "name": named.name,
        "tools": named.tools,
        "all": _rounded(asdict(figures(named.outcomes))),
        "kinds": {kind: _rounded(values) for kind, values in kinds.items()},
    }


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}


def _case(outcome: Outcome) -> dict[str, object]:
    case = outcome.case
    return {
        **asdict(case),
        "found": outcome.found,
        "loaded": outcome.loaded,
        "tokens": outcome.tokens,
        "ranks": outcome.ranks,
    }


def _change(change: Change) -> dict[str, object]:
    case = change.after.case
    return {
        "line": case.line,
        "id": case.id,
        "query": case.query,
        "before": change.before.ranks,
        "after": change.after.ranks,
    }
