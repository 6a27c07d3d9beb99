"""Of what a server says unasked the SDK sees only what it can read, so that nothing of it is logged."""

import logging
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest
from mcp_types.methods import SERVER_NOTIFICATIONS, parse_server_notification

from session_runtime.mcp.tap import MOST_WAITING, Tap
from session_runtime.mcp.unasked import Malformed, heeded
from tests.mcp.peer import Json, Peer, kept, turns

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
HUGE = 10**400
ODD: list[Any] = [None, True, -1, HUGE, 1e999, "s", "\ud800", [], {}, {"a": [HUGE]}, float("nan")]


def said(method: str, params: Any) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method=f"notifications/{method}", params=params)


def hostile() -> list[tuple[str, Json | None]]:
    """Each field of each kind of notification with each odd value, the others as they should be."""
    good: dict[str, Json] = {
        "progress": {"progressToken": 1, "progress": 1, "total": 2, "message": "m"},
        "cancelled": {"requestId": 1, "reason": "r"},
        "tools/list_changed": {"_meta": {SUBSCRIPTION: "s"}},
        "subscriptions/acknowledged": {
            "notifications": {"toolsListChanged": True},
            "_meta": {SUBSCRIPTION: "s"},
        },
        "message": {"level": "info", "data": "x"},
        "elicitation/complete": {"elicitationId": "x"},
        "resources/updated": {"uri": "file:///x"},
    }
    found: list[tuple[str, Json | None]] = [(method, None) for method in good]
    for method, params in good.items():
        for field in (*params, "_meta"):
            found += [(method, {**params, field: odd}) for odd in ODD]
            found += [(method, {**params, "_meta": {SUBSCRIPTION: odd}}) for odd in ODD]
    return found


@pytest.mark.requirement("RTE-5")
def test_what_is_let_through_can_be_read_in_every_revision_whatever_the_server_sent() -> None:
    passed = set()
    for method, params in hostile():
        try:
            needed = heeded(said(method, params))
        except Malformed:
            continue
        if needed is not None:
            passed.add(method)
            for name, revision in SERVER_NOTIFICATIONS:
                if name == needed.method:
                    parse_server_notification(name, revision, needed.params)
    assert passed == {
        "progress",
        "cancelled",
        "tools/list_changed",
        "subscriptions/acknowledged",
    }


@pytest.mark.parametrize(
    "params",
    [
        {"progressToken": 1, "progress": HUGE},
        {"progressToken": 1, "progress": float("inf")},
        {"progressToken": 1, "progress": True},
        {"progressToken": [], "progress": 1},
        {"progress": 1},
    ],
)
def test_progress_that_is_no_number_or_belongs_to_nothing_is_malformed(params: Json) -> None:
    with pytest.raises(Malformed):
        heeded(said("progress", params))


def test_progress_keeps_its_number_where_its_total_and_words_are_none() -> None:
    params = {"progressToken": 1, "progress": 2, "total": HUGE, "message": ["m"]}
    needed = heeded(said("progress", params))
    assert needed is not None
    assert needed.params == {"progressToken": 1, "progress": 2.0}


@pytest.mark.requirement("RTE-5")
@pytest.mark.parametrize("stateless", [False, True])
async def test_nothing_that_a_server_says_unasked_gets_into_a_log(
    caplog: pytest.LogCaptureFixture, stateless: bool
) -> None:
    caplog.set_level(logging.INFO)
    peer = Peer(stateless=stateless)
    async with kept(peer) as it:
        caplog.clear()
        for method, params in hostile():
            if method != "cancelled":
                await peer.say({"method": f"notifications/{method}", "params": params})
        await turns()
        assert await it.call("echo") == "done"
        assert it.connection.health.skipped_lines > 0
        assert [each for each in caplog.records if not of_ours(each)] == []


def of_ours(record: logging.LogRecord) -> bool:
    return record.name.startswith(("session_runtime", "asyncio"))


@pytest.mark.requirement("RTE-5")
async def test_progress_that_cannot_be_calculated_with_harms_no_call() -> None:
    peer = Peer()

    async def answer(message: Json) -> Json:
        token = message["params"]["_meta"]["progressToken"]
        for params in ({"progress": HUGE}, {"progress": 1, "total": HUGE}):
            params = {"progressToken": token, **params}
            await peer.say({"method": "notifications/progress", "params": params})
        return {"content": [{"type": "text", "text": "done"}]}

    peer.answers["tools/call"] = answer
    async with kept(peer) as it:
        assert await it.call("echo") == "done"
        assert (it.connection.health.state, it.connection.health.skipped_lines) == ("ready", 1)


@pytest.mark.requirement("RTE-5")
def test_a_server_that_asks_and_takes_no_answer_is_not_listened_to_any_longer() -> None:
    ends: list[str] = []
    tap = Tap(lambda: 0.0, ends.append, lambda tool: None)

    def ask(id_: int) -> object:
        return tap.heard(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=id_, method="ping")))

    assert ask(0) is not None
    assert ask(0) is None, "its answer is on the way"
    assert all(ask(id_) is not None for id_ in range(1, MOST_WAITING))
    with pytest.raises(anyio.EndOfStream):
        ask(MOST_WAITING)
    assert ends == [f"it takes no answers: more than {MOST_WAITING} requests of its own wait"]


async def test_requests_of_a_server_that_were_answered_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("session_runtime.mcp.tap.MOST_WAITING", 3)
    peer = Peer()
    async with kept(peer, heartbeat_s=0) as it:
        for id_ in range(20):
            await peer.say({"id": 7_000 + id_, "method": "ping"})
            await turns()
        assert it.connection.health.state == "ready"
