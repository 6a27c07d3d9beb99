"""Which keys there are: the sections as a tree that sources, explanations and warnings walk.

It is read off the models; what the keys mean is decided there.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from session_runtime.config.keys import KeyPath
from session_runtime.config.section import Acts
from session_runtime.config.settings import Settings
from session_runtime.config.tools import EasterEggSettings

OLD_NOTICES: KeyPath = ("easter_egg", "agent_call_message_enabled")
NOTICES: KeyPath = ("notices", "mode")
MOST_DOTS = 8
"""How many dots a name without quotes may have and still be recognized."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One key: the type of its value (of each item if ``many``), its default and when it acts.

    ``env`` is the short name of the variable that gives it, None if it has none. ``network`` tells
    whether it may be changed over the network (NET-3).
    """

    item: Any
    many: bool
    default: object
    acts: Acts
    env: str | None
    network: bool

    @property
    def secret(self) -> bool:
        """Whether the value must never be shown (CFG-4)."""
        return self.item is SecretStr

    @property
    def anything(self) -> bool:
        """Whether the value may be whatever JSON can say."""
        return self.item is Any

    @property
    def path(self) -> bool:
        """Whether the value is a path, which counts from the file's folder."""
        return self.item is Path


@dataclass(frozen=True, slots=True)
class Branch:
    """A section: keys with fixed names."""

    children: Mapping[str, "Node"]


@dataclass(frozen=True, slots=True)
class Names:
    """A table whose keys the operator chooses; each holds an ``item``."""

    item: "Node"


Node = Leaf | Branch | Names


def _branch(model: type[BaseModel]) -> Branch:
    fields = model.model_fields.items()
    return Branch(MappingProxyType({field.alias or name: _field(field) for name, field in fields}))


def _field(field: FieldInfo) -> Node:
    return _node(field.annotation, field)


def _node(annotation: Any, field: FieldInfo, *, inside: bool = False) -> Node:
    """What a field holds; of a section no default is made, which takes long for what nobody asks for."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _branch(annotation)
    if get_origin(annotation) is Mapping:
        return Names(_node(get_args(annotation)[1], field, inside=True))
    default = None if inside else field.get_default(call_default_factory=True)
    acts, env, network = _notes(field)
    item = bare(annotation)
    many = get_origin(item) is tuple
    return Leaf(bare(get_args(item)[0]) if many else item, many, default, acts, env, network)


def _notes(field: FieldInfo) -> tuple[Acts, str | None, bool]:
    match field.json_schema_extra:
        case {
            "acts": "now" | "next ask" | "restart" as acts,
            "env": None | str() as env,
            "network": bool() as network,
        }:
            return acts, env, network
        case _:
            raise TypeError(f"key without notes on when it acts: {field!r}")


def bare(annotation: Any) -> Any:
    """Give the type without bounds and without None."""
    if get_origin(annotation) is Annotated:
        return bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        if len(kinds) == 1:
            return bare(kinds[0])
    return annotation


SHAPE = Branch(
    MappingProxyType({**_branch(Settings).children, OLD_NOTICES[0]: _branch(EasterEggSettings)})
)
"""All sections, the old spelling of [notices] among them."""


def child(node: Node, name: str) -> Node | None:
    """Find ``name`` inside ``node``; None if there is no such key."""
    match node:
        case Leaf():
            return None
        case Branch():
            return node.children.get(name)
        case Names():
            return node.item


def node_at(path: KeyPath) -> Node | None:
    """Find what stands at ``path``; None if there is no such key."""
    node: Node | None = SHAPE
    for part in path:
        node = child(node, part) if node is not None else None
    return node


def leaf_at(path: KeyPath) -> Leaf:
    """Find the key at ``path``; KeyError if there is none, or a whole section."""
    node = node_at(path)
    if not isinstance(node, Leaf):
        raise KeyError(path)
    return node


def is_harmless(path: KeyPath) -> bool:
    """Whether the key at ``path`` may be changed over the network (NET-3)."""
    node = node_at(path)
    return isinstance(node, Leaf) and node.network


def entries_on(path: KeyPath) -> tuple[KeyPath, ...]:
    """List the entries of operator-named tables that ``path`` is, or lies in: ``models.x``."""
    return tuple(
        path[: end + 1] for end in range(len(path)) if isinstance(node_at(path[:end]), Names)
    )


def unquoted(item: Node, value: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the paths inside ``value``, an entry, that can only be the rest of a name with dots.

    TOML takes ``[models.gpt-4.1]`` for a table ``1`` inside of ``gpt-4``: it has keys of an ``item``.
    """
    if not isinstance(value, Mapping) or len(path) == MOST_DOTS:
        return
    for name, inner in value.items():
        match item:
            case Branch(children) if name not in children and isinstance(inner, Mapping):
                if children.keys() & inner.keys():
                    yield (*path, name)
                else:
                    yield from unquoted(item, inner, (*path, name))
            case Leaf(anything=False) if isinstance(inner, Mapping):
                yield from unquoted(item, inner, (*path, name))
            case Leaf(anything=False):
                yield (*path, name)


def leaves(entries: Iterable[KeyPath]) -> Iterator[tuple[KeyPath, Leaf]]:
    """Yield every key of the fixed sections and of the entries given, in the order of the models."""
    known = tuple(dict.fromkeys(entries))
    yield from _leaves_under((), SHAPE, known)


def _leaves_under(
    path: KeyPath, node: Node, entries: tuple[KeyPath, ...]
) -> Iterator[tuple[KeyPath, Leaf]]:
    match node:
        case Leaf():
            yield path, node
        case Branch():
            for name, inner in node.children.items():
                yield from _leaves_under((*path, name), inner, entries)
        case Names():
            for entry in entries:
                if entry[:-1] == path:
                    yield from _leaves_under(entry, node.item, entries)
