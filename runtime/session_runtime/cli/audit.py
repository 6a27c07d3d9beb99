"""``audit``: whether the record of tool calls is as it was written, and what its last lines say (RTE-13).

Both work without a daemon.
"""

import json
from collections.abc import Mapping
from typing import Any

import click

from session_runtime.audit.chain import Link
from session_runtime.audit.tail import last_lines
from session_runtime.audit.verify import Report, verify
from session_runtime.cli import exits
from session_runtime.cli.groups import Group
from session_runtime.cli.options import Files, daemon_file_options, json_option
from session_runtime.cli.reading import state_dir_of
from session_runtime.cli.screen import one_line, print_json
from session_runtime.config.history import ELSEWHERE
from session_runtime.errors import RequestError

_HASH_DIGITS = 64


@click.group(name="audit", cls=Group)
def command() -> None:
    """Verify and show the record of tool calls."""


@command.command("verify", epilog=exits.TABLE)
@click.option(
    "--expect",
    metavar="NUMBER:HASH",
    help="A record that was known before, as from the status: it has to be there.",
)
@daemon_file_options
@json_option
def verify_log(files: Files, expect: str | None, as_json: bool) -> int:
    """Verify every line; exit code 1 and the first wrong one if something was changed."""
    known = None if expect is None else _known(expect)
    report = verify(state_dir_of(files), known)
    if as_json:
        print_json(report.to_json())
    else:
        _show(report)
    return exits.OK if report.fault is None else exits.FAILED


@command.command("tail", epilog=exits.TABLE)
@click.option("--lines", "-n", type=click.IntRange(1, 10_000), default=10, show_default=True)
@daemon_file_options
@json_option
def show_tail(files: Files, lines: int, as_json: bool) -> None:
    """Show the last records, the oldest first; nothing is verified."""
    records = last_lines(state_dir_of(files), lines)
    if as_json:
        for record in records:
            print_json(record)
        return
    for record in records:
        click.echo(one_line(_line(record)))
    if not records:
        told = f"nothing is recorded in {state_dir_of(files)}; {ELSEWHERE}"
        click.echo(one_line(told), err=True)


def _known(text: str) -> Link:
    number, _, digits = text.partition(":")
    well_made = number.isascii() and number.isdigit() and len(digits) == _HASH_DIGITS
    if not well_made or int(number) < 1:
        raise RequestError(
            f"--expect {text[:100]!r} is no NUMBER:HASH: take sequence and head of the status"
        )
    return Link(int(number), digits.lower())


def _show(report: Report) -> None:
    for note in report.notes:
        click.echo(one_line(f"note: {note}"))
    fault = report.fault
    if fault is not None:
        line = f":{fault.line}" if fault.line else ""
        where = f"{fault.file}{line}: " if fault.file else ""
        click.echo(one_line(f"{fault.kind}: {where}{fault.message}"))
        return
    click.echo(
        f"{report.records} records are as they were written, from {report.first} to"
        f" {report.sequence}:{report.head}"
    )


def _line(record: Mapping[str, Any]) -> str:
    number = f"{record.get('seq', '?')!s:>8}"
    match record:
        case {
            "event": "call" | "begun",
            "time": time,
            "tool": tool,
            "principal": principal,
            "identity": {"user": user},
        }:
            who = principal if user is None else f"{principal} for {user}"
            code = f" ({record['error_code']})" if record.get("error_code") else ""
            return f"{number}  {time}  {tool}  {record.get('status', 'begun')}{code}  {who}"
        case _:
            more = {name: record[name] for name in record if name not in ("seq", "event", "hash")}
            return f"{number}  {record.get('event')} {json.dumps(more)}"
