"""Reads the configuration to look at it, from a shell whose environment need not be the daemon's."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from session_runtime.app.reader import ConfigReader
from session_runtime.cli.options import Files
from session_runtime.config.edit import ConfigFile, open_file
from session_runtime.config.history import FOLDER, Entry, History
from session_runtime.config.keys import dotted
from session_runtime.config.places import STATE_DIR
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import ConfigError, Problem, RequestError
from session_runtime.wire import printable, strict_json


def reader_of(files: Files) -> ConfigReader:
    """Read what a command was told to, as often as it likes."""
    explicit = {} if files.state_dir is None else {dotted(STATE_DIR): str(files.state_dir)}
    return ConfigReader(files.config, explicit=explicit, env_file=files.env_file)


def state_dir_of(files: Files) -> Path:
    """The folder where the daemon keeps its state; nothing is read where it was named."""
    return files.state_dir or reader_of(files).state_dir()


class Look:
    """The configuration to look at, not to use: a secret that only the daemon may reach is a warning."""

    def __init__(self, reader: ConfigReader) -> None:
        self._reader = reader

    def __call__(self, text: bytes | None = None) -> ConfigSnapshot:
        """Read it, with ``text`` instead of the file's content; raises ConfigError."""
        return self._reader(text, absent="warning")


def opened_to_edit(reader: ConfigReader) -> ConfigFile:
    """Read the file to edit it; ConfigError names the ways to get one where there is none."""
    try:
        return open_file(reader.path)
    except ConfigError as error:
        entries = () if reader.path.exists() else _entries(reader)
        if not entries:
            raise
        number = entries[0].number
        way_out = f"or go back to what worked: session-runtime config rollback {number}"
        raise ConfigError([*error.problems, Problem(way_out, source=reader.path.name)]) from None


def _entries(reader: ConfigReader) -> Sequence[Entry]:
    try:
        return History(reader.state_dir() / FOLDER).entries()
    except (ConfigError, OSError):
        return ()


def json_of(path: Path, way_out: str) -> Any:
    """What a file of JSON says; RequestError with the ``way_out`` if it is none or cannot be read."""
    try:
        return strict_json(path.read_text("utf-8-sig"))
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RequestError(f"{path}: it is not UTF-8 at byte {error.start}; {way_out}") from error
    except ValueError as error:
        raise RequestError(f"{path}: it cannot be read as JSON: {error}; {way_out}") from error


def source_of(reader: ConfigReader) -> str:
    """Say which file the configuration is read from, or that there is none."""
    if reader.path.exists():
        return str(reader.path)
    return f"no {reader.path}: defaults and variables alone"


def looked_at(reader: ConfigReader, text: bytes | None = None) -> ConfigSnapshot:
    """Read it; what was set without effect, or cannot be reached, is told on the error stream.

    ``text`` stands in for the file's content.
    """
    snapshot = Look(reader)(text)
    for warning in snapshot.warnings:
        click.echo(f"warning: {printable(str(warning))}", err=True)
    return snapshot
