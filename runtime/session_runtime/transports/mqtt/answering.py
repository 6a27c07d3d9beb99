"""Answers one message: runs what it asks unless that ran already, and publishes events and the answer."""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from session_runtime.errors import RequestError
from session_runtime.transports.mqtt.door import MqttDoor
from session_runtime.transports.mqtt.link import Incoming, Outgoing
from session_runtime.transports.mqtt.outlet import Outlet
from session_runtime.transports.mqtt.request import (
    Address,
    Asked,
    Rules,
    address_of,
    admit,
    read_request,
    unanswerable,
)
from session_runtime.transports.mqtt.state import MqttState, Outcome
from session_runtime.transports.mqtt.window import Answer, Entry, Window
from session_runtime.transports.outbox import Delivery, Outbox
from session_runtime.types import AskRequest, AskResult, ErrorInfo
from session_runtime.wire import error_to_json, event_to_json, result_to_json, to_bytes
from session_runtime.wire.mqtt import ATTEMPT, ERROR, KEPT, REPLICA, RESULT, SEQ, TYPE

DELIVERY_S: Final = 120.0
"""How long an answer waits for a connection; who asked has sent the request again by then."""

_REFUSALS: Final = ("busy", "request", "auth", "confirmation")
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
        self, door: MqttDoor, outlet: Outlet, window: Window, state: MqttState, replica: str
    ) -> None:
        self._door = door
        self._outlet = outlet
        self._window = window
        self._state = state
        self._replica = replica

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
        desk = _Desk(self._outlet, address_of(message), self._replica, settings.max_message_bytes)
        rules = Rules(
            settings.prefix,
            settings.max_message_bytes,
            settings.max_signed_s,
            self._door.keys(),
            settings.signers,
            time.time,
        )
        try:
            outcome = await self._answer(message, rules, desk)
        except TimeoutError:
            outcome = "undelivered"
        if self._state.count(outcome) == 1 and outcome == "undelivered":
            _log.warning("an answer could not be delivered in %g s: no broker", DELIVERY_S)

    async def _answer(self, message: Incoming, rules: Rules, desk: "_Desk") -> Outcome:
        try:
            asked = admit(message, rules)
        except RequestError as error:
            await desk.refuse(ErrorInfo(error.code, str(error)))
            return "refused"
        entry = self._window.find(asked.who)
        if entry is not None:
            return await _again(asked, entry, desk)
        entry = self._window.begin(asked.who, asked.digest)
        if entry is None:
            await desk.refuse(_WINDOW_FULL)
            return "busy"
        try:
            return await self._first(message, asked, entry, desk)
        finally:
            if not entry.ran:
                self._window.forget(asked.who)
            entry.settled.set()

    async def _first(self, message: Incoming, asked: Asked, entry: Entry, desk: "_Desk") -> Outcome:
        """Run what was not asked before; what was refused before it began may be asked again."""
        try:
            request = await read_request(message, asked.principal)
        except RequestError as error:
            await desk.refuse(ErrorInfo(error.code, str(error)))
            return "refused"
        result, seq = await self._run(request, asked, desk)
        refusal = _refusal(result)
        if refusal is not None:
            await desk.refuse(refusal)
            return "busy" if refusal.code.startswith("busy.") else "refused"
        answer = desk.answer_of(result, seq)
        self._window.finish(entry, answer)
        await desk.send(answer)
        return "answered"

    async def _run(self, request: AskRequest, asked: Asked, desk: "_Desk") -> tuple[AskResult, int]:
        """Run the ask and publish its events; gives its result and the number of its last event."""
        outbox = Outbox()
        asking = asyncio.create_task(self._door.ask(request, outbox.emit), name="mqtt ask")
        asking.add_done_callback(lambda _: outbox.close())
        seq = 0
        try:
            async for delivery in outbox:
                seq = delivery.event.seq
                if asked.wants(delivery.event):
                    await desk.tell(delivery)
            return await asking, seq
        finally:
            if not asking.done():
                asking.cancel()
                await asyncio.wait([asking])


async def _again(asked: Asked, entry: Entry, desk: "_Desk") -> Outcome:
    """Answer what was asked before: by the answer of the one run, which is not made again."""
    if entry.digest != asked.digest:
        await desk.refuse(_OTHER_BODY)
        return "refused"
    if not entry.settled.is_set():
        await entry.settled.wait()  # the one answer goes to the same topic
        return "answered_again"
    if entry.answer is None:
        await desk.refuse(_NOT_KEPT)
    else:
        await desk.send(entry.answer, kept=True)
    return "answered_again"


@dataclass(slots=True)
class _Desk:
    """Writes to the sender of one message; every method raises TimeoutError after ``DELIVERY_S``."""

    outlet: Outlet
    address: Address
    replica: str
    max_bytes: int
    mute: bool = False

    async def tell(self, delivery: Delivery) -> None:
        """Publish an event; once one could not be delivered, or one that is too large, none."""
        event = delivery.event
        body = to_bytes(event_to_json(event, delivery.lost))
        if self.mute or len(body) > self.max_bytes:
            return
        try:
            await self._publish(event.type, body, {SEQ: str(event.seq)})
        except TimeoutError:
            self.mute = True

    async def refuse(self, error: ErrorInfo) -> None:
        """Publish why there is no result."""
        await self._publish(ERROR, _error_body(error), {})

    async def send(self, answer: Answer, *, kept: bool = False) -> None:
        """Publish the last message of an ask."""
        about = {SEQ: str(answer.seq), **({KEPT: "yes"} if kept else {})}
        await self._publish(answer.kind, answer.body, about)

    def answer_of(self, result: AskResult, seq: int) -> Answer:
        """What an ask is answered by: its result, or that it is too large for the broker."""
        body = to_bytes(result_to_json(result))
        if len(body) <= self.max_bytes:
            return Answer(RESULT, body, seq)
        fault = ErrorInfo(
            "mqtt.answer_too_large",
            f"{result.ask_id} ended as {result.outcome}, and its result has {len(body)} bytes:"
            f" mqtt.max_message_bytes allows {self.max_bytes}; ask for less, or over HTTP",
        )
        return Answer(ERROR, _error_body(fault), seq)

    async def _publish(self, kind: str, body: bytes, about: Mapping[str, str]) -> None:
        attempt = self.address.attempt
        repeated = {ATTEMPT: str(attempt)} if attempt > 1 else {}
        properties = {TYPE: kind, **about, REPLICA: self.replica, **repeated}
        message = Outgoing(
            self.address.reply,
            body,
            correlation=self.address.correlation,
            properties=properties,
        )
        async with asyncio.timeout(DELIVERY_S):
            await self.outlet.publish(message)


def _refusal(result: AskResult) -> ErrorInfo | None:
    """Why an ask did not begin; None if it did."""
    if result.outcome != "failed" or result.error is None:
        return None
    return result.error if result.error.code.partition(".")[0] in _REFUSALS else None


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
