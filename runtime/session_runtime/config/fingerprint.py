"""Tells whether watched files changed, by their content; when to look is decided in ``watch`` (REL-5)."""

import errno
import hashlib
import os
import stat
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from session_runtime.config.settings import Settings
from session_runtime.config.snapshot import ConfigSnapshot

MOUNTS: Final = Path("/proc/self/mountinfo")
MAX_BYTES: Final = 16 * 1024 * 1024
_IGNORED: Final = frozenset({"__pycache__"})
_COUNTING: Final = (".py", ".json", ".md", ".toml")
_AGENTS: Final = "agents"
_DEEPEST: Final = 2
_DEEPEST_OF_AGENTS: Final = 4
_SWAPPED: Final = "..data"
"""The link by which Kubernetes puts new content into a mounted folder."""

_ABSENT: Final = "absent"

EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors that tell of this process or system: it has no more files or memory to look at anything."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What a configuration was read from: its file, other files with values, and folders of tools.

    ``secrets`` are files whose content is a value, such as a key (CFG-4); ``others`` are files that the
    configuration names, such as the prompt or a script.
    """

    config: Path
    secrets: tuple[Path, ...] = ()
    others: tuple[Path, ...] = ()
    trees: tuple[Path, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """All single files."""
        return (self.config, *self.secrets, *self.others)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Equal as long as nothing that is watched changed; each part for one kind of source."""

    config: str
    secrets: str
    others: str
    trees: str


def watched_by(config: Path, snapshot: ConfigSnapshot) -> Watched:
    """What a snapshot depends on; ``config`` is its file, also where there is none yet."""
    others = tuple(dict.fromkeys(_named_files(snapshot.settings)))
    secrets = tuple(file for file in snapshot.files if file not in others)
    return Watched(config.absolute(), secrets, others, snapshot.settings.handlers.paths)


def _named_files(settings: Settings) -> Iterator[Path]:
    if settings.ask.prompt_file is not None:
        yield settings.ask.prompt_file
    for profile in settings.models.values():
        if profile.script is not None:
            yield profile.script
    for entry in settings.handlers.entries.values():
        if entry.schema_ is not None:
            yield entry.schema_


def fingerprint(watched: Watched, trees: str | None = None) -> Fingerprint:
    """Look at everything now; blocks for as long as reading takes.

    Raises OSError if this process cannot look at all, as it has no more open files or memory.

    ``trees`` is what an earlier look found of the folders of tools, if they are not to be looked at.
    """
    return Fingerprint(
        _of_files((watched.config,)),
        _of_files(watched.secrets),
        _of_files(watched.others),
        _of_trees(watched.trees) if trees is None else trees,
    )


def is_readable(config: Path) -> bool:
    """Whether the file could be read as a whole: there, not blank, UTF-8 and TOML.

    What is not may still be being written.
    """
    try:
        content, _ = _content(config)
        text = content.decode("utf-8-sig")
        tomllib.loads(text)
    except (OSError, ValueError, RecursionError):
        return False
    return bool(text.strip())


def places_of(files: Iterable[Path]) -> tuple[Path, ...]:
    """Where a change of these files shows: they themselves, and what on the way is a link or missing."""
    return tuple(dict.fromkeys(step for file in files for step in _steps(file)))


def counts_in_tree(path: str, trees: Iterable[Path]) -> bool:
    """Whether what happened to this path, below a folder of tools, could make a tool another one.

    What happened to such a folder, or to one above, happened to all of its tools.
    """
    trees = tuple(trees)
    if any(f"{tree}/".startswith(f"{path}/") for tree in trees):
        return True
    tree = next((f"{tree}/" for tree in trees if path.startswith(f"{tree}/")), "")
    inside = path.removeprefix(tree).split("/")
    if inside[-1] == _SWAPPED:
        inside.pop()
    if any(part.startswith(".") or part in _IGNORED for part in inside):
        return False
    return not inside or "." not in inside[-1] or inside[-1].endswith(_COUNTING)


