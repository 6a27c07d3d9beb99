"""Edits the configuration file: nothing is written before the whole of it is found to be good (REL-6).

How the text changes is decided in ``rewrite``; what a good configuration is, in ``load``.
"""

import errno
import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from session_runtime.config.durable import (
    Step,
    UnconfirmedError,
    no_step,
    own_folder,
    replace_file,
)
from session_runtime.config.fingerprint import is_mount_point
from session_runtime.config.json_value import MAX_DEPTH
from session_runtime.config.keys import KeyPath, dotted, nearest, parse_dotted
from session_runtime.config.origin import EXPLICIT, Origin
from session_runtime.config.rewrite import rewritten
from session_runtime.config.shape import NOTICES, OLD_NOTICES, Leaf, Names, leaves, node_at
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.config.sources import parse_toml, read_at
from session_runtime.config.written import (
    REMOVED,
    Difference,
    differences,
    edited_keys,
    keys_of,
    value_at,
)
from session_runtime.errors import (
    ConfigError,
    PermanentError,
    Problem,
    RequestError,
    TransientError,
)

Check = Callable[[bytes], ConfigSnapshot]
"""Reads the configuration as it would be with this content in its file; raises ConfigError."""

_ANY_WRITE: Final = 0o222
_EMPTIED: Final = (
    "is empty, as a save that failed leaves it, and an edit would put the defaults in the place of all that"
    " it said: go back to what worked (config history, config rollback NUMBER), or delete it and write a"
    " new one (config init)"
)


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file as it was read: the name it was given by, where it lies, what it holds.

    ``content`` is None if there is no file.
    """

    name: Path
    place: Path
    content: bytes | None

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing in it, or no file."""
        return not (self.content or b"").removeprefix(BOM_UTF8).strip()

    @property
    def data(self) -> Mapping[str, object]:
        """What it says; raises ConfigError if it cannot be understood."""
        return {} if self.is_blank else parse_toml(self.name, self.content or b"").data


@dataclass(frozen=True, slots=True)
class Edit:
    """What a file would say after an edit; ``write`` puts it there.

    ``touched`` are the keys that were given and all that differ. It ``gives`` values if somebody asked
    for new ones; not if it only takes keys out, or goes back. ``warnings`` are those of the configuration
    that it makes, and what has no effect in it, once that was judged.
    """

    file: ConfigFile
    content: bytes
    differences: tuple[Difference, ...] = ()
    touched: tuple[KeyPath, ...] = ()
    gives: bool = False
    warnings: tuple[Problem, ...] = ()

    @property
    def changes_nothing(self) -> bool:
        """Whether the file holds it already, byte by byte."""
        return self.content == self.file.content

    @property
    def told(self) -> tuple[str, ...]:
        """The keys that it touches as receipts tell them: an old spelling by the new one."""
        moved = (parse_dotted(each.key) for each in self.differences)
        return tuple(
            dict.fromkeys(
                dotted(NOTICES if path == OLD_NOTICES else path) for path in (*self.touched, *moved)
            )
        )


def keys(values: Mapping[str, object]) -> Mapping[KeyPath, object]:
    """Read dotted keys; RequestError for what is none."""
    found: dict[KeyPath, object] = {}
    for key, value in values.items():
        try:
            path = parse_dotted(key)
        except ValueError:
            raise RequestError(
                f"{key!r} is not one dotted key; write it like models.main.base_url",
                code="config.unknown_key",
            ) from None
        if path in found:
            raise RequestError(f"{dotted(path)} is given twice, in two spellings: leave one out")
        found[path] = value
    return found


def open_file(path: Path, *, may_be_absent: bool = False) -> ConfigFile:
    """Read a configuration file to edit it; raises ConfigError."""
    try:
        place = path.resolve()
        file = ConfigFile(path, place, _content(place))
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError([Problem(f"{path} cannot be read: {reason}", source=path.name)]) from None
    if file.content is None and not may_be_absent:
        message = f"there is no file {path}: session-runtime config init writes one to start with"
        raise ConfigError([Problem(message, source=path.name)])
    return file


def _content(place: Path) -> bytes | None:
    if place.exists() and not place.is_file():
        raise OSError(errno.EINVAL, "it is no plain file")
    try:
        return place.read_bytes()
    except FileNotFoundError:
        return None


def plan(file: ConfigFile, changes: Mapping[KeyPath, object], check: Check) -> Edit:
    """Work out an edit and see that it makes a good configuration; nothing is written.

    Raises ConfigError for what is wrong with the file or would be, RequestError for a key that does
    not exist, or if no value that is given has an effect, as another source gives the keys too (CFG-3b),
    PermanentError if the text cannot be changed.
    """
    return judged(draft(file, changes), check)


