"""Whatever comes: no fault leaves the door, and each message is acknowledged and counted once (NET-6)."""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_runtime.transports.mqtt.link import Incoming, Outgoing
from session_runtime.transports.mqtt.state import OUTCOMES
from tests.transports.mqtt.memory import StubDoor, body_of, kind_of, served, signer
from tests.transports.mqtt.test_signatures import signed
from tests.transports.stub import keyring_of

SILENT = {"retained", "no_reply", "untold", "undelivered"}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
NAMES = st.sampled_from(["principal", "expires", "signature", "attempt", "events", "type"])
BODIES = st.binary(max_size=40) | st.one_of(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=6,
    ),
    st.fixed_dictionaries(
        {"text": TEXTS},
        optional={
            "detach": st.booleans() | TEXTS,
            "deadline_s": st.integers(-1, 5) | TEXTS,
            "history": st.lists(st.none() | st.dictionaries(TEXTS, TEXTS), max_size=2),
        },
    ),
).map(lambda data: json.dumps(data).encode())
MESSAGES = st.builds(
    Incoming,
    topic=st.just("rt/ask") | st.just("rt/ask/r1"),
    body=BODIES,
    retained=st.sampled_from([False, False, False, True]),
    reply=st.just("rt/reply/me") | st.none() | TEXTS | TEXTS.map("rt/reply/".__add__),
    correlation=st.none() | st.binary(max_size=3) | st.binary(min_size=127, max_size=130),
    expiry_s=st.none() | st.integers(0, 2**32 - 1),
    properties=st.dictionaries(NAMES | TEXTS, TEXTS | st.sampled_from(["none", "2", "started"])),
)


async def delivered(
    messages: Sequence[Incoming], *, keys: bool
) -> tuple[list[Outgoing], list[Incoming], Counter[str]]:
    """What was published for these, what was acknowledged, and how they ended."""
    stub = StubDoor(max_payload_bytes=2_000)
    if keys:
        stub.keyring, stub.signers = keyring_of(bot={}), {"bot": signer()}
    async with served(stub) as door:
        sent = await door.send(*messages)
        await door.at_rest()
        status = door.state.status()
        assert status is not None
        return sent, door.link.acknowledged, Counter(status["messages"])


class Faults(logging.Handler):
    """Collects what is logged as a fault of ours."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


@contextmanager
def no_faults() -> Iterator[None]:
    """Fail if anything is logged as a fault meanwhile."""
    log, faults = logging.getLogger("session_runtime.transports.mqtt"), Faults()
    log.addHandler(faults)
    try:
        yield
    finally:
        log.removeHandler(faults)
    assert faults.told == []


@settings(deadline=None)
@given(st.lists(MESSAGES, max_size=8), st.booleans())
@pytest.mark.requirement("NET-6c")
def test_each_of_any_messages_is_acknowledged_once_and_answered_or_counted(
    messages: list[Incoming], keys: bool
) -> None:
    with no_faults():
        sent, acknowledged, counts = asyncio.run(delivered(messages, keys=keys))
    assert Counter(map(id, acknowledged)) == Counter(map(id, messages))
    assert sum(counts[outcome] for outcome in OUTCOMES) == len(messages)
    last = [each for each in sent if kind_of(each) in ("result", "error")]
    answered = sum(counts[outcome] for outcome in set(OUTCOMES) - SILENT)
    # copies that came while the first one ran have one answer together
    assert answered - counts["answered_again"] <= len(last) <= answered
    assert all(len(each.body) <= 2_000 and body_of(each) is not None for each in sent)


@settings(deadline=None)
@given(MESSAGES)
@pytest.mark.requirement("NET-6e")
def test_whatever_is_signed_rightly_is_not_taken_for_unsigned(message: Incoming) -> None:
    with no_faults():
        sent, _, _ = asyncio.run(delivered([signed(message, now=time.time())], keys=True))
    assert all(b"auth.signature" not in each.body for each in sent)