def concerned(path: str) -> str:
    """What an event at this path, below a folder of tools, is about.

    Behind the link of a mounted folder is all that lies beside it.
    """
    return path.removesuffix(f"/{_SWAPPED}")


def is_mount_point(file: Path) -> bool:
    """Whether the file itself is mounted here, so that renames outside can never be seen (REL-5)."""
    try:
        lines = MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
        place = str(file.resolve())
    except (OSError, RuntimeError):  # links that lead to each other are a RuntimeError
        return False
    return any(_unescaped(line.split(" ")[4]) == place for line in lines if line.count(" ") > 4)


def _unescaped(field: str) -> str:
    for char in " \t\n\\":
        field = field.replace(f"\\{ord(char):03o}", char)
    return field


def _steps(file: Path, most: int = 40) -> Iterator[Path]:
    """The file, what each link on the way to its content stands for, and what is not there.

    A part that comes back later may be a link again, so that all of them count.
    """
    pending: list[Path] = [file]
    seen: set[Path] = set()
    while pending and len(seen) < most:
        step = pending.pop()
        if step in seen:
            continue
        seen.add(step)
        yield step
        for each in (step, *step.parents):
            target = _target(each)
            if target is not None:
                pending.append(target / step.relative_to(each))
                yield each
            elif not _is_there(each):
                yield each


def _target(path: Path) -> Path | None:
    """What a link stands for; None for anything else, and for what may not be looked at."""
    try:
        return path.parent / path.readlink()
    except OSError:
        return None


def _is_there(path: Path) -> bool:
    """Whether there is anything; true for what may not be looked at."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _of_files(files: Iterable[Path]) -> str:
    return " ".join(map(_of_file, files))


def _of_file(file: Path) -> str:
    """Content and the times at which it was saved: saving the same again counts as an edit."""
    try:
        content, fact = _content(file)
    except FileNotFoundError:
        return _ABSENT
    except OSError as error:
        return _unreadable(error)
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    return f"{digest}:{fact.st_ino}:{fact.st_mtime_ns}"


def _unreadable(error: OSError) -> str:
    """What stands for something that cannot be read; raises what says nothing about it."""
    if error.errno in EXHAUSTED:
        raise error
    return f"unreadable: {error.errno}"


def _content(file: Path) -> tuple[bytes, os.stat_result]:
    """What is in a plain file; OSError for anything else, without waiting for a FIFO's other end."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - it is open already
        fact = os.fstat(descriptor)
        if not stat.S_ISREG(fact.st_mode):
            raise OSError(errno.EINVAL, "not a plain file")
        return opened.read(MAX_BYTES), fact


def _of_trees(trees: Iterable[Path]) -> str:
    hasher = hashlib.blake2b(digest_size=16)
    for tree in trees:
        hasher.update(os.fsencode(tree) + b"\0")
        for line in _lines(str(tree)):
            hasher.update(line)
    return hasher.hexdigest()


def _lines(folder: str, depth: int = 0, deepest: int = _DEEPEST) -> Iterator[bytes]:
    """What could make a tool another one: files that count, with stamps that nobody can set."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        yield _unreadable(error).encode()
        return
    for entry in found:
        if entry.name in _IGNORED or entry.name.startswith("."):
            continue
        try:
            if entry.is_dir():
                if depth < deepest:
                    yield os.fsencode(entry.path)
                    is_agents = depth == 0 and entry.name == _AGENTS
                    deeper = _DEEPEST_OF_AGENTS if is_agents else deepest
                    yield from _lines(entry.path, depth + 1, deeper)
            elif entry.name.endswith(_COUNTING):
                fact = entry.stat()
                yield os.fsencode(entry.path)
                yield f"{fact.st_ino}:{fact.st_size}:{fact.st_mtime_ns}:{fact.st_ctime_ns}".encode()
        except OSError as error:
            yield _unreadable(error).encode()
