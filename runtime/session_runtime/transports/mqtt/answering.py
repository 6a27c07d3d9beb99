"""Answers one message: runs what it asks unless that ran already, and publishes events and the answer."""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from session_runtime.ask.emitter import new_ask_id
from session_runtime.errors import RequestError
from session_runtime.transports.mqtt.door import MqttDoor
from session_runtime.transports.mqtt.link import (
    BrokenOverError,
    Incoming,
    Outgoing,
    TooLargeError,
    UndeliverableError,
)
from session_runtime.transports.mqtt.outlet import Outlet
from session_runtime.transports.mqtt.request import (
    Address,
    Asked,
    Rules,
    address_of,
    admit,
    cancelled_by,
    check_fresh,
    read_request,
    unanswerable,
)
from session_runtime.transports.mqtt.state import MqttState, Outcome
from session_runtime.transports.mqtt.throttle import Throttle
from session_runtime.transports.mqtt.window import Answer, Entry, Window
from session_runtime.transports.outbox import Delivery, Outbox
from session_runtime.types import AskRequest, AskResult, ErrorInfo
from session_runtime.wire import error_to_json, event_to_json, result_to_json, to_bytes
from session_runtime.wire.mqtt import ALIVE, CANCELLED, ERROR, RESULT
from session_runtime.wire.mqtt_answers import About

DELIVERY_S: Final = 120.0
"""How long an answer waits for a connection; who asked has sent the request again by then."""

ALIVE_S: Final = 15.0
"""So often it is told that an ask goes on of which nothing else is published."""

FIRST_ALIVE_S: Final = 1.0
"""So soon it is told that a request was taken, so that who hears nothing knows that it was not."""

_WINDOW_FULL: Final = ErrorInfo(
    "busy.window",
    "too many asks are remembered: ask again later",
    retryable=True,
    retry_after_s=30.0,
)
_log = logging.getLogger(__name__)


