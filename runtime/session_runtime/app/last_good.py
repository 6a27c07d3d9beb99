"""Starts from the newest configuration that worked where the file cannot be used (REL-6)."""

import logging
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import tomli_w

from session_runtime.app.reader import ConfigReader
from session_runtime.config.history import FOLDER, History
from session_runtime.config.keys import KeyPath, dotted
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.config.written import REMOVED, value_at, with_secrets, with_value
from session_runtime.errors import ConfigError, Problem

KEYS: Final[KeyPath] = ("http", "keys")

_log: Final = logging.getLogger(__name__)


def last_good(read: ConfigReader, fault: ConfigError) -> ConfigSnapshot:
    """Give the newest entry of the history as a configuration; ``fault`` is what is wrong now.

    The history holds no secrets: those that were written out come from the file, where it is TOML and
    still has them. A key of a caller that the file does not have any more stays out. Raises ConfigError
    with the fault, and with what else is in the way.
    """
    history = History(read.state_dir() / FOLDER)
    try:
        entries = history.entries()
        if not entries:
            raise ConfigError([Problem("the history is empty", source="--last-good")])
        now, newest = _now(read.path), entries[0].number
        entry = _without_removed_keys(newest, history.read(newest), now)
        data, missing = with_secrets(entry, now)
        if missing:
            raise ConfigError([_secret_lost(entries[0].number, dotted(key)) for key in missing])
        return read(tomli_w.dumps(data).encode("utf-8"))
    except ConfigError as error:
        raise ConfigError([*fault.problems, *error.problems]) from None


def _without_removed_keys(
    number: int, entry: Mapping[str, object], now: Mapping[str, object]
) -> Mapping[str, object]:
    """Take out the keys that the file, where it can be read, does not have any more (NET-2).

    Raises ConfigError if none would be left, as then every caller on this machine would be let in.
    """
    kept, present = value_at(entry, KEYS), value_at(now, KEYS)
    if not now or not isinstance(kept, Mapping) or not kept:
        return entry
    valid = present if isinstance(present, Mapping) else {}
    removed = [name for name in kept if _hash(kept[name]) != _hash(valid.get(name))]
    if len(removed) == len(kept):
        message = (
            f"the file has none of the keys that entry {number} of the history lets in"
            f" ({', '.join(removed)}): mend the file, or add a key to it (keys add NAME)"
        )
        raise ConfigError([Problem(message, key=dotted(KEYS), source="--last-good")])
    for name in removed:
        _log.warning("the key of %s is not in the file any more, and lets nobody in", name)
        entry = with_value(entry, (*KEYS, name), REMOVED)
    return entry


def _hash(key: object) -> object:
    return key.get("hash") if isinstance(key, Mapping) else None


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
