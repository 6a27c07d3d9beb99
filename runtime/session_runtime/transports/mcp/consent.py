"""Asks the person at the client whether a destructive tool may run, if the client can ask one; imported late.

Only a client of the handshake era can be asked while it waits for a result.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from session_runtime.registry.invoke.consent import NOBODY, Consent, NotRun
from session_runtime.registry.spec import ToolSpec
from session_runtime.wire import printable

MOST_CHARS: Final = 10_000
"""The longest arguments that a person is asked to read before agreeing, in characters of JSON."""

LONGEST_WAIT_S: Final = 300.0
_NOTHING: Final[dict[str, Any]] = {"type": "object", "properties": {}}


def consent_of(context: ServerRequestContext[Any, Any]) -> Consent:
    """How the consent to the call of this request is asked for."""
    can = context.session.client_capabilities
    asks_forms = can is not None and can.elicitation is not None and _takes_forms(can.elicitation)
    return _AtClient(context) if asks_forms and context.session.can_send_request else NOBODY


def _takes_forms(elicitation: types.ElicitationCapability) -> bool:
    return elicitation.form is not None or elicitation.url is None


@dataclass(frozen=True, slots=True)
class _AtClient:
    """The consent of whoever sits at the client; given for this very call, and for no other."""

    context: ServerRequestContext[Any, Any]

    async def missing(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> NotRun | None:
        """Ask, and wait for the answer."""
        text = json.dumps(dict(arguments), ensure_ascii=False, indent=1)
        if len(text) > MOST_CHARS:
            return _not_run(
                spec,
                f"a person has to agree to it, and its arguments have {len(text)} characters, of which"
                f" nobody is asked to read more than {MOST_CHARS}. Call it with less at a time",
            )
        question = f"May {spec.name} run? It changes things for good.\nArguments:\n{_lines(text)}"
        try:
            async with asyncio.timeout(LONGEST_WAIT_S):
                answer = await self.context.session.elicit_form(
                    question, _NOTHING, self.context.request_id
                )
        except (TimeoutError, MCPError, ValueError):
            return _not_run(spec, "a person has to agree to it, and the client gave no answer")
        if answer.action == "accept":
            return None
        return _not_run(spec, "the person at the client was asked and did not agree")


def _lines(text: str) -> str:
    """The same lines without anything that could hide what they say."""
    return "\n".join(printable(line) for line in text.splitlines())


def _not_run(spec: ToolSpec, why: str) -> NotRun:
    return NotRun(f"{spec.name} was not run and nothing was changed: {why}.")
