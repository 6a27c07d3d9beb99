"""Reads the configuration to look at it, from a shell whose environment need not be the daemon's."""

import click

from session_runtime.app.reader import ConfigReader
from session_runtime.cli.options import Files
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.wire import printable


def reader_of(files: Files) -> ConfigReader:
    """Read what a command was told to, as often as it likes."""
    return ConfigReader(files.config, env_file=files.env_file)


class Look:
    """The configuration to look at, not to use: a secret that only the daemon may reach is a warning."""

    def __init__(self, reader: ConfigReader) -> None:
        self._reader = reader

    def __call__(self, text: bytes | None = None) -> ConfigSnapshot:
        """Read it, with ``text`` instead of the file's content; raises ConfigError."""
        return self._reader(text, absent="warning")


def looked_at(reader: ConfigReader) -> ConfigSnapshot:
    """Read it; what was set without effect, or cannot be reached, is told on the error stream."""
    snapshot = Look(reader)()
    for warning in snapshot.warnings:
        click.echo(f"warning: {printable(str(warning))}", err=True)
    return snapshot
