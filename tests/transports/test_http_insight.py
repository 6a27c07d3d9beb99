"""Searches explained, permissions and ended asks over HTTP, for administrators alone (OPS-3)."""

import pytest

from session_runtime.types import Identity
from tests.transports.stub import StubDoor, bearer, calling, keyring_of

pytestmark = pytest.mark.requirement("OPS-3")


async def test_the_pages_pass_on_what_was_asked_and_for_whom() -> None:
    door = StubDoor()
    async with calling(door) as client:
        answers = [
            (await client.get(path)).json()
            for path in (
                "/v1/search?query=find+it&user=u&role=a&role=b&limit=3",
                "/v1/search?query=find",
                "/v1/access?tool=a.b&channel=c&group=g",
                "/v1/access?user=u&principal=bot",
                "/v1/principals",
                "/v1/recent?limit=5",
                "/v1/recent/a1",
            )
        ]
    assert answers == [
        {"query": "find it"},
        {"query": "find"},
        {"tool": "a.b"},
        {"tools": []},
        {"principals": []},
        {"totals": {"asks": 1}, "asks": [{"ask_id": "a1"}]},
        {"ask_id": "a1"},
    ]
    assert door.insight.asked == [
        ("find it", Identity("u", frozenset({"a", "b"})), 3, None),
        ("find", Identity(), 10, None),
        ("a.b", Identity(None, None, "c", "g"), None),
        (Identity("u"), "bot"),
        (5,),
    ]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/v1/search", "the query parameter 'query' is missing"),
        ("/v1/search?query=", "is blank"),
        ("/v1/search?query=a&limit=51", "give a number from 1 to 50"),
        ("/v1/search?query=a&limit=x", "give a number from 1 to 50"),
        (f"/v1/search?query={'a' * 4001}", "at most 4000 are read"),
        ("/v1/search?query=a&roles=b", "did you mean 'role'"),
        ("/v1/recent?limit=0", "give a number from 1 to 200"),
        ("/v1/recent/a1?x=1", "unknown query parameter"),
        ("/v1/live?x=1", "unknown query parameter"),
    ],
)
async def test_a_wrong_query_is_refused_with_the_way_out(path: str, problem: str) -> None:
    door = StubDoor()
    async with calling(door) as client:
        response = await client.get(path)
    assert response.status_code == 400
    assert problem in response.json()["error"]["message"]
    assert door.insight.asked == []


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/search?query=a", "/v1/access?tool=a", "/v1/principals"),
        *("/v1/recent", "/v1/recent/a1", "/v1/live"),
    ],
)
async def test_a_key_without_the_role_of_administrators_sees_none_of_it(path: str) -> None:
    async with calling(StubDoor(keyring=keyring_of(bot={}))) as client:
        response = await client.get(path, headers=bearer("bot"))
    assert (response.status_code, response.json()["error"]["code"]) == (403, "auth.admin_needed")
