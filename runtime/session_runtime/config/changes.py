"""What differs between two snapshots, for receipts; what follows from it is decided in ``live``."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from session_runtime.config.keys import KeyPath, dotted
from session_runtime.config.origin import DEFAULT, Candidate
from session_runtime.config.section import Acts
from session_runtime.config.shape import leaf_at
from session_runtime.config.snapshot import ConfigSnapshot, orders_of, plain, values_of
from session_runtime.config.written import in_another_order
from session_runtime.wire import to_bytes

_PROMPT_FILE: KeyPath = ("ask", "prompt_file")
_LONGEST_VALUE: Final = 60


@dataclass(frozen=True, slots=True)
class Change:
    """One key that was edited, with JSON values, secrets masked; None where the key was not there.

    ``shadowed_by`` names the source that keeps the edit of the file from having any effect (CFG-3);
    None if the change is in force, or will be once ``acts`` comes.
    """

    key: str
    old: object
    new: object
    acts: Acts
    shadowed_by: str | None = None

    @property
    def shadow(self) -> str | None:
        """Say that the edit has no effect and why; None if it has one."""
        return None if self.shadowed_by is None else f"no effect: shadowed by {self.shadowed_by}"

    @property
    def told(self) -> str:
        """Tell it on one line, for a log: the key, both values cut short, and the shadow (REL-3)."""
        without = "" if self.shadow is None else f" ({self.shadow})"
        return f"{self.key}: {_short(self.old)} -> {_short(self.new)}{without}"


def changes(old: ConfigSnapshot, new: ConfigSnapshot) -> tuple[Change, ...]:
    """List every key whose value differs, and every edit of the file that is shadowed.

    A rotated secret and a new text in the same prompt file are changes whose two values look alike. The
    names of a table whose order matters are listed under its key if they come in another order.
    """
    before, after = values_of(old.settings), values_of(new.settings)
    edited = (
        change
        for path in dict.fromkeys((*after, *before))
        for change in (
            *_in_force(path, before.get(path), after.get(path), old, new),
            *_shadowed(path, old.provenance.get(path, ()), new.provenance.get(path, ())),
        )
    )
    return (*edited, *_in_another_order(orders_of(old.settings), orders_of(new.settings)))


def _in_another_order(
    before: Mapping[KeyPath, list[str]], after: Mapping[KeyPath, list[str]]
) -> Iterator[Change]:
    for table, names in after.items():
        if in_another_order(before.get(table, ()), names):
            yield Change(dotted(table), before[table], names, "next ask")


def _in_force(
    path: KeyPath, before: object, after: object, old: ConfigSnapshot, new: ConfigSnapshot
) -> Iterator[Change]:
    if _is_default_of_an_entry(path, old, new) or _is_default_of_an_entry(path, new, old):
        return
    new_text = path == _PROMPT_FILE and after is not None and old.system_prompt != new.system_prompt
    if before != after or new_text:
        yield Change(
            dotted(path),
            plain(path, before, old.provenance.get(path, ())),
            plain(path, after, new.provenance.get(path, ())),
            leaf_at(path).acts,
        )


def _is_default_of_an_entry(path: KeyPath, without: ConfigSnapshot, there: ConfigSnapshot) -> bool:
    """Whether only one of them has the table around a key, and nobody gave the key there."""
    given = there.provenance.get(path)
    return path not in without.provenance and given is not None and given[0].origin == DEFAULT


def _shadowed(
    path: KeyPath, old: tuple[Candidate, ...], new: tuple[Candidate, ...]
) -> Iterator[Change]:
    before, after = _of_file(old), _of_file(new)
    in_force = new[0].origin if new else DEFAULT
    if _value(before) != _value(after) and in_force.kind not in ("config", "default"):
        yield Change(
            dotted(path),
            plain(path, _value(before), before),
            plain(path, _value(after), after),
            leaf_at(path).acts,
            shadowed_by=str(in_force),
        )


def _of_file(candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    return tuple(each for each in candidates if each.origin.kind == "config")


def _value(candidates: tuple[Candidate, ...]) -> object:
    return candidates[0].value if candidates else None


def _short(value: object) -> str:
    if value is None:
        return "unset"
    bounded = value[:_LONGEST_VALUE] if isinstance(value, str) else value
    text = to_bytes(bounded).decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"
