"""The MQTT client of backends: what it publishes, when it waits, what it raises (NET-6)."""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from session_runtime.client.mqtt import MqttAnswer, MqttClient, Signer
from session_runtime.client.mqtt_line import Broker as Address
from session_runtime.client.mqtt_line import LineError, NotTakenError
from session_runtime.errors import PermanentError, RequestError, SessionRuntimeError, TransientError
from session_runtime.wire.mqtt import Envelope, sign
from tests.client.mqtt_memory import ASK, BUSY, RESULT, Broker, asking


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
        broker.say(sent, "alive", {})
        broker.say(sent, "ask.started", {"type": "ask.started"})
        broker.say(sent, "result", RESULT)
        await task
    assert (events, sent.properties) == ([{"type": "ask.started"}], {"events": "all"})


async def test_what_nobody_took_in_time_has_not_run() -> None:
    async with asking(Broker(nobody_at=[ASK]), timeout_s=0.05) as task:
        with pytest.raises(TransientError, match=f"no replica takes requests at {ASK}") as caught:
            await task
    assert (caught.value.code, caught.value.may_have_run) == ("mqtt.unreachable", False)


async def test_without_a_connection_the_reason_is_told_and_nothing_has_run() -> None:
    class Refuses(Broker):
        @asynccontextmanager
        async def __call__(self, topics: Sequence[str]) -> AsyncIterator[Broker]:
            raise LineError("Not authorized")
            yield self

    async with asking(Refuses(), timeout_s=0.05) as task:
        with pytest.raises(TransientError, match=r"0\.05 s: Not authorized") as caught:
            await task
    assert (caught.value.code, caught.value.may_have_run) == ("mqtt.unreachable", False)


async def test_asks_under_way_end_with_the_client() -> None:
    broker = Broker()
    async with MqttClient(connect=broker) as client:
        task = asyncio.create_task(client.ask({"text": "1"}))
        await broker.got(1)
    with pytest.raises(TransientError, match="before the client was closed") as caught:
        await task
    assert (caught.value.code, caught.value.may_have_run) == ("mqtt.no_answer", True)
    with pytest.raises(RuntimeError, match="was closed"):
        await client.ask({"text": "1"})


async def test_what_times_out_in_on_event_is_not_taken_for_the_time_of_the_ask() -> None:
    def fails(event: Mapping[str, Any]) -> None:
        raise TimeoutError(event["type"])

    broker = Broker()
    async with asking(broker, on_event=fails) as task:
        broker.say(await broker.got(1), "ask.started", {"type": "ask.started"})
        with pytest.raises(TimeoutError, match=r"ask\.started"):
            await task


@pytest.mark.parametrize(
    ("name", "user", "level"),
    [("bot", "u", "bot"), ("a/b", None, "a/b"), (None, "u", "u"), (None, "u/+", "client")],
)
async def test_answers_come_below_the_name_of_the_client_or_of_its_user(
    name: str | None, user: str | None, level: str
) -> None:
    broker = Broker()
    address = Address(username=user)
    async with MqttClient(address, connect=broker, name=name):
        await broker.read()
    assert broker.topics[0].startswith(f"session-runtime/reply/{level}/")


@pytest.mark.parametrize("name", ["+", "#", "", "a//b", "a b", "\n", "x" * 200, "/".join("a" * 9)])
def test_a_name_that_can_be_no_part_of_a_topic_is_refused(name: str) -> None:
    with pytest.raises(RequestError, match="cannot be part of a topic"):
        MqttClient(name=name)


@pytest.mark.requirement("NET-6e")
async def test_a_signature_that_expired_on_the_way_is_made_anew() -> None:
    broker, signer, now = Broker(), Signer("bot", "s" * 32, valid_s=10.0), [1_000.0]
    refusal = {"code": "auth.signature_expired", "message": "no", "retryable": False}
    async with asking(broker, signer=signer, wall=lambda: now[0]) as task:
        first = await broker.got(1)
        now[0] += 11.0
        broker.say(first, "error", {"error": refusal})
        again = await broker.got(2)
        broker.say(again, "result", RESULT, attempt="2")
        assert (await task).text == "12"
    assert (first.properties["expires"], again.properties["expires"]) == ("1010", "1021")


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
    told = vars(caught.value)
    assert (told["code"], told["may_have_run"], len(broker.sent)) == (code, False, 1)


@pytest.mark.requirement("NET-6c")
@pytest.mark.parametrize("refusal", [NotTakenError("no"), NotTakenError("no", too_large=True)])
async def test_what_the_broker_does_not_take_again_may_have_run(refusal: NotTakenError) -> None:
    broker = Broker()
    async with asking(broker) as task:
        await broker.got(1)
        broker.refusal = refusal
        broker.inbox.put_nowait(None)
        with pytest.raises(SessionRuntimeError, match="no") as caught:
            await task
    assert (caught.value.may_have_run, len(broker.sent)) == (True, 2)


