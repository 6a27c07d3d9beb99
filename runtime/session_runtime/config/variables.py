"""Environment variables as sources: which key a name means, how text becomes a value (CFG-2).

In order of precedence: ``SESSION_RUNTIME__SECTION__KEY``, short names, then both with ``_FILE``.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from dotenv.parser import parse_stream
from pydantic import TypeAdapter, ValidationError

from session_runtime.config.keys import KeyPath, dotted, nearest, variable_form
from session_runtime.config.models import DEFAULT_WIRE, SHARED_KEYS
from session_runtime.config.origin import Candidate, Origin, Reading
from session_runtime.config.secrets import UnreadableError, read_value
from session_runtime.config.shape import (
    SHAPE,
    Branch,
    Leaf,
    Names,
    Node,
    leaves,
    node_at,
)
from session_runtime.config.sources import read_at
from session_runtime.errors import ConfigError, Problem

PREFIX = "SESSION_RUNTIME__"
FILE_SUFFIX = "_FILE"
_OURS = (PREFIX, "TOOL_SEARCH_", "PREFETCH_")
_SHORT: Mapping[str, KeyPath] = MappingProxyType(
    {leaf.env: path for path, leaf in leaves(()) if leaf.env is not None}
)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that is set and not empty; its text is kept out of ``repr``."""

    name: str
    text: str = field(repr=False)
    origin: Origin

    @property
    def form(self) -> str:
        """The name as it is compared with keys."""
        return variable_form(self.name)


@dataclass(frozen=True, slots=True)
class Target:
    """The key a variable gives, and whether its text is the path of a file that holds the value."""

    path: KeyPath
    nested: bool
    from_file: bool

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """Sorts by precedence: values before files, long names before short, deep keys first."""
        return self.from_file, not self.nested, -len(self.path)


def of_environment(env: Mapping[str, str]) -> tuple[Variable, ...]:
    """List the variables of an environment; an empty one counts as not set."""
    named = ((_printable(name), env[name]) for name in sorted(env))
    return tuple(Variable(name, text, Origin("env", name)) for name, text in named if text)


