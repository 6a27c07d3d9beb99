"""Brings a configuration file back to an entry of the history, through the checks of every edit (REL-6).

What the entry says is decided in ``history``; how it gets into the file, in ``edit``.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from session_runtime.config.edit import Check, ConfigFile, Edit, draft, judged
from session_runtime.config.history import History
from session_runtime.config.keys import KeyPath, dotted
from session_runtime.config.rewrite import edits
from session_runtime.config.written import REMOVED, edited_keys, value_at, with_secrets, with_value
from session_runtime.errors import ConfigError, Problem, RequestError

KEPT: Final[Mapping[str, KeyPath]] = MappingProxyType(
    {"keys": ("http", "keys"), "access": ("access",)}
)
"""What stays as it is in the file unless it is named: who may call, and what they may do."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """The edit that goes back to an entry, and the names of what it leaves although it differs."""

    edit: Edit
    left: tuple[str, ...]


def plan_rollback(
    file: ConfigFile, history: History, number: int, check: Check, include: Collection[str] = ()
) -> Rollback:
    """Work out how to go back, and see that it makes a good configuration; nothing is written.

    Raises what ``draft_rollback`` and ``judged`` raise.
    """
    drafted = draft_rollback(file, history, number, include)
    return replace(drafted, edit=judged(drafted.edit, check))


def draft_rollback(
    file: ConfigFile, history: History, number: int, include: Collection[str] = ()
) -> Rollback:
    """Work out how to go back; whether that can be used is for others to judge.

    Secrets that were written out are not in the history: those in the file now stay (CFG-4b).
    ``include`` names what of ``KEPT`` goes back too. Raises what ``History.read`` and ``draft`` raise,
    and RequestError for a secret that is not in the file now, or if the file holds nothing to keep.
    """
    entry, now = history.read(number), _data(file)
    kept = {name: path for name, path in KEPT.items() if name not in include}
    if file.is_blank:
        _expect_nothing_kept(file, number, entry, kept)
    target: Mapping[str, object] = entry
    for path in kept.values():
        target = with_value(target, path, value_at(now, path))
    target, missing = with_secrets(target, now)
    if missing:
        raise RequestError(
            f"the history holds no secrets, and {file.place} has none for"
            f" {', '.join(map(dotted, missing))}: write it there first, best as"
            ' "env:NAME" or "file:/path", and go back then',
            code="config.secret_not_kept",
        )
    differing = edited_keys(now, entry)
    left = [
        name for name, path in kept.items() if any(key[: len(path)] == path for key in differing)
    ]
    return Rollback(draft(file, edits(now, target), goes_back=True), tuple(left))


def _data(file: ConfigFile) -> Mapping[str, object]:
    try:
        return file.data
    except ConfigError as error:
        way_out = "mend that, or move the file away, and go back then"
        raise ConfigError([*error.problems, Problem(way_out, source=file.name.name)]) from None


def _expect_nothing_kept(
    file: ConfigFile, number: int, entry: Mapping[str, object], kept: Mapping[str, KeyPath]
) -> None:
    lost = [name for name, path in kept.items() if value_at(entry, path) not in ({}, REMOVED)]
    if lost:
        raise RequestError(
            f"{file.place} holds nothing, so {' and '.join(lost)} cannot stay as they are: to take those"
            f" of entry {number}, say --include {','.join(lost)}",
            code="config.nothing_to_keep",
        )
