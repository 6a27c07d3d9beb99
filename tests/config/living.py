"""A live configuration over a folder, with a builder that only notes what it was given."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from session_runtime.app.reader import ConfigReader
from session_runtime.config.attempt import Touched
from session_runtime.config.live import LiveConfig, News, Purpose
from session_runtime.config.load import ConfigSnapshot
from session_runtime.config.receipt import Receipt, Trigger
from session_runtime.config.watch import Mode, Watcher
from session_runtime.errors import ConfigError, Problem
from session_runtime.types import NOTHING

WAIT_S = 20.0


@dataclass
class NoteTaker:
    """Builds nothing; ``gate`` holds up every preparation until it is set, ``begun`` is set once it did.

    With ``patient`` each one waits until it is hurried, as for a server that does not answer.
    """

    committed: list[ConfigSnapshot] = field(default_factory=list)
    aborted: list[ConfigSnapshot] = field(default_factory=list)
    touched: list[Touched] = field(default_factory=list)
    purposes: list[Purpose] = field(default_factory=list)
    hurried: list[bool] = field(default_factory=list)
    prepared: int = 0
    refuses: str | None = None
    patient: bool = False
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def prepare(
        self,
        snapshot: ConfigSnapshot,
        touched: Touched = None,
        purpose: Purpose = "reload",
        hurry: asyncio.Event | None = None,
    ) -> "Note":
        self.touched.append(touched)
        self.purposes.append(purpose)
        self.prepared += 1
        if not self.gate.is_set():
            self.begun.set()
        await self.gate.wait()
        if self.patient and purpose != "trial" and hurry is not None:
            self.begun.set()
            await hurry.wait()
        self.hurried.append(hurry is not None and hurry.is_set())
        if self.refuses is not None:
            raise ConfigError([Problem(self.refuses)])
        return Note(self, snapshot)


@dataclass
class Note:
    taker: NoteTaker
    snapshot: ConfigSnapshot

    @property
    def news(self) -> News:
        before = self.taker.committed[-1] if self.taker.committed else None
        return News(self.snapshot.digest, _essence(self.snapshot) == _essence(before))

    def commit(self) -> int:
        self.taker.committed.append(self.snapshot)
        return len(self.taker.committed)

    async def abort(self) -> None:
        self.taker.aborted.append(self.snapshot)


def _essence(snapshot: ConfigSnapshot | None) -> object:
    return snapshot and (snapshot.settings, snapshot.system_prompt)


class Live(LiveConfig):
    """A live configuration whose receipts can be waited for."""

    def __init__(self, read: ConfigReader, builder: NoteTaker) -> None:
        super().__init__(read, builder)
        self.told: asyncio.Queue[Receipt] = asyncio.Queue()

    async def reload(self, trigger: Trigger, touched: Touched = None) -> Receipt:
        receipt = await super().reload(trigger, touched)
        self.told.put_nowait(receipt)
        return receipt

    async def next_receipt(self) -> Receipt:
        async with asyncio.timeout(WAIT_S):
            return await self.told.get()

    async def until(self, verdict: str) -> Receipt:
        """The first receipt of this verdict from now on."""
        while (receipt := await self.next_receipt()).verdict != verdict:
            pass
        return receipt

    async def in_force(self, results: int) -> Receipt:
        """The receipt after which tool_search_max_results is this; a later one counts too."""
        receipt = await self.next_receipt()
        while self.snapshot.settings.skills.tool_search_max_results != results:
            receipt = await self.next_receipt()
        return receipt


@dataclass
class Place:
    """A folder with a configuration file and what lives of it."""

    file: Path
    live: Live
    builder: NoteTaker
    watcher: Watcher


def results(number: int, more: str = "") -> str:
    """A configuration that is told from others by one number."""
    return f"{more}[skills]\ntool_search_max_results = {number}\n"


@asynccontextmanager
async def living(
    file: Path,
    env: Mapping[str, str] = NOTHING,
    *,
    named: bool = True,
    mode: Mode = "off",
    recheck_s: float = 60.0,
) -> AsyncIterator[Place]:
    """Start from what is in ``file``; watched only if ``mode`` says how.

    If it is not ``named``, it has to be ``config.toml`` in the working directory.
    """
    read, builder = ConfigReader(file if named else None, env), NoteTaker()
    live = Live(read, builder)
    await live.start(read())
    watcher = Watcher(live, file, mode, recheck_s)
    async with watcher.running():
        yield Place(file, live, builder, watcher)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def watching(place: Place, mode: Mode = "events") -> None:
    """Wait until events are asked for, so that a save is noticed by one and not by the first look."""
    async with asyncio.timeout(20):
        while mode == "events" and not place.watcher.hears:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.001)


async def looked_again(place: Place) -> None:
    """Wait until the watcher has looked once more from now on; a look may be under way already."""
    before = place.watcher.looks
    async with asyncio.timeout(20):
        while place.watcher.looks < before + 2:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.001)
