"""Who is let in by a daemon with keys, and what everybody else is told (NET-2)."""

import asyncio
import json

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import Route

from session_runtime.errors import RequestError
from session_runtime.registry.keyring import Keyring
from session_runtime.transports.http.completions_errors import is_openai
from session_runtime.transports.http.guard import admit, is_open
from session_runtime.transports.http.server import build_app
from session_runtime.types import LOCAL, AskResult, ErrorInfo, Identity
from tests.transports.stub import (
    EVENTS,
    LIMITS,
    TEXT,
    Emit,
    Header,
    StubDoor,
    bearer,
    calling,
    finish,
    head,
    key_of,
    keyring_of,
    read_answer,
    refused,
    scope_of,
    serving,
)

KEYRING = keyring_of(bot={"act_for": ("tg-*",)}, boss={"roles": ("admin",)})
KEY = key_of("bot").encode()
ELSEWHERE = ("10.0.0.5", 8040)
MISSING = "no key was sent: send one in the header Authorization: Bearer KEY"


def code(*headers: Header, query: bytes = b"", path: str = "/v1/ask") -> str:
    """The name of whom a request is from, or the code of the refusal."""
    scope = scope_of(*headers, server=ELSEWHERE, query=query, path=path)
    try:
        return admit(scope, KEYRING).name
    except RequestError as error:
        return error.code


def authorization(*values: bytes) -> list[Header]:
    return [(b"authorization", value) for value in values]


def error_of(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([b"Bearer " + KEY], "bot"),
        ([b"bearer   " + KEY + b" "], "bot"),
        ([], "auth.missing"),
        ([b""], "auth.missing"),
        ([b"Bearer"], "auth.missing"),
        ([b"Bearer   "], "auth.missing"),
        ([KEY], "auth.missing"),
        ([b"Basic " + KEY], "auth.missing"),
        ([b"Token " + KEY], "auth.missing"),
        ([b"Bearer " + KEY, b"Bearer " + KEY], "auth.missing"),
        ([b"Bearer x", b"Bearer " + KEY], "auth.missing"),
        ([b"Bearer " + KEY[:-1]], "auth.unknown"),
        ([b"Bearer " + KEY + b"x"], "auth.unknown"),
        ([b"Bearer " + KEY.upper()], "auth.unknown"),
        ([b"Bearer " + KEY + b", Bearer " + KEY], "auth.unknown"),
        ([b"Bearer Bearer " + KEY], "auth.unknown"),
        ([b'Bearer "' + KEY + b'"'], "auth.unknown"),
        ([b"Bearer \xff\xfe\x00"], "auth.unknown"),
        (["Bearer 钥匙".encode()], "auth.unknown"),
        ([b"Bearer " + b"x" * 100_000], "auth.unknown"),
    ],
)
def test_one_whole_key_in_one_header_lets_in_and_nothing_else(
    values: list[bytes], told: str
) -> None:
    assert code(*authorization(*values)) == told


@pytest.mark.requirement("NET-2b")
@given(st.lists(st.binary(max_size=80) | st.just(b"Bearer " + KEY[:-1]), max_size=3))
def test_whatever_is_in_the_header_is_refused_in_the_same_words(values: list[bytes]) -> None:
    scope = scope_of(*authorization(*values), server=ELSEWHERE)
    with pytest.raises(RequestError) as caught:
        admit(scope, KEYRING)
    told = (caught.value.code, str(caught.value))
    assert told in [("auth.missing", MISSING), ("auth.unknown", "the key is not known")]


@pytest.mark.requirement("NET-2b")
async def test_a_refusal_asks_for_a_key_and_tells_nothing_else() -> None:
    async with calling(StubDoor(keyring=KEYRING), base_url="http://bot.example.org") as client:
        for path in ("/v1/status", "/v1/ask", "/nowhere"):
            response = await client.get(path)
            assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
            assert response.json() == {
                "error": {"code": "auth.missing", "message": MISSING, "retryable": False}
            }
        unknown = await client.get("/v1/status", headers=bearer("nobody"))
    assert (unknown.status_code, unknown.headers["www-authenticate"]) == (401, "Bearer")
    assert unknown.json() == {
        "error": {"code": "auth.unknown", "message": "the key is not known", "retryable": False}
    }


@pytest.mark.requirement("NET-2b")
async def test_a_large_head_is_refused_before_a_key_is_looked_for() -> None:
    async with serving(StubDoor(keyring=KEYRING)) as served, served.connected() as (reader, writer):
        writer.write(head(served.port, f"authorization: Bearer {'x' * 100_000}"))
        assert (await read_answer(reader))[0] == 431