@pytest.mark.requirement("NET-6c")
@pytest.mark.parametrize("about", [{"seq": "2"}, {}])
async def test_an_answer_that_cannot_be_had_says_whether_the_ask_may_have_run(
    about: dict[str, str],
) -> None:
    fault = {"code": "mqtt.answer_too_large", "message": "no", "retryable": False}
    broker = Broker()
    async with asking(broker) as task:
        broker.say(await broker.got(1), "error", {"error": fault}, **about)
        with pytest.raises(PermanentError, match="no") as caught:
            await task
    assert caught.value.may_have_run == bool(about)


async def test_what_is_busy_is_asked_again() -> None:
    broker = Broker()
    async with asking(broker) as task:
        broker.say(await broker.got(1), "error", {"error": BUSY})
        again = await broker.got(2)
        broker.say(again, "result", RESULT, attempt="2")
        assert (await task).text == "12"
    assert again.properties == {"events": "started", "attempt": "2", "refused": "1"}


async def test_what_was_refused_until_the_end_has_not_run_and_the_reason_is_told() -> None:
    broker = Broker()
    async with asking(broker, timeout_s=1.0) as task:
        busy = {**BUSY, "retry_after_s": 60.0}
        broker.say(await broker.got(1), "error", {"error": busy})
        with pytest.raises(
            TransientError, match=r"no replica took the request in 1 s: full"
        ) as late:
            await task
    told = late.value
    assert (told.code, told.retry_after_s, told.may_have_run) == ("busy.capacity", 60.0, False)


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
    async with asking(Broker(), timeout_s=0.05) as task:
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


@pytest.mark.parametrize("prefix", ["", "p/#", "p//x", "p/+", "/p", "p x"])
def test_a_prefix_that_can_be_no_part_of_a_topic_is_refused(prefix: str) -> None:
    with pytest.raises(RequestError, match="cannot be part of a topic"):
        MqttClient(prefix=prefix, connect=Broker())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"secret": "s" * 32 + "\n"}, "line break"),
        ({"secret": "s" * 31}, "of the signer 'bot' has 31 characters, and needs 32: give"),
        ({"valid_s": -5.0}, "valid_s is -5"),
        ({"valid_s": float("nan")}, "valid_s is nan"),
    ],
)
def test_a_signer_that_no_daemon_would_take_is_refused(options: Any, told: str) -> None:
    with pytest.raises(RequestError, match=told):
        Signer(**{"principal": "bot", "secret": "s" * 32, **options})


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ({"host": "broker.example.org", "password": "p"}, "the password of the broker"),
        ({"port": 8883, "password": "p"}, "port 8883 of 127.0.0.1 is for TLS"),
    ],
)
def test_a_broker_is_told_no_password_that_others_can_read_unless_asked_for(
    address: Any, told: str
) -> None:
    with pytest.raises(RequestError, match=f"{told}.*give tls="):
        Address(**address)
    assert Address(**address, plain_text=True).tls is None
    assert Address(**address, tls=ssl.create_default_context()).tls is not None


def test_on_this_machine_a_password_needs_no_encryption() -> None:
    assert Address("localhost", 1883, "bot", "p").tls is None


def test_without_its_library_the_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiomqtt", None)
    with pytest.raises(PermanentError, match=r"\.\[mqtt\]") as told:
        MqttClient()
    assert told.value.code == "mqtt.no_library"


@pytest.mark.requirement("NET-6b")
async def test_an_ask_is_ended_at_its_replica_and_ends_with_its_result() -> None:
    broker, ended = Broker(), {"outcome": "cancelled", "text": ""}
    async with MqttClient(connect=broker, name="bot") as client, asyncio.timeout(30):
        asking_ = asyncio.create_task(client.ask("3 * 4"))
        sent = await broker.got(1)
        broker.say(sent, "ask.started", {"type": "ask.started", "ask_id": "a1"}, seq="1")
        await broker.read()
        cancelling = asyncio.create_task(client.cancel("a1"))
        wanted = await broker.got(2)
        broker.say(wanted, "cancelled", {"cancelled": True})
        broker.say(sent, "result", ended, seq="2")
        assert (await cancelling, (await asking_).outcome) == (True, "cancelled")
        with pytest.raises(RequestError, match="no ask 'a1' waits here"):
            await client.cancel("a1")
    assert (wanted.topic, wanted.body) == (f"{ASK}/r1", b'{"cancel":"a1"}')
    assert wanted.correlation != sent.correlation


async def test_an_ask_that_waits_for_its_turn_tells_its_id_once_and_can_be_ended_by_it() -> None:
    broker, heard = Broker(), list[Mapping[str, Any]]()
    async with MqttClient(connect=broker, name="bot") as client, asyncio.timeout(30):
        asking_ = asyncio.create_task(client.ask("3 * 4", on_event=heard.append))
        sent = await broker.got(1)
        for _ in range(2):
            broker.say(sent, "alive", {"ask_id": "a1"})
        await broker.read()
        cancelling = asyncio.create_task(client.cancel("a1"))
        broker.say(await broker.got(2), "cancelled", {"cancelled": True})
        broker.say(sent, "result", {"outcome": "cancelled", "text": ""}, seq="1")
        assert (await cancelling, (await asking_).outcome) == (True, "cancelled")
    assert heard == [{"type": "alive", "ask_id": "a1"}]
