"""Starts from the newest configuration that worked where the file cannot be used (REL-6)."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import tomli_w

from session_runtime.app.reader import ConfigReader
from session_runtime.config.history import FOLDER, History
from session_runtime.config.keys import dotted
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.config.written import with_secrets
from session_runtime.errors import ConfigError, Problem


def last_good(read: ConfigReader, fault: ConfigError) -> ConfigSnapshot:
    """Give the newest entry of the history as a configuration; ``fault`` is what is wrong now.

    The history holds no secrets: those that were written out come from the file, where it is TOML and
    still has them. Raises ConfigError with the fault, and with what else is in the way.
    """
    history = History(read.state_dir() / FOLDER)
    try:
        entries = history.entries()
        if not entries:
            raise ConfigError([Problem("the history is empty", source="--last-good")])
        data, missing = with_secrets(history.read(entries[0].number), _now(read.path))
        if missing:
            raise ConfigError([_secret_lost(entries[0].number, dotted(key)) for key in missing])
        return read(tomli_w.dumps(data).encode("utf-8"))
    except ConfigError as error:
        raise ConfigError([*fault.problems, *error.problems]) from None


def _now(path: Path) -> Mapping[str, object]:
    """What the file says, if that can be understood."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}


def _secret_lost(number: int, key: str) -> Problem:
    return Problem(
        f"entry {number} of the history had a secret here that was written out, and the file gives none:"
        ' mend the file, and give secrets as "env:NAME" or "file:/path", which the history keeps',
        key=key,
        source="--last-good",
    )
