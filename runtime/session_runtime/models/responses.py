"""Speaks the Responses protocol of OpenAI and compatible services (ASK-3).

The bytes on their way and their faults are ``http``'s; the body is written in ``responses_body``, the
answer understood in ``responses_reply``.
"""

import logging
from dataclasses import replace
from functools import partial
from typing import Final

import httpx2

from session_runtime.config.models import ModelProfile
from session_runtime.models.base import ModelReply, ModelRequest, OnText, call_ids
from session_runtime.models.faults import Api
from session_runtime.models.http import ModelServer, writing
from session_runtime.models.places import origin_of
from session_runtime.models.responses_body import CHAIN, Chain, ResponsesBodyWriter
from session_runtime.models.responses_reply import ResponseAssembly

API: Final = Api("Responses", "/responses")
_log: Final = logging.getLogger(__name__)


class ResponsesModel:
    """The model of one profile; owns ``client`` and closes it.

    The turns of an ask are chained by the id of the last response: a turn sends what is new and all
    tools. If the service refuses that, the whole conversation is sent once instead, and in all later
    turns of the ask. The chain is handed from turn to turn and is nowhere else, so that nobody can
    chain to another's response.
    """

    def __init__(self, profile: ModelProfile, client: httpx2.AsyncClient) -> None:
        self._server = ModelServer(profile, client, API)
        self._origin = origin_of(profile)
        self._writer = ResponsesBodyWriter(profile, self._origin)
        self._start = Chain(left_out=frozenset() if profile.chain else frozenset({CHAIN}))

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Send one turn and gather the reply; see ``Model`` for what it raises."""
        chain = request.carry if isinstance(request.carry, Chain) else self._start
        write = writing(partial(self._writer.write, request, chain), len(request.messages))
        assembly, left_out = await self._server.exchange(
            write, ResponseAssembly, on_text, chain.left_out, request.until
        )
        if CHAIN in left_out - chain.left_out:
            self._log_refusal()
        taken = call_ids(request.messages)
        reply = assembly.reply(request.names, taken, self._origin)
        response_id = assembly.response_id
        if response_id is None:
            left_out |= {CHAIN}
        covered, calls = len(request.messages) + 1, tuple(call.id for call in reply.calls)
        renamed = assembly.renamed(taken)
        return replace(reply, carry=Chain(response_id, covered, renamed, left_out, calls))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._server.aclose()

    def _log_refusal(self) -> None:
        _log.info(
            "%s refuses to chain turns: the rest of this ask sends the whole conversation; "
            "chain = false in the profile avoids the attempt",
            self._server.endpoint.base_url,
        )