@pytest.mark.requirement("NET-2b")
@pytest.mark.requirement("SEC-3")
@pytest.mark.parametrize(
    "query",
    [
        "api_key=abc",
        "X-API-Key=",
        "access_token=abc",
        "ACCESS-TOKEN=abc",
        "authorization=Bearer%20abc",
        "user=a&token=abc",
        f"user={key_of('bot')}",
        f"user=%73r_{key_of('bot')[3:]}",
        f"{key_of('bot')}",
    ],
)
async def test_a_key_in_the_url_is_refused_and_not_repeated(query: str) -> None:
    door = StubDoor(keyring=KEYRING)
    async with calling(door) as client:
        for headers in ({}, bearer("boss")):
            response = await client.get(f"/v1/tools?{query}", headers=headers)
            assert error_of(response) == (400, "auth.in_url")
            assert key_of("bot")[3:] not in response.text
        path = await client.get(f"/{key_of('boss')}", headers=bearer("boss"))
    assert error_of(path) == (400, "auth.in_url")
    assert door.principals == []


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize(
    ("host", "origin", "told"),
    [
        (b"bot.example.org", b"https://bot.example.org", "bot"),
        (b"bot.example.org:443", b"https://BOT.example.org", "bot"),
        (b"127.0.0.1:8040", b"http://127.0.0.1:8040", "bot"),
        (b"bot.example.org", b"https://evil.example", "request.origin"),
        (b"bot.example.org", b"https://bot.example.org:8443", "request.origin"),
        (b"bot.example.org", b"https://bot.example.org.evil.example", "request.origin"),
        (b"bot.example.org", b"http://localhost", "request.origin"),
        (b"bot.example.org", b"null", "request.origin"),
        (b"bot.example.org", b"", "request.origin"),
        (b"bot.example.org", b"bot.example.org", "request.origin"),
        (b"bot.example.org", b"file://bot.example.org", "request.origin"),
    ],
)
def test_web_pages_are_served_from_the_host_itself_only(
    host: bytes, origin: bytes, told: str
) -> None:
    assert code((b"host", host), (b"origin", origin), *authorization(b"Bearer " + KEY)) == told


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize(
    "header",
    [
        (b"forwarded", b"for=127.0.0.1;by=boss"),
        (b"x-forwarded-for", b"127.0.0.1"),
        (b"x-forwarded-user", b"boss"),
        (b"x-real-ip", b"127.0.0.1"),
        (b"x-api-key", key_of("boss").encode()),
        (b"cookie", b"key=" + key_of("boss").encode()),
        (b"proxy-authorization", b"Bearer " + key_of("boss").encode()),
    ],
)
def test_what_a_proxy_adds_is_no_hindrance_and_changes_nothing(header: Header) -> None:
    assert code((b"host", b"any.example"), header, *authorization(b"Bearer " + KEY)) == "bot"
    assert code((b"host", b"localhost"), header) == "auth.missing"


def routes() -> list[tuple[str, str]]:
    """All methods and paths that there are."""
    app = build_app(StubDoor(), LIMITS, asyncio.Event())
    return [
        (method, route.path)
        for route in app.routes
        if isinstance(route, Route)
        for method in sorted((route.methods or set()) - {"HEAD"})
    ]


@pytest.mark.requirement("NET-2b")
async def test_health_needs_no_key_and_nothing_else_goes_without() -> None:
    async with calling(StubDoor(keyring=KEYRING), base_url="http://10.0.0.5") as client:
        told = [
            (
                is_open(path),
                (await client.request(method, path.replace("{name}", "app.js"))).status_code,
            )
            for method, path in routes()
        ]
    assert set(told) == {(True, 200), (True, 308), (False, 401)}
    opened = {path for _, path in routes() if is_open(path)}
    assert opened == {"/healthz", "/readyz", "/console", "/console/", "/console/files/{name}"}


@pytest.mark.requirement("NET-2b")
async def test_all_but_asks_and_tools_of_somebody_is_for_admins() -> None:
    async with calling(StubDoor(keyring=KEYRING)) as client:
        for method, path in routes():
            if is_open(path) or path in {"/metrics", "/v1/ask"} or path.startswith("/v1/asks"):
                continue
            if is_openai(path) or path == "/v1/tools" or path.endswith("/invoke"):
                continue
            response = await client.request(method, path, headers=bearer("bot"))
            assert error_of(response) == (403, "auth.admin_needed")
            assert response.json()["error"]["message"] == (
                "'bot' lacks the role 'admin', which this needs; for every key there are /mcp, /metrics,"
                " /v1/ask, /v1/asks, /v1/chat/completions, /v1/models, /v1/tools"
            )
        unknown = await client.get("/v1/asking", headers=bearer("bot"))
    assert error_of(unknown) == (403, "auth.admin_needed")