def _printable(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def of_dotenv(path: Path) -> tuple[Variable, ...]:
    """List the variables of a ``.env`` file, taken literally; a later line replaces an earlier one.

    Raises ConfigError if the file cannot be read, is not UTF-8, or has a line that assigns nothing.
    """
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(
            [Problem(f"{path} cannot be read: {error.strerror}", source=path.name)]
        ) from None
    except UnicodeDecodeError:
        raise ConfigError([Problem("is not UTF-8", source=path.name)]) from None
    found: dict[str, Variable] = {}
    faults: list[Problem] = []
    for binding in parse_stream(io.StringIO(text)):
        origin = Origin("dotenv", path.name, binding.original.line)
        if binding.error:
            faults.append(origin.problem("", "is not NAME=value"))
        elif binding.key is not None and binding.value:
            found[binding.key] = Variable(binding.key, binding.value, origin)
    if faults:
        raise ConfigError(faults)
    return tuple(found.values())


def read_variables(
    variables: Sequence[Variable], known: Iterable[KeyPath], folder: Path
) -> tuple[Reading, ...]:
    """Read what the variables give, highest precedence first, each as a reading of its own.

    ``known`` are the entries of operator-named tables seen so far, with their real names;
    ``folder`` is where relative paths of ``_FILE`` variables count from. Names nobody knows become
    warnings.
    """
    entries = list(known)
    distinct, clashes = _distinct(variables)
    ranked: list[tuple[tuple[bool, bool, int], Reading]] = []
    warnings: list[Problem] = []
    for variable in sorted(distinct, key=lambda each: (each.form.count("__"), each.form)):
        target = find_target(variable.form, entries)
        if target is not None:
            reading = _read(variable, target, folder)
            entries.extend(reading.entries)
            ranked.append((target.rank, reading))
        elif variable.form.startswith(_OURS):
            warnings.append(_unknown(variable, entries))
    ranked.sort(key=lambda each: each[0])
    return (
        *(reading for _, reading in ranked),
        Reading({}, problems=tuple(clashes), warnings=tuple(warnings)),
    )


def _distinct(variables: Sequence[Variable]) -> tuple[list[Variable], list[Problem]]:
    by_form: dict[str, Variable] = {}
    clashes: list[Problem] = []
    for variable in variables:
        first = by_form.setdefault(variable.form, variable)
        if variable.text != first.text and find_target(variable.form, ()) is not None:
            message = f"means the same as {first.name} and holds another value; remove one of them"
            clashes.append(variable.origin.problem("", message))
    return list(by_form.values()), clashes


def find_target(form: str, entries: Sequence[KeyPath]) -> Target | None:
    """Find the key that a variable's name means; None if it means none.

    A known key wins over ``_FILE``, and both over a new entry in an operator-named table.
    """
    stem = form.removesuffix(FILE_SUFFIX)
    for create in (False, True):
        for name in dict.fromkeys((form, stem)):
            path = _find_path(name, entries, create=create)
            if path is not None:
                return Target(path, nested=name.startswith(PREFIX), from_file=name != form)
    return None


def _find_path(name: str, entries: Sequence[KeyPath], *, create: bool) -> KeyPath | None:
    if not name.startswith(PREFIX):
        return _SHORT.get(name)
    return next(_paths(name.removeprefix(PREFIX), SHAPE, (), entries, create), None)


def _paths(
    rest: str, node: Node, path: KeyPath, entries: Sequence[KeyPath], create: bool
) -> Iterator[KeyPath]:
    """Find every key that ``rest`` may mean inside ``node``, entries that are known first."""
    match node:
        case Leaf():
            return
        case Branch():
            for name, inner in node.children.items():
                yield from _inside(rest, name, inner, path, entries, create)
        case Names():
            for entry in entries:
                if entry[:-1] == path:
                    yield from _inside(rest, entry[-1], node.item, path, entries, create)
            name = rest.partition("__")[0].lower()
            if create and name:
                yield from _inside(rest, name, node.item, path, entries, create)


def _inside(
    rest: str, name: str, node: Node, path: KeyPath, entries: Sequence[KeyPath], create: bool
) -> Iterator[KeyPath]:
    form = variable_form(name)
    if rest == form:
        yield (*path, name)
    elif rest.startswith(f"{form}__"):
        yield from _paths(rest[len(form) + 2 :], node, (*path, name), entries, create)


def read_shared_keys(
    given: Mapping[KeyPath, Sequence[Candidate]],
    entries: Iterable[KeyPath],
    variables: Sequence[Variable],
    folder: Path,
) -> tuple[Reading, ...]:
    """Give model profiles without a key of their own the one of the provider's usual variable.

    ``given`` is what the other sources gave; ``variables`` come in order of precedence.
    """
    readings: list[Reading] = []
    for entry in entries:
        path = (*entry, "api_key")
        if entry[:-1] == ("models",) and path not in given:
            name = SHARED_KEYS.get(_wire_of(entry, given))
            readings.extend(_read_shared(name, path, variables, folder) if name else ())
    return tuple(readings)


def _wire_of(entry: KeyPath, given: Mapping[KeyPath, Sequence[Candidate]]) -> str:
    path = (*entry, "wire")
    return str(given[path][0].value) if path in given else DEFAULT_WIRE


def _read_shared(
    name: str, path: KeyPath, variables: Sequence[Variable], folder: Path
) -> tuple[Reading, ...]:
    from_file = {name: False, f"{name}{FILE_SUFFIX}": True}
    targets = (
        (variable, Target(path, nested=False, from_file=from_file[variable.form]))
        for variable in variables
        if variable.form in from_file
    )
    return tuple(_read(variable, target, folder) for variable, target in targets)


def _read(variable: Variable, target: Target, folder: Path) -> Reading:
    if not target.from_file:
        return _read_text(variable.text, target.path, variable.origin)
    file = folder / variable.text
    try:
        reading = _read_text(read_value(file), target.path, Origin("file", str(file)))
    except UnreadableError as error:
        reading = _refused(target.path, variable.origin, str(error))
    return replace(reading, files=(file,))


def _read_text(text: str, path: KeyPath, origin: Origin) -> Reading:
    node = node_at(path)
    try:
        text.encode("utf-8")
        value = parse_text(text, node) if isinstance(node, Leaf) else _parse_table(text)
    except UnicodeEncodeError:
        return _refused(path, origin, "is not UTF-8")
    except ValueError as error:
        return _refused(path, origin, str(error))
    return read_at(path, value, origin)


def _refused(path: KeyPath, origin: Origin, message: str) -> Reading:
    return Reading({}, problems=(origin.problem(dotted(path), message),))


def parse_text(text: str, leaf: Leaf) -> object:
    """Read the value a text stands for; what cannot be read is returned as it came, to be refused.

    Lists are comma separated (blanks trimmed, empty items dropped) or JSON; what may be anything is
    JSON or text.
    """
    if leaf.many:
        return _parse_list(text, leaf)
    return _parse_anything(text) if leaf.anything else _parse_item(text, leaf)


def _parse_item(text: str, leaf: Leaf) -> object:
    if leaf.item not in (bool, int, float):
        return text
    try:
        value: object = TypeAdapter(leaf.item).validate_python(text.strip())
    except ValidationError:
        return text
    return value


def _parse_list(text: str, leaf: Leaf) -> object:
    if text.lstrip().startswith("["):
        try:
            return _parse_json(text)
        except ValueError:
            return text
    return [_parse_item(item.strip(), leaf) for item in text.split(",") if item.strip()]


def _parse_anything(text: str) -> object:
    try:
        return _parse_json(text)
    except ValueError:
        return text


def _parse_table(text: str) -> Mapping[str, object]:
    try:
        value = _parse_json(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValueError("must be a JSON object: this name means a whole table")
    return value


def _parse_json(text: str) -> object:
    """Read JSON; ValueError also for what is nested too deeply or cannot be written as UTF-8."""
    try:
        value: object = json.loads(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _unknown(variable: Variable, entries: Sequence[KeyPath]) -> Problem:
    hint = _nearest_variable(variable.form, entries)
    suffix = f"; did you mean {hint}?" if hint else ""
    return variable.origin.problem("", f"unknown variable {variable.name}, ignored{suffix}")


def _nearest_variable(form: str, entries: Sequence[KeyPath]) -> str | None:
    long_names = [variable_name(path) for path, _ in leaves(entries)]
    same_key = [name for name in long_names if name.endswith(f"__{form}")]
    return same_key[0] if same_key else nearest(form, [*_SHORT, *long_names])


def variable_name(path: KeyPath) -> str:
    """Spell the long name of the variable that gives ``path``."""
    return PREFIX + "__".join(variable_form(part) for part in path)
