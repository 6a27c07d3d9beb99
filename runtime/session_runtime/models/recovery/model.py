"""Makes calls of a reply that wrote them as text, and keeps thinking out of what is told (ASK-6)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Final

from session_runtime.models.base import (
    CUT_OFF,
    Model,
    ModelReply,
    ModelRequest,
    OnText,
    call_ids,
)
from session_runtime.models.recovery.held import HeldText
from session_runtime.models.recovery.parameters import arguments_of
from session_runtime.models.recovery.reading import Envelope, breaks_off, read
from session_runtime.models.recovery.thinking import CLOSING, Split, split_begun, split_tagged
from session_runtime.models.recovery.written import WrittenCall
from session_runtime.registry.spec import ToolSpec
from session_runtime.threads import aside
from session_runtime.types import ToolCall

READ_AT_ONCE_CHARS: Final = 16_384
THINKING: Final = "reasoning_content"
"""The field of a message in which services of the wire ``chat`` take the thinking of an earlier turn."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a model writes: ``calls`` as text, ``begun`` if its replies begin inside of its thinking.

    ``thinking_field`` is where the message keeps the thinking for the next request, None for nowhere.
    """

    calls: bool = True
    begun: bool = False
    thinking_field: str | None = None


class RecoveringModel:
    """Another model, whose texts are read in its dialect; see ``Model`` for what it raises.

    A reply with calls of its own keeps them; a text beside them that is an envelope too is dropped.
    """

    def __init__(self, model: Model, dialect: Dialect) -> None:
        self._model = model
        self._dialect = dialect

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Get the reply and give it with the calls that it holds; only the rest of its text is told."""
        held = HeldText(on_text, begun=self._dialect.begun, calls=self._dialect.calls)
        reply = await self._model.reply(request, held.add)
        split = self._split(reply)
        found = await self._found(split, request) if self._dialect.calls else None
        if found is None:
            return self._kept(self._as_text(reply, split, held), split.thinking)
        thinking, envelope = found
        calls = reply.calls or tuple(_calls(envelope.calls, request))
        return self._kept(replace(reply, text="", calls=calls), thinking)

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    def _split(self, reply: ModelReply) -> Split:
        if not self._dialect.begun:
            return split_tagged(reply.text)
        split = split_begun(reply.text)
        if CLOSING in reply.text or reply.finish_reason not in CUT_OFF:
            return split
        return Split(reply.text, "", open=True)

    async def _found(self, split: Split, request: ModelRequest) -> tuple[str, Envelope] | None:
        """An envelope in the answer, or behind the end of a thinking that the server had opened."""
        if len(split.answer) <= READ_AT_ONCE_CHARS:
            return _found(split, request)
        return await aside("reading calls in a text", partial(_found, split, request))

    def _as_text(self, reply: ModelReply, split: Split, held: HeldText) -> ModelReply:
        """The reply with its answer, none if that is half of an envelope because the reply was cut off."""
        cut_off = self._dialect.calls and reply.finish_reason in CUT_OFF
        if split.open or (cut_off and breaks_off(split.answer)):
            return replace(reply, text="")
        held.release()
        return replace(reply, text=split.answer)

    def _kept(self, reply: ModelReply, thinking: str) -> ModelReply:
        field = self._dialect.thinking_field
        if field is None or not thinking or field in reply.extra:
            return reply
        return replace(reply, extra={**reply.extra, field: thinking})


def _found(split: Split, request: ModelRequest) -> tuple[str, Envelope] | None:
    envelope = read(split.answer)
    if envelope is not None:
        return (split.thinking, envelope) if _is_meant(envelope, request) else None
    if split.thinking:
        return None
    before, closed, behind = split.answer.partition(CLOSING)
    envelope = read(behind) if closed else None
    if envelope is None or not _is_meant(envelope, request):
        return None
    return before.strip(), envelope


def _is_meant(envelope: Envelope, request: ModelRequest) -> bool:
    """What does not say itself that it is a call is one only if there are tools of all its names."""
    exposed = {spec.name for spec in request.tools}
    names = (request.names.decode(call.name) for call in envelope.calls)
    return envelope.marked or all(name in exposed or request.names.has(name) for name in names)


def _calls(written: Iterable[WrittenCall], request: ModelRequest) -> Iterable[ToolCall]:
    """The calls as if they had been made, with ids of their own."""
    tools = {spec.name: spec for spec in request.tools}
    taken = call_ids(request.messages)
    free_ids = (call_id for n in count() if (call_id := f"call_{n}") not in taken)
    for call_id, call in zip(free_ids, written, strict=False):
        name = request.names.decode(call.name)
        yield ToolCall(call_id, name, _arguments(call, tools.get(name)), recovered=True)


def _arguments(call: WrittenCall, tool: ToolSpec | None) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    return arguments_of(call.arguments, {} if tool is None else tool.parameters)