class Answering:
    """Answers messages of one replica; what it keeps of them is in the window."""

    def __init__(
        self,
        door: MqttDoor,
        outlet: Outlet,
        window: Window,
        state: MqttState,
        replica: str,
        *,
        alive_s: float = ALIVE_S,
    ) -> None:
        self._door = door
        self._outlet = outlet
        self._window = window
        self._state = state
        self._replica = replica
        self._alive_s = alive_s
        self._strangers = Throttle(asyncio.get_running_loop().time)

    async def answer(self, message: Incoming) -> None:
        """Answer a message, at most once for each time that it came.

        It may be acknowledged after that. Raises nothing but CancelledError.
        """
        settings = self._door.settings()
        silent = unanswerable(message, settings.prefix)
        if silent is not None:
            if self._state.count(silent) == 1:
                _log.warning("%s", _SILENT[silent])
            return
        address = address_of(message)
        desk = _Desk(self._outlet, address, self._replica, settings.max_payload_bytes)
        rules = Rules(
            settings.prefix,
            settings.max_payload_bytes,
            settings.max_signed_s,
            self._door.keys(),
            settings.signers,
            time.time,
        )
        why = ""
        try:
            outcome = await self._answer(message, rules, desk)
        except TimeoutError:
            outcome, why = "undelivered", f"there was no broker for {DELIVERY_S:g} s"
        except UndeliverableError as error:
            outcome, why = "undelivered", str(error)
        if self._state.count(outcome) == 1 and why:
            _log.warning("an answer could not be delivered, further ones are counted: %s", why)

    async def _answer(self, message: Incoming, rules: Rules, desk: "_Desk") -> Outcome:
        try:
            asked = admit(message, rules)
            entry = self._window.find(asked.who)
            if entry is None:
                check_fresh(asked, rules)
        except RequestError as error:
            if rules.keys and not self._strangers.admits():
                return "untold"
            await desk.refuse(ErrorInfo(error.code, str(error)))
            return "refused"
        if entry is None and (wanted := cancelled_by(message)) is not None:
            return await self._cancel(wanted, asked, desk)
        if entry is not None:
            return await _again(asked, entry, desk)
        entry = self._window.begin(asked.who, asked.digest)
        if entry is None:
            await desk.refuse(_WINDOW_FULL)
            return "busy"
        try:
            return await self._first(message, asked, entry, desk)
        finally:
            self._window.end(asked.who)

    async def _cancel(self, wanted: str, asked: Asked, desk: "_Desk") -> Outcome:
        """End an ask; that it was told to is remembered, as the same wish again would be too late."""
        cancelled = self._door.cancel(wanted, asked.principal)
        answer = Answer(CANCELLED, to_bytes({CANCELLED: cancelled}), None)
        entry = self._window.begin(asked.who, asked.digest) if cancelled else None
        if entry is None:
            await desk.send(answer)
            return "answered"
        self._window.finish(entry, answer)
        try:
            await desk.send(answer)
        finally:
            self._window.end(asked.who)
        return "answered"

    async def _first(self, message: Incoming, asked: Asked, entry: Entry, desk: "_Desk") -> Outcome:
        """Run what was not asked before; what was refused before it began may be asked again."""
        try:
            request, chars = await read_request(message, asked.principal)
        except RequestError as error:
            return await _refused(entry, ErrorInfo(error.code, str(error)), desk)
        result, seq = await self._run(request, chars, asked, desk)
        refusal = _refusal(result)
        if refusal is not None:
            return await _refused(entry, refusal, desk)
        answer = desk.answer_of(result, seq)
        self._window.finish(entry, answer)
        keep = await desk.send(answer)
        if keep != answer:
            self._window.finish(entry, keep)
        return "answered"

    async def _run(
        self, request: AskRequest, chars: int, asked: Asked, desk: "_Desk"
    ) -> tuple[AskResult, int]:
        """Run the ask and publish its events; gives its result and the number of its last event."""
        outbox = Outbox()
        ask_id = new_ask_id()
        work = self._door.ask(request, outbox.emit, ask_id, chars)
        asking = asyncio.create_task(work, name="mqtt ask")
        asking.add_done_callback(lambda _: outbox.close())
        try:
            seq = await self._tell(outbox, ask_id, asked, desk)
            return await asking, seq
        finally:
            if not asking.done():
                asking.cancel()
                await asyncio.wait([asking])

    async def _tell(self, outbox: Outbox, ask_id: str, asked: Asked, desk: "_Desk") -> int:
        """Publish what is wanted, at times only that the ask goes on; gives the number of the last event."""
        now = asyncio.get_running_loop().time
        seq, due = 0, now() + min(FIRST_ALIVE_S, self._alive_s)
        while True:
            try:
                async with asyncio.timeout_at(due):
                    delivery = await outbox.take()
            except TimeoutError:
                if asked.wants_to_wait:
                    await desk.alive(ask_id)
                due = now() + self._alive_s
                continue
            if delivery is None:
                return seq
            seq = delivery.event.seq
            if asked.wants(delivery.event):
                await desk.tell(delivery)
                due = now() + self._alive_s


async def _refused(entry: Entry, refusal: ErrorInfo, desk: "_Desk") -> Outcome:
    """Tell why an ask did not begin, also those who send it again meanwhile."""
    entry.refusal = refusal
    await desk.refuse(refusal)
    return "busy" if refusal.code.startswith("busy.") else "refused"


async def _again(asked: Asked, entry: Entry, desk: "_Desk") -> Outcome:
    """Answer what was asked before: by the answer of the one run, which is not made again."""
    if entry.digest != asked.digest:
        await desk.refuse(_OTHER_BODY)
        return "refused"
    if entry.answer is not None:  # it may be on its way to where nobody listened yet
        await desk.send(entry.answer, kept=True)
    elif entry.settled:
        await desk.refuse(_NOT_KEPT)
    else:
        refusal = await entry.settlement()  # the one answer goes to the same topic
        if refusal is not None:
            await desk.refuse(refusal)
    return "answered_again"


