"""What all commands print: JSON for programs, and text that cannot take over a terminal (SEC-4)."""

import json
import sys
from typing import IO, Any

import click

from session_runtime.wire import printable, to_bytes, well_formed


def print_json(data: object, out: IO[Any] | None = None) -> None:
    """Print one line of JSON, to standard output unless told otherwise.

    What could steer a terminal is written as JSON's own escapes: whoever reads it gets the same text.
    """
    click.echo(_escaped(to_bytes(data)), file=out)


def _escaped(data: bytes) -> bytes:
    text = data.decode()
    if text.isprintable():
        return data
    return "".join(_harmless(char) for char in text).encode()


def _harmless(char: str) -> str:
    return char if char == printable(char) else json.dumps(char)[1:-1]


def value_text(value: object) -> str:
    """The JSON value of a key as it is told; None is one that the key was not given."""
    return "not set" if value is None else to_bytes(value).decode()


def print_text(text: str) -> None:
    """Print text from outside: as it is into a pipe, harmless on a terminal."""
    click.echo(printable(text) if sys.stdout.isatty() else well_formed(text))


def first_line(text: str, width: int = 100) -> str:
    """Cut a description to one line of at most ``width`` characters."""
    line = text.strip().partition("\n")[0]
    return printable(line if len(line) <= width else f"{line[: width - 1]}…")


def one_line(text: str) -> str:
    """Text with parts from outside as one line, so that none of them passes for another line."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")
