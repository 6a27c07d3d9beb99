"""Who calls tools without asking: how many calls run, how they end, and what stays of a client meanwhile.

What a client may see and call is decided by ``policy`` and ``ask.exposure``, as for an ask; how a call is
made, by the one pipeline of ``registry.invoke``.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, get_args

import anyio

from session_runtime.ask.kept import Room
from session_runtime.errors import BusyError
from session_runtime.generation import Generation, Generations
from session_runtime.registry.policy import acting_for
from session_runtime.toolbox.owner import Owner
from session_runtime.trace.metrics import Family, Sample, gauge
from session_runtime.transports.mcp.outcome import Outcome
from session_runtime.types import LOCAL, Identity, Principal, ToolStatus

MOST_KEPT_BYTES: Final = 64 * 1024 * 1024
MOST_ASKED: Final = 128
"""So many calls of one principal wait for a person at once."""

_NOBODY: Final = Identity()
_STOPPED: Final = Outcome(
    "error", "The call was stopped because the daemon stops; it may have taken effect."
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose client it is: the principal that was let in, and whom it says it speaks for."""

    principal: Principal = LOCAL
    stated: Identity = _NOBODY

    @property
    def identity(self) -> Identity:
        """Whom the tools are called for; raises RequestError if the principal may not act for it."""
        return acting_for(self.principal, self.stated)

    @property
    def owner(self) -> Owner:
        """Whose notes and folders its calls see."""
        return Owner(self.principal.name, self.stated.user)


@dataclass(frozen=True, slots=True)
class Entry:
    """How a principal was let in: by the key of that digest; None where none was needed.

    What lasts longer than a request lasts as long as this very key: one that leaked is replaced, and its
    principal keeps its name.
    """

    name: str
    key: bytes | None = field(repr=False)


class Callers:
    """All clients together: the calls under way and what they share, over all generations.

    ``resources`` are handed to handlers; ``count`` counts a call as an ask of its user, and raises BusyError
    for one too many. Calls are refused from ``drain`` on; ``cancel`` ends what runs.
    """

    def __init__(
        self,
        generations: Generations,
        resources: Mapping[str, Any],
        count: Callable[[Principal, Identity], None],
    ) -> None:
        self._count = count
        self.generations = generations
        self.resources = resources
        self.room = Room(MOST_KEPT_BYTES)
        self._tasks: dict[asyncio.Task[Outcome], str] = {}
        self._asked: Counter[str] = Counter()
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False
        self._stopping: set[asyncio.Task[Outcome]] = set()
        self._ended: Counter[ToolStatus] = Counter()
        self._clients = 0

    @property
    def generation(self) -> Generation:
        """The generation in force."""
        return self.generations.current

    @property
    def running(self) -> int:
        """How many calls are under way, without those that wait for a person."""
        return len(self._tasks)

    @contextmanager
    def client(self) -> Iterator[str]:
        """Count one client while it is there; gives what its calls are known by."""
        self._clients += 1
        try:
            yield f"mcp_{secrets.token_hex(10)}"
        finally:
            self._clients -= 1

    def entry(self, principal: Principal) -> Entry:
        """How ``principal``, who was let in just now, came in."""
        keys = {owner.name: key for key, owner in self.generation.keys.owners}
        return Entry(principal.name, keys.get(principal.name))

    def principal(self, entry: Entry) -> Principal | None:
        """Who came in so, as it is now; None if that key is gone, or keys are needed now."""
        keys = self.generation.keys
        if not keys:
            return LOCAL if entry == Entry(LOCAL.name, None) else None
        owners = (owner for key, owner in keys.owners if Entry(owner.name, key) == entry)
        return next(owners, None)

    def obstacle(self, caller: Caller) -> str | None:
        """Why no call of ``caller`` can be taken now; None if one can."""
        if self._draining:
            return "The daemon is stopping: nothing was run. Try again later."
        most = self.generation.settings.runtime.max_concurrent_asks
        if self.running >= most:
            return f"{most} calls are running, the most that are allowed: nothing was run. Try again later."
        share = self._share(most)
        if sum(owner == caller.principal.name for owner in self._tasks.values()) >= share:
            return (
                f"{share} calls of yours are running, the most that are allowed: nothing was run. Wait for"
                " their results."
            )
        return None

    def over_limit(self, caller: Caller) -> str | None:
        """Count a call that is about to be made; why it is one too many, None if it is not."""
        try:
            self._count(caller.principal, caller.stated)
        except BusyError as error:
            return f"{error}. Nothing was run."
        return None

    def _share(self, most: int) -> int:
        """How many of all calls one principal may have under way: where there are several, half of them."""
        principals = {owner.name for _, owner in self.generation.keys.owners}
        return most if len(principals) < 2 else max(1, most // 2)

    @contextmanager
    def asking(self, caller: Caller) -> Iterator[bool]:
        """While a person is asked about a call, which is not counted as running; False: too many wait."""
        name = caller.principal.name
        self._asked[name] += 1
        try:
            yield self._asked[name] <= MOST_ASKED
        finally:
            self._asked[name] -= 1
            if not self._asked[name]:
                del self._asked[name]

    async def run(self, caller: Caller, name: str, call: Coroutine[Any, Any, Outcome]) -> Outcome:
        """Make one call in a task of its own, which is cancelled once and waited for if the caller goes."""
        task = asyncio.create_task(call, name=f"call of {name} for a client")
        self._tasks[task] = caller.principal.name
        self._idle.clear()
        task.add_done_callback(self._ended_one)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            # a cancelled scope of anyio cancels again and again, but not what is shielded from it
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task])
            raise
        return _STOPPED if task.cancelled() else task.result()

    def count(self, outcome: Outcome) -> Outcome:
        """Count how a call ended that a client was told the outcome of."""
        self._ended[outcome.status] += 1
        return outcome

    def drain(self) -> None:
        """Refuse calls from now on; running ones go on (REL-8)."""
        self._draining = True

    def cancel(self) -> None:
        """End all calls that run; each tool is cancelled once."""
        for task in self._tasks.keys() - self._stopping:
            self._stopping.add(task)
            task.cancel()

    async def idle(self) -> None:
        """Wait until no call is under way."""
        await self._idle.wait()

    def metrics(self) -> Iterator[Family]:
        """The numbers of this door, with the same names and labels at any time (REL-3)."""
        yield gauge("mcp_clients", "Clients of the MCP door that have a session.", self._clients)
        yield gauge("mcp_calls_running", "Calls of MCP clients that are under way.", self.running)
        yield gauge(
            "mcp_calls_asked",
            "Calls of MCP clients that wait for a person.",
            self._asked.total(),
        )
        yield Family(
            "mcp_calls_total",
            "counter",
            "Calls of MCP clients by how they ended.",
            tuple(
                Sample(self._ended[status], {"status": status}) for status in get_args(ToolStatus)
            ),
        )

    def _ended_one(self, task: asyncio.Task[Outcome]) -> None:
        del self._tasks[task]
        self._stopping.discard(task)
        if not self._tasks:
            self._idle.set()
