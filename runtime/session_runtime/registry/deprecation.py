"""What is told of a tool that should no longer be used: to a model, to its caller, to operators (RTE-12)."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from session_runtime.registry.names import WireNames
from session_runtime.registry.spec import ToolSpec
from session_runtime.spelling import hint

MOST_TOLD: Final = 20
MOST_REASON_CHARS: Final = 200


def replacement_of(spec: ToolSpec, usable: Collection[str]) -> str | None:
    """The tool to use instead, if there is one that whoever is told may use; else None."""
    instead = None if spec.deprecated is None else spec.deprecated.replacement
    return instead if instead in usable else None


class Shown(NamedTuple):
    """How a model sees a tool: its wire name, and that of its replacement, if the model may know of it."""

    name: str
    instead: str | None


def shown(spec: ToolSpec, names: WireNames) -> Shown:
    """How who knows tools by ``names`` sees one of them."""
    instead = None if spec.deprecated is None else spec.deprecated.replacement
    known = instead is not None and names.has(instead)
    return Shown(names.encode(spec.name), names.encode(instead) if instead and known else None)


def described(spec: ToolSpec, instead: str | None) -> str:
    """The description that a model reads; ``instead`` is the replacement that it may know of."""
    if spec.deprecated is None:
        return spec.description
    note = "Deprecated." if instead is None else f"Deprecated: use {instead} instead."
    return f"{spec.description}\n{note}" if spec.description else note


def warning(spec: ToolSpec, instead: str | None) -> str:
    """What stands below the result of a call of a deprecated tool; empty for any other."""
    if spec.deprecated is None:
        return ""
    reason = " ".join(spec.deprecated.reason.split())[:MOST_REASON_CHARS].rstrip(".")
    why = f" ({reason})" if reason else ""
    way_out = "" if instead is None else f": use {instead} instead"
    return f"Note: {spec.name} is deprecated{why}{way_out}."


def unusable_replacements(specs: Sequence[ToolSpec]) -> Iterator[str]:
    """Replacements that are no help, each with what is wrong; the first ones, and how many more."""
    by_name = {spec.name: spec for spec in specs}
    faults = _faults(specs, by_name)
    yield from islice(faults, MOST_TOLD)
    more = sum(1 for _ in faults)
    if more:
        yield f"{more} more deprecated tools have a replacement that is no help"


def _faults(specs: Sequence[ToolSpec], by_name: dict[str, ToolSpec]) -> Iterator[str]:
    for spec in specs:
        instead = None if spec.deprecated is None else spec.deprecated.replacement
        if instead is None:
            continue
        told = f"tool {spec.name!r} is deprecated, and its replacement {instead!r}"
        if instead == spec.name:
            yield f"{told} is the tool itself"
        elif instead not in by_name:
            way_out = hint(instead, by_name)
            yield f"{told} is no tool{f'; {way_out}' if way_out else ''}"
        elif by_name[instead].deprecated is not None:
            yield f"{told} is deprecated too"
