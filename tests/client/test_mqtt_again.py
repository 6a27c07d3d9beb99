"""What the MQTT client of backends sends again, and where to (NET-6)."""

import pytest

from session_runtime.client.mqtt_line import NotTakenError, Received
from tests.client.mqtt_memory import ASK, BUSY, RESULT, Broker, asking


@pytest.mark.requirement("NET-6b")
@pytest.mark.parametrize(
    "why",
    ["lost connection", "replica stopped", "replica lost", "replica was lost", "silence"],
)
async def test_what_may_be_lost_is_sent_again_under_the_same_name(why: str) -> None:
    broker = Broker()
    gone_s = 0.0 if why == "replica lost" else 5.0
    silence_s = 0.0 if why == "silence" else 60.0
    async with asking(broker, silence_s=silence_s, gone_s=gone_s) as task:
        sent = await broker.got(1)
        if why == "lost connection":
            broker.inbox.put_nowait(None)
        if why == "replica stopped":
            broker.say(sent, "ask.started", {})
            broker.tell("r1", "offline", since=1.0)
        if why == "replica lost":
            broker.say(sent, "ask.started", {})
            broker.tell("r1", "offline")
        if why == "replica was lost":
            broker.say(sent, "ask.started", {})
            broker.inbox.put_nowait(None)
            broker.tell("r1", "offline", retained=True, left_s=86_395)
        again = await broker.got(2)
        broker.say(again, "result", RESULT, attempt="2", repeated="yes")
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
        broker.tell("r1", "online", retained=True)
        sent = await broker.got(1)
        broker.say(sent, "alive", {})
        broker.inbox.put_nowait(None)
        broker.tell("r2", "online", retained=True)
        await broker.read()
        assert (broker.connections, len(broker.sent)) == (2, 1)
        broker.tell("r1", "online")
        again = await broker.got(2)
        broker.say(again, "result", RESULT, kept="yes", attempt="2")
        answer = await task
    assert (again.topic, again.properties["attempt"]) == (f"{ASK}/r1", "2")
    assert not answer.may_have_run_twice


@pytest.mark.requirement("NET-6b")
async def test_a_silence_while_there_is_no_connection_says_nothing_of_the_replica() -> None:
    broker = Broker()
    async with asking(broker, silence_s=0.05):
        broker.tell("r1", "online", retained=True)
        broker.say(await broker.got(1), "alive", {})
        broker.inbox.put_nowait(None)  # the next connection is made after a longer time than that
        broker.tell("r1", "online", retained=True)
        while broker.connections < 2:
            await broker.got(len(broker.sent) + 1)
        await broker.got(len(broker.sent) + 1)
    assert {each.topic for each in broker.sent[1:]} == {f"{ASK}/r1"}


@pytest.mark.requirement("NET-6b")
async def test_what_its_replica_refuses_after_all_goes_to_any_replica() -> None:
    broker = Broker()
    async with asking(broker) as task:
        broker.tell("r1", "online", retained=True)
        sent = await broker.got(1)
        broker.say(sent, "alive", {})
        broker.say(sent, "error", {"error": BUSY})
        again = await broker.got(2)
        broker.say(again, "result", RESULT, attempt="2")
        await task
    assert again.topic == ASK


async def test_a_broker_that_lets_nobody_write_to_one_replica_costs_no_answer() -> None:
    broker = Broker(refusal=NotTakenError("no"), refuses=f"{ASK}/r1")
    async with asking(broker) as task:
        sent = await broker.got(1)
        broker.say(sent, "alive", {})
        broker.inbox.put_nowait(None)
        broker.tell("r1", "online", retained=True)
        await broker.got(2)
        broker.say(sent, "result", RESULT)
        assert (await task).text == "12"


@pytest.mark.requirement("NET-6b")
async def test_a_replica_that_is_not_known_of_any_more_is_gone_after_a_whole_silence() -> None:
    broker = Broker()
    async with asking(broker, silence_s=0.01) as task:
        sent = await broker.got(1)
        broker.say(sent, "ask.started", {})
        broker.inbox.put_nowait(None)
        again = await broker.got(2)
        broker.say(again, "result", RESULT, attempt="2", repeated="yes")
        assert (await task).may_have_run_twice
    assert again.topic == ASK