def draft(file: ConfigFile, changes: Mapping[KeyPath, object], *, goes_back: bool = False) -> Edit:
    """Work out what the file would say; whether that can be used is for others to judge.

    Unless it ``goes_back`` to what the file said once, one that was emptied is refused: it would be good
    again, without all that it said (REL-2). Raises as ``plan``, but for what only reading the
    configuration can tell.
    """
    if file.content is not None and file.is_blank and not goes_back:
        raise ConfigError([Problem(_EMPTIED, source=file.name.name)])
    data = file.data
    for path, value in changes.items():
        _expect_toml(path, (*path, value), MAX_DEPTH)
        _expect_key(path, value, data)
    text = (file.content or b"").decode("utf-8")
    content = rewritten(text, changes).encode("utf-8")
    new = ConfigFile(file.name, file.place, content).data
    touched = dict.fromkeys((*changes, *edited_keys(data, new)))
    gives = not goes_back and any(value is not REMOVED for value in changes.values())
    return Edit(file, content, differences(data, new), tuple(touched), gives)


def judged(edit: Edit, check: Check) -> Edit:
    """See that an edit makes a good configuration, and which keys of it have no effect there.

    Raises ConfigError and RequestError as ``plan``.
    """
    try:
        after = check(edit.content)
    except ConfigError as error:
        raise ConfigError(unplaced(error.problems, edit)) from None
    given = keys_of(ConfigFile(edit.file.name, edit.file.place, edit.content).data)
    gone = any(path not in given for path in edit.touched)
    before = _checked(check, edit.file.content) if gone else None
    shadows = {
        key: str(winner)
        for key in edit.told
        for path in [parse_dotted(key)]
        if (winner := _winner(after, path) or (_winner(before, path) if before else None))
    }
    looked_at = replace(edit, warnings=after.warnings)
    return with_shadows(looked_at, shadows, "change it there, or leave it out there first")


def unplaced(problems: Iterable[Problem], edit: Edit) -> Iterator[Problem]:
    """Leave out where stands what came with the edit, or is missing in a table that it makes: nowhere yet."""
    given = {dotted(path) for path in edit.touched}
    made = tuple(f"{dotted(path)}." for path in _tables_made(edit))
    for problem in problems:
        is_new = problem.key in given or f"{problem.key}.".startswith(made)
        stands_in_file = is_new and problem.line is not None
        yield replace(problem, source="", line=None) if stands_in_file else problem


def _tables_made(edit: Edit) -> Iterator[KeyPath]:
    """The tables that the file has only after the edit."""
    old = edit.file.data
    new = ConfigFile(edit.file.name, edit.file.place, edit.content).data
    for path in dict.fromkeys(key[:end] for key in edit.touched for end in range(1, len(key) + 1)):
        if value_at(old, path) is REMOVED and isinstance(value_at(new, path), Mapping):
            yield path


def _expect_toml(path: KeyPath, value: object, depth: int) -> None:
    """Refuse what no file can say; raises RequestError."""
    match value:
        case None:
            raise RequestError(f"{dotted(path)}: TOML has no null: leave it out, or unset the key")
        case str() if value.encode("utf-8", "ignore").decode() != value:
            raise RequestError(f"{dotted(path)!a} is given what is not UTF-8")
        case Mapping() | list() | tuple() if depth < 0:
            raise RequestError(f"{dotted(path)}: is nested more than {MAX_DEPTH} levels deep")
        case Mapping():
            _expect_toml(path, [*value.keys(), *value.values()], depth)
        case list() | tuple():
            for item in value:
                _expect_toml(path, item, depth - 1)


def _expect_key(path: KeyPath, value: object, data: Mapping[str, object]) -> None:
    node = node_at(path)
    if node is not None:
        if value is not REMOVED and not isinstance(node, Leaf) and not isinstance(value, Mapping):
            raise RequestError(f"{dotted(path)} is a section: {name_a_key(path)}")
        return
    if value is not REMOVED:
        faults = [f"{fault.key}: {fault.message}" for fault in _unknown(path, value)]
        raise RequestError("; ".join(faults), code="config.unknown_key")
    there = keys_of(data)
    if not any(each[: len(path)] == path for each in there):
        close = nearest(dotted(path), map(dotted, [*there, *(key for key, _ in leaves(()))]))
        hint = f"; did you mean {close}?" if close else ""
        raise RequestError(f"no such key: {dotted(path)}{hint}", code="config.unknown_key")


def name_a_key(path: KeyPath) -> str:
    """Say how to name a key of a section."""
    entries = [(*path, "NAME")] if isinstance(node_at(path), Names) else [path]
    keys_inside = (key for key, _ in leaves(entries) if key[: len(path)] == path)
    inside = next(map(dotted, keys_inside), None)
    return "name a key in it" if inside is None else f"name a key in it, such as {inside}"


