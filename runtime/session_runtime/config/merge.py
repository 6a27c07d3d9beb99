"""Which source wins: all readings as candidates per key, the one in force first (CFG-2)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from session_runtime.config.keys import KeyPath, dotted, variable_form
from session_runtime.config.origin import Candidate, Candidates, Reading
from session_runtime.config.shape import NOTICES, OLD_NOTICES
from session_runtime.config.tools import notice_mode
from session_runtime.config.variables import variable_name
from session_runtime.errors import Problem


@dataclass(frozen=True, slots=True)
class Clash:
    """Two spellings that cannot both stand; ``path`` is where the second one is."""

    path: KeyPath
    message: str


def merge(readings: Iterable[Reading]) -> Candidates:
    """Join readings, given highest precedence first; the first candidate of a key is in force.

    The old spelling of ``notices.mode`` becomes a candidate of the new one.
    """
    merged: dict[KeyPath, tuple[Candidate, ...]] = {}
    for reading in readings:
        for path, candidate in reading.leaves.items():
            if path == OLD_NOTICES:
                path, candidate = NOTICES, replace(candidate, value=notice_mode(candidate.value))
            merged[path] = (*merged.get(path, ()), candidate)
    return merged


def old_and_new(candidates: Candidates) -> Iterator[Problem]:
    """Find sources that spell ``notices.mode`` both ways and mean different things."""
    given = candidates.get(NOTICES, ())
    for one, other in pairwise(given):
        if one.origin.kind == other.origin.kind and one.key != other.key:
            if one.value != other.value:
                message = f"says something else than {dotted(one.key)}; remove one of them"
                yield other.origin.problem(dotted(other.key), message)


def same_variable(entries: Sequence[KeyPath]) -> Iterator[Clash]:
    """Find names in a table that one environment variable would mean alike (CFG-2)."""
    seen: dict[tuple[str, ...], KeyPath] = {}
    for entry in entries:
        form = tuple(variable_form(part) for part in entry)
        first = seen.setdefault(form, entry)
        if first != entry:
            yield Clash(
                entry,
                f"{dotted(first)} is also {variable_name(entry)} in the environment;"
                " rename one of them",
            )
