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
from session_runtime.models.recovery.blanks import without_around
from session_runtime.models.recovery.half import Names, is_half, names_a_tool
from session_runtime.models.recovery.held import HeldText
from session_runtime.models.recovery.parameters import arguments_of
from session_runtime.models.recovery.reading import Reading, read, says_all
from session_runtime.models.recovery.thinking import (
    CLOSING,
    Split,
    may_open,
    split_begun,
    split_tagged,
)
from session_runtime.models.recovery.written import WrittenCall
from session_runtime.registry.spec import ToolSpec
from session_runtime.threads import aside
from session_runtime.types import ToolCall

READ_AT_ONCE_CHARS: Final = 16_384
_NAMESPACE: Final = "functions."
"""What models write before the name of a tool that were taught so by the prompts of OpenAI."""

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
        found = _Found() if known is None else await _found(split, reply, known, request)
        if found.calls:
            calls = reply.calls or tuple(_calls(found.calls, request))
            return self._kept(replace(reply, text="", calls=calls), found.thinking)
        if split.open or found.half:
            return self._kept(replace(reply, text=""), split.thinking)
        held.release()
        return self._kept(replace(reply, text=split.answer), split.thinking)

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    def _split(self, reply: ModelReply) -> Split:
        """Thinking and answer; all of a text that broke off may have been thinking."""
        begun, broke_off = self._dialect.begun, reply.finish_reason in CUT_OFF
        if broke_off and (CLOSING not in reply.text if begun else _may_open(reply.text)):
            return Split(reply.text if begun else "", "", open=True)
        return split_begun(reply.text) if begun else split_tagged(reply.text)

    def _kept(self, reply: ModelReply, thinking: str) -> ModelReply:
        field = self._dialect.thinking_field
        if field is None or not thinking or field in reply.extra:
            return reply
        return replace(reply, extra={**reply.extra, field: thinking})


@dataclass(frozen=True, slots=True)
class _Found:
    """The calls of a reply with its thinking, or whether its text is ``half`` of some."""

    calls: tuple[WrittenCall, ...] = ()
    thinking: str = ""
    half: bool = False


async def _found(split: Split, reply: ModelReply, known: Known, request: ModelRequest) -> _Found:
    """What is in a reply; a long one is read without holding up anybody."""
    broke_off = reply.finish_reason in CUT_OFF
    names = Names(known, partial(_begins, request))
    work = partial(_read, split, names, broke_off=broke_off)
    if len(split.answer) <= READ_AT_ONCE_CHARS:
        return work()
    return await aside("reading calls in a text", work)


def _read(split: Split, names: Names, *, broke_off: bool) -> _Found:
    """Calls that are the answer, or stand behind the end of a thinking that the server had opened.

    A text that broke off may be half of them; any other only if it is nothing but their beginning.
    """
    answer, thinking = split.answer, split.thinking
    reading = read(answer, names.known, unclosed=not broke_off)
    if reading == Reading() and not thinking and CLOSING in answer:
        before, _, answer = answer.partition(CLOSING)
        reading, thinking = read(answer, names.known, unclosed=not broke_off), before.strip()
    if reading.calls:
        return _Found(reading.calls, thinking)
    if not broke_off:
        return _Found(half=_is_unfinished(without_around(answer), names, reading))
    return _Found(
        half=is_half(answer, names) or (answer is not split.answer and not answer.strip())
    )


def _is_unfinished(answer: str, names: Names, reading: Reading) -> bool:
    """Whether a text that the model ended is nothing but the beginning of calls."""
    if not reading.unfinished:
        return False
    if is_marked(answer):
        return names_a_tool(answer, names) or says_all(answer)
    return names_a_tool(answer, names) and is_half(answer, names)


def _may_open(text: str) -> bool:
    begun = without_around(text)
    return bool(begun) and may_open(begun)


def _is_known(request: ModelRequest, name: str) -> bool:
    return request.names.has(_canonical(request, name))


def _begins(request: ModelRequest, name: str) -> bool:
    begins = request.names.begins
    return begins(name) or _NAMESPACE.startswith(name) or begins(name.removeprefix(_NAMESPACE))


def _canonical(request: ModelRequest, name: str) -> str:
    """The name of the tool that is meant; one that no tool has as it was written."""
    names = request.names
    short = names.decode(name.removeprefix(_NAMESPACE))
    return short if names.has(short) and not names.has(names.decode(name)) else names.decode(name)


def _calls(written: Iterable[WrittenCall], request: ModelRequest) -> Iterable[ToolCall]:
    """The calls as if they had been made, with ids of their own."""
    tools = {spec.name: spec for spec in request.tools}
    taken = call_ids(request.messages)
    free_ids = (call_id for n in count() if (call_id := f"call_{n}") not in taken)
    for call_id, call in zip(free_ids, written, strict=False):
        name = _canonical(request, call.name)
        yield ToolCall(call_id, name, _arguments(call, tools.get(name)), recovered=True)


def _arguments(call: WrittenCall, tool: ToolSpec | None) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    return arguments_of(call.arguments, {} if tool is None else tool.parameters)