@dataclass(slots=True)
class _Desk:
    """Writes to the sender of one message.

    ``refuse`` and ``send`` raise TimeoutError after ``DELIVERY_S``, and UndeliverableError for what the
    broker does not take.
    """

    outlet: Outlet
    address: Address
    replica: str
    max_bytes: int
    mute: bool = False

    async def tell(self, delivery: Delivery) -> None:
        """Publish an event, unless it is too large."""
        event = delivery.event
        body = to_bytes(event_to_json(event, delivery.lost))
        if len(body) <= self.max_bytes:
            await self._mention(event.type, body, event.seq)

    async def alive(self, ask_id: str) -> None:
        """Publish that the ask goes on, or waits for its turn, and by which name it can be ended."""
        await self._mention(ALIVE, to_bytes({"ask_id": ask_id}))

    async def _mention(self, kind: str, body: bytes, seq: int | None = None) -> None:
        """Publish what an ask can do without; once it could not be delivered, nothing of the kind."""
        if self.mute:
            return
        try:
            await self._publish(self._about(kind, seq), body)
        except TooLargeError:
            return
        except (TimeoutError, UndeliverableError):
            self.mute = True

    async def refuse(self, error: ErrorInfo) -> None:
        """Publish why there is no result, and whether others may have run what was refused here."""
        about = replace(self._about(ERROR), repeated=self.address.copied)
        await self._publish(about, _error_body(error))

    async def send(self, answer: Answer, *, kept: bool = False) -> Answer:
        """Publish the last message to a request; if the broker does not take it, that it does not.

        Gives what is to be kept: what was published, or the answer if it may be taken another time.
        """
        about = replace(self._about(answer.kind, answer.seq), kept=kept, repeated=answer.repeated)
        try:
            await self._publish(about, answer.body)
        except UndeliverableError as error:
            if answer.kind == ERROR:
                raise
            body = _error_body(_not_sent(error))
            await self._publish(replace(about, kind=ERROR), body)
            if not isinstance(error, BrokenOverError):
                return replace(answer, kind=ERROR, body=body)
        return answer

    def answer_of(self, result: AskResult, seq: int) -> Answer:
        """What an ask is answered by: its result, or that it is too large for the broker."""
        repeated = self.address.copied or self.address.repeated
        body = to_bytes(result_to_json(result))
        if len(body) <= self.max_bytes:
            return Answer(RESULT, body, seq, repeated)
        fault = _too_large(
            f"{result.ask_id} ended as {result.outcome}: {len(body)} bytes, and mqtt.max_payload_bytes"
            f" allows {self.max_bytes}"
        )
        return Answer(ERROR, _error_body(fault), seq, repeated)

    def _about(self, kind: str, seq: int | None = None) -> About:
        return About(kind, self.replica, self.address.attempt, seq)

    async def _publish(self, about: About, body: bytes) -> None:
        message = Outgoing(
            self.address.reply,
            body,
            correlation=self.address.correlation,
            properties=about.properties(),
        )
        async with asyncio.timeout(DELIVERY_S):
            await self.outlet.publish(message)


def _refusal(result: AskResult) -> ErrorInfo | None:
    """Why an ask did not begin; None if it did."""
    return result.error if result.refused else None


def _too_large(why: str) -> ErrorInfo:
    return ErrorInfo(
        "mqtt.answer_too_large",
        f"the ask ended, and its result is too large ({why}): ask for less, or over HTTP",
    )


def _not_sent(error: UndeliverableError) -> ErrorInfo:
    if isinstance(error, TooLargeError):
        return _too_large(str(error))
    return ErrorInfo(
        "mqtt.answer_not_taken",
        f"the ask ended, and the broker does not take its result ({error}): ask over HTTP, and see the"
        " broker's log",
    )


def _error_body(error: ErrorInfo) -> bytes:
    return to_bytes({"error": error_to_json(error)})


_OTHER_BODY: Final = ErrorInfo(
    "mqtt.correlation_used",
    "another request of the same sender has this Correlation Data: give each request its own",
)
_NOT_KEPT: Final = ErrorInfo(
    "mqtt.answer_gone",
    "this was asked before and ran; its answer is no longer kept: ask anew, with other Correlation Data,"
    " only if it may run twice",
)
_SILENT: Final[Mapping[str, str]] = {
    "retained": "a request that the broker keeps (retain) is not carried out; further ones are counted",
    "no_reply": "a request without a response topic below the prefix cannot be answered and is not"
    " carried out; further ones are counted",
}
