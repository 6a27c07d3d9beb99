"""Fills the arguments of a tool from a question: the best evidence first, no piece of it used twice.

What counts as evidence for a value is decided in ``evidence``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from session_runtime.models.offline.evidence import Evidence, evidence_for
from session_runtime.models.offline.leaves import Leaf, build, leaves_of
from session_runtime.models.offline.spans import Question
from session_runtime.types import JsonObject

_ENOUGH_FOR_OPTIONAL: Final = 55


@dataclass(frozen=True, slots=True)
class Filled:
    """Arguments as far as they were found; ``missing`` are the required values that were not."""

    arguments: dict[str, Any]
    missing: tuple[str, ...]


def fill(question: Question, schema: JsonObject) -> Filled:
    """Arguments for a JSON Schema of type object; a tool is only to be called if nothing is missing.

    Optional values are left out unless the question states them.
    """
    leaves = leaves_of(schema)
    values = _assigned(leaves, _by_strength(question, leaves))
    for leaf in leaves:
        if leaf.required and leaf.path not in values and "default" in leaf.schema:
            values[leaf.path] = leaf.schema["default"]
    for leaf in leaves:
        if leaf.kind == "frame" and _is_wanted(leaf, values):
            values[leaf.path] = {}
    missing = tuple(leaf.title for leaf in leaves if leaf.required and leaf.path not in values)
    return Filled(build(leaves, values), missing)


def _is_wanted(frame: Leaf, values: Mapping[tuple[str, ...], Any]) -> bool:
    """Whether the arguments, or the optional object around a frame, hold anything that needs it."""
    anchor = frame.anchor or ()
    return frame.required or any(path[: len(anchor)] == anchor for path in values)


def _by_strength(question: Question, leaves: Sequence[Leaf]) -> list[tuple[Leaf, Evidence]]:
    found = [
        (leaf, evidence)
        for leaf in leaves
        for evidence in evidence_for(question, leaf)
        if leaf.required or evidence.strength >= _ENOUGH_FOR_OPTIONAL
    ]
    return sorted(found, key=lambda pair: (-pair[1].strength, not pair[0].required))


def _assigned(
    leaves: Sequence[Leaf], pairs: Iterable[tuple[Leaf, Evidence]]
) -> dict[tuple[str, ...], Any]:
    values: dict[tuple[str, ...], Any] = {}
    used: list[Evidence] = []
    for leaf, evidence in pairs:
        if leaf.path not in values and not any(evidence.overlaps(other) for other in used):
            values[leaf.path] = evidence.value
            used.append(evidence)
    return {leaf.path: values[leaf.path] for leaf in leaves if leaf.path in values}