@pytest.mark.requirement("NET-2b")
async def test_tools_are_listed_for_whom_the_principal_says_and_all_of_them_for_admins() -> None:
    door = StubDoor(keyring=KEYRING)
    async with calling(door) as client:
        for path in ("/v1/tools", "/v1/status", "/openapi.json"):
            assert (await client.get(path, headers=bearer("boss"))).status_code == 200
        unknown = await client.get("/v1/asking", headers=bearer("boss"))
        assert error_of(unknown) == (404, "request.not_found")
        await client.get("/v1/tools?user=tg-1", headers=bearer("bot"))
        await client.get("/v1/tools", headers=bearer("bot"))
    assert [each.name for each in door.principals] == ["boss", "bot", "bot"]
    assert door.identities == [None, Identity("tg-1"), Identity()]


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize("accept", [{}, EVENTS])
async def test_an_ask_is_asked_by_the_owner_of_the_key(accept: dict[str, str]) -> None:
    door = StubDoor(keyring=KEYRING)
    async with calling(door) as client:
        for name in ("bot", "boss"):
            await client.post("/v1/ask", json=TEXT, headers=bearer(name) | accept)
    assert [(each.name, each.admin) for each in door.principals] == [("bot", False), ("boss", True)]


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize("place", [{"principal": "boss"}, {"identity": {"principal": "boss"}}])
async def test_no_body_can_name_the_principal(place: dict[str, object]) -> None:
    door = StubDoor(keyring=KEYRING)
    async with calling(door) as client:
        response = await client.post("/v1/ask", json=TEXT | place, headers=bearer("bot"))
    assert error_of(response) == (400, "request.invalid")
    assert "unknown field" in response.json()["error"]["message"]
    assert door.principals == []


@pytest.mark.requirement("NET-2b")
async def test_keys_that_are_added_or_removed_act_on_the_next_request() -> None:
    door = StubDoor()

    async def status(name: str | None) -> int:
        headers = bearer(name) if name else {}
        return (await client.get("/v1/status", headers=headers)).status_code

    async with serving(door) as served:
        client = served.client
        assert [await status(None), await status("nobody")] == [200, 200]
        door.keyring = keyring_of(boss={"roles": ("admin",)})
        assert [await status(None), await status("boss"), await status("root")] == [401, 200, 401]
        door.keyring = keyring_of(boss={}, root={"roles": ("admin",)})
        assert [await status(None), await status("boss"), await status("root")] == [401, 403, 200]
        door.keyring = Keyring()
        assert [await status(None), await status("boss")] == [200, 200]


@pytest.mark.requirement("NET-2b")
async def test_a_key_that_goes_while_the_body_arrives_lets_no_ask_begin() -> None:
    door = StubDoor(keyring=KEYRING)
    body = json.dumps(TEXT).encode()
    fields = (
        "content-type: application/json",
        f"content-length: {len(body)}",
        "expect: 100-continue",
    )
    async with serving(door) as served, served.connected() as (reader, writer):
        writer.write(head(served.port, f"authorization: Bearer {key_of('bot')}", *fields))
        assert b"100" in await reader.readuntil(b"\r\n\r\n")  # the guard let it in
        door.keyring = keyring_of(boss={})
        writer.write(body)
        status, answer = await read_answer(reader)
    assert (status, answer["error"]["code"]) == (401, "auth.unknown")
    assert door.principals == []


@pytest.mark.requirement("NET-2b")
async def test_the_last_key_that_goes_does_not_make_its_owner_an_admin_from_elsewhere() -> None:
    scope = scope_of((b"host", b"localhost"), *authorization(b"Bearer " + KEY), server=ELSEWHERE)
    assert admit(scope, KEYRING).name == "bot"
    with pytest.raises(RequestError, match=r"the connection came in at 10\.0\.0\.5"):
        admit(scope, Keyring())
    assert admit(scope | {"server": ("127.0.0.1", 8040)}, Keyring()) is LOCAL


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize("accept", [{}, EVENTS])
async def test_an_ask_for_somebody_it_may_not_act_for_is_forbidden(accept: dict[str, str]) -> None:
    async def refuse(request: object, emit: Emit) -> AskResult:
        return finish(refused(ErrorInfo("auth.act_for", "no")), emit)

    async with calling(StubDoor(refuse, KEYRING)) as client:
        response = await client.post("/v1/ask", json=TEXT, headers=bearer("bot") | accept)
    assert error_of(response) == (403, "auth.act_for")
