"""Whether an edit makes a configuration that can be used: the daemon tells, else a start is prepared.

Both use the one validator, so an edit that passes is not rejected when the daemon notices it.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from session_runtime.app.reader import ConfigReader
from session_runtime.cli.opening import checked
from session_runtime.cli.reading import Look
from session_runtime.client.control import ControlClient
from session_runtime.config.edit import ConfigFile, Edit
from session_runtime.config.keys import KeyPath
from session_runtime.config.written import REMOVED, value_at
from session_runtime.errors import ConfigError, Problem, SessionRuntimeError

KEYS: Final[KeyPath] = ("http", "keys")
OPEN: Final = "without a key, every caller on this machine is an administrator"

_UNKNOWN_SECRETS: Final = Problem(
    "no daemon of this file answers that could check the edit with its own environment, so nothing was"
    " written: set in this shell what is not set, or name the file of variables by --env-file, or"
    " start the daemon first"
)


def proven(reader: ConfigReader, edit: Edit) -> Edit:
    """Give the edit with all warnings of what it makes; raises ConfigError if that cannot be used."""
    receipt = _receipt(reader, edit)
    warnings = _by_a_start(reader, edit) if receipt is None else _by_the_daemon(receipt)
    return replace(edit, warnings=(*warnings, *_opened(reader, edit)))


def _opened(reader: ConfigReader, edit: Edit) -> Iterator[Problem]:
    """Warn of an edit that takes the last key away: nobody is kept out by what remains."""
    had_keys = value_at(edit.file.data, KEYS) not in ({}, REMOVED)
    if had_keys and not Look(reader)(edit.content).settings.http.keys:
        yield Problem(f"no key is left: {OPEN}")


def _receipt(reader: ConfigReader, edit: Edit) -> Mapping[str, Any] | None:
    """What the daemon of this very file says a reload would come to; None if none answers."""
    try:
        daemon = ControlClient(reader.state_dir())
        if not _reads(daemon.request("GET", "/v1/config")["file"], edit.file):
            return None
        return daemon.request("POST", "/v1/config/validate", toml=edit.content)
    except SessionRuntimeError:
        return None


def _reads(file: str | None, edited: ConfigFile) -> bool:
    return file is not None and Path(file).resolve() == edited.place


def _by_the_daemon(receipt: Mapping[str, Any]) -> tuple[Problem, ...]:
    if receipt["verdict"] == "rejected":
        raise ConfigError(Problem(**problem) for problem in receipt["errors"])
    return tuple(Problem(**problem) for problem in receipt["warnings"])


def _by_a_start(reader: ConfigReader, edit: Edit) -> tuple[Problem, ...]:
    try:
        snapshot = reader(edit.content, absent="fault here")
    except ConfigError as error:  # all else that reading can find was found when it was planned
        raise ConfigError([*error.problems, _UNKNOWN_SECRETS]) from None
    generation = asyncio.run(checked(snapshot)).generation
    return (*generation.snapshot.warnings, *map(Problem, generation.warnings))
