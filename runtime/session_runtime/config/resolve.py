"""From what was written to what is in force: paths made absolute, secrets and the prompt fetched.

Which candidate is in force is decided in ``merge``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import SecretStr

from session_runtime.config.keys import KeyPath, dotted, sounds_secret
from session_runtime.config.origin import DEFAULT, Candidate, Candidates
from session_runtime.config.places import STATE_DIR, TRACE_FILE
from session_runtime.config.runtime import DEFAULT_SECRET_SOURCES
from session_runtime.config.secrets import UnreadableError, is_reference, read_value, resolve
from session_runtime.config.shape import leaf_at
from session_runtime.errors import Problem

_SECRET_SOURCES: KeyPath = ("runtime", "secret_sources")
_PROMPT: KeyPath = ("ask", "system_prompt")
_PROMPT_FILE: KeyPath = ("ask", "prompt_file")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Resolved:
    """Values ready for validation, the system prompt, what came up, and the files that were read."""

    values: Mapping[KeyPath, object]
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


def resolve_values(candidates: Candidates, folder: Path, env: Mapping[str, str]) -> Resolved:
    """Resolve every candidate in force.

    Relative paths count from ``folder``; ``env`` is where ``env:NAME`` looks. What cannot be read is
    a problem, and the key is left without a value.
    """
    in_force = {path: given for path, (given, *_) in candidates.items()}
    values = {
        path: _located(given.value, folder) if leaf_at(path).path else given.value
        for path, given in in_force.items()
    }
    values[TRACE_FILE] = _trace_file(in_force[TRACE_FILE], values)
    sources = _allowed_sources(in_force[_SECRET_SOURCES].value)
    secrets = {
        path: _fetch_secret(given, given.value.get_secret_value(), sources, env, folder)
        for path, given in in_force.items()
        if isinstance(given.value, SecretStr)
    }
    prompt = _fetch_prompt(values, in_force[_PROMPT_FILE])
    fetched: tuple[_Fetched[SecretStr | None] | _Fetched[str], ...] = (*secrets.values(), prompt)
    values |= {path: secret.value for path, secret in secrets.items()}
    unreadable = {path for path, secret in secrets.items() if secret.problems}
    return Resolved(
        {path: value for path, value in values.items() if path not in unreadable},
        prompt.value,
        tuple(problem for each in fetched for problem in each.problems),
        tuple(warning for each in fetched for warning in each.warnings),
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


def _fetch_secret(
    given: Candidate, written: str, sources: Sequence[str], env: Mapping[str, str], folder: Path
) -> _Fetched[SecretStr | None]:
    try:
        secret = resolve(written, sources, env, folder)
    except UnreadableError as error:
        return _Fetched(None, problems=(given.origin.problem(dotted(given.key), str(error)),))
    in_file = given.origin.kind == "config" and written and not is_reference(written)
    literal = in_file and sounds_secret(given.key[-1])
    warning = given.origin.problem(
        dotted(given.key),
        'the secret itself is in the file; write "env:NAME" or "file:/path" instead',
    )
    return _Fetched(secret.value, warnings=(warning,) if literal else (), file=secret.file)


def _fetch_prompt(values: Mapping[KeyPath, object], given: Candidate) -> _Fetched[str]:
    file = values[_PROMPT_FILE]
    if not isinstance(file, Path):
        return _Fetched(str(values[_PROMPT]))
    try:
        return _Fetched(read_value(file), file=file)
    except UnreadableError as error:
        return _Fetched("", problems=(given.origin.problem(dotted(given.key), str(error)),))
