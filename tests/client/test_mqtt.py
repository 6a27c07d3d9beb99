"""The MQTT client of backends: what it sends again, when it waits, what it raises (NET-6)."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from session_runtime.client.mqtt import MqttAnswer, MqttClient, Signer
from session_runtime.client.mqtt_acks import NotTakenError
from session_runtime.client.mqtt_line import LineError, Received, Sent
from session_runtime.errors import PermanentError, RequestError, TransientError
from session_runtime.wire.mqtt import Envelope, sign

RESULT = {"outcome": "answered", "text": "12"}
ASK = "session-runtime/ask"
BUSY = {"code": "busy.capacity", "message": "full", "retryable": True, "retry_after_s": 0.0}


@dataclass
class Broker:
    """Keeps what was sent; the test says what comes back."""

    sent: list[Sent] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    inbox: asyncio.Queue[Received | None] = field(default_factory=asyncio.Queue)
    topics: Sequence[str] = ()
    refusal: NotTakenError | None = None

    @asynccontextmanager
    async def __call__(self, topics: Sequence[str]) -> AsyncIterator["Broker"]:
        self.topics = topics
        yield self

    async def messages(self) -> AsyncIterator[Received]:
        while (message := await self.inbox.get()) is not None:
            yield message
        raise LineError("cut")

    async def publish(self, message: Sent) -> None:
        self.sent.append(message)
        self.changed.set()
        if self.refusal is not None:
            raise self.refusal

    async def got(self, number: int) -> Sent:
        """Wait for the request of that number, from 1 on."""
        async with asyncio.timeout(30):
            while len(self.sent) < number:
                self.changed.clear()
                await self.changed.wait()
        return self.sent[number - 1]

    def say(self, to: Sent, kind: str, data: object, **about: str) -> None:
        properties = {"type": kind, "replica": "r1", **about}
        body = json.dumps(data).encode()
        self.inbox.put_nowait(Received(to.reply, body, to.correlation, properties=properties))

    def tell(self, replica: str, state: str, *, retained: bool = False) -> None:
        body = json.dumps({"replica": replica, "state": state}).encode()
        topic = f"session-runtime/status/{replica}"
        self.inbox.put_nowait(Received(topic, body, retained=retained))


@asynccontextmanager
async def asking(
    broker: Broker, timeout_s: float = 30.0, **options: Any
) -> AsyncIterator[asyncio.Task[MqttAnswer]]:
    """A client with one ask under way."""
    events = options.pop("on_event", None)
    async with MqttClient(connect=broker, name="bot", **options) as client:
        task = asyncio.create_task(
            client.ask({"text": "3 * 4"}, timeout_s=timeout_s, on_event=events)
        )
        yield task
        task.cancel()
        await asyncio.wait([task])


async def test_an_ask_is_published_with_where_and_by_when_it_is_to_be_answered() -> None:
    broker = Broker()
    async with asking(broker) as task:
        sent = await broker.got(1)
        broker.say(sent, "result", RESULT)
        answer = await task
    assert (sent.topic, sent.body, sent.expiry_s) == (
        "session-runtime/ask",
        b'{"text":"3 * 4"}',
        30,
    )
    assert (sent.properties, len(sent.correlation)) == ({"events": "started"}, 16)
    assert sent.reply.startswith("session-runtime/reply/bot/")
    assert broker.topics == (sent.reply, "session-runtime/status/+")
    assert answer == MqttAnswer(RESULT, "r1", 1, kept=False)
    assert (answer.text, answer.may_have_run_twice) == ("12", False)


async def test_events_are_handed_on_before_the_answer() -> None:
    broker = Broker()
    events: list[Mapping[str, Any]] = []
    async with asking(broker, on_event=events.append) as task:
        sent = await broker.got(1)
        broker.say(sent, "ask.started", {"type": "ask.started"})
        broker.say(sent, "result", RESULT)
        await task
    assert (events, sent.properties) == ([{"type": "ask.started"}], {"events": "all"})


@pytest.mark.requirement("NET-6b")
@pytest.mark.parametrize("why", ["lost connection", "replica gone", "replica was gone", "silence"])
async def test_what_may_be_lost_is_sent_again_under_the_same_name(why: str) -> None:
    broker = Broker()
    async with asking(broker, silence_s=0.0 if why == "silence" else 60.0) as task:
        sent = await broker.got(1)
        if why == "lost connection":
            broker.inbox.put_nowait(None)
        if why == "replica gone":
            broker.say(sent, "ask.started", {})
            broker.tell("r1", "offline")
        if why == "replica was gone":
            broker.say(sent, "ask.started", {})
            broker.inbox.put_nowait(None)
            broker.tell("r1", "offline", retained=True)
        again = await broker.got(2)
        broker.say(again, "result", RESULT, attempt="2")
        answer = await task
    assert (again.correlation, again.body, again.reply) == (
        sent.correlation,
        sent.body,
        sent.reply,
    )
    assert (again.topic, again.properties) == (ASK, {"events": "started", "attempt": "2"})
    assert answer.may_have_run_twice


@pytest.mark.requirement("NET-6b")
async def test_what_a_replica_has_begun_is_sent_again_to_that_one_alone() -> None:
    broker = Broker()
    async with asking(broker, silence_s=0.01) as task:
        broker.tell("r1", "online", retained=True)
        sent = await broker.got(1)
        broker.say(sent, "ask.started", {})
        while (again := await broker.got(len(broker.sent) + 1)).topic == ASK:
            pass  # sent again before it was begun
        broker.say(again, "result", RESULT)
        await task
    assert again.topic == f"{ASK}/r1"


@pytest.mark.requirement("NET-6b")
async def test_after_a_lost_connection_it_waits_for_the_replica_that_has_begun() -> None:
    broker = Broker()
    async with asking(broker) as task:
        sent = await broker.got(1)
        broker.say(sent, "alive", {})
        broker.inbox.put_nowait(None)
        broker.tell("r2", "online", retained=True)
        broker.tell("r1", "online", retained=True)
        again = await broker.got(2)
        broker.say(again, "result", RESULT, kept="yes", attempt="2")
        answer = await task
    assert [each.topic for each in broker.sent] == [ASK, f"{ASK}/r1"]
    assert again.properties["attempt"] == "2"
    assert not answer.may_have_run_twice


@pytest.mark.requirement("NET-6b")
async def test_a_replica_that_is_not_known_of_any_more_is_gone_after_a_whole_silence() -> None:
    broker = Broker()
    async with asking(broker, silence_s=0.01) as task:
        sent = await broker.got(1)
        broker.say(sent, "ask.started", {})
        broker.inbox.put_nowait(None)
        again = await broker.got(2)
        broker.say(again, "result", RESULT, attempt="2")
        assert (await task).may_have_run_twice
    assert again.topic == ASK


@pytest.mark.requirement("NET-6b")
async def test_a_refusal_of_what_was_sent_before_is_no_answer_to_what_was_sent_after() -> None:
    broker = Broker()
    refusal = {"code": "auth.signature_expired", "message": "no", "retryable": False}
    async with asking(broker) as task:
        sent = await broker.got(1)
        broker.inbox.put_nowait(None)
        await broker.got(2)
        broker.say(sent, "error", {"error": refusal})
        for _ in range(20):  # until it was read and passed over
            await asyncio.sleep(0)
        broker.say(sent, "result", RESULT)
        assert (await task).text == "12"


@pytest.mark.requirement("NET-6e")
async def test_a_signature_that_expired_on_the_way_is_made_anew() -> None:
    broker, signer = Broker(), Signer("bot", "s" * 32, valid_s=-1.0)
    refusal = {"code": "auth.signature_expired", "message": "no", "retryable": False}
    async with asking(broker, signer=signer) as task:
        broker.say(await broker.got(1), "error", {"error": refusal})
        broker.say(await broker.got(2), "result", RESULT, attempt="2")
        assert (await task).text == "12"


@pytest.mark.requirement("NET-6b")
async def test_what_on_event_raises_is_that_asks_alone() -> None:
    def fails(event: Mapping[str, Any]) -> None:
        raise LookupError(event["type"])

    broker = Broker()
    async with MqttClient(connect=broker) as client:
        failing = asyncio.create_task(client.ask({"text": "1"}, on_event=fails))
        other = asyncio.create_task(client.ask({"text": "2"}))
        first, second = await broker.got(1), await broker.got(2)
        broker.say(first, "ask.started", {"type": "ask.started"})
        broker.say(second, "result", RESULT)
        with pytest.raises(LookupError, match=r"ask\.started"):
            await failing
        assert (await other).text == "12"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("result", []),
        ("result", {"text": "12"}),
        ("error", {}),
        ("error", {"error": {"code": "busy", "retryable": True}}),
        ("error", {"error": {**BUSY, "retry_after_s": "soon"}}),
        ("ask.started", "x"),
        ("?", None),
    ],
)
async def test_an_answer_that_is_none_is_passed_over(kind: str, data: object) -> None:
    broker = Broker()
    async with asking(broker) as task:
        sent = await broker.got(1)
        broker.say(sent, kind, data)
        broker.say(sent, "result", RESULT, attempt="many")
        assert (await task) == MqttAnswer(RESULT, "r1", 1, kept=False)
    assert len(broker.sent) == 1


@pytest.mark.requirement("NET-6c")
@pytest.mark.parametrize(
    ("too_large", "kind", "code"),
    [(True, RequestError, "request.too_large"), (False, PermanentError, "mqtt.not_taken")],
)
async def test_what_the_broker_does_not_take_is_raised_and_not_sent_again(
    too_large: bool, kind: type[Exception], code: str
) -> None:
    broker = Broker(refusal=NotTakenError("no", too_large=too_large))
    async with asking(broker) as task:
        with pytest.raises(kind, match="no") as caught:
            await task
    assert (vars(caught.value)["code"], len(broker.sent)) == (code, 1)


async def test_an_answer_that_was_kept_did_not_run_twice() -> None:
    assert not MqttAnswer(RESULT, "r1", 2, kept=True).may_have_run_twice


async def test_another_replica_that_goes_is_no_reason_to_send_again() -> None:
    broker = Broker()
    async with asking(broker) as task:
        sent = await broker.got(1)
        broker.say(sent, "ask.started", {})
        broker.tell("r2", "offline")
        broker.tell("r1", "draining")
        broker.inbox.put_nowait(Received("session-runtime/status/r1", b"not json"))
        broker.say(sent, "result", RESULT)
        await task
    assert len(broker.sent) == 1


async def test_what_is_busy_is_asked_again() -> None:
    broker = Broker()
    async with asking(broker) as task:
        broker.say(await broker.got(1), "error", {"error": BUSY})
        broker.say(await broker.got(2), "result", RESULT, attempt="2")
        assert (await task).text == "12"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("request.invalid", RequestError),
        ("auth.signature", RequestError),
        ("mqtt.answer_gone", PermanentError),
    ],
)
async def test_other_errors_are_raised_with_their_code(code: str, kind: type[Exception]) -> None:
    broker = Broker()
    error = {"code": code, "message": "no", "retryable": False}
    async with asking(broker) as task:
        broker.say(await broker.got(1), "error", {"error": error})
        with pytest.raises(kind, match="no") as caught:
            await task
    assert vars(caught.value)["code"] == code


async def test_no_answer_in_time_says_that_the_request_may_have_run() -> None:
    async with asking(Broker(), timeout_s=0.0) as task:
        with pytest.raises(TransientError, match="may have run") as caught:
            await task
    assert (caught.value.code, caught.value.may_have_run) == ("mqtt.no_answer", True)


@pytest.mark.requirement("NET-6e")
async def test_a_signer_signs_each_message_and_its_secret_is_not_shown() -> None:
    broker, signer = Broker(), Signer("bot", "s" * 32)
    async with asking(broker, signer=signer):
        sent = await broker.got(1)
    expires = int(sent.properties["expires"])
    envelope = Envelope("bot", expires, sent.topic, sent.reply, sent.correlation, sent.body)
    assert sent.properties["principal"] == "bot"
    assert sent.properties["signature"] == sign(envelope, "s" * 32)
    assert "ssss" not in repr(signer)
