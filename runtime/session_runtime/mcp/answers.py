"""Messages that come over HTTP as the SDK may read them: it can read all that it gets, at once (RTE-5).

It writes a traceback, with the data, to the log for what it cannot read, waits for ever for an answer with
another id, and holds up the event loop while it reads: half a second for 26 MB. So a large answer is read in
a thread, and its result waits here until what stands in its place has come through the SDK. Public:
``Answers``. Which of these messages mean something is decided in ``tap``.
"""

import asyncio
from functools import partial
from typing import Any, Final

from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCResponse

from session_runtime.mcp.messages import NoMessage, read_text
from session_runtime.threads import aside

READ_AT_ONCE_BYTES: Final = 65_536
KEPT_S: Final = 60.0
_MAX_ERROR_CHARS: Final = 2_000

Answer = JSONRPCResponse | JSONRPCError


class Answers:
    """Those of one connection, used on the event loop; a ``tap.Listener`` behind the SDK's transport."""

    def __init__(self) -> None:
        self._results: dict[str | int, tuple[float, dict[str, Any]]] = {}
        self._now = asyncio.get_running_loop().time

    async def answer(self, body: bytes, id_: str | int) -> JSONRPCMessage:
        """The answer in a body, under the id of its request; raises NoMessage if there is none."""
        answers = [each for each in await self._read(body) if isinstance(each, Answer)]
        answers.sort(key=lambda each: each.id != id_)
        if not answers:
            raise NoMessage("there is no answer in it")
        return self._fitted(answers[0], id_, large=len(body) > READ_AT_ONCE_BYTES)

    async def messages(self, data: bytes, id_: str | int | None) -> list[JSONRPCMessage]:
        """Those of an event, answers under the id of the request that is answered; raises NoMessage.

        A large one that is no answer is left out: nobody here needs such.
        """
        large = len(data) > READ_AT_ONCE_BYTES
        return [
            self._fitted(message, id_, large=large)
            for message in await self._read(data)
            if not large or isinstance(message, Answer)
        ]

    def heard(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        """Give an answer the result that waited for it."""
        match item:
            case SessionMessage(message=JSONRPCResponse(id=id_) as answer):
                _, answer.result = self._results.pop(id_, (0.0, answer.result))
        return item

    def end(self) -> None:
        """Nothing will be heard any more."""
        self._results.clear()

    async def _read(self, data: bytes) -> tuple[JSONRPCMessage, ...]:
        read = partial(read_text, data)
        return await aside("reading an answer", read) if len(data) > READ_AT_ONCE_BYTES else read()

    def _fitted(
        self, message: JSONRPCMessage, id_: str | int | None, *, large: bool
    ) -> JSONRPCMessage:
        if isinstance(message, Answer) and id_ is not None:
            message.id = id_
        match message:
            case JSONRPCResponse(id=own, result=result) if large:
                self._keep(own, result)
                return JSONRPCResponse(jsonrpc="2.0", id=own, result={})
            case JSONRPCError(id=own, error=error) if large:
                short = ErrorData(code=error.code, message=error.message[:_MAX_ERROR_CHARS])
                return JSONRPCError(jsonrpc="2.0", id=own, error=short)
            case _:
                return message

    def _keep(self, id_: str | int, result: dict[str, Any]) -> None:
        """Let a result wait; those of requests that were given up meanwhile go with time."""
        now = self._now()
        old = [each for each, (at, _) in self._results.items() if at < now - KEPT_S]
        for each in old:
            del self._results[each]
        self._results[id_] = now, result
