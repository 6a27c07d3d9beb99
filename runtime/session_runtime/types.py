"""Values that cross borders between the stages of an ask; every one is frozen and owns no behaviour.

How they look as JSON is decided in ``wire``; how an ask produces them, in ``ask``.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal

from session_runtime.direct import Called, DirectCall
from session_runtime.limits import UNLIMITED, Limits
from session_runtime.trace_context import TraceContext

JsonObject = Mapping[str, Any]
NOTHING: JsonObject = MappingProxyType({})

Role = Literal["system", "user", "assistant", "tool"]
ToolStatus = Literal["ok", "error", "refused", "skipped"]
Outcome = Literal["answered", "ended", "limit", "needs_confirmation", "cancelled", "failed"]
AskState = Literal["queued", "starting", "model", "tools"]
CutOff = Literal["length", "content_filter"]


def nothing() -> JsonObject:
    """The empty object, as a default of fields."""
    return NOTHING


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks. None means "not stated"; an empty ``roles`` means "known to have none".

    The difference matters to access rules: a deny rule that needs a missing attribute applies (NET-2).
    """

    user: str | None = None
    roles: frozenset[str] | None = None
    channel: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls, as the daemon knows it and not as a request says (NET-2).

    ``identity`` is what it is by itself, and with that the most it may do, whomever it acts for; None
    sets no such bound. A bounded one acts for the users that ``act_for`` contains. ``admin`` is for what
    concerns the daemon instead of an ask. ``max_concurrent_asks`` is how many of its asks may run at once,
    None for what the configuration says of everybody; ``limits`` are further bounds of its asks.
    """

    name: str
    identity: Identity | None = None
    act_for: Container[str] = ()
    admin: bool = False
    max_concurrent_asks: int | None = None
    limits: Limits = UNLIMITED


LOCAL: Final = Principal("local", admin=True)
"""The embedding program, and whoever calls a daemon without keys."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them, summed over model calls; ``estimated`` if it did not."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    model_calls: int = 0
    estimated: bool = False

    @property
    def total_tokens(self) -> int:
        """Input plus output; cached and reasoning tokens are parts of these."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.model_calls + other.model_calls,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True)
class TextPart:
    """A piece of text in a message of several parts."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image by URL (``https:`` or ``data:``); ``detail`` is passed on to the provider."""

    url: str
    detail: str | None = None


Content = str | tuple[TextPart | ImagePart, ...]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model made it: ``name`` canonical where known, ``arguments`` the raw text.

    ``extra`` keeps provider fields we do not know, so that they survive the round trip (ASK-3).
    """

    id: str
    name: str
    arguments: str
    recovered: bool = False
    extra: JsonObject = field(default_factory=nothing)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a transcript; names of tools in it are canonical.

    ``tool_calls`` only on assistant messages, ``tool_call_id`` and ``is_error`` (failed, or not run) only
    on tool messages; ``extra`` keeps unknown provider fields (reasoning) of an answer for the next request.
    """

    role: Role
    content: Content | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    extra: JsonObject = field(default_factory=nothing)
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The one answer to one call (ASK-4); a tool's failure is a result, never an exception.

    ``whole_chars`` is the length of the whole result if ``content`` does not show all of it (ASK-8b).
    """

    call_id: str
    name: str
    status: ToolStatus
    content: str
    error_code: str | None = None
    attempts: int = 1
    latency_s: float = 0.0
    whole_chars: int | None = None


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """Why an ask did not end well: stable ``code``, text for people, and whether to try again."""

    code: str
    message: str
    retryable: bool = False
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that waits for a person's consent: what would run, and the ``token`` that lets it (RTE-9).

    ``token`` is for the caller alone, never for the model; ``expires_at`` in seconds since 1970.
    """

    token: str
    tool: str
    arguments: JsonObject
    call_id: str
    expires_at: float


@dataclass(frozen=True, slots=True)
class AskRequest:
    """What a backend asks (ASK-2, INT-2): ``text`` or ``messages``, never both.

    ``history`` is earlier conversation, oldest first; ``instructions`` are added to the configured system
    prompt; ``model`` names a profile; ``deadline_s`` can only shorten the configured limit; ``silent``
    suppresses notices in mode ``clean``. ``confirmations`` are tokens of calls that an earlier ask left
    pending and a person agreed to, ``declined`` of those that a person did not want (RTE-9). ``principal``
    is set by the door that let the caller in, never by what the caller sent. ``call`` stands instead of a
    question: one tool is called, no model is asked. ``trace`` is the caller's.
    """

    text: str | None = None
    messages: Sequence[Message] = ()
    history: Sequence[Message] = ()
    instructions: str | None = None
    identity: Identity = field(default_factory=Identity)
    conversation: str | None = None
    model: str | None = None
    deadline_s: float | None = None
    metadata: JsonObject = field(default_factory=nothing)
    silent: bool = False
    principal: Principal = LOCAL
    confirmations: Sequence[str] = ()
    declined: Sequence[str] = ()
    call: DirectCall | None = None
    trace: TraceContext | None = None


