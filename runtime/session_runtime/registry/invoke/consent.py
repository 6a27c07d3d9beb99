"""Whether a call of a destructive tool may run: who was asked, and what was said (RTE-9).

Tokens are given out and claimed in ``confirmations``; when a claimed call runs is decided in ``ask``.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol

from session_runtime.registry.confirmations import Answered, Asker, Confirmations, WaitingCall
from session_runtime.registry.spec import Route, ToolSpec
from session_runtime.threads import aside
from session_runtime.types import JsonObject, PendingCall, ToolCall
from session_runtime.wire import to_bytes

MOST_WAITING: Final = 32
"""How many calls of one ask may wait: as many as a request may confirm."""

MOST_WAITING_CHARS: Final = 256 * 1024
"""The longest call that may wait, in characters of JSON; nobody reads more before saying yes."""

NEEDS_CONFIRMATION_CODE: Final = "tool.needs_confirmation"


@dataclass(frozen=True, slots=True)
class NotRun:
    """Why a call may not run now, in words for the model."""

    reason: str
    code: str = NEEDS_CONFIRMATION_CODE


@dataclass(frozen=True, slots=True)
class Proposed:
    """A call that would run now: of which tool, in which ``form`` (see ``form_of``), with which arguments."""

    spec: ToolSpec
    form: str
    arguments: Mapping[str, Any]


class Consent(Protocol):
    """What is known of a person's consent to one call."""

    async def missing(self, proposed: Proposed) -> NotRun | None:
        """None if the call may run, which is then used up; else why not. Raises nothing."""

    def give_back(self) -> None:
        """Let what was used up count again: the call did not reach its tool."""


class _Nobody:
    """The consent of nobody: where a call has no person who could be asked."""

    async def missing(self, proposed: Proposed) -> NotRun | None:
        """Refuse."""
        return NotRun(
            f"{proposed.spec.name} was not run and nothing was changed: it is destructive and needs the "
            "consent of a person, and nobody can be asked here. Trying again will not help."
        )

    def give_back(self) -> None:
        """Nothing was used up."""


NOBODY: Final[Consent] = _Nobody()


class AskConsent:
    """What a person said about calls of one ask, and which of its calls wait to be asked about.

    ``answered`` was claimed for this ask; each agreement lets exactly one call run that equals what was
    agreed to: the same form of the tool, and the same arguments. One whose call did not reach the tool
    counts again. It is the event loop's alone.
    """

    def __init__(
        self,
        confirmations: Confirmations,
        asker: Asker,
        ask_id: str,
        ttl_s: float,
        answered: Iterable[Answered] = (),
    ) -> None:
        self._confirmations = confirmations
        self._asker = asker
        self._ask_id = ask_id
        self._ttl_s = ttl_s
        self._agreed = [each for each in answered if each.agreed]
        self._used: dict[str, Answered] = {}
        self._pending: dict[str, PendingCall] = {}

    def pending(self, call_id: str) -> PendingCall | None:
        """The call of that id if it waits."""
        return self._pending.get(call_id)

    def of(self, call: ToolCall) -> Consent:
        """The consent to one call of this ask."""
        return _CallConsent(self, call)

    async def missing(self, call: ToolCall, proposed: Proposed) -> NotRun | None:
        """See ``Consent.missing``: use up an agreement to this very call, or let the call wait."""
        made = await aside("writing arguments", partial(_written, self._ask_id, call, proposed))
        spec = proposed.spec
        if self._use_up(made):
            return None
        if made.chars > MOST_WAITING_CHARS:
            return NotRun(
                f"{spec.name} was not run and nothing was changed: a person has to agree to it, and its "
                f"arguments have {made.chars} characters, of which nobody can be asked to read more than "
                f"{MOST_WAITING_CHARS}. Call it with less at a time."
            )
        if len(self._pending) >= MOST_WAITING:
            return NotRun(
                f"{spec.name} was not run and nothing was changed: a person has to agree to it, and "
                f"{MOST_WAITING} other calls wait for that already. Call it again when they are done."
            )
        self._let_wait(made)
        return NotRun(
            f"{spec.name} was not run yet and nothing was changed: a person is asked whether it may run. "
            "If they agree, it is run without another call of yours, and you get its result."
        )

    def give_back(self, call: ToolCall) -> None:
        """See ``Consent.give_back``."""
        if (answered := self._used.pop(call.id, None)) is not None:
            self._agreed.append(answered)

    def _use_up(self, made: WaitingCall) -> bool:
        for answered in self._agreed:
            same = hmac.compare_digest(answered.waiting.digest, made.digest)
            if same and self._confirmations.holds(answered):
                self._agreed.remove(answered)
                self._used[made.call.id] = answered
                return True
        return False

    def _let_wait(self, made: WaitingCall) -> None:
        token, expires_at = self._confirmations.keep(self._asker, made, self._ttl_s)
        call = made.call
        arguments: JsonObject = json.loads(call.arguments)
        self._pending[call.id] = PendingCall(token, call.name, arguments, call.id, expires_at)


@dataclass(frozen=True, slots=True)
class _CallConsent:
    ask: AskConsent
    call: ToolCall

    async def missing(self, proposed: Proposed) -> NotRun | None:
        return await self.ask.missing(self.call, proposed)

    def give_back(self) -> None:
        self.ask.give_back(self.call)


def _written(ask_id: str, call: ToolCall, proposed: Proposed) -> WaitingCall:
    """Fix a call for good: nothing that changes the arguments later changes what a person agreed to."""
    text = json.dumps(dict(proposed.arguments), ensure_ascii=False)
    return WaitingCall(
        ask_id,
        replace(call, name=proposed.spec.name, arguments=text),
        proposed.form,
        digest_of(proposed),
        len(text) + len(to_bytes(call.extra)),
    )


def digest_of(proposed: Proposed) -> bytes:
    """The same for calls of the same form of the same tool with the same arguments."""
    said = [proposed.spec.name, proposed.form, dict(proposed.arguments)]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).digest()


def form_of(spec: ToolSpec, routes: Iterable[Route]) -> str:
    """What stays the same as long as a tool does what a person was told, where it was told.

    ``routes`` are those of whom it is called for: what they reach is a part of it (RTE-9).
    """
    place = [spec.source_id, spec.place, spec.native_name, *(route.reaches for route in routes)]
    digest = hashlib.sha256(json.dumps(place).encode()).hexdigest()
    return f"{spec.source_id} {spec.digest} {digest}"
