"""What the configuration says and why: every value with its source, for operators (CFG-3)."""

from collections.abc import Iterable
from dataclasses import dataclass

from session_runtime.config.keys import KeyPath, dotted, nearest, parse_dotted
from session_runtime.config.origin import DEFAULT
from session_runtime.config.section import Acts
from session_runtime.config.shape import (
    NOTICES,
    OLD_NOTICES,
    SHAPE,
    Branch,
    Names,
    entries_on,
    leaf_at,
    node_at,
)
from session_runtime.config.snapshot import ConfigSnapshot, plain, values_of
from session_runtime.errors import RequestError


@dataclass(frozen=True, slots=True)
class Explanation:
    """One key as INT-4 shows it.

    ``value`` is JSON with secrets masked; ``source`` is where it comes from (``config.toml:12``,
    ``env TOOL_SEARCH_ENABLED``, ``default``); ``shadowed`` are the sources that gave the key too
    and have no effect, the strongest first; ``acts`` is when an edit takes effect.
    """

    key: str
    value: object
    source: str
    shadowed: tuple[str, ...]
    acts: Acts


def show(snapshot: ConfigSnapshot) -> tuple[Explanation, ...]:
    """List every key in force, in the order of the documentation (INT-5)."""
    return tuple(
        _explained(snapshot, path, value) for path, value in values_of(snapshot.settings).items()
    )


def explain(snapshot: ConfigSnapshot, key: str) -> Explanation:
    """Explain one dotted key (INT-4); RequestError names the nearest one if there is no such key."""
    values = {dotted(path): (path, value) for path, value in values_of(snapshot.settings).items()}
    written = _as_written(key)
    if written not in values:
        close = nearest(written, [*SHAPE.children, *values])
        hint = f"; did you mean {close}?" if close else "; config show lists all keys"
        raise RequestError(f"no such key: {written}{hint}", code="config.unknown_key")
    return _explained(snapshot, *values[written])


def explain_section(snapshot: ConfigSnapshot, name: str) -> tuple[Explanation, ...] | None:
    """Explain all keys of a section, a table, or an entry of one; None if ``name`` is none that is there."""
    try:
        path = parse_dotted(name)
    except ValueError:
        return None
    path = NOTICES[:1] if path == OLD_NOTICES[:1] else path
    values = values_of(snapshot.settings)
    if not isinstance(node_at(path), Branch | Names):
        return None
    if not all(_inside(entry, values) for entry in entries_on(path)):
        return None
    return tuple(_explained(snapshot, each, values[each]) for each in _inside(path, values))


def _inside(table: KeyPath, paths: Iterable[KeyPath]) -> list[KeyPath]:
    return [path for path in paths if path[: len(table)] == table]


def _as_written(key: str) -> str:
    """Spell the key as this module does; the old spelling of [notices] stands for the new one."""
    try:
        path = parse_dotted(key)
    except ValueError:
        return key
    return dotted(NOTICES if path == OLD_NOTICES else path)


def _explained(snapshot: ConfigSnapshot, path: KeyPath, value: object) -> Explanation:
    candidates = snapshot.provenance[path]
    in_force, *others = (candidate.origin for candidate in candidates)
    return Explanation(
        key=dotted(path),
        value=plain(path, value, candidates),
        source=str(in_force),
        shadowed=tuple(str(origin) for origin in others if origin != DEFAULT),
        acts=leaf_at(path).acts,
    )
