"""Keeps what only a restart can change as it is in the running process (REL-4)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pydantic import ValidationError

from session_runtime.config.changes import Change, changes
from session_runtime.config.keys import KeyPath, dotted, parse_dotted
from session_runtime.config.section import Section
from session_runtime.config.settings import Settings
from session_runtime.config.snapshot import ConfigSnapshot, digest_of, values_of
from session_runtime.errors import ConfigError, Problem

_KEYS: Final[KeyPath] = ("http", "keys")


def held_back(
    running: ConfigSnapshot, read: ConfigSnapshot
) -> tuple[ConfigSnapshot, tuple[Change, ...]]:
    """Give ``read`` with the values of ``running`` for every key that acts after a restart.

    All keys of callers together count as one of them once there are some: without any, every caller is
    admin. Returns that and what was held back, with the value in force and the one that waits. Raises
    ConfigError if the rest of the edit is not valid beside the values in force.
    """
    waiting = tuple(
        change
        for change in changes(running, read)
        if change.acts == "restart" and change.shadowed_by is None
    )
    in_force = values_of(running.settings)
    kept: dict[KeyPath, object] = {path: in_force[path] for path in map(_path, waiting)}
    provenance = {**read.provenance, **{path: running.provenance[path] for path in kept}}
    if running.settings.http.keys and not read.settings.http.keys:
        waiting += (_without_keys(running),)
        kept[_KEYS] = running.settings.http.keys
        provenance |= {path: each for path, each in running.provenance.items() if path[:2] == _KEYS}
    if not waiting:
        return read, ()
    settings = _with(read.settings, kept)
    digest = digest_of(settings, provenance, read.system_prompt)
    return replace(read, settings=settings, provenance=provenance, digest=digest), waiting


def _without_keys(running: ConfigSnapshot) -> Change:
    """Taking the last key away opens the daemon to everybody on the machine: no half-written file may."""
    return Change(dotted(_KEYS), sorted(running.settings.http.keys), [], "restart")


def _path(change: Change) -> KeyPath:
    return parse_dotted(change.key)


def _with(settings: Settings, values: Mapping[KeyPath, object]) -> Settings:
    """A copy with other values, validated as a whole; each key stands right in a section."""
    sections = dict(settings)
    for (section, name), value in values.items():
        sections[section] = sections[section].model_copy(update={name: value})
    for section in {path[0] for path in values}:
        _check(section, sections[section])
    return settings.model_copy(update=sections)


def _check(name: str, section: Section) -> None:
    """The rest of an edit may not fit what stays as it is: a key that a host in force needs."""
    try:
        type(section).model_validate(dict(iter(section)))  # one has a field ``keys``
    except ValidationError as error:
        raise ConfigError(
            Problem(
                f"{fault['msg']}; {name} has keys that act after a restart only, and the rest of the "
                "edit does not fit their values in force: restart, or make the edit in two steps",
                key=dotted((name, *map(str, fault["loc"]))),
            )
            for fault in error.errors(include_input=False, include_url=False)
        ) from None
