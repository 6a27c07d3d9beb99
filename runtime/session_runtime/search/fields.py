"""What of a tool is searched, field by field, and how much each field counts (TS-8)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from enum import IntEnum

from session_runtime.registry.spec import ToolSpec
from session_runtime.search.terms import normalise, parts, runs

MAX_FIELD_CHARS = 8_000
MAX_SCHEMA_NODES = 2_000
MAX_WEIGHT, MAX_RARITY, LEAST_SATURATION = 1e6, 10.0, 0.01
_TABLES = frozenset({"properties", "$defs", "definitions"})
_INNER = frozenset({"items", "additionalProperties"})
_BRANCHES = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_HOLDING = _TABLES | _INNER | _BRANCHES
_NAMESPACE = re.compile(r".*(?:[./:]|__)", re.DOTALL)


class Field(IntEnum):
    """The parts of a tool's text, in the order in which their weights are stored."""

    NAME = 0
    NAMESPACE = 1
    ALIASES = 2
    HINTS = 3
    DESCRIPTION = 4
    PARAMETERS = 5
    PARAMETER_DESCRIPTIONS = 6
    ENUMS = 7


NAMING = (Field.NAME, Field.NAMESPACE, Field.ALIASES)
"""Fields that make up a tool's name: a match here outranks a match anywhere else."""

OF_NAMES = frozenset((*NAMING, Field.PARAMETERS))
"""Fields that hold names, one a line; what they write as two words may be asked for as one."""


@dataclass(frozen=True, slots=True)
class FieldWeights:
    """How much a match in each field counts; 0 leaves a field out.

    ``synonym_share`` is what a synonym of a query word brings instead of it, ``translation_share``
    what its translation brings besides. ``saturation`` says how slowly further evidence for the same
    word stops to matter, ``rarity`` how much more a rare word counts than a common one (0: not at
    all).
    """

    name: float = 3.5
    namespace: float = 2.0
    aliases: float = 3.5
    hints: float = 2.0
    description: float = 1.2
    parameters: float = 0.9
    parameter_descriptions: float = 0.6
    enums: float = 0.8
    synonym_share: float = 0.35
    translation_share: float = 0.65
    saturation: float = 1.9
    rarity: float = 0.75

    def bounded(self) -> "FieldWeights":
        """The same weights, none so large that scores could overflow or fill a layer."""
        bounded = FieldWeights(*(min(weight, MAX_WEIGHT) for weight in astuple(self)))
        saturation = max(bounded.saturation, LEAST_SATURATION)
        return replace(bounded, rarity=min(self.rarity, MAX_RARITY), saturation=saturation)

    def by_field(self) -> tuple[float, ...]:
        """The weights in the order of ``Field``."""
        return (
            self.name,
            self.namespace,
            self.aliases,
            self.hints,
            self.description,
            self.parameters,
            self.parameter_descriptions,
            self.enums,
        )


LENGTH_NORMS = (0.3, 0.35, 0.3, 0.6, 0.9, 0.6, 0.2, 0.2)
"""How much a long field is held against a tool, by field: 0 not at all, 1 in full."""


def split_name(name: str) -> tuple[str, str]:
    """The namespace and the last segment of a name: ``mcp.git.log`` → ``mcp.git.`` and ``log``."""
    found = _NAMESPACE.match(name)
    namespace = found.group() if found else ""
    last = name[len(namespace) :]
    return (namespace, last) if last.strip() else ("", name)


def group_of(name: str) -> str:
    """What a tool belongs to, case-folded: its namespace, or else the first part of its name."""
    namespace, last = split_name(name)
    return (namespace or next(iter(parts(next(iter(runs(last)), last))), last)).casefold()


def texts(spec: ToolSpec) -> tuple[str, ...]:
    """The text of a tool by field, each bounded in length."""
    namespace, last = split_name(spec.name)
    names: list[str] = []
    descriptions: list[str] = []
    values: list[str] = []
    for node in _schema_nodes(spec.parameters):
        names += _property_names(node)
        if isinstance(text := node.get("description"), str) and node is not spec.parameters:
            descriptions.append(text)
        if isinstance(allowed := node.get("enum"), list):
            values += (value for value in allowed if isinstance(value, str))
    fields = (
        last,
        namespace,
        "\n".join(spec.aliases),
        "\n".join((*spec.search_hints, *spec.examples)),
        spec.description,
        "\n".join(names),
        "\n".join(descriptions),
        "\n".join(values),
    )
    return tuple([normalise(text[:MAX_FIELD_CHARS]) for text in fields])


def _property_names(node: Mapping[str, object]) -> list[str]:
    properties = node.get("properties")
    return [str(name) for name in properties] if isinstance(properties, Mapping) else []


def _schema_nodes(root: object) -> Iterator[Mapping[str, object]]:
    """All sub-schemas, the root first, in document order; malformed parts are passed over."""
    waiting = [root]
    for _ in range(MAX_SCHEMA_NODES):
        if not waiting:
            return
        node = waiting.pop()
        if isinstance(node, Mapping):
            yield node
            if not _HOLDING.isdisjoint(node):
                waiting += reversed(_children(node))


def _children(node: Mapping[str, object]) -> list[object]:
    found: list[object] = []
    for key, value in node.items():
        if key in _TABLES and isinstance(value, Mapping):
            found += value.values()
        elif key in _INNER:
            found.append(value)
        elif key in _BRANCHES and isinstance(value, list):
            found += value
    return found
