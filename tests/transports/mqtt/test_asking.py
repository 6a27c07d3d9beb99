"""What a request comes to: events, one answer, or why there is none (NET-6)."""

import asyncio
from dataclasses import replace

import pytest

from session_runtime.client.trials import DEATHS
from session_runtime.transports.mqtt.link import Incoming, Outgoing
from session_runtime.types import AskRequest, AskResult, AskStarted, ErrorInfo, TextDelta
from tests.transports.mqtt.memory import (
    REPLY,
    Emit,
    MemoryBroker,
    StubDoor,
    asking,
    body_of,
    finish,
    kind_of,
    larger_than,
    served,
)

RESULT = (
    b'{"ask_id":"a1","outcome":"answered","text":"you said hi","messages":[],"new_messages":[],'
    b'"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0,"cached_tokens":0,'
    b'"reasoning_tokens":0,"model_calls":0,"estimated":false},"steps":0,"loaded_tools":[],"generation":0}'
)
STARTED = b'{"type":"ask.started","ask_id":"a1","seq":1,"generation":1,"model":"m"}'


@pytest.mark.requirement("NET-6a")
async def test_events_and_then_the_result_go_to_the_response_topic_with_the_correlation_data() -> (
    None
):
    async with served(StubDoor()) as door:
        assert await door.send(asking()) == [
            Outgoing(
                REPLY,
                STARTED,
                correlation=b"1",
                properties={"type": "ask.started", "seq": "1", "replica": "r1"},
            ),
            Outgoing(
                REPLY,
                RESULT,
                correlation=b"1",
                properties={"type": "result", "seq": "2", "replica": "r1"},
            ),
        ]


@pytest.mark.requirement("NET-6a")
async def test_who_wants_no_events_gets_the_result_alone() -> None:
    async with served(StubDoor()) as door:
        sent = await door.send(asking(properties={"events": "none"}))
    assert [each.body for each in sent] == [RESULT]


@pytest.mark.requirement("NET-6a")
async def test_who_only_wants_to_know_that_it_began_gets_no_other_event() -> None:
    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        emit(AskStarted(ask_id="a1", seq=1, generation=1, model="m"))
        emit(TextDelta(ask_id="a1", seq=2, text="x"))
        return finish(AskResult("a1", "answered"), emit, seq=3)

    async with served(StubDoor(ask)) as door:
        few = await door.send(asking(properties={"events": "started"}))
        all_of_them = await door.send(asking(correlation=b"2"))
    assert [kind_of(each) for each in few] == ["ask.started", "result"]
    assert [kind_of(each) for each in all_of_them] == ["ask.started", "text.delta", "result"]


@pytest.mark.requirement("NET-6c")
async def test_what_is_left_of_a_message_bounds_its_ask() -> None:
    stub = StubDoor()
    body = b'{"text": "hi", "deadline_s": 20}'
    async with served(stub) as door:
        await door.send(
            Incoming("rt/ask", body, reply=REPLY, correlation=b"1", expiry_s=30),
            Incoming("rt/ask", body, reply=REPLY, correlation=b"2", expiry_s=10),
            asking(correlation=b"3", expiry_s=5),
            asking(correlation=b"4"),
        )
    assert sorted(str(each.deadline_s) for each in stub.asked) == ["10.0", "20.0", "5.0", "None"]


@pytest.mark.requirement("NET-6c")
@pytest.mark.parametrize(
    "reply",
    [
        *(None, "", "rt/reply/", "rt/reply", "rt/ask", "else/reply/me", "rt/reply/+"),
        *("rt/reply/#", "rt/reply/a\0b", f"rt/reply/{'x' * 600}", "rt/reply/a\ufeffb"),
        *("rt/reply/" + "a/" * 14, "rt/reply/\x80"),
    ],
)
async def test_a_request_whose_answer_has_nowhere_to_go_is_counted_and_not_run(
    reply: str | None,
) -> None:
    stub = StubDoor()
    async with served(stub) as door:
        sent = await door.send(Incoming("rt/ask", b'{"text": "hi"}', reply=reply, correlation=b"1"))
        assert door.state.status()["messages"]["no_reply"] == 1  # type: ignore[index]
    assert (sent, stub.asked) == ([], [])


@pytest.mark.requirement("NET-6c")
async def test_a_request_that_the_broker_keeps_is_not_run_however_often_it_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stub = StubDoor()
    async with served(stub) as door:
        for _ in range(3):
            assert await door.send(asking(retained=True)) == []
        assert door.state.status()["messages"]["retained"] == 3  # type: ignore[index]
    assert stub.asked == []
    assert len([each for each in caplog.messages if "retain" in each]) == 1


