"""Models that are told of tools in words; what a service or a model gets wrong is no concern of theirs."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Final

from session_runtime.models.base import (
    CUT_OFF,
    INCOMPLETE,
    Model,
    ModelReply,
    ModelRequest,
    OnText,
    call_ids,
)
from session_runtime.models.modes.reading import Read, StreamedAnswer, read_reply
from session_runtime.models.modes.schema import ReplySchema, SchemaForm
from session_runtime.models.modes.text import TextForm
from session_runtime.models.modes.told import ToolLines, Written, told
from session_runtime.threads import aside
from session_runtime.types import ToolCall

READ_AT_ONCE_CHARS: Final = 16_384


class TextModel:
    """Another model, which is asked to write its calls as text; ``recovery`` around it reads them."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._lines = ToolLines()

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Get the reply to the request in words; see ``Model`` for what it raises."""
        messages = told(request, TextForm(), self._lines.of(request))
        return await self._model.reply(replace(request, messages=messages, tools=()), on_text)

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()


class SchemaModel:
    """Another model, whose service holds it to one JSON object, an answer or calls.

    Where a service does not, what the model writes counts as far as it can be read: calls of its own, those
    written in another notation, or a text.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._lines = ToolLines()
        self._schema = ReplySchema()

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Get the reply and give the answer and the calls in it; only the answer is told."""
        if not request.tools:
            messages = told(request, TextForm(), ())
            return await self._model.reply(replace(request, messages=messages), on_text)
        messages = told(request, SchemaForm(), self._lines.of(request))
        inner = replace(request, messages=messages, tools=(), form=self._schema.of(request))
        answer = StreamedAnswer(on_text)
        reply = await self._model.reply(inner, answer.add)
        if reply.calls:
            return reply
        read = await _read(reply.text)
        answer.end(read)
        reason = reply.finish_reason
        if read.broke_off and reason not in CUT_OFF:
            reason = INCOMPLETE
        calls = tuple(_calls(read.calls, request))
        return replace(reply, text=read.text, calls=calls, finish_reason=reason)

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()


async def _read(text: str) -> Read:
    """What a reply says; a long one is read without holding up anybody."""
    if len(text) <= READ_AT_ONCE_CHARS:
        return read_reply(text)
    return await aside("reading a reply", partial(read_reply, text))


def _calls(written: Iterable[Written], request: ModelRequest) -> Iterable[ToolCall]:
    taken = call_ids(request.messages)
    free_ids = (call_id for n in count() if (call_id := f"call_{n}") not in taken)
    for call_id, call in zip(free_ids, written, strict=False):
        yield ToolCall(call_id, request.names.decode(call.name), call.arguments)
