"""Owns ``history/`` in the state directory: the configurations that worked, as files said it (REL-6).

What worked is decided in ``live``; how a file goes back to one of them in ``rollback``.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import tomli_w

from session_runtime.config.durable import Step, make_folder, no_step, own_folder, replace_file
from session_runtime.config.written import Difference, alike, differences, masked
from session_runtime.errors import ConfigError, Problem, RequestError

FOLDER: Final = "history"
"""The name of the folder in ``runtime.state_dir``."""

ELSEWHERE: Final = "if its runtime.state_dir is another, name that by --state-dir"
"""What to do where nothing is found, as a daemon may have got its folder by its environment."""

WAIT_S: Final = 60.0
"""Nobody waits for an entry, and one that is not written is not made up for: better late than never."""

_NAME: Final = re.compile(r"(\d{6,18})\.toml")
_HEAD: Final = re.compile(r"# time: (?P<time>\S+)\n# digest: (?P<digest>\S*)\n")


@dataclass(frozen=True, slots=True)
class Entry:
    """A configuration that worked: its number, when it came into force, and its digest.

    ``digest`` also covers what came from elsewhere than the file; "" if the entry does not tell it.
    """

    number: int
    at: datetime
    digest: str


@dataclass(frozen=True, slots=True)
class Kept:
    """The number of the entry that keeps a configuration, and that of the oldest entry left."""

    number: int
    oldest: int


class History:
    """The newest ``keep`` configurations in ``folder``, which is made when the first one is added.

    Numbers go up and are never given again. Only the daemon adds; anybody may read meanwhile.
    """

    def __init__(self, folder: Path, keep: int = 50) -> None:
        self._folder = folder
        self._keep = keep

    def add(
        self, data: Mapping[str, object], digest: str, at: datetime, step: Step = no_step
    ) -> Kept:
        """Keep what a configuration file says, without its secrets (CFG-4b), and give its number.

        ``at`` has a time zone. What equals the newest entry gets that one's number. Blocks until it is
        on the disk, a minute at most while somebody else keeps the folder locked; a kill at any moment
        leaves the entries before readable. Raises OSError.
        """
        content = masked(data)
        make_folder(self._folder, self._folder.parent)
        with own_folder(self._folder, WAIT_S, state_dir=self._folder.parent) as folder:
            numbers = self._numbers()
            newest = numbers[0] if numbers else 0
            if newest and self._equals(newest, content, digest):
                return Kept(newest, numbers[-1])
            text = _head(newest + 1, digest, at) + tomli_w.dumps(content)
            replace_file(folder, _name(newest + 1), text.encode("utf-8"), of_state=True, step=step)
            numbers = [newest + 1, *numbers]
            for number in numbers[self._keep :]:
                os.unlink(_name(number), dir_fd=folder)
                step("old one removed")
        return Kept(newest + 1, numbers[: self._keep][-1])

    def entries(self) -> list[Entry]:
        """List the entries, the newest first; ConfigError if the folder cannot be read."""
        numbers = self._read_numbers()
        return [entry for number in numbers if (entry := self._entry(number)) is not None]

    def read(self, number: int) -> dict[str, object]:
        """Give what the file said, with masks for secrets (``***``).

        Raises RequestError if there is no such entry, ConfigError if it cannot be read.
        """
        numbers = self._read_numbers()
        if number not in numbers:
            raise RequestError(self._absent(number, numbers), code="config.unknown_entry")
        path = self._folder / _name(number)
        try:
            return tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            fault = f"cannot be read: {error.strerror}"
        except ValueError as error:
            fault = f"is damaged: {error}"
        raise ConfigError([Problem(f"{path} {fault}; choose another one", source="history")])

    def diff(self, old: int, new: int) -> tuple[Difference, ...]:
        """List the keys on which two entries differ; raises as ``read``."""
        return differences(self.read(old), self.read(new))

    def _read_numbers(self) -> list[int]:
        try:
            return self._numbers()
        except OSError as error:
            message = f"{self._folder} cannot be read: {error.strerror}"
            raise ConfigError([Problem(message, source="history")]) from None

    def _numbers(self) -> list[int]:
        """List the numbers of all entries, the newest first; whatever else is there does not count."""
        try:
            names = [path.name for path in self._folder.iterdir()]
        except FileNotFoundError:
            return []
        found = (int(match[1]) for match in map(_NAME.fullmatch, names) if match)
        return sorted((number for number in found if number), reverse=True)

    def _entry(self, number: int) -> Entry | None:
        path = self._folder / _name(number)
        try:
            text, status = path.read_text("utf-8", "replace"), path.stat()
        except OSError:
            return None  # an old one, removed meanwhile
        head = _HEAD.search(text)
        at = _time(head["time"]) if head else None
        written = datetime.fromtimestamp(status.st_mtime, UTC)
        return Entry(number, at or written, head["digest"] if head else "")

    def _equals(self, number: int, content: Mapping[str, object], digest: str) -> bool:
        entry = self._entry(number)
        try:
            return (
                entry is not None and entry.digest == digest and alike(self.read(number), content)
            )
        except ConfigError:
            return False

    def _absent(self, number: int, numbers: list[int]) -> str:
        if not numbers:
            return f"there is no history in {self._folder}: a running daemon keeps it there; {ELSEWHERE}"
        return f"there is no entry {number} in {self._folder}; there is {', '.join(_runs(numbers))}"


def _name(number: int) -> str:
    return f"{number:06}.toml"


def _head(number: int, digest: str, at: datetime) -> str:
    return (
        f"# Configuration {number} of those that worked; its secrets are masked.\n"
        f"# time: {at.isoformat()}\n# digest: {digest}\n\n"
    )


def _time(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _runs(numbers: list[int]) -> Iterator[str]:
    """Write numbers that go down as ranges that go up: ``3``, ``7 to 12``."""
    rising = numbers[::-1]
    starts = [n for at, n in enumerate(rising) if at == 0 or rising[at - 1] != n - 1]
    ends = [n for at, n in enumerate(rising) if at + 1 == len(rising) or rising[at + 1] != n + 1]
    for start, end in zip(starts, ends, strict=True):
        yield str(start) if start == end else f"{start} to {end}"