@pytest.mark.requirement("NET-6c")
@pytest.mark.parametrize(
    ("message", "code"),
    [
        (Incoming("rt/ask", b"{}", reply=REPLY), "mqtt.correlation"),
        (Incoming("rt/ask", b"{}", reply=REPLY, correlation=b""), "mqtt.correlation"),
        (Incoming("rt/ask", b"{}", reply=REPLY, correlation=b"x" * 129), "mqtt.correlation"),
        (Incoming("rt/ask", b"x" * 501, reply=REPLY, correlation=b"1"), "request.too_large"),
        (Incoming("rt/ask", b"", reply=REPLY, correlation=b"1"), "request.json"),
        (
            Incoming("rt/ask", b'{"text": "hi", "detach": true}', reply=REPLY, correlation=b"1"),
            "request.invalid",
        ),
        (
            Incoming("rt/ask", b'{"text": "hi", "callback": "cb"}', reply=REPLY, correlation=b"1"),
            "request.invalid",
        ),
        (asking(expiry_s=0), "mqtt.expired"),
        (Incoming("rt/ask", b'{"txt": 1}', reply=REPLY, correlation=b"1"), "request.invalid"),
    ],
)
async def test_a_wrong_request_is_told_why_and_never_comes_again(
    message: Incoming, code: str
) -> None:
    stub = StubDoor(max_payload_bytes=500)
    async with served(stub) as door:
        [sent] = await door.send(message)
    assert (kind_of(sent), body_of(sent)["error"]["code"]) == ("error", code)
    assert stub.asked == []


@pytest.mark.requirement("NET-6c")
async def test_being_busy_is_answered_at_once_and_the_same_request_may_come_again() -> None:
    full = ErrorInfo("busy.capacity", "full", True, 1.0)
    results = [
        AskResult("a1", "failed", error=full, refused=True),
        AskResult("a2", "answered", "now"),
    ]

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        return finish(results.pop(0), emit)

    async with served(StubDoor(ask)) as door:
        [busy] = await door.send(asking())
        [answered] = await door.send(asking())
    assert (kind_of(busy), body_of(busy)) == (
        "error",
        {
            "error": {
                "code": "busy.capacity",
                "message": "full",
                "retryable": True,
                "retry_after_s": 1.0,
            }
        },
    )
    assert body_of(answered)["text"] == "now"


@pytest.mark.requirement("NET-6c")
async def test_an_answer_that_the_broker_would_not_take_is_told_instead_of_sent() -> None:
    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        return finish(AskResult("a1", "answered", "x" * 600), emit)

    async with served(StubDoor(ask, max_payload_bytes=500)) as door:
        [sent] = await door.send(asking())
    assert (kind_of(sent), body_of(sent)["error"]["code"]) == ("error", "mqtt.answer_too_large")


@pytest.mark.requirement("NET-6c")
async def test_a_message_is_acknowledged_only_once_it_is_answered() -> None:
    go_on = asyncio.Event()
    begun = asyncio.Event()

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        begun.set()
        await go_on.wait()
        return finish(AskResult("a1", "answered"), emit)

    async with served(StubDoor(ask)) as door:
        door.link.deliver(asking())
        await begun.wait()
        assert door.link.acknowledged == []
        go_on.set()
        await door.broker.until(lambda: len(door.link.acknowledged) == 1)
        assert [kind_of(each) for each in door.broker.answers] == ["result"]


@pytest.mark.requirement("NET-6c")
async def test_an_answer_that_the_broker_does_not_take_for_its_size_is_told_instead() -> None:
    broker = MemoryBroker(refuses_by=larger_than(400))

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        emit(TextDelta(ask_id="a1", seq=1, text="x" * 600))
        emit(TextDelta(ask_id="a1", seq=2, text="y"))
        return finish(AskResult("a1", "answered", "x" * 600), emit, seq=3)

    async with served(StubDoor(ask), broker) as door:
        sent = await door.send(asking())
        [again] = await door.send(asking())
    assert [kind_of(each) for each in sent] == ["text.delta", "error"]
    assert body_of(sent[-1])["error"]["code"] == "mqtt.answer_too_large"
    assert (again.body, again.properties["kept"]) == (sent[-1].body, "yes")


@pytest.mark.requirement("NET-6d")
async def test_an_answer_that_connections_broke_over_is_told_of_instead_and_kept_for_later() -> (
    None
):
    broker = MemoryBroker(breaks_at=lambda message: message.properties.get("type") == "result")
    stub, message = StubDoor(), asking(properties={"events": "none"})
    async with served(stub, broker) as door:
        door.link.deliver(message)
        await broker.until(lambda: len(broker.answers) == 1)
        assert len(broker.links) == 1 + DEATHS
        broker.breaks_at = lambda message: False  # what broke them was not the answer
        [again] = await door.send(message)
    [told] = broker.answers[:1]
    assert body_of(told)["error"]["code"] == "mqtt.answer_not_taken"
    assert (again.body, again.properties["kept"], len(stub.asked)) == (RESULT, "yes", 1)


