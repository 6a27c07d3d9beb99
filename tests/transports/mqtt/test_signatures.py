"""Whom a message is from, once there are keys (NET-6)."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import RequestError
from session_runtime.transports.mqtt.link import Incoming
from session_runtime.transports.mqtt.request import (
    Rules,
    address_of,
    admit,
    check_fresh,
    unanswerable,
)
from session_runtime.transports.mqtt.throttle import Throttle
from session_runtime.types import LOCAL
from session_runtime.wire.mqtt import Envelope, sign
from tests.transports.mqtt.memory import (
    SECRET,
    StubDoor,
    asking,
    body_of,
    kind_of,
    served,
    signer,
)
from tests.transports.stub import keyring_of

NOW = 1_000_000


def signed(message: Incoming, name: str = "bot", left_s: int = 60, now: float = NOW) -> Incoming:
    """A message with the properties that a client adds."""
    expires = int(now) + left_s
    envelope = Envelope(
        name, expires, message.topic, message.reply or "", message.correlation or b"", message.body
    )
    added = {"principal": name, "expires": str(expires), "signature": sign(envelope, SECRET)}
    return replace(message, properties={**message.properties, **added})


def rules(**signers: str) -> Rules:
    return Rules(
        "rt",
        1000,
        300,
        keyring_of(bot={}, ann={}),
        {name: signer(secret) for name, secret in signers.items()},
        lambda: NOW,
    )


@pytest.mark.requirement("NET-6e")
async def test_a_signed_message_is_its_signers_and_states_for_whom() -> None:
    stub = StubDoor()
    stub.keyring, stub.signers = keyring_of(bot={"act_for": ("tg-*",)}), {"bot": signer()}
    async with served(stub) as door:
        await door.send(signed(asking(), now=time.time()))
        [refused] = await door.send(asking(correlation=b"2"))
    assert [each.principal.name for each in stub.asked] == ["bot"]
    assert body_of(refused)["error"]["code"] == "auth.signature"


@pytest.mark.requirement("NET-6e")
@pytest.mark.parametrize(
    "change",
    [
        lambda each: replace(each, body=b'{"text": "no"}'),
        lambda each: replace(each, correlation=b"2"),
        lambda each: replace(each, reply="rt/reply/thief"),
        lambda each: replace(each, topic="other/ask"),
        lambda each: replace(each, properties={**each.properties, "expires": str(NOW + 61)}),
        lambda each: replace(each, properties={**each.properties, "principal": "ann"}),
        lambda each: replace(each, properties={**each.properties, "principal": "nobody"}),
        lambda each: replace(each, properties={**each.properties, "signature": "é"}),
        lambda each: replace(each, properties={}),
    ],
)
def test_whatever_is_changed_of_a_signed_message_it_is_refused(
    change: Callable[[Incoming], Incoming],
) -> None:
    message = signed(asking())
    assert admit(message, rules(bot=SECRET, ann="a" * 32)).principal.name == "bot"
    with pytest.raises(RequestError) as caught:
        admit(change(message), rules(bot=SECRET, ann="a" * 32))
    assert caught.value.code == "auth.signature"


@pytest.mark.requirement("NET-6e")
@pytest.mark.parametrize("left_s", [-1, 0, 301])
def test_a_signature_is_good_for_a_short_time_only(left_s: int) -> None:
    with pytest.raises(RequestError) as caught:
        check_fresh(admit(signed(asking(), left_s=left_s), rules(bot=SECRET)), rules(bot=SECRET))
    assert caught.value.code == "auth.signature_expired"


@pytest.mark.requirement("NET-6b")
async def test_what_comes_again_after_its_signature_expired_gets_the_answer_of_its_run() -> None:
    stub = StubDoor()
    stub.keyring, stub.signers = keyring_of(bot={}), {"bot": signer()}
    message = signed(asking(properties={"events": "none"}), now=time.time())
    late = signed(asking(properties={"events": "none"}), left_s=-1, now=time.time())
    async with served(stub) as door:
        [first] = await door.send(message)
        [again] = await door.send(late)
        [new] = await door.send(signed(asking(correlation=b"2"), left_s=-1, now=time.time()))
    assert (again.body, again.properties["kept"], len(stub.asked)) == (first.body, "yes", 1)
    assert body_of(new)["error"]["code"] == "auth.signature_expired"


@pytest.mark.requirement("NET-6e")
async def test_strangers_are_told_why_they_are_refused_a_bounded_number_of_times() -> None:
    stub = StubDoor()
    stub.keyring, stub.signers = keyring_of(bot={}), {"bot": signer()}
    strangers = [asking(correlation=str(number).encode()) for number in range(300)]
    async with served(stub) as door:
        told = await door.send(*strangers)
        [answer] = await door.send(signed(asking(properties={"events": "none"}), now=time.time()))
        await door.at_rest()
        counts = door.state.status()["messages"]  # type: ignore[index]
    assert 100 <= len(told) < 200
    assert (counts["refused"], counts["untold"]) == (len(told), 300 - len(told))
    assert kind_of(answer) == "result"


def test_a_throttle_lets_through_so_many_at_once_and_so_many_in_a_second() -> None:
    now = [0.0]
    throttle = Throttle(lambda: now[0], per_s=2.0, at_once=3)
    assert [throttle.admits() for _ in range(4)] == [True, True, True, False]
    now[0] = 1.0
    assert [throttle.admits() for _ in range(3)] == [True, True, False]


@pytest.mark.requirement("NET-6e")
def test_a_principal_whose_signer_or_key_was_taken_away_may_not_ask() -> None:
    message = signed(asking())
    for without in (rules(), replace(rules(bot=SECRET), keys=keyring_of(ann={}))):
        with pytest.raises(RequestError, match="not signed"):
            admit(message, without)


def test_without_keys_every_message_is_local() -> None:
    assert admit(asking(), replace(rules(), keys=keyring_of())).principal is LOCAL


TEXTS = st.text(max_size=20)


@given(
    st.builds(
        Incoming,
        topic=TEXTS,
        body=st.binary(max_size=50),
        retained=st.booleans(),
        reply=st.none() | TEXTS | TEXTS.map("rt/reply/".__add__),
        correlation=st.none() | st.binary(max_size=200),
        properties=st.dictionaries(
            st.sampled_from(["principal", "expires", "signature", "attempt", "events"]), TEXTS
        ),
    )
)
def test_no_message_breaks_its_reading_and_none_that_is_unsigned_is_let_in(
    message: Incoming,
) -> None:
    if unanswerable(message, "rt") is None:
        assert 1 <= address_of(message).attempt <= 999
        with pytest.raises(RequestError):
            admit(message, rules(bot=SECRET))
