"""Reading a configuration: all sources, merged, resolved, validated, with every fault at once.

When to read again, and what to do with the result, is decided in ``live``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from session_runtime.config.faults import problems_of
from session_runtime.config.keys import KeyPath, dotted
from session_runtime.config.merge import merge, old_and_new, same_variable
from session_runtime.config.mqtt import mqtt_faults, mqtt_warnings
from session_runtime.config.origin import DEFAULT, Candidates, Origin, Reading
from session_runtime.config.places import STATE_DIR, path_fault, place_faults
from session_runtime.config.resolve import Absent, Resolved, resolve_values
from session_runtime.config.settings import (
    OFFLINE,
    Settings,
    fallback_faults,
    unknown_profile,
)
from session_runtime.config.shape import leaves
from session_runtime.config.snapshot import ConfigSnapshot, digest_of
from session_runtime.config.sources import (
    TomlFile,
    open_toml,
    parse_toml,
    read_defaults,
    read_explicit,
    read_toml,
)
from session_runtime.config.variables import (
    Variable,
    of_dotenv,
    of_environment,
    read_shared_keys,
    read_variables,
)
from session_runtime.errors import ConfigError, Problem
from session_runtime.types import NOTHING

__all__ = ["ConfigSnapshot", "load"]

_DEFAULT_MODEL: KeyPath = ("ask", "default_model")
_MODELS: KeyPath = ("models",)


@dataclass(frozen=True, slots=True)
class _Gathered:
    """What all sources gave: candidates per key and entries of tables, in the file's order."""

    file: TomlFile | None
    readings: tuple[Reading, ...]
    candidates: Candidates
    entries: tuple[KeyPath, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        return tuple(problem for reading in self.readings for problem in reading.problems)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(warning for reading in self.readings for warning in reading.warnings)

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(file for reading in self.readings for file in reading.files)

    def place(self, path: KeyPath) -> Origin:
        """Where a key was given; if it was not, where the table around it was."""
        given = self.candidates[path][0].origin if path in self.candidates else DEFAULT
        if given != DEFAULT:
            return given
        if self.file is not None and self.file.origin(path).line is not None:
            return self.file.origin(path)
        beside = (
            candidate.origin
            for other, (candidate, *_) in self.candidates.items()
            if other[:-1] in (path, path[:-1]) and candidate.origin != DEFAULT
        )
        return next(beside, DEFAULT)


def load(
    path: Path | None,
    *,
    named: bool,
    env: Mapping[str, str],
    explicit: Mapping[str, object] = NOTHING,
    dotenv: Path | None = None,
    text: bytes | None = None,
    absent: Absent = "fault",
) -> ConfigSnapshot:
    """Read the whole configuration (CFG-1, CFG-2).

    ``path`` is the TOML file; unless it is ``named`` it may be absent, which leaves defaults and
    variables. ``text`` stands in for the content of the file, which is then not read. ``explicit``
    maps dotted keys to typed values and wins over everything; ``dotenv`` is a ``.env`` file to read.
    Relative paths, wherever given, count from the folder of ``path``, or the working directory. What a
    secret is that cannot be reached tells ``absent``. Raises ConfigError with every problem found.
    """
    file = _open(path, named, text)
    folder = _folder(path)
    variables = of_environment(env)
    named_variables = of_dotenv(dotenv) if dotenv is not None else ()
    gathered = _gather(file, explicit, variables, named_variables, folder)
    lookup = {each.name: each.text for each in (*named_variables, *variables)}
    resolved = resolve_values(gathered.candidates, folder, lookup, absent)
    settings = _validated(gathered, resolved)
    return ConfigSnapshot(
        settings=settings,
        digest=digest_of(settings, gathered.candidates, resolved.system_prompt),
        provenance=gathered.candidates,
        system_prompt=resolved.system_prompt,
        warnings=(*gathered.warnings, *resolved.warnings, *_unmatched(gathered, settings)),
        path=path.absolute() if path is not None and file is not None else None,
        file=file,
        files=_distinct((dotenv, *gathered.files, *resolved.files)),
    )


def find_state_dir(
    path: Path | None,
    *,
    named: bool,
    env: Mapping[str, str],
    explicit: Mapping[str, object] = NOTHING,
    dotenv: Path | None = None,
    text: bytes | None = None,
) -> Path:
    """Find ``runtime.state_dir`` where the configuration may be wrong elsewhere; arguments as of ``load``.

    Raises ConfigError only if the file cannot be read as TOML, or the ``.env`` file not at all.
    """
    variables = of_environment(env)
    named_variables = of_dotenv(dotenv) if dotenv is not None else ()
    file, folder = _open(path, named, text), _folder(path)
    gathered = _gather(file, explicit, variables, named_variables, folder)
    given = (candidate.value for candidate in gathered.candidates[STATE_DIR])
    named_places = (folder / each for each in given if isinstance(each, str | Path) and str(each))
    return next(place for place in named_places if path_fault(place) is None)


def _folder(path: Path | None) -> Path:
    return (path.parent if path is not None else Path()).absolute()


def _open(path: Path | None, named: bool, text: bytes | None) -> TomlFile | None:
    if path is not None and text is not None:
        return parse_toml(path, text)
    if path is None or not (named or _may_be_there(path)):
        return None
    return open_toml(path)


def _may_be_there(path: Path) -> bool:
    """Whether a file is to be read: also one that may not be looked at, as reading it tells why."""
    try:
        return path.exists()
    except PermissionError:
        return True


def _gather(
    file: TomlFile | None,
    explicit: Mapping[str, object],
    variables: Sequence[Variable],
    named_variables: Sequence[Variable],
    folder: Path,
) -> _Gathered:
    """Read the sources, those with real names of table entries first; then put them in order."""
    from_file = (read_toml(file),) if file is not None else ()
    from_explicit = read_explicit(explicit)
    entries = _entries((*from_file, *from_explicit))
    from_dotenv = read_variables(named_variables, entries, folder)
    entries = (*entries, *_entries(from_dotenv))
    from_env = read_variables(variables, entries, folder)
    entries = tuple(dict.fromkeys((*entries, *_entries(from_env))))
    given = (*from_explicit, *from_env, *from_dotenv, *from_file)
    all_variables = (*variables, *named_variables)
    shared = read_shared_keys(merge(given), entries, all_variables, folder)
    readings = (*given, *shared, read_defaults(entries))
    return _Gathered(file, readings, _in_order(merge(readings), entries), entries)


def _entries(readings: Iterable[Reading]) -> tuple[KeyPath, ...]:
    return tuple(entry for reading in readings for entry in reading.entries)


def _in_order(candidates: Candidates, entries: Iterable[KeyPath]) -> Candidates:
    """Put keys in the order of the models, and tables in the order of the file."""
    known = (path for path, _ in leaves(entries) if path in candidates)
    return MappingProxyType({path: candidates[path] for path in known})


def _validated(gathered: _Gathered, resolved: Resolved) -> Settings:
    """Validate; raise ConfigError with what every stage found, in the order of the file."""
    problems = [*gathered.problems, *resolved.problems, *old_and_new(gathered.candidates)]
    problems += _wrong_names(gathered)
    try:
        settings = Settings(**_tree(resolved.values))
    except ValidationError as error:
        problems += problems_of(error, gathered.candidates, gathered.place, resolved.unreadable)
    else:
        problems += (
            gathered.place(path).problem(dotted(path), fault)
            for path, fault in (*place_faults(settings), *mqtt_faults(settings.mqtt, settings.http))
        )
        if not problems:
            return settings
    raise ConfigError(sorted(problems, key=lambda each: (each.source, each.line or 0))) from None


def _unmatched(gathered: _Gathered, settings: Settings) -> Iterator[Problem]:
    """Warn of what is there without its other half."""
    for path, told in mqtt_warnings(settings.mqtt, settings.http):
        yield gathered.place(path).problem(dotted(path), told)


def _wrong_names(gathered: _Gathered) -> Iterator[Problem]:
    """Find faults of names that the operator chose: two that meet, or one that nothing has."""
    for clash in same_variable(gathered.entries):
        yield gathered.place(clash.path).problem(dotted(clash.path), clash.message)
    wanted = gathered.candidates[_DEFAULT_MODEL][0].value
    names = [entry[-1] for entry in gathered.entries if entry[:-1] == _MODELS] or [OFFLINE]
    fault = unknown_profile(wanted, names) if isinstance(wanted, str) and wanted else None
    if fault is not None:
        yield gathered.place(_DEFAULT_MODEL).problem(dotted(_DEFAULT_MODEL), fault)
    for name, fault in fallback_faults(_fallbacks(gathered.candidates, names), names):
        path = (*_MODELS, name, "fallback")
        yield gathered.place(path).problem(dotted(path), fault)


def _fallbacks(candidates: Candidates, names: Iterable[str]) -> Mapping[str, str]:
    """Read which profile names which; what is no name is refused elsewhere."""
    given = {name: candidates.get((*_MODELS, name, "fallback")) for name in names}
    wanted = {name: found[0].value for name, found in given.items() if found}
    return {name: value for name, value in wanted.items() if isinstance(value, str) and value}


def _tree(values: Mapping[KeyPath, object]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in values.items():
        node = tree
        for part in path[:-1]:
            node = node.setdefault(part, {})
        node[path[-1]] = value
    return tree


def _distinct(files: Iterable[Path | None]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(file.absolute() for file in files if file is not None))