@dataclass(frozen=True, slots=True)
class AskResult:
    """How an ask ended (ASK-1). ``error`` is set for ``limit``, ``cancelled`` and ``failed``.

    ``messages`` are the texts sent by ``send_message``, ``new_messages`` the transcript to append to
    the next request's history, ``loaded_tools`` what tool search loaded, in load order, ``pending`` what
    ``needs_confirmation`` (RTE-9). ``cut_off`` says why the last reply of the model ended before it was
    complete, if it did: at its longest length, or by a filter of its service. ``called`` is what came of
    the ``call`` of the request. ``refused`` says that it failed before anything of it began: the same may
    be asked again. Only this tells so, never the code of ``error``, which may be a tool's own.
    """

    ask_id: str
    outcome: Outcome
    text: str = ""
    messages: tuple[str, ...] = ()
    new_messages: tuple[Message, ...] = ()
    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    loaded_tools: tuple[str, ...] = ()
    generation: int = 0
    error: ErrorInfo | None = None
    pending: tuple[PendingCall, ...] = ()
    cut_off: CutOff | None = None
    called: Called | None = None
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningAsk:
    """An ask that has not ended, as operators see it (REL-9).

    ``started`` is in seconds since 1970. ``model`` is the profile that answers now; ``steps`` and
    ``tool_calls`` were begun so far. ``state`` is what it waits for: ``queued`` for its turn to run, before
    the first turn of the model ``starting``, prefetch included. ``cancelling``: it was told to end.
    """

    ask_id: str
    started: float
    age_s: float
    generation: int
    model: str
    user: str | None
    principal: str
    steps: int
    tool_calls: int
    state: AskState
    cancelling: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of everything an ask reports; ``seq`` counts from 1 within the ask (INT-3).

    The ask stamps ``ask_id`` and ``seq`` when it emits; a gap in ``seq``: text or progress was dropped for a
    consumer that fell behind. ``agent``: the sub-agent, by the names to it joined by ``/``, or None (ASK-11).
    """

    type: ClassVar[str]
    ask_id: str = ""
    seq: int = 0
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskStarted(Event):
    """The ask was admitted and pinned to a generation."""

    type: ClassVar[str] = "ask.started"
    generation: int
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefetchFinished(Event):
    """All prefetch tools were tried: ``ok`` succeeded, ``failed`` maps a name to its error code."""

    type: ClassVar[str] = "prefetch.finished"
    ok: tuple[str, ...]
    failed: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(Event):
    """A request goes to the model with these tools; ``attempt`` > 1 voids the turn's text so far.

    ``model`` is the profile: another than in the turn before if a fallback has taken over (ASK-9).
    """

    type: ClassVar[str] = "turn.started"
    step: int
    exposed: tuple[str, ...]
    model: str
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(Event):
    """Text as the model writes it."""

    type: ClassVar[str] = "text.delta"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsLoaded(Event):
    """Tool search loaded these: they can be called from the next turn on."""

    type: ClassVar[str] = "tools.loaded"
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Event):
    """A call was accepted: exposed, readable, within limits. Its arguments are checked next."""

    type: ClassVar[str] = "tool.started"
    call_id: str
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress(Event):
    """A running tool reports how far it is; ``total`` None if unknown."""

    type: ClassVar[str] = "tool.progress"
    call_id: str
    done: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(Event):
    """A call has its result, also one that was refused before it ran."""

    type: ClassVar[str] = "tool.finished"
    call_id: str
    name: str
    status: ToolStatus
    error_code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationRequired(Event):
    """A call of this turn did not run: it waits for a person's consent, and the ask will end (RTE-9)."""

    type: ClassVar[str] = "confirmation.required"
    pending: PendingCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Event):
    """A line that tells the chat which tool the model calls (ASK-10)."""

    type: ClassVar[str] = "notice"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSent(Event):
    """The model sent a message to the caller while the ask goes on."""

    type: ClassVar[str] = "message"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskFinished(Event):
    """The last event of every ask, exactly once."""

    type: ClassVar[str] = "ask.finished"
    result: AskResult


AskEvent = (
    AskStarted
    | PrefetchFinished
    | TurnStarted
    | TextDelta
    | ToolsLoaded
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | ConfirmationRequired
    | Notice
    | MessageSent
    | AskFinished
)
