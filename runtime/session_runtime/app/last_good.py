"""Starts from the newest configuration that worked where the file cannot be used (REL-6)."""

import logging
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tomli_w

from session_runtime.app.reader import ConfigReader
from session_runtime.config.history import FOLDER, History
from session_runtime.config.keys import KeyPath, dotted
from session_runtime.config.snapshot import ConfigSnapshot, moved
from session_runtime.config.sources import parse_toml
from session_runtime.config.written import REMOVED, value_at, with_secrets, with_value
from session_runtime.errors import ConfigError, Problem

KEYS: Final[KeyPath] = ("http", "keys")
ACCESS: Final[KeyPath] = ("access",)
_HASH: Final = b"sha256:"

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _File:
    """What can be told of the file: ``data`` is empty if it cannot be understood."""

    data: Mapping[str, object]
    may_hold_keys: bool


def last_good(read: ConfigReader, fault: ConfigError) -> ConfigSnapshot:
    """Give the newest entry of the history as a configuration; ``fault`` is what is wrong now.

    The history holds no secrets: those that were written out come from the file, where it is TOML and
    still has them. Who may call, and what callers may do, is what such a file says (NET-2). Raises
    ConfigError with the fault, and with what else is in the way.
    """
    history = History(read.state_dir() / FOLDER)
    try:
        entries = history.entries()
        if not entries:
            raise ConfigError([Problem("the history is empty", source="--last-good")])
        number = entries[0].number
        kept, now = history.read(number), _read_file(read.path)
        entry = _with_access_of(now.data, _with_keys_of(now.data, kept), fault)
        data, missing = with_secrets(entry, now.data)
        if missing:
            raise ConfigError([_secret_lost(number, dotted(key)) for key in missing])
        snapshot = _read_entry(read, number, data)
        if not snapshot.settings.http.keys:
            _expect_none_needed(number, kept, now)
    except ConfigError as error:
        raise ConfigError([*fault.problems, *_untold(error, fault)]) from None
    return snapshot


def _read_entry(read: ConfigReader, number: int, data: Mapping[str, object]) -> ConfigSnapshot:
    """Read what the entry comes to: its text is made up, so that nothing stands at a line of a file."""
    text, name = tomli_w.dumps(data).encode("utf-8"), f"history entry {number}"
    try:
        return read(text).said_by(name)
    except ConfigError as error:
        raise ConfigError(moved(error.problems, parse_toml(read.path, text), name)) from None


def _with_keys_of(now: Mapping[str, object], entry: Mapping[str, object]) -> Mapping[str, object]:
    """Take all keys from the file, where it can be understood: any other one was removed or changed."""
    if not now:
        return entry
    valid = value_at(now, KEYS)
    for name in _names(entry):
        if value_at(now, (*KEYS, name)) is REMOVED:
            _log.warning("the key of %s is not in the file any more, and lets nobody in", name)
    return with_value(entry, KEYS, valid)


def _with_access_of(
    now: Mapping[str, object], entry: Mapping[str, object], fault: ConfigError
) -> Mapping[str, object]:
    """Take the rules from the file, if it has any that can be used."""
    stated = value_at(now, ACCESS)
    is_faulty = any(f"{each.key}.".startswith(f"{dotted(ACCESS)}.") for each in fault.problems)
    return entry if stated is REMOVED or is_faulty else with_value(entry, ACCESS, stated)


def _expect_none_needed(number: int, kept: Mapping[str, object], now: _File) -> None:
    """Refuse to let in everybody who is on this machine, unless nobody needed a key before."""
    names = _names(kept)
    if names:
        message = (
            f"the file has none of the keys that entry {number} of the history lets in"
            f" ({', '.join(names)}): mend the file, or add a key to it (keys add NAME)"
        )
    elif now.may_hold_keys:
        message = (
            f"entry {number} of the history has no key, but the file may: every caller on this machine"
            " would be an administrator; mend the file"
        )
    else:
        return
    raise ConfigError([Problem(message, key=dotted(KEYS), source="--last-good")])


def _names(data: Mapping[str, object]) -> tuple[str, ...]:
    keys = value_at(data, KEYS)
    return tuple(keys) if isinstance(keys, Mapping) else ()


def _read_file(path: Path) -> _File:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return _File({}, may_hold_keys=False)
    except OSError:
        return _File({}, may_hold_keys=True)
    try:
        data = tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        in_any_encoding = content.replace(b"\0", b"")
        return _File({}, may_hold_keys=_HASH in in_any_encoding)
    return _File(data, may_hold_keys=bool(_names(data)))


def _untold(error: ConfigError, fault: ConfigError) -> Iterator[Problem]:
    """Leave out what was found in the file already: here it would stand at lines that are in no file."""
    told = {(each.key, each.message) for each in fault.problems}
    return (each for each in error.problems if (each.key, each.message) not in told)


def _secret_lost(number: int, key: str) -> Problem:
    return Problem(
        f"entry {number} of the history had a secret here that was written out, and the file gives none:"
        ' mend the file, and give secrets as "env:NAME" or "file:/path", which the history keeps',
        key=key,
        source="--last-good",
    )
