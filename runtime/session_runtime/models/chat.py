"""Speaks the Chat Completions dialect of OpenAI and compatible services (ASK-3).

The bytes on their way and their faults are ``http``'s; the body is written in ``chat_body``, the answer
understood in ``stream``.
"""

from functools import partial
from typing import Final

import httpx2

from session_runtime.config.models import ModelProfile
from session_runtime.models.base import ModelReply, ModelRequest, OnText, call_ids
from session_runtime.models.chat_body import ChatBodyWriter
from session_runtime.models.faults import Api
from session_runtime.models.http import ModelServer
from session_runtime.models.stream import ReplyAssembly

API: Final = Api("chat completions", "/chat/completions")


class ChatModel:
    """The model of one profile; owns ``client`` and closes it."""

    def __init__(self, profile: ModelProfile, client: httpx2.AsyncClient) -> None:
        self._server = ModelServer(profile, client, API)
        self._writer = ChatBodyWriter(profile)

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Send one turn and gather the reply; see ``Model`` for what it raises."""
        write = partial(self._writer.write, request)
        assembly, _ = await self._server.exchange(write, ReplyAssembly, on_text)
        return assembly.reply(request.names, call_ids(request.messages))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._server.aclose()
