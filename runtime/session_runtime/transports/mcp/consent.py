"""Asks the person at the client whether a destructive tool may run, if the client can ask one; imported late.

Only a client of the handshake era can be asked while it waits for a result.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from session_runtime.registry.spec import ToolSpec
from session_runtime.threads import aside
from session_runtime.transports.mcp.agreeing import Person
from session_runtime.transports.mcp.callers import Caller
from session_runtime.transports.mcp.exchange import EXCHANGE, Exchange
from session_runtime.wire import printable

MOST_CHARS: Final = 10_000
"""The longest arguments that a person is asked to read before agreeing, in characters of JSON."""

LONGEST_WAIT_S: Final = 300.0
_NOTHING: Final[dict[str, Any]] = {"type": "object", "properties": {}}


def person_of(
    context: ServerRequestContext[Any, Any], returning: Callable[[], Caller | None]
) -> Person | None:
    """Who can be asked about the call of this request; None if nobody can.

    ``returning`` is who calls, as it is when the answer is there; None if it may not come in any more.
    """
    can = context.session.client_capabilities
    asks_forms = can is not None and can.elicitation is not None and _takes_forms(can.elicitation)
    if asks_forms and context.session.can_send_request:
        return _AtClient(context, returning)
    return None


def _takes_forms(elicitation: types.ElicitationCapability) -> bool:
    return elicitation.form is not None or elicitation.url is None


@dataclass(frozen=True, slots=True)
class _AtClient:
    """Whoever sits at the client; asked about one call, as long as the client waits for its result."""

    context: ServerRequestContext[Any, Any]
    returning: Callable[[], Caller | None]

    async def ask(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Caller | str:
        """See ``Person.ask``."""
        text = await aside("writing arguments", partial(_shown, arguments))
        if len(text) > MOST_CHARS:
            return (
                f"a person has to agree to it, and its arguments have {len(text)} characters, of which"
                f" nobody is asked to read more than {MOST_CHARS}. Call it with less at a time"
            )
        question = (
            f"May {spec.name} run? It changes things for good.\nArguments:\n{printable(text)}"
        )
        try:
            answer = await self._answer(question)
        except (TimeoutError, MCPError, ValueError):
            return "a person has to agree to it, and the client gave no answer"
        if answer.action != "accept":
            return "the person at the client was asked and did not agree"
        return self.returning() or "whoever asked for it may not come in any more"

    async def _answer(self, question: str) -> types.ElicitResult:
        """Raises TimeoutError if none comes in time, or the client does not wait for the result any more."""
        clock = asyncio.get_running_loop().time
        async with asyncio.timeout(LONGEST_WAIT_S) as until:
            with ExitStack() as stack:
                if (exchange := exchange_of(self.context)) is not None:
                    stack.enter_context(exchange.watching(lambda: until.reschedule(clock())))
                return await self.context.session.elicit_form(
                    question, _NOTHING, self.context.request_id
                )


def exchange_of(context: ServerRequestContext[Any, Any]) -> Exchange | None:
    """The exchange that a request came in; None on a pipe, and where a request stands alone."""
    request: Request | None = context.request
    return None if request is None else request.scope.get(EXCHANGE)


def _shown(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False, indent=1)