@pytest.mark.requirement("NET-6d")
async def test_a_sender_that_cannot_be_told_anything_is_given_up_and_the_door_goes_on() -> None:
    broker = MemoryBroker(breaks_at=lambda message: message.correlation == b"1")
    async with served(StubDoor(), broker) as door:
        door.link.deliver(asking(properties={"events": "none"}))
        await broker.until(lambda: len(broker.links) == 1 + 2 * DEATHS)
        [sent] = await door.send(asking(correlation=b"2", properties={"events": "none"}))
        await door.at_rest()
        counts = door.state.status()["messages"]  # type: ignore[index]
    assert kind_of(sent) == "result"
    assert (counts["undelivered"], counts["answered"]) == (1, 1)
    assert len(broker.links) == 1 + 2 * DEATHS


@pytest.mark.requirement("NET-6a")
async def test_an_ask_that_goes_on_without_events_says_that_it_does_unless_nobody_listens() -> None:
    going = asyncio.Event()

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        await going.wait()
        return finish(AskResult("a1", "answered"), emit)

    stub = StubDoor(ask)
    async with served(stub, alive_s=0.001) as door:
        door.link.deliver(asking(correlation=b"1", properties={"events": "none"}))
        door.link.deliver(asking("waits", correlation=b"2"))
        await door.broker.until(lambda: len(door.broker.answers) == 3)
        going.set()
        await door.broker.until(lambda: len(door.link.acknowledged) == 2)
    alive = [each for each in door.broker.answers if kind_of(each) == "alive"]
    assert {each.correlation for each in alive} == {b"2"}
    assert alive[0] == Outgoing(
        REPLY, alive[0].body, correlation=b"2", properties={"type": "alive", "replica": "r1"}
    )
    named = dict(zip((each.text for each in stub.asked), stub.named, strict=True))
    assert body_of(alive[0]) == {
        "ask_id": named["waits"]
    }  # so that it can be ended before it began


@pytest.mark.requirement("NET-6a")
async def test_an_ask_is_ended_by_its_id_for_whoever_sent_that() -> None:
    stub, answers = StubDoor(), []
    async with served(stub) as door:
        for ask_id in ("a1", "a2"):
            body = f'{{"cancel": "{ask_id}"}}'.encode()
            message = Incoming("rt/ask/r1", body, id=7, reply=REPLY, correlation=ask_id.encode())
            answers += await door.send(message)
    assert [(kind_of(each), body_of(each)) for each in answers] == [
        ("cancelled", {"cancelled": True}),
        ("cancelled", {"cancelled": False}),
    ]
    assert (stub.cancelled, stub.asked) == ([("a1", "local"), ("a2", "local")], [])


@pytest.mark.requirement("NET-6b")
async def test_the_same_wish_to_end_an_ask_again_gets_the_same_answer() -> None:
    stub = StubDoor()
    body = b'{"cancel": "a1"}'
    wish = Incoming("rt/ask/r1", body, id=7, reply=REPLY, correlation=b"1")
    async with served(stub) as door:
        [first] = await door.send(wish)
        [again] = await door.send(replace(wish, properties={"attempt": "2"}))
        [other] = await door.send(replace(wish, correlation=b"2"))
    assert (body_of(first), body_of(other)) == ({"cancelled": True}, {"cancelled": False})
    assert again == replace(
        first, properties={"type": "cancelled", "kept": "yes", "replica": "r1", "attempt": "2"}
    )
    assert len(stub.cancelled) == 2


@pytest.mark.requirement("NET-6a")
async def test_an_ask_is_ended_also_where_nothing_further_can_be_remembered() -> None:
    stub = StubDoor(dedupe_window_asks=1)
    wish = Incoming("rt/ask/r1", b'{"cancel": "a1"}', id=7, reply=REPLY, correlation=b"1")
    async with served(stub) as door:
        await door.send(asking(correlation=b"2"))
        [told] = await door.send(wish)
    assert (kind_of(told), body_of(told)) == ("cancelled", {"cancelled": True})


@pytest.mark.requirement("NET-6c")
async def test_a_question_beside_the_end_of_an_ask_is_a_wrong_request() -> None:
    stub = StubDoor()
    async with served(stub) as door:
        body = b'{"cancel": "a1", "text": "hi"}'
        [sent] = await door.send(Incoming("rt/ask", body, id=7, reply=REPLY, correlation=b"1"))
    assert body_of(sent)["error"]["code"] == "request.invalid"
    assert stub.cancelled == []
