"""What the HTTP door needs from the runtime behind it, and the limits it keeps to itself."""

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from session_runtime.ask.kept_asks import KeptAsks
from session_runtime.ask.service import BY_OPERATOR
from session_runtime.callbacks.box import Callbacks
from session_runtime.config.live import LiveConfig
from session_runtime.config.receipt import Receipt, Trigger
from session_runtime.registry.keyring import Keyring
from session_runtime.registry.revocation_file import Revocation
from session_runtime.registry.revoked import Matching
from session_runtime.types import (
    AskEvent,
    AskRequest,
    AskResult,
    Identity,
    Principal,
    RunningAsk,
)


class RunningAsks(Protocol):
    """The asks that have not ended (REL-9)."""

    def list(self) -> tuple[RunningAsk, ...]:
        """Show all, the oldest first."""

    def cancel(self, ask_id: str, reason: str, code: str = BY_OPERATOR) -> int:
        """End one, or all for ``all``; gives how many were told to end only now."""


class ToolBrake(Protocol):
    """What operators have taken away by pattern of canonical names (REL-9)."""

    def list(self) -> tuple[Revocation, ...]:
        """Give all revocations, oldest first."""

    async def matching(self, pattern: str) -> Matching:
        """Give the tools in force that a pattern matches."""

    async def revoke(self, pattern: str, reason: str, by: str) -> Revocation:
        """Take tools away at once; raises RequestError, and TransientError if it could not be kept."""

    async def lift(self, which: int | str) -> Revocation:
        """Give them back; raises RequestError if there is none, and TransientError as above."""


class ConfigEditor(Protocol):
    """Edits the configuration file, through the checks of every reload (NET-3).

    ``seen`` tells whether who sent the edit knew the file whose tag it is given; if not, nothing is
    edited. Both edits raise RequestError, ConfigError, PermanentError and TransientError, and nothing is
    changed then; unless ``any_key`` is given, for keys that are not harmless too. The receipt of the reload
    has the ``trigger``.
    """

    @property
    def tag(self) -> str:
        """Stands for the content of the file in force, and tells nothing about it."""

    async def set_values(
        self,
        values: Mapping[str, object],
        seen: Callable[[str], bool],
        *,
        any_key: bool,
        trigger: Trigger,
    ) -> Receipt:
        """Give dotted keys new values, or REMOVED; the receipt may tell that they cannot be used."""

    async def try_values(self, values: Mapping[str, object], *, any_key: bool) -> Receipt:
        """What ``set_values`` would come to for the file as it is now; nothing is changed."""

    async def roll_back(
        self,
        number: int,
        include: Collection[str],
        seen: Callable[[str], bool],
        *,
        any_key: bool,
        trigger: Trigger,
    ) -> tuple[Receipt, tuple[str, ...]]:
        """Go back to an entry of the history; gives also the names of what stays as it is."""


class ServerControl(Protocol):
    """The servers of tools by their configured names (RTE-4, RTE-6); RequestError for an unknown one."""

    async def log(self, name: str, lines: int) -> Sequence[Mapping[str, Any]]:
        """The last lines of its standard error, as JSON objects, one of each session."""

    async def refresh(self, name: str) -> Mapping[str, Any]:
        """List its tools again; a JSON object tells how it is then and what that changed."""

    async def restart(self, name: str) -> Mapping[str, Any]:
        """Connect to it anew; tells the same."""


class ToolApproval(Protocol):
    """Tools of servers that changed and wait for an approval (RTE-4)."""

    def show(self, name: str) -> Mapping[str, Any]:
        """The forms in which a tool waits, and the one before; raises RequestError if it does not."""

    async def approve(self, name: str, digest: str, by: str) -> Mapping[str, Any]:
        """Approve a tool in the form of that digest; gives its name and the receipt.

        Raises RequestError if it does not wait so, and TransientError if it acts but could not be kept.
        """

    async def approve_all(self, server: str, by: str) -> Mapping[str, Any]:
        """The same for all tools of a server, in whichever form they wait."""


