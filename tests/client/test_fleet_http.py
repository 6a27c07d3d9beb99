"""Asking replicas at their addresses: whatever they answer, it is told and nothing fails (NET-6)."""

import httpx2
import pytest

from session_runtime.client.fleet_http import presences

PAGE = {"state": "ready", "since": 1, "mqtt": None, "presence": {"version": "1.0"}}
AT = "http://127.0.0.1:1/"


def answering(status: int, **content: object) -> httpx2.MockTransport:
    return httpx2.MockTransport(lambda _: httpx2.Response(status, **content))  # type: ignore[arg-type]


@pytest.mark.requirement("NET-7c")
async def test_each_address_is_asked_once_with_the_key() -> None:
    seen: list[tuple[str, str]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append((str(request.url), request.headers["authorization"]))
        return httpx2.Response(200, json=PAGE)

    urls = ("http://a.test:1", "http://b.test/base/", "http://a.test:1")
    found = await presences(urls, "sr_key", httpx2.MockTransport(answer))
    assert [(each.replica, each.state, each.version) for each in found] == [
        ("http://a.test:1", "ready", "1.0"),
        ("http://b.test/base/", "ready", "1.0"),
    ]
    assert sorted(seen) == [
        ("http://a.test:1/v1/status", "Bearer sr_key"),
        ("http://b.test/base/v1/status", "Bearer sr_key"),
    ]


@pytest.mark.parametrize(
    ("transport", "words"),
    [
        (answering(401), "fleet.admin_from is to name"),
        (answering(403), "not that of an admin"),
        (answering(302, headers={"location": "http://evil.test"}), "status 302"),
        (answering(200, content=b"<html>"), "not JSON"),
        (answering(200, json=[]), "no status"),
        (answering(200, content=b" " * 4_194_305), "more than 4194304 bytes"),
    ],
    ids=["no key", "no admin", "a redirect", "no json", "no status", "endless"],
)
async def test_what_is_no_answer_is_told_of_the_address(
    transport: httpx2.MockTransport, words: str
) -> None:
    [told] = await presences([AT], None, transport)
    assert (told.replica, told.state) == (AT, "unknown")
    assert words in str(told.fault)


async def test_a_replica_that_is_not_there_does_not_hide_the_others() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.host == "gone.test":
            raise httpx2.ConnectError("refused")
        return httpx2.Response(200, json=PAGE)

    urls = ("http://gone.test", "http://there.test")
    gone, there = await presences(urls, None, httpx2.MockTransport(answer))
    assert (gone.fault, there.state) == ("no answer (refused)", "ready")