def _unknown(path: KeyPath, value: object) -> Sequence[Problem]:
    """Say of the first part that is not known what may have been meant."""
    while node_at(path[:-1]) is None:
        path, value = path[:-1], {path[-1]: value}
    return read_at(path, value, EXPLICIT).problems


def _checked(check: Check, content: bytes | None) -> ConfigSnapshot | None:
    try:
        return check(content) if content is not None else None
    except ConfigError:
        return None


def with_shadows(edit: Edit, shadows: Mapping[str, str], way_out: str) -> Edit:
    """Warn of the keys of an edit that have no effect in the file (CFG-3b); ``shadows`` names what wins.

    Where values are given and none of them has an effect, that is a RequestError.
    """
    faults = {key: f"no effect: shadowed by {winner}" for key, winner in shadows.items()}
    keys_told = (key for key in edit.told if isinstance(node_at(parse_dotted(key)), Leaf))
    if edit.gives and faults and faults.keys() >= set(keys_told):
        listed = "; ".join(f"{key}: {fault}" for key, fault in faults.items())
        raise RequestError(f"{listed}; {way_out}", code="config.shadowed")
    warnings = (Problem(fault, key=key) for key, fault in faults.items())
    return replace(edit, warnings=(*edit.warnings, *warnings))


def _winner(snapshot: ConfigSnapshot, path: KeyPath) -> Origin | None:
    """Find the source that keeps what the file gives for a key from having any effect."""
    given = [candidate.origin for candidate in snapshot.provenance.get(path, ())]
    hidden = any(origin.kind == "config" for origin in given[1:])
    return given[0] if hidden and given[0].kind != "config" else None


def create(path: Path, content: str, step: Step = no_step) -> Path:
    """Write a new configuration file, which only its owner may read; RequestError if there is one."""
    file = open_file(path, may_be_absent=True)
    if file.content is not None:
        raise RequestError(
            f"{file.place} exists and is left as it is: name another file by --config FILE",
            code="config.exists",
        )
    write(Edit(file, content.encode("utf-8")), step)
    return file.place


def write(edit: Edit, step: Step = no_step) -> None:
    """Put an edit into the file, all of it or nothing; owner, rights and links to it stay.

    Raises PermanentError if the file cannot be replaced, TransientError if it was changed since it was
    read, or the disk does not take it; after ``config.not_confirmed`` the file holds the edit. What
    changes nothing is not written.
    """
    if edit.changes_nothing:
        return
    place, before = edit.file.place, edit.file.content
    try:
        with own_folder(place.parent) as folder:
            if edit.file.name.resolve() != place or _content(place) != before:
                raise TransientError(
                    f"{place} was changed meanwhile and is left as it is; try again",
                    code="config.changed",
                )
            if before is not None:
                expect_writable(place)
            step("compared")
            like = place if before is not None else None
            replace_file(folder, place.name, edit.content, like=like, step=step)
    except OSError as error:
        raise _refusal(place, error) from error


def expect_writable(place: Path) -> None:
    """Refuse a file that must not, or cannot, be replaced as a whole; raises PermanentError."""
    status = place.stat()
    if not status.st_mode & _ANY_WRITE or not os.access(place, os.W_OK):
        raise _read_only(f"{place} is read-only")
    if not os.access(place.parent, os.W_OK | os.X_OK):
        raise _read_only(f"{place.parent} is read-only, and an edit is a new file in it")
    if is_mount_point(place):
        raise _irreplaceable(f"{place} is itself a mount point")
    if status.st_nlink > 1:
        raise _irreplaceable(f"{place} has another name, a hard link")


def _refusal(place: Path, error: OSError) -> PermanentError | TransientError:
    match error.errno:
        case _ if isinstance(error, UnconfirmedError):
            return TransientError(
                f"{place} holds the edit, but the disk did not confirm it ({error.strerror}): it may be"
                " lost if the machine crashes",
                code="config.not_confirmed",
            )
        case errno.EROFS | errno.EACCES | errno.EPERM:
            return _read_only(f"{place} cannot be replaced ({error.strerror})")
        case errno.EBUSY:
            return _irreplaceable(f"{place} is itself a mount point")
        case errno.ETIMEDOUT:
            return TransientError(
                f"{place.parent} is locked by another process for too long, and nothing was changed:"
                " try again, and see who keeps the lock (lslocks)",
                code="config.locked",
            )
        case _:
            reason = error.strerror or error
            return TransientError(
                f"{place} could not be written, and is left as it is: {reason}",
                code="config.not_written",
            )


def _read_only(what: str) -> PermanentError:
    return PermanentError(
        f"{what}: change it where it is made (an image, a ConfigMap, a management tool), or permit"
        " writing",
        code="config.read_only",
    )


def _irreplaceable(what: str) -> PermanentError:
    return PermanentError(
        f"{what}, so no other file can take its place, and writing into it could be cut off half-way:"
        " edit what is behind it, or mount its folder instead",
        code="config.in_place",
    )