class ReplayPreview(Protocol):
    """What an edit would change of the asks that were recorded last, as JSON objects (OPS-3).

    ``receipt`` tells whether the edit is good, ``replay`` how many of at most ``most`` asks it would change,
    and how; None if it is not good or no ask is recorded, as ``why_not`` tells.
    """

    async def of(self, text: bytes | None, most: int) -> Mapping[str, Any]:
        """Of another file; None: of the file as it is. RequestError if the trace cannot be read."""

    async def of_values(
        self, values: Mapping[str, object], most: int, *, any_key: bool
    ) -> Mapping[str, Any]:
        """Of new values for dotted keys; raises what trying them raises too."""


class Insight(Protocol):
    """Why the daemon does what it does, as JSON objects for operators (OPS-3).

    Where a ``principal`` is named it is what that may do for the identity; RequestError if there is none of
    that name, or it may not act for the identity.
    """

    async def search(
        self, query: str, identity: Identity, most: int, principal: str | None = None
    ) -> Mapping[str, Any]:
        """What a tool search of ``identity`` finds and why, and what the model would be given."""

    def access(
        self, tool: str, identity: Identity, principal: str | None = None
    ) -> Mapping[str, Any]:
        """Whether a tool may be used for ``identity``, and what decides; RequestError for an unknown one."""

    def permitted(self, identity: Identity, principal: str | None = None) -> Mapping[str, Any]:
        """All tools that may be used for an identity."""

    def principals(self) -> Mapping[str, Any]:
        """Who has a key."""

    def totals(self) -> Mapping[str, Any]:
        """What the asks that ended since the start came to."""

    def ended(self, most: int) -> Sequence[Mapping[str, Any]]:
        """The asks that ended last, the newest first, in a few words each."""

    def record(self, ask_id: str) -> Mapping[str, Any]:
        """One of them as its trace tells it; RequestError if it is not remembered."""


class HttpDoor(Protocol):
    """The runtime as the HTTP door sees it; may be called at any time between open and close."""

    def ask(
        self, request: AskRequest, emit: Callable[[AskEvent], None], *, chars: int
    ) -> Coroutine[Any, Any, AskResult]:
        """Run one ask, of that length in characters.

        Raises nothing but CancelledError, and emits ``ask.finished`` last.
        """

    def keys(self) -> Keyring:
        """The keys of the configuration in force; cheap, asked for with every request."""

    def tools(
        self,
        identity: Identity | None,
        principal: Principal,
        *,
        after: str = "",
        limit: int | None = None,
        schemas: bool = True,
    ) -> Sequence[Mapping[str, Any]]:
        """List what the principal may use for the identity as JSON objects; None: every tool.

        By name, the ``limit`` first ones beyond ``after``; ``schemas`` says if parameters are told. Raises
        RequestError if it may not act for the identity.
        """

    def models(self) -> Sequence[str]:
        """Name the model profiles in force, the default one first."""

    def status(self) -> Mapping[str, Any]:
        """Tell the state of the runtime as a JSON object without secrets."""

    @property
    def running(self) -> RunningAsks:
        """The asks that run, to show and to end."""

    @property
    def kept(self) -> KeptAsks:
        """Asks that go on without their client, and what became of them."""

    @property
    def callbacks(self) -> Callbacks:
        """Results on their way to configured addresses."""

    @property
    def brake(self) -> ToolBrake:
        """What is revoked."""

    @property
    def approval(self) -> ToolApproval:
        """Tools that wait for an approval."""

    @property
    def live(self) -> LiveConfig:
        """The configuration in force, and what attempts to change it came to."""

    @property
    def editor(self) -> ConfigEditor:
        """Edits the file that it is read from."""

    @property
    def preview(self) -> ReplayPreview:
        """What an edit would change of recorded asks."""

    @property
    def servers(self) -> ServerControl:
        """The servers of tools."""

    def metrics(self) -> str:
        """Numbers in the text format of Prometheus."""

    @property
    def insight(self) -> Insight:
        """Why the daemon does what it does."""

    def ready(self) -> tuple[bool, str]:
        """Tell whether asks are taken, and why not."""

    def missing(self) -> Sequence[str]:
        """Name the servers that cannot be called just now; asks are taken without them (RTE-1)."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Bounds of every request (NET-5); times in seconds.

    ``ping_s`` is how long an event stream may be silent before a comment line is sent, ``look_s`` how often
    is looked whether there is news for the console.
    """

    max_body_bytes: int
    body_timeout_s: float = 30.0
    ping_s: float = 15.0
    look_s: float = 1.0
