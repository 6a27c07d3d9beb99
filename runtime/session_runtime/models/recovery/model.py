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
from session_runtime.models.recovery.beginning import Known, is_marked
from session_runtime.models.recovery.held import HeldText
from session_runtime.models.recovery.parameters import arguments_of
from session_runtime.models.recovery.reading import read
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
        known = partial(_is_known, request) if self._dialect.calls else None
        held = HeldText(on_text, known, begun=self._dialect.begun)
        reply = await self._model.reply(request, held.add)
        split = self._split(reply)
        written, thinking = ((), "") if known is None else await _found(split, known)
        if not written:
            return self._kept(self._as_text(reply, split, held), split.thinking)
        calls = reply.calls or tuple(_calls(written, request))
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

    def _as_text(self, reply: ModelReply, split: Split, held: HeldText) -> ModelReply:
        """The reply with its answer, none if that is half of an envelope because the reply was cut off."""
        cut_off = self._dialect.calls and reply.finish_reason in CUT_OFF
        if split.open or (cut_off and is_marked(split.answer.lstrip())):
            return replace(reply, text="")
        held.release()
        return replace(reply, text=split.answer)

    def _kept(self, reply: ModelReply, thinking: str) -> ModelReply:
        field = self._dialect.thinking_field
        if field is None or not thinking or field in reply.extra:
            return reply
        return replace(reply, extra={**reply.extra, field: thinking})


async def _found(split: Split, known: Known) -> tuple[tuple[WrittenCall, ...], str]:
    """The calls of a reply with its thinking; a long one is read without holding up anybody."""
    if len(split.answer) <= READ_AT_ONCE_CHARS:
        return _read(split, known)
    return await aside("reading calls in a text", partial(_read, split, known))


def _read(split: Split, known: Known) -> tuple[tuple[WrittenCall, ...], str]:
    """Calls that are the answer, or stand behind the end of a thinking that the server had opened."""
    written = read(split.answer, known)
    if written or split.thinking:
        return written, split.thinking
    before, _, behind = split.answer.partition(CLOSING)
    return read(behind, known), before.strip()


def _is_known(request: ModelRequest, name: str) -> bool:
    return request.names.has(request.names.decode(name))


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
