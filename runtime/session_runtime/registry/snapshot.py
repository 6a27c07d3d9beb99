"""All tools at one time as plain data, and what changed between two times, for a pipeline to judge (RTE-12).

What is a breaking change of a schema is decided in ``narrowing``.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from session_runtime.registry.narrowing import narrowed
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import JsonObject

Weight = Literal["compatible", "breaking"]

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class ToolChange:
    """One thing that changed about one tool, in words."""

    tool: str
    weight: Weight
    what: str


def snapshot(specs: Iterable[ToolSpec]) -> JsonObject:
    """Write down what callers of these tools rely on, sorted by name; the same for the same tools."""
    return {
        "version": _VERSION,
        "tools": [_tool(spec) for spec in sorted(specs, key=lambda spec: spec.name)],
    }


def read_snapshot(data: object) -> JsonObject:
    """Check what ``snapshot`` once gave; ValueError for anything else."""
    match data:
        case {"version": 1, "tools": list(tools)} if all(map(_is_tool, tools)):
            return {"version": _VERSION, "tools": tools}
        case {"version": int(version)} if version != _VERSION:
            raise ValueError(f"it has version {version}, and only version {_VERSION} can be read")
    raise ValueError("it is no snapshot of tools: make one by tools snapshot")


def compare(old: JsonObject, new: JsonObject) -> tuple[ToolChange, ...]:
    """All changes, sorted by tool; what breaks nobody is ``compatible``."""
    before = {tool["name"]: tool for tool in old["tools"]}
    after = {tool["name"]: tool for tool in new["tools"]}
    found: list[ToolChange] = []
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            found.append(ToolChange(name, "breaking", _gone(before[name])))
        elif name not in before:
            found.append(ToolChange(name, "compatible", "is new"))
        else:
            found += _changes(name, before[name], after[name])
    return tuple(found)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    old = spec.deprecated
    return {
        "name": spec.name,
        "description_digest": _digest(spec.description),
        "parameters": spec.parameters,
        "parameters_digest": _digest(spec.parameters),
        "output_digest": None if spec.output is None else _digest(spec.output),
        "annotations": {
            "destructive": spec.annotations.destructive,
            "read_only": spec.annotations.read_only,
            "idempotent": spec.annotations.idempotent,
        },
        "source": spec.source_id,
        "requires": sorted(spec.requires),
        "feature": spec.feature,
        "deprecated": None
        if old is None
        else {"reason": old.reason, "replacement": old.replacement},
    }


_KEYS: Final = frozenset(
    {
        *("name", "description_digest", "parameters", "parameters_digest", "output_digest"),
        *("annotations", "source", "requires", "feature", "deprecated"),
    }
)


def _is_tool(tool: object) -> bool:
    if not isinstance(tool, Mapping) or not tool.keys() >= _KEYS:
        return False
    annotations, requires = tool["annotations"], tool["requires"]
    deprecated = tool["deprecated"]
    return (
        isinstance(tool["name"], str)
        and isinstance(annotations, Mapping)
        and isinstance(requires, list)
        and all(isinstance(role, str) for role in requires)
        and (deprecated is None or isinstance(deprecated, Mapping))
    )


def _gone(tool: JsonObject) -> str:
    old = tool["deprecated"]
    return "is gone" if old is None else "is gone; it was deprecated"


def _changes(name: str, old: JsonObject, new: JsonObject) -> Iterator[ToolChange]:
    for fault in _breaking(old, new):
        yield ToolChange(name, "breaking", fault)
    for note in _compatible(old, new):
        yield ToolChange(name, "compatible", note)


def _breaking(old: JsonObject, new: JsonObject) -> Iterator[str]:
    if old["parameters_digest"] != new["parameters_digest"]:
        yield from narrowed(old["parameters"], new["parameters"])
    if new["annotations"].get("destructive") and not old["annotations"].get("destructive"):
        yield "is destructive now"
    for role in new["requires"]:
        if role not in old["requires"]:
            yield f"requires the role {role!r} now"
    if new["feature"] is not None and new["feature"] != old["feature"]:
        yield f"needs the feature {new['feature']!r} now"


def _compatible(old: JsonObject, new: JsonObject) -> Iterator[str]:
    if old["parameters_digest"] != new["parameters_digest"]:
        if not any(narrowed(old["parameters"], new["parameters"])):
            yield "takes other parameters, and all that it took before"
    yield from _other_words(old, new)
    for role in old["requires"]:
        if role not in new["requires"]:
            yield f"does not require the role {role!r} any more"
    if old["feature"] is not None and new["feature"] is None:
        yield f"does not need the feature {old['feature']!r} any more"


def _other_words(old: JsonObject, new: JsonObject) -> Iterator[str]:
    """What is told about a tool, and where it comes from."""
    if old["description_digest"] != new["description_digest"]:
        yield "has another description"
    if old["output_digest"] != new["output_digest"]:
        yield "describes its results in another way"
    for word, value in new["annotations"].items():
        before = old["annotations"].get(word)
        if value != before and not (word == "destructive" and value):
            yield f"{word} is {json.dumps(value)} now"
    if old["source"] != new["source"]:
        yield f"comes from {new['source']} now, before from {old['source']}"
    if old["deprecated"] != new["deprecated"]:
        yield _of_deprecation(new["deprecated"])


def _of_deprecation(now: JsonObject | None) -> str:
    if now is None:
        return "is not deprecated any more"
    replacement = now.get("replacement")
    return f"is deprecated{f', use {replacement}' if replacement else ''}"


def _digest(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
