"""``ask``: one ask in this process, without a daemon."""

import asyncio
import contextlib
import importlib
import sys
from typing import Literal, cast

import click

from session_runtime.app.runtime import Runtime
from session_runtime.cli import exits
from session_runtime.cli.consent import answered
from session_runtime.cli.opening import opened
from session_runtime.cli.options import (
    Files,
    file_options,
    identity_of,
    identity_options,
    json_option,
)
from session_runtime.cli.report import EventReport, Report, ResultReport, TextReport
from session_runtime.transports.outbox import Outbox
from session_runtime.types import AskRequest, AskResult, Identity

Form = Literal["text", "json", "events"]


@click.command(name="ask", epilog=exits.TABLE)
@click.argument("text")
@file_options
@json_option
@click.option("--events", is_flag=True, help="Print every event as one line of JSON.")
@click.option("--model", metavar="NAME", help="The model profile to use.")
@identity_options
def command(
    text: str,
    files: Files,
    as_json: bool,
    events: bool,
    model: str | None,
    user: str | None,
    roles: tuple[str, ...],
    channel: str | None,
    group: str | None,
) -> int:
    """Ask TEXT once, in this process; no daemon is needed. With - the text is read from standard input.

    On a terminal you are asked before a destructive tool runs; elsewhere it does not run (exit code 3).
    """
    if as_json and events:
        raise click.UsageError("--json and --events exclude each other.")
    identity = identity_of(user, roles, channel, group) or Identity()
    question = _standard_input() if text == "-" else text
    request = AskRequest(question, identity=identity, model=model)
    form: Form = "json" if as_json else "events" if events else "text"
    report = _report(form)
    # what a handler prints must not end up inside the JSON
    with contextlib.redirect_stdout(sys.stdout if form == "text" else sys.stderr):
        return exits.of_result(asyncio.run(_ask(request, files, report, _is_person(form))))


async def _ask(request: AskRequest, files: Files, report: Report, person: bool) -> AskResult:
    """Ask, and as long as calls wait for a ``person`` who is there, ask them and go on."""
    async with opened(files) as runtime:
        while True:
            result = await _ask_once(runtime, request, report)
            following = await answered(request, result) if person and result.pending else None
            if following is None:
                return result
            request = following


async def _ask_once(runtime: Runtime, request: AskRequest, report: Report) -> AskResult:
    outbox = Outbox()
    asking = asyncio.create_task(runtime.ask(request, outbox.emit), name="ask")
    asking.add_done_callback(lambda _: outbox.close())
    try:
        await _show(outbox, report)
        return await asking
    except asyncio.CancelledError:
        asking.cancel()
        await _show(outbox, report)  # what came of an ask that was interrupted
        raise
    finally:
        asking.cancel()
        await asyncio.wait([asking])


def _is_person(form: Form) -> bool:
    """Whether somebody is there who can be asked."""
    return form == "text" and sys.stdin.isatty() and sys.stdout.isatty()


async def _show(outbox: Outbox, report: Report) -> None:
    async for delivery in outbox:
        report.event(delivery)


def _standard_input() -> str:
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"standard input is not UTF-8 (byte {error.start}).") from error
    if not text.strip():
        raise click.UsageError("standard input is empty: there is nothing to ask.")
    return text


def _report(form: Form) -> Report:
    match form:
        case "json":
            return ResultReport(sys.stdout)
        case "events":
            return EventReport(sys.stdout)
        case "text" if sys.stdout.isatty():
            # rich takes longer to import than a short ask takes: only where it is seen
            terminal = importlib.import_module("session_runtime.cli.terminal")
            return cast(Report, terminal.TerminalReport())
        case "text":
            return TextReport()
