"""From what was written to what is in force: paths made absolute, secrets and the prompt fetched.

Which candidate is in force is decided in ``merge``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import SecretStr

from session_runtime.config.arguments import secret_positions
from session_runtime.config.by_name import holds_arguments
from session_runtime.config.keys import KeyPath, dotted, sounds_secret
from session_runtime.config.origin import DEFAULT, Candidate, Candidates
from session_runtime.config.places import STATE_DIR, TRACE_FILE, path_fault
from session_runtime.config.runtime import DEFAULT_SECRET_SOURCES
from session_runtime.config.secrets import (
    AbsentError,
    UnreadableError,
    is_reference,
    read_value,
    resolve,
)
from session_runtime.config.shape import leaf_at
from session_runtime.errors import Problem

_SECRET_SOURCES: KeyPath = ("runtime", "secret_sources")
_PROMPT: KeyPath = ("ask", "system_prompt")
_PROMPT_FILE: KeyPath = ("ask", "prompt_file")
_T = TypeVar("_T")

Absent = Literal["fault", "fault here", "warning"]
"""What a reference to a secret is that cannot be reached: a fault of the configuration; one as seen
from a shell, whose environment is not the daemon's; or no more than a warning there, so that the
reference itself stands for the secret and the configuration can be looked at, but not be used."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Values ready for validation, the system prompt, what came up, and the files that were read.

    ``unreadable`` are the keys that have no value for that reason, which is among the problems.
    """

    values: Mapping[KeyPath, object]
    unreadable: frozenset[KeyPath]
    system_prompt: str
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class _Fetched(Generic[_T]):
    """A value that stood somewhere else, what came up, and the file to watch."""

    value: _T
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class _Places:
    """Where secrets are looked for: what is allowed, the variables, and where relative paths count from."""

    allowed: Sequence[str]
    env: Mapping[str, str]
    folder: Path


def resolve_values(
    candidates: Candidates, folder: Path, env: Mapping[str, str], absent: Absent = "fault"
) -> Resolved:
    """Resolve every candidate in force.

    Relative paths count from ``folder``; ``env`` is where ``env:NAME`` looks. What cannot be read is
    a problem, and the key is left without a value; of a secret that is ``absent``, see there.
    """
    in_force = {path: given for path, (given, *_) in candidates.items()}
    values = {
        path: _located(given.value, folder) if leaf_at(path).path else given.value
        for path, given in in_force.items()
    }
    values[TRACE_FILE] = _trace_file(in_force[TRACE_FILE], values)
    sources = _allowed_sources(in_force[_SECRET_SOURCES].value)
    secrets = {
        path: _secret_or_place(given, given.value, _Places(sources, env, folder), absent)
        for path, given in in_force.items()
        if isinstance(given.value, SecretStr)
    }
    prompt = _fetch_prompt(values, in_force[_PROMPT_FILE])
    unusable = _unusable_paths(in_force, values)
    fetched: tuple[_Fetched[SecretStr | None] | _Fetched[str], ...] = (*secrets.values(), prompt)
    values |= {path: secret.value for path, secret in secrets.items()}
    unreadable = frozenset(path for path, secret in secrets.items() if secret.problems)
    return Resolved(
        {path: value for path, value in values.items() if path not in unreadable},
        unreadable,
        prompt.value,
        (*unusable, *(problem for each in fetched for problem in each.problems)),
        (*_in_arguments(in_force), *(warning for each in fetched for warning in each.warnings)),
        tuple(each.file for each in fetched if each.file is not None),
    )


def _located(value: object, folder: Path) -> object:
    match value:
        case tuple():
            return tuple(_located(item, folder) for item in value)
        case Path():
            return folder / value
        case str() if value:
            return folder / value
        case _:
            return value


def _unusable_paths(
    in_force: Mapping[KeyPath, Candidate], values: Mapping[KeyPath, object]
) -> Iterator[Problem]:
    """Find the paths that were given and that nothing can have."""
    for path, given in in_force.items():
        if given.origin != DEFAULT and leaf_at(path).path:
            many = isinstance(values[path], tuple)
            for number, place in enumerate(_items(values[path]), 1):
                fault = path_fault(place) if isinstance(place, Path) else None
                if fault is not None:
                    message = f"item {number}: {fault}" if many else fault
                    yield given.origin.problem(dotted(given.key), message)


def _in_arguments(in_force: Mapping[KeyPath, Candidate]) -> Iterator[Problem]:
    """Warn of secrets in the arguments of a command, which every user of the machine can read."""
    for path, given in in_force.items():
        if not holds_arguments(path) or given.origin.kind != "config":
            continue
        texts = [str(each) for each in _items(given.value)]
        for number in secret_positions(texts):
            yield given.origin.problem(
                dotted(given.key),
                f"item {number} holds what sounds like a secret, and every user of the machine can read"
                ' arguments: give it as a variable (env, with "env:NAME"), if the command takes it there',
            )


def _items(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def _trace_file(given: Candidate, values: Mapping[KeyPath, object]) -> object:
    """Place the trace file: unless it is given, it lies in the state directory, wherever that is."""
    state_dir = values[STATE_DIR]
    if given.origin == DEFAULT and isinstance(state_dir, Path):
        return state_dir / str(given.value)
    return values[TRACE_FILE]


def _allowed_sources(value: object) -> tuple[str, ...]:
    """Read ``runtime.secret_sources``; the default if it is no list, which is refused later."""
    if isinstance(value, tuple) and all(isinstance(item, str) for item in value):
        return value
    return DEFAULT_SECRET_SOURCES


def _secret_or_place(
    given: Candidate, written: SecretStr, places: _Places, absent: Absent
) -> _Fetched[SecretStr | None]:
    """Fetch a secret; of one that is absent, decide what that is."""
    try:
        return _fetch_secret(given, written.get_secret_value(), places)
    except AbsentError as error:
        message = (
            str(error) if absent == "fault" else f"{error}{_elsewhere(written.get_secret_value())}"
        )
        problem = given.origin.problem(dotted(given.key), message)
        if absent == "warning":
            return _Fetched(written, warnings=(problem,))
        return _Fetched(None, problems=(problem,))
    except UnreadableError as error:
        return _Fetched(None, problems=(given.origin.problem(dotted(given.key), str(error)),))


def _elsewhere(written: str) -> str:
    """Say that the daemon, with an environment and a user of its own, may find the secret."""
    if written.startswith("env:"):
        return " in this shell; the daemon may have it"
    return "; the daemon may see it, if it runs elsewhere or as another user"


def _fetch_secret(given: Candidate, written: str, places: _Places) -> _Fetched[SecretStr | None]:
    secret = resolve(written, places.allowed, places.env, places.folder)
    in_file = given.origin.kind == "config" and written and not is_reference(written)
    literal = in_file and sounds_secret(given.key[-1])
    warning = given.origin.problem(
        dotted(given.key),
        'the secret itself is in the file; write "env:NAME" or "file:/path" instead',
    )
    return _Fetched(secret.value, warnings=(warning,) if literal else (), file=secret.file)


def _fetch_prompt(values: Mapping[KeyPath, object], given: Candidate) -> _Fetched[str]:
    file = values[_PROMPT_FILE]
    if not isinstance(file, Path) or path_fault(file) is not None:
        return _Fetched(str(values[_PROMPT]))
    try:
        return _Fetched(read_value(file), file=file)
    except UnreadableError as error:
        return _Fetched("", problems=(given.origin.problem(dotted(given.key), str(error)),))
