"""How an ask is shown where no person watches: its result, its events, or its texts."""

from typing import IO, Any, Protocol

import click

from session_runtime.cli.screen import print_json, print_text
from session_runtime.transports.outbox import Delivery
from session_runtime.types import AskFinished, AskResult, MessageSent, PendingCall
from session_runtime.wire import event_to_json, printable, result_to_json, to_bytes


class Report(Protocol):
    """Shows one ask; ``event`` is called once per event, in order, the last one included."""

    def event(self, delivery: Delivery) -> None:
        """Show one event."""


class ResultReport:
    """Prints the result as JSON to ``out``."""

    def __init__(self, out: IO[Any]) -> None:
        self._out = out

    def event(self, delivery: Delivery) -> None:
        """Print the last event's result, ignore all others."""
        if isinstance(delivery.event, AskFinished):
            print_json(result_to_json(delivery.event.result), self._out)


class EventReport:
    """Prints every event as one line of JSON to ``out`` (INT-3)."""

    def __init__(self, out: IO[Any]) -> None:
        self._out = out

    def event(self, delivery: Delivery) -> None:
        """Print one event."""
        print_json(event_to_json(delivery.event, delivery.lost), self._out)


class TextReport:
    """Prints what the model says, nothing else; errors go to the error stream."""

    def event(self, delivery: Delivery) -> None:
        """Print messages when they come, and the text at the end."""
        match delivery.event:
            case MessageSent(text=text):
                print_text(text)
            case AskFinished(result=result):
                if result.text:
                    print_text(result.text)
                show_error(result)


def show_error(result: AskResult) -> None:
    """Tell why an ask did not end well, or what waits for a person's consent."""
    for call in result.pending:
        click.echo(f"{result.outcome}: {shown_call(call)} was not run", err=True)
    if result.error is not None:
        wait = result.error.retry_after_s
        hint = f"; try again in {wait:g} s" if wait is not None else ""
        message = printable(f"{result.outcome}: {result.error.message}{hint}")
        click.echo(f"{message} ({result.error.code})", err=True)


def shown_call(call: PendingCall) -> str:
    """The whole of a call, harmless on a terminal: who agrees to it must have seen it."""
    return printable(f"{call.tool} {to_bytes(call.arguments).decode()}")
