"""Speaks the Chat Completions dialect of OpenAI and compatible services (ASK-3).

The bytes on their way and their faults are ``http``'s; the body is written in ``chat_body``, the answer
understood in ``stream``.
"""

import logging
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import httpx2

from session_runtime.config.models import ModelProfile
from session_runtime.models.base import ModelReply, ModelRequest, OnText, call_ids
from session_runtime.models.chat_body import ChatBodyWriter, MessageMemo
from session_runtime.models.faults import Api
from session_runtime.models.http import ModelServer, writing
from session_runtime.models.http_body import message_key, message_names
from session_runtime.models.stream import ReplyAssembly

API: Final = Api("chat completions", "/chat/completions")
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Carried:
    """What one turn hands to the next: the messages as they were written, and refused fields of them."""

    refused: frozenset[str] = frozenset()
    memo: MessageMemo = field(default_factory=MessageMemo)


class ChatModel:
    """The model of one profile; owns ``client`` and closes it."""

    def __init__(self, profile: ModelProfile, client: httpx2.AsyncClient) -> None:
        self._server = ModelServer(profile, client, API)
        self._writer = ChatBodyWriter(profile)

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Send one turn and gather the reply; see ``Model`` for what it raises."""
        before = request.carry if isinstance(request.carry, Carried) else Carried()
        write = writing(
            partial(self._writer.write, request, memo=before.memo), len(request.messages)
        )
        assembly, left_out = await self._server.exchange(
            write,
            ReplyAssembly,
            on_text,
            frozenset(map(message_key, before.refused)),
            request.until,
        )
        refused = message_names(left_out)
        self._log_refusals(refused - before.refused)
        reply = assembly.reply(request.names, call_ids(request.messages))
        return replace(reply, carry=Carried(refused, before.memo))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._server.aclose()

    def _log_refusals(self, names: frozenset[str]) -> None:
        for name in sorted(names):
            _log.info(
                "%s refuses the field %r of a message: it is left out for the rest of this ask",
                self._server.endpoint.base_url,
                name,
            )
