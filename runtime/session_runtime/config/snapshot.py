"""The configuration of one generation: settings, where each value comes from, and a digest."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel, SecretStr

from session_runtime.config.by_name import by_name, mask, names_secret
from session_runtime.config.keys import KeyPath, dotted
from session_runtime.config.origin import DEFAULT, MASK, Candidate, Candidates, Origin
from session_runtime.config.secrets import is_reference
from session_runtime.config.settings import Settings
from session_runtime.config.shape import Leaf, entries_on, leaf_at, node_at
from session_runtime.config.sources import TomlFile
from session_runtime.errors import Problem


@dataclass(frozen=True, slots=True)
class ConfigSnapshot:
    """Everything one reading of the configuration gave; nothing in it changes.

    ``digest`` covers all values and the text of the prompt file, but no secret (REL-1): compare
    ``settings`` to notice a rotated one. ``provenance`` lists, per key, the value in force and the
    ones it shadows. ``system_prompt`` is the text to use, wherever it was given. ``path`` is the
    configuration file and ``file`` what it says, both None if there was none; ``files`` are the other
    files that were read.
    """

    settings: Settings
    digest: str
    provenance: Candidates = field(repr=False)
    system_prompt: str = field(repr=False)
    warnings: tuple[Problem, ...] = ()
    path: Path | None = None
    file: TomlFile | None = field(default=None, repr=False)
    files: tuple[Path, ...] = ()

    def said_by(self, name: str) -> "ConfigSnapshot":
        """The same, where what the file gave stands in ``name``, which has no lines to look at."""
        return replace(
            self,
            provenance=MappingProxyType(
                {
                    path: tuple(_moved(each, name) for each in candidates)
                    for path, candidates in self.provenance.items()
                }
            ),
            warnings=tuple(moved(self.warnings, self.file, name)),
            file=None if self.file is None else replace(self.file, name=name, lines={}),
        )

    def located(self, problems: Iterable[Problem]) -> list[Problem]:
        """The problems with the places where their keys were given, in the order of the file."""
        found = [self._located(problem) for problem in problems]
        return sorted(found, key=lambda each: (each.source, each.line or 0))

    def _located(self, problem: Problem) -> Problem:
        """Place a problem where its key was given, or else the first key inside."""
        for path, (given, *_) in self.provenance.items():
            inside = dotted(path) == problem.key or dotted(path).startswith(f"{problem.key}.")
            if inside and given.origin != DEFAULT:
                return self._of_its_table(problem.key, given.origin).problem(
                    problem.key, problem.message
                )
        return problem

    def _of_its_table(self, key: str, origin: Origin) -> Origin:
        """The line of the key's own header, if it has one, instead of what stands below."""
        lines = {} if self.file is None or origin.kind != "config" else self.file.lines
        line = next((line for path, line in lines.items() if dotted(path) == key), origin.line)
        return replace(origin, line=line)


def moved(problems: Iterable[Problem], file: TomlFile | None, name: str) -> Iterator[Problem]:
    """Say of what was found at a line of ``file`` that it stands in ``name``."""
    for problem in problems:
        of_file = file is not None and problem.source == file.name and problem.line is not None
        yield replace(problem, source=name, line=None) if of_file else problem


def _moved(candidate: Candidate, name: str) -> Candidate:
    if candidate.origin.kind != "config":
        return candidate
    return replace(candidate, origin=replace(candidate.origin, name=name, line=None))


def values_of(settings: Settings) -> Mapping[KeyPath, object]:
    """Lay out every value in force by key, in the order of the models."""
    return dict(_values((), settings))


def _values(path: KeyPath, value: object) -> Iterator[tuple[KeyPath, object]]:
    match value:
        case BaseModel():
            for name, inner in value:
                alias = type(value).model_fields[name].alias
                yield from _values((*path, alias or name), inner)
        case Mapping() if not isinstance(node_at(path), Leaf):
            for name, inner in value.items():
                yield from _values((*path, name), inner)
        case _:
            yield path, value


def orders_of(settings: Settings) -> Mapping[KeyPath, list[str]]:
    """List the names in each table whose order matters, such as that of the model profiles."""
    names: dict[KeyPath, dict[str, None]] = {}
    for path in values_of(settings):
        for entry in entries_on(path):
            if not isinstance(node_at(entry), Leaf):
                names.setdefault(entry[:-1], {})[entry[-1]] = None
    return {table: list(found) for table, found in names.items()}


def plain(path: KeyPath, value: object, candidates: tuple[Candidate, ...] = ()) -> object:
    """Turn the value of a key into JSON; a secret into the reference it was given by, or a mask (CFG-4).

    Where the key may hold anything, what stands under a name that sounds secret is masked; of an
    address, what its query keeps secret; of arguments, what is secret in them.
    """
    if isinstance(value, SecretStr):
        written = candidates[0].value if candidates else None
        text = written.get_secret_value() if isinstance(written, SecretStr) else ""
        return text if is_reference(text) else MASK
    leaf = leaf_at(path)
    secret = leaf.secret or (leaf.anything and names_secret(path))
    return by_name(value, path, mask, secret=secret)


def digest_of(
    settings: Settings,
    provenance: Candidates,
    system_prompt: str,
    but: Collection[KeyPath] = (),
) -> str:
    """Digest all that the configuration says, ``but`` some keys, and in which order; alike in any process."""
    values = {
        dotted(path): plain(path, value, provenance.get(path, ()))
        for path, value in values_of(settings).items()
        if path not in but
    }
    orders = {dotted(table): names for table, names in orders_of(settings).items()}
    said = {"values": values, "orders": orders, "system_prompt": system_prompt}
    text = json.dumps(said, sort_keys=True)
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()
