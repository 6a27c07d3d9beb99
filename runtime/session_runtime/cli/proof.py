"""Whether an edit makes a configuration that can be used: the daemon tells, else a start is prepared.

Both use the one validator, so an edit that passes is not rejected when the daemon notices it. Where the
daemon answers, its environment counts and not that of the shell.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from session_runtime.app.reader import ConfigReader
from session_runtime.cli.opening import checked
from session_runtime.cli.reading import Look
from session_runtime.client.control import ControlClient
from session_runtime.config.edit import ConfigFile, Edit, judged, unplaced, with_shadows
from session_runtime.config.keys import KeyPath, dotted
from session_runtime.config.places import STATE_DIR
from session_runtime.config.secrets import NOT_SET
from session_runtime.config.written import REMOVED, Difference, value_at
from session_runtime.errors import ConfigError, Problem, SessionRuntimeError
from session_runtime.wire import to_bytes

KEYS: Final[KeyPath] = ("http", "keys")
OPEN: Final = "without a key, every caller on this machine is an administrator"
NO_KEY: Final = Problem(f"no key is left: {OPEN}")
STILL_IN: Final = Problem(
    "no key is left in the file, but the running daemon keeps those it has until a restart: to lock them"
    f" out now, add another key first, then remove these; after a restart, {OPEN}"
)
"""The warnings of an edit after which there is no key, without a daemon and with one."""

_UNREACHED: Final = frozenset({"daemon.not_running", "daemon.forbidden"})
_Receipt = Mapping[str, Any]
_UNKNOWN_SECRETS: Final = Problem(
    "no daemon of this file answers that could check the edit with its own environment, so nothing was"
    " written: set in this shell what is not set, or name the file of variables by --env-file, or"
    " start the daemon first"
)
_OF_THE_DAEMON: Final = (
    "in the environment of the running daemon: restart it with the variable, or give the secret as"
    ' "file:/path"'
)


def proven(reader: ConfigReader, edit: Edit) -> Edit:
    """Give a drafted edit with all warnings of what it makes, and with when each change acts.

    Raises ConfigError if that cannot be used, RequestError if it would have no effect (CFG-3b), and what
    a daemon answers that does not look at it.
    """
    receipt = _receipt(reader, edit)
    if receipt is None:
        return _by_a_start(reader, edit)
    return _by_the_daemon(receipt, edit)


def _receipt(reader: ConfigReader, edit: Edit) -> _Receipt | None:
    """What the daemon of this very file says a reload would come to; None if none can be reached.

    What it refuses to look at is not for this shell to judge: raises what it answers.
    """
    for state_dir in dict.fromkeys(_state_dirs(reader, edit)):
        daemon = ControlClient(state_dir)
        try:
            if _reads(daemon.request("GET", "/v1/config")["file"], edit.file):
                return daemon.request("POST", "/v1/config/validate", toml=edit.content)
        except SessionRuntimeError as error:
            if error.code not in _UNREACHED:
                raise
    return None


def _state_dirs(reader: ConfigReader, edit: Edit) -> Iterator[Path]:
    """Where the daemon may be found: what the file says, and, should that be taken back, said before."""
    for text in (None, edit.content):
        with suppress(ConfigError):
            yield reader.state_dir(text)


def _reads(file: str | None, edited: ConfigFile) -> bool:
    return file is not None and Path(file).resolve() == edited.place


def _by_the_daemon(receipt: _Receipt, edit: Edit) -> Edit:
    if receipt["verdict"] == "rejected":
        told = (Problem(**problem) for problem in receipt["errors"])
        raise ConfigError(map(_as_the_daemons, unplaced(told, edit)))
    shadows = {
        change["key"]: change["shadowed_by"]
        for change in receipt["changes"]
        if change["shadowed_by"] is not None and change["key"] in edit.told
    }
    acting = tuple(_as_told(edit.differences, receipt))
    looked_at = replace(edit, differences=acting, warnings=tuple(_warnings(receipt, edit)))
    return with_shadows(
        looked_at, shadows, "the running daemon has it: change it there, and restart it"
    )


def _warnings(receipt: _Receipt, edit: Edit) -> Iterator[Problem]:
    yield from (Problem(**problem) for problem in receipt["warnings"])
    yield from (
        _beside(change)
        for change in receipt["changes"]
        if change["key"] not in edit.told and change["shadowed_by"] is None
    )
    if _keeps_keys(receipt) and any(path[: len(KEYS)] == KEYS for path in edit.touched):
        yield STILL_IN
    if dotted(STATE_DIR) in edit.told:
        yield from map(_elsewhere, _of_state_dir(receipt["restart_needed"]))


def _beside(change: _Receipt) -> Problem:
    """What the file, or a file that it names, says otherwise by now than what is in force."""
    values = (to_bytes(change[when]).decode() for when in ("old", "new"))
    return Problem(
        f"comes into force too, as it was changed before: {' -> '.join(values)}", key=change["key"]
    )


def _of_state_dir(waiting: Iterable[_Receipt]) -> Iterator[str]:
    return (change["old"] for change in waiting if change["key"] == dotted(STATE_DIR))


def _elsewhere(state_dir: str) -> Problem:
    return Problem(
        "the running daemon keeps its folder until a restart: until then commands find it only by"
        f" --state-dir {state_dir}",
        key=dotted(STATE_DIR),
    )


def _as_the_daemons(problem: Problem) -> Problem:
    """Say whose environment lacks a variable: the shell may well have it."""
    if problem.message.endswith(NOT_SET):
        return replace(problem, message=f"{problem.message} {_OF_THE_DAEMON}")
    return problem


def _as_told(differences: Sequence[Difference], receipt: _Receipt) -> Iterator[Difference]:
    """Give the differences with when the daemon says that they act."""
    told = [*receipt["changes"], *receipt["restart_needed"]]
    acts = {change["key"]: change["acts"] for change in told}
    waits = _keeps_keys(receipt)
    for each in differences:
        held_back = waits and each.key.startswith(f"{dotted(KEYS)}.")
        yield replace(each, acts="restart" if held_back else acts.get(each.key, each.acts))


def _keeps_keys(receipt: _Receipt) -> bool:
    """Whether the daemon keeps all keys that it has, as none would be left."""
    return any(change["key"] == dotted(KEYS) for change in receipt["restart_needed"])


def _by_a_start(reader: ConfigReader, edit: Edit) -> Edit:
    looked_at = judged(edit, Look(reader))
    try:
        snapshot = reader(edit.content, absent="fault here")
    except ConfigError as error:  # all else that reading can find was found already
        raise ConfigError([*error.problems, _UNKNOWN_SECRETS]) from None
    generation = asyncio.run(checked(snapshot)).generation
    told = (*looked_at.warnings, *map(Problem, generation.warnings))
    had_keys = value_at(edit.file.data, KEYS) not in ({}, REMOVED)
    if had_keys and not snapshot.settings.http.keys:
        told = (*told, NO_KEY)
    return replace(looked_at, warnings=told)
