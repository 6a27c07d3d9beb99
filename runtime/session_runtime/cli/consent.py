"""Asks the person at the terminal whether calls may run, and says it to the next ask (RTE-9)."""

import asyncio
import os
import sys
import termios
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import click

from session_runtime.cli.report import shown_call
from session_runtime.types import AskRequest, AskResult, PendingCall

_LONGEST_LINE: Final = 4_096  # of a terminal
_YES: Final = frozenset({"y", "yes"})
_NO: Final = frozenset({"", "n", "no"})


async def answered(request: AskRequest, result: AskResult) -> AskRequest | None:
    """The request that goes on after ``result``; None if the person gave no answer."""
    try:
        agreed = [await _may_run(call) for call in result.pending]
    except EOFError:
        click.echo(err=True)
        return None
    tokens = [call.token for call in result.pending]
    return replace(
        request,
        text=_in_words(agreed),
        history=(*request.history, *result.new_messages),
        confirmations=[token for token, yes in zip(tokens, agreed, strict=True) if yes],
        declined=[token for token, yes in zip(tokens, agreed, strict=True) if not yes],
    )


async def _may_run(call: PendingCall) -> bool:
    """Show the whole call and wait for a yes or no; raises EOFError if none comes any more.

    What was typed before the question was seen is no answer to it.
    """
    while True:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        click.echo(f"May this run? {shown_call(call)} [y/N]: ", nl=False, err=True)
        said = (await _next_line(sys.stdin.fileno())).strip().casefold()
        if said in _YES | _NO:
            return said in _YES


async def _next_line(terminal: int) -> str:
    """Wait on the event loop: a thread that waits for a terminal cannot be interrupted."""
    loop, typed = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(terminal, typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(terminal)
    line = os.read(terminal, _LONGEST_LINE)
    if not line:
        raise EOFError
    return line.decode(errors="replace")


def _in_words(agreed: Sequence[bool]) -> str:
    if all(agreed):
        return "Yes."
    return "Only what I agreed to." if any(agreed) else "No."
