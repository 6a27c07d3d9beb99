"""Speaks the Messages protocol of Anthropic and compatible services: the wire ``anthropic`` (ASK-3).

The bytes on their way and their faults are ``http``'s; the body is written in ``messages_body``, the answer
understood in ``messages_reply``.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import httpx2

from session_runtime.config.models import ModelProfile
from session_runtime.models.base import ModelReply, ModelRequest, OnText, call_ids
from session_runtime.models.faults import Api
from session_runtime.models.http import ModelServer, writing
from session_runtime.models.messages_body import BlockMemo, MessagesBodyWriter
from session_runtime.models.messages_reply import MessageAssembly
from session_runtime.models.places import origin_of

API: Final = Api(
    "Messages",
    "/messages",
    key_header="x-api-key",
    key_scheme="",
    headers={"anthropic-version": "2023-06-01"},
)


@dataclass(frozen=True, slots=True)
class Carried:
    """What one turn hands to the next: how many tools the first had, what was refused, what was written."""

    first_tools: int
    left_out: frozenset[str] = frozenset()
    memo: BlockMemo = field(default_factory=BlockMemo)


class MessagesModel:
    """The model of one profile; owns ``client`` and closes it.

    Thoughts of the model are kept with the message that they led to, in a field that only the same service
    and model get back.
    """

    def __init__(self, profile: ModelProfile, client: httpx2.AsyncClient) -> None:
        self._server = ModelServer(profile, client, API)
        self._origin = origin_of(profile)
        self._writer = MessagesBodyWriter(profile, self._origin)

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Send one turn and gather the reply; see ``Model`` for what it raises."""
        carry = request.carry
        before = carry if isinstance(carry, Carried) else Carried(len(request.tools))
        write = writing(
            partial(self._writer.write, request, before.first_tools, memo=before.memo),
            len(request.messages),
        )
        assembly, left_out = await self._server.exchange(
            write, MessageAssembly, on_text, before.left_out, request.until
        )
        reply = assembly.reply(request.names, call_ids(request.messages), self._origin)
        calls = self._writer.own_arguments(request, reply.calls)
        return replace(reply, calls=calls, carry=replace(before, left_out=left_out))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._server.aclose()
