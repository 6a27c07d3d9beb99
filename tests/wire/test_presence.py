"""What a replica says of itself is read field by field, and believed in nothing (NET-6, SEC-4)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.wire.presence import (
    MAX_BYTES,
    Presence,
    presence_from_bytes,
    presence_from_page,
    unknown,
)

TOLD = {
    "name": "session-runtime",
    "version": "1.0",
    "digest": "d",
    "config_digest": "c",
    "tools_digest": "t",
    "generation": 3,
    "asks": 2,
    "most_asks": 256,
    "waiting": 1,
    "receipt": {"id": 4, "verdict": "applied", "at": 50.5},
    "rejected_since": None,
    "restart_needed": 0,
}
READ: dict[str, Any] = {
    "version": "1.0",
    "digest": "d",
    "config_digest": "c",
    "tools_digest": "t",
    "generation": 3,
    "asks": 2,
    "most_asks": 256,
    "waiting": 1,
    "verdict": "applied",
    "receipt_at": 50.5,
    "restart_needed": 0,
}
ONLINE = {"replica": "r1", "state": "online", "since": 10, "at": 60.0, **TOLD}


def read(told: object, **more: Any) -> Presence:
    return presence_from_bytes(json.dumps(told).encode(), "r1", now=64.0, **more)


@pytest.mark.requirement("NET-7c")
def test_a_status_by_mqtt_is_read_whole_and_its_age_is_what_the_broker_says() -> None:
    read_so = Presence("r1", "mqtt", state="ready", since=10.0, at=60.0, age_s=4.0, **READ)
    assert read(ONLINE) == read_so
    assert read(ONLINE, age_s=9.0).age_s == 9.0


@pytest.mark.parametrize("at", [65.0, 1e12], ids=["a clock that is ahead", "nonsense"])
def test_news_are_never_from_the_future(at: float) -> None:
    assert read(ONLINE | {"at": at}).age_s == 0.0


def test_a_last_will_says_that_it_is_gone_and_no_more() -> None:
    will = read({"replica": "r1", "state": "offline"}, age_s=7.0)
    assert (will, will.lost) == (Presence("r1", "mqtt", state="offline", age_s=7.0), True)
    assert not read({"replica": "r1", "state": "offline", "since": 3, "at": 3}).lost


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "is not JSON"),
        (b"[]", "not that of a replica of this name"),
        (b'{"replica": "r2", "state": "online"}', "not that of a replica of this name"),
        (b'{"replica": "r1", "state": "ready"}', "names no state"),
        (b'{"replica": "r1", "state": ["online"]}', "names no state"),
        (b" " * (MAX_BYTES + 1), "more than 16384 bytes"),
    ],
    ids=["no json", "no object", "another name", "no state", "a list", "too long"],
)
def test_what_is_no_status_is_told_as_such(body: bytes, words: str) -> None:
    told = presence_from_bytes(body, "r1", now=0.0)
    assert (told.replica, told.state) == ("r1", "unknown")
    assert words in str(told.fault)


def test_what_is_of_another_type_is_unknown_and_what_is_long_is_cut() -> None:
    strange = {
        **dict.fromkeys(("since", "at", "generation", "asks", "most_asks", "waiting"), True),
        **dict.fromkeys(("version", "digest"), 1),
        **{
            "receipt": [],
            "rejected_since": -1,
            "restart_needed": 2**60,
            "config_digest": "x" * 999,
        },
    }
    told = read({"replica": "r1", "state": "draining"} | strange)
    assert told == Presence("r1", "mqtt", state="draining", config_digest="x" * 127 + "…")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*ONLINE]), inner),
    )
)
def test_no_status_makes_the_reader_fail(told: object) -> None:
    for data in (told, ONLINE | told if isinstance(told, dict) else told):
        assert read(data).told_by == "mqtt"
        assert presence_from_page(data, "http://a").told_by == "http://a"


def test_a_page_is_that_of_the_replica_that_it_names_or_of_its_address() -> None:
    page = {"state": "ready", "since": 10, "presence": TOLD, "mqtt": None}
    at = "http://127.0.0.1:1"
    told = Presence(at, at, state="ready", since=10.0, age_s=0.0, **READ)
    assert presence_from_page(page, at) == told
    named = presence_from_page(page | {"mqtt": {"replica": "r1"}}, at)
    assert (named.replica, named.told_by) == ("r1", at)
    assert presence_from_page({"state": "ready"}, at) == unknown(
        at, at, "it answered with no status: is it another version?"
    )