@pytest.mark.requirement("NET-6b")
async def test_a_replica_that_is_away_for_a_moment_is_asked_what_became_of_what_it_had_begun() -> (
    None
):
    broker = Broker()
    async with asking(broker) as task:
        sent = await broker.got(1)
        broker.say(sent, "ask.started", {})
        broker.tell("r1", "offline")
        broker.tell("r2", "online")
        await broker.read()
        assert len(broker.sent) == 1
        broker.tell("r1", "online")
        again = await broker.got(2)
        broker.say(again, "result", RESULT, kept="yes", attempt="2")
        assert not (await task).may_have_run_twice
    assert again.topic == f"{ASK}/r1"


@pytest.mark.requirement("NET-6b")
@pytest.mark.parametrize("back", [True, False])
async def test_what_nothing_was_heard_of_when_a_replica_was_lost_is_sent_again(back: bool) -> None:
    broker = Broker()
    async with asking(broker, gone_s=0.01) as task:
        await broker.got(1)
        broker.tell("r1", "offline")
        if back:
            broker.tell("r1", "online")
        again = await broker.got(2)
        broker.say(again, "result", RESULT, attempt="2", repeated="yes")
        assert (await task).may_have_run_twice
    assert [each.topic for each in broker.sent] == [ASK, ASK]


@pytest.mark.requirement("NET-6b")
async def test_what_was_heard_of_when_another_replica_was_lost_is_not_sent_again() -> None:
    broker = Broker()
    async with asking(broker, gone_s=0.0) as task:
        sent = await broker.got(1)
        broker.say(sent, "alive", {})
        broker.tell("r2", "offline")
        await broker.read()
        broker.say(sent, "result", RESULT)
        await task
    assert len(broker.sent) == 1


@pytest.mark.requirement("NET-6d")
async def test_what_nobody_was_there_for_is_sent_when_a_replica_comes_and_counts_as_not_sent() -> (
    None
):
    broker = Broker(nobody_at=[ASK])
    async with asking(broker) as task:
        await broker.got(2)  # again after a pause, which grows
        broker.nobody_at = ()
        broker.tell("r1", "online")
        sent = await broker.got(3)
        broker.say(sent, "result", RESULT)
        answer = await task
    assert ("attempt" in sent.properties, answer.attempt) == (False, 1)


@pytest.mark.requirement("NET-6b")
async def test_a_replica_at_whose_own_topic_nobody_is_has_gone() -> None:
    broker = Broker(nobody_at=[f"{ASK}/r1"])
    async with asking(broker, gone_s=0.01) as task:
        sent = await broker.got(1)
        broker.say(sent, "alive", {})
        broker.inbox.put_nowait(None)
        broker.tell("r1", "online", retained=True)
        again = await broker.got(3)
        broker.say(again, "result", RESULT, attempt="2")
        await task
    assert [each.topic for each in broker.sent] == [ASK, f"{ASK}/r1", ASK]


@pytest.mark.requirement("NET-6b")
async def test_a_refusal_of_what_was_sent_before_is_no_answer_to_what_was_sent_after() -> None:
    broker = Broker()
    refusal = {"code": "auth.signature_expired", "message": "no", "retryable": False}
    async with asking(broker) as task:
        sent = await broker.got(1)
        broker.inbox.put_nowait(None)
        await broker.got(2)
        broker.say(sent, "error", {"error": refusal})
        await broker.read()
        broker.say(sent, "result", RESULT)
        assert (await task).text == "12"


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


@pytest.mark.requirement("NET-6b")
async def test_only_what_was_not_refused_is_told_to_have_been_sent_before() -> None:
    """The first copy is lost, the second refused: of the two that came before the third, one may have run."""
    broker = Broker()
    async with asking(broker) as task:
        await broker.got(1)
        broker.inbox.put_nowait(None)
        broker.say(await broker.got(2), "error", {"error": BUSY}, attempt="2")
        third = await broker.got(3)
        broker.say(third, "result", RESULT, attempt="3", repeated="yes")
        assert (await task).may_have_run_twice
    assert third.properties == {"events": "started", "attempt": "3", "refused": "1"}


@pytest.mark.requirement("NET-6b")
async def test_a_refusal_of_a_copy_that_others_may_have_got_does_not_say_that_it_did_not_run() -> (
    None
):
    broker = Broker()
    async with asking(broker) as task:
        broker.say(await broker.got(1), "error", {"error": BUSY}, repeated="yes")
        again = await broker.got(2)
        broker.say(again, "result", RESULT, attempt="2", repeated="yes")
        await task
    assert again.properties == {"events": "started", "attempt": "2"}
