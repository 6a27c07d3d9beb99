"""What every model adapter offers: one reply to one request. When to ask again is decided in ``ask``."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol

from session_runtime.registry.names import WireNames
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import JsonObject, Message, ToolCall, Usage, nothing

OnText = Callable[[str], None]

# What the runtime itself says, as a user message, to a model that must call a tool and did not.
NUDGE = (
    "Your answer was not delivered: this conversation is answered through tools. "
    "Call one of the tools you were given to reply or to end."
)


INCOMPLETE: Final = "incomplete"
"""Why a reply ended, where it broke off and the service did not say why."""

FILTERED: Final = "content_filter"
"""Why a reply ended, where a filter of the service, or the model itself, refuses to say more."""

CUT_OFF: Final = frozenset({"length", FILTERED, INCOMPLETE})
"""Why a reply ended, where the model had more to say."""

_REASONS: Final = CUT_OFF | {"stop", "tool_calls", "function_call"}
_MAX_REASON_CHARS: Final = 64
_IN_OUR_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("end_turn", "stop_sequence", "eos", "eos_token"), "stop"),
        "tool_use": "tool_calls",
        **dict.fromkeys(("max_tokens", "max_output_tokens", "model_length"), "length"),
        "model_context_window_exceeded": "length",
        **dict.fromkeys(("refusal", "safety", "recitation", "blocklist", "spii"), FILTERED),
        **dict.fromkeys(("prohibited_content", "content_filtered"), FILTERED),
        "guardrail_intervened": FILTERED,
        **dict.fromkeys(("pause_turn", "abort", "error"), INCOMPLETE),
    }
)
"""What other families of services call the reasons of chat completions; gateways hand them on."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One turn: all messages and the tools that may be called, both with canonical names.

    ``tools`` only grows at its end during an ask (TS-11); ``names`` turns canonical names into what
    the provider accepts and back (ASK-12). ``carry`` is what the last reply of the same ask and profile
    handed over, None in the first turn; only the adapter that made it knows what is in it. ``form`` is the
    JSON schema that the whole text of the reply must fit, for wires that can ask for one; None for any text.
    ``until`` is the event-loop time at which the ask ends: nothing that can be done without is waited for
    so long that the turn could not go on; None if that is not known.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    names: WireNames
    carry: object = None
    form: JsonObject | None = None
    until: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What the model said: text, calls with canonical names where known, usage (None: not told).

    ``extra`` are unknown fields of the assistant message, to be sent back with it (ASK-3); ``carry`` goes
    to the next request of the same ask and is never kept beyond it.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    finish_reason: str | None = None
    extra: JsonObject = field(default_factory=nothing)
    carry: object = field(default=None, compare=False)


def call_ids(messages: Iterable[Message]) -> frozenset[str]:
    """The ids of all calls in these messages, which a new call may not have."""
    return frozenset(call.id for message in messages for call in message.tool_calls)


def plain_reason(reason: str) -> str:
    """Why a reply ended, in the words of chat completions; what is unknown as it came, but short."""
    told = "".join(char for char in reason[:_MAX_REASON_CHARS] if char.isprintable())
    plain = told.casefold().replace("-", "_")
    known = _IN_OUR_WORDS.get(plain, plain)
    return known if known in _REASONS else told


class Model(Protocol):
    """One configured profile's model.

    ``reply`` raises TransientError (429, 5xx, network, cut stream) or PermanentError (refused for
    good); it never retries by itself and calls ``on_text`` in order while text arrives, only before
    it returns. An empty reply is returned, not raised.
    """

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Send one request and gather the whole reply."""

    async def aclose(self) -> None:
        """Close connections; called once, after the last ask that may use the model."""
