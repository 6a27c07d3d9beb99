"""The console's files, and what a session of it is good for (OPS-3, SEC-3c)."""

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from session_runtime.registry.keyring import Keyring
from session_runtime.transports.http import console
from session_runtime.transports.http.console import FOLDER, POLICY
from session_runtime.transports.http.console_sessions import (
    COOKIE,
    LIFE_S,
    MOST_SESSIONS,
    ConsoleSessions,
)
from tests.transports.stub import (
    EVENTS,
    LIMITS,
    TEXT,
    HttpLimits,
    StubDoor,
    bearer,
    calling,
    keyring_of,
    serving,
)

KEYRING = keyring_of(bot={}, boss={"roles": ("admin",)})
TOKEN = "x-console-token"
ELSEWHERE = "http://console.example.org"

pytestmark = [pytest.mark.requirement("OPS-3"), pytest.mark.requirement("SEC-3c")]


def error_of(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


async def sign_in(client: httpx2.AsyncClient, name: str = "boss") -> str:
    """Sign in, so that the client has the cookie; gives the token."""
    response = await client.post("/console/session", headers=bearer(name))
    assert response.status_code == 201
    return str(response.json()["token"])


@pytest.fixture
async def door() -> StubDoor:
    return StubDoor(keyring=KEYRING)


@pytest.fixture
async def client(door: StubDoor) -> AsyncIterator[httpx2.AsyncClient]:
    async with calling(door, base_url=ELSEWHERE) as client:
        yield client


async def test_a_key_is_exchanged_for_a_cookie_that_no_script_and_no_other_page_has(
    client: httpx2.AsyncClient,
) -> None:
    response = await client.post("/console/session", headers=bearer("boss"))
    secret, *attributes = response.headers["set-cookie"].split("; ")
    assert secret.startswith(f"{COOKIE}=")
    assert len(secret) > len(COOKIE) + 40
    assert attributes == ["Path=/", f"Max-Age={LIFE_S:.0f}", "HttpOnly", "SameSite=Strict"]
    assert response.json()["principal"] == "boss"
    assert response.json()["token"] not in secret


@pytest.mark.parametrize(
    "headers", [{"origin": "https://console.example.org"}, {"x-forwarded-proto": "https"}]
)
async def test_the_cookie_stays_on_encrypted_ways_if_the_browser_came_by_one(
    client: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    response = await client.post("/console/session", headers={**bearer("boss"), **headers})
    assert response.headers["set-cookie"].endswith("; SameSite=Strict; Secure")


async def test_a_session_reads_and_with_its_token_changes_what_its_key_may(
    client: httpx2.AsyncClient, door: StubDoor
) -> None:
    token = await sign_in(client)
    assert (await client.get("/v1/status")).json() == {"state": "ready"}
    restarted = await client.post("/v1/servers/a/restart", headers={TOKEN: token})
    assert restarted.status_code == 200
    asked = await client.post("/v1/ask", json=TEXT, headers={TOKEN: token})
    assert asked.json()["text"] == "you said hi"
    assert [principal.name for principal in door.principals] == ["boss"]


@pytest.mark.parametrize("token", [None, "", "wrong"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/ask"),
        ("POST", "/v1/servers/a/restart"),
        ("PATCH", "/v1/config"),
        ("DELETE", "/v1/asks/a1"),
        ("DELETE", "/console/session"),
    ],
)
async def test_no_session_changes_anything_without_its_token(
    client: httpx2.AsyncClient, door: StubDoor, method: str, path: str, token: str | None
) -> None:
    await sign_in(client)
    headers = {} if token is None else {TOKEN: token}
    response = await client.request(method, path, headers=headers, json=TEXT)
    assert error_of(response) == (403, "auth.console_token")
    assert (door.servers.done, door.principals) == ([], [])


async def test_the_token_of_another_session_is_no_token(client: httpx2.AsyncClient) -> None:
    other = await sign_in(client)
    client.cookies.clear()
    await sign_in(client)
    response = await client.post("/v1/servers/a/restart", headers={TOKEN: other})
    assert error_of(response) == (403, "auth.console_token")


async def test_who_has_no_key_of_an_administrator_signs_in_nowhere_and_sees_nothing(
    client: httpx2.AsyncClient,
) -> None:
    refused = [await client.post("/console/session", headers=bearer("bot"))]
    refused += [await client.post("/console/session", headers={"authorization": "Bearer x"})]
    refused += [await client.post("/console/session"), await client.get("/console/session")]
    refused += [await client.get(path) for path in ("/v1/live", "/v1/status", "/v1/recent")]
    assert [response.status_code for response in refused] == [403, 401, 401, 401, 401, 401, 401]
    assert not client.cookies


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(keyring_of(bot={}), id="revoked"),
        pytest.param(keyring_of(bot={}, boss={}), id="no administrator any more"),
        pytest.param(keyring_of(bot={}, chief={"roles": ("admin",)}), id="replaced"),
    ],
)
async def test_a_session_ends_with_its_key(
    client: httpx2.AsyncClient, door: StubDoor, keys: Keyring
) -> None:
    token = await sign_in(client)
    door.keyring = keys
    read = await client.get("/v1/status")
    changed = await client.post("/v1/servers/a/restart", headers={TOKEN: token})
    assert (error_of(read), error_of(changed)) == ((401, "auth.missing"),) * 2
    door.keyring = KEYRING
    assert error_of(await client.get("/v1/status")) == (401, "auth.missing")


async def test_signing_out_ends_the_session_and_not_only_the_cookie(
    client: httpx2.AsyncClient,
) -> None:
    token = await sign_in(client)
    cookie = client.cookies[COOKIE]
    assert (await client.delete("/console/session", headers={TOKEN: token})).status_code == 200
    assert not client.cookies
    response = await client.get("/v1/status", headers={"cookie": f"{COOKIE}={cookie}"})
    assert error_of(response) == (401, "auth.missing")


async def test_a_page_that_is_loaded_again_gets_its_token_again(
    client: httpx2.AsyncClient,
) -> None:
    token = await sign_in(client)
    told = (await client.get("/console/session")).json()
    assert (told["principal"], told["token"]) == ("boss", token)


async def test_a_page_of_another_host_uses_no_session(client: httpx2.AsyncClient) -> None:
    token = await sign_in(client)
    for origin in ("http://evil.example.org", "null"):
        response = await client.get("/v1/status", headers={"origin": origin, TOKEN: token})
        assert error_of(response) == (403, "request.origin")


async def test_a_key_that_is_sent_counts_and_not_the_cookie_beside_it(
    client: httpx2.AsyncClient,
) -> None:
    await sign_in(client)
    response = await client.get("/v1/status", headers=bearer("bot"))
    assert error_of(response) == (403, "auth.admin_needed")


def test_a_session_lives_for_some_hours_and_of_too_many_the_oldest_ends() -> None:
    now = [0.0]
    sessions = ConsoleSessions(lambda: now[0])
    (digest, _) = KEYRING.owners[1]

    def is_good(secret: str) -> bool:
        cookie = f"a=b; {COOKIE}={secret}".encode()
        return sessions.find([(b"cookie", cookie)], KEYRING) is not None

    first, _ = sessions.open(digest)
    now[0] = LIFE_S - 1
    assert is_good(first)
    now[0] = LIFE_S
    assert not is_good(first)
    opened = [sessions.open(digest)[0] for _ in range(MOST_SESSIONS + 1)]
    assert [is_good(secret) for secret in opened] == [False] + [True] * MOST_SESSIONS


async def test_without_keys_this_machine_needs_no_session_and_no_other_gets_in() -> None:
    async with calling(StubDoor()) as client:
        told = (await client.get("/console/session")).json()
        begun = await client.post("/console/session")
        foreign = await client.get("/console", headers={"origin": "http://evil.example.org"})
        elsewhere = await client.get("/console", headers={"host": "evil.example.org"})
    assert told == {"principal": "local", "token": None, "expires": None}
    assert (begun.status_code, "set-cookie" in begun.headers) == (200, False)
    assert error_of(foreign) == (403, "request.origin")
    assert error_of(elsewhere) == (403, "request.host")


@pytest.mark.requirement("NET-1h")
async def test_every_file_is_guarded_by_a_policy_that_allows_no_other_script(
    client: httpx2.AsyncClient,
) -> None:
    names = sorted(path.name for path in FOLDER.iterdir())
    answers = [await client.get("/console")]
    answers += [await client.get(f"/console/files/{name}") for name in names]
    assert {response.status_code for response in answers} == {200}
    assert {response.headers["content-security-policy"] for response in answers} == {POLICY}
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'")
    assert {response.headers["x-content-type-options"] for response in answers} == {"nosniff"}


async def test_there_are_no_other_files_behind_the_console(client: httpx2.AsyncClient) -> None:
    for name in ("%2e%2e%2fconsole.py", "../console.py", "console.py", "nothing.js"):
        response = await client.get(f"/console/files/{name}")
        assert response.status_code in (401, 404)
        assert b"import" not in response.content


@pytest.mark.parametrize("keyring", [KEYRING, Keyring()])
async def test_the_path_with_a_slash_behind_it_leads_to_the_console(keyring: Keyring) -> None:
    async with calling(StubDoor(keyring=keyring)) as client:
        response = await client.get("/console/")
    assert (response.status_code, response.headers["location"]) == (308, "/console")


async def test_what_a_desktop_leaves_in_the_folder_is_no_file_of_the_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FOLDER, tmp_path / "files")
    for name in (".DS_Store", "._app.js", "app.js~"):
        (tmp_path / "files" / name).write_bytes(b"x")
    monkeypatch.setattr(console, "FOLDER", tmp_path / "files")
    async with calling(StubDoor(keyring=KEYRING), base_url=ELSEWHERE) as client:
        assert (await client.get("/console/files/app.js")).status_code == 200
        assert (await client.get("/console/files/._app.js")).status_code == 404


def test_no_file_names_another_host_or_holds_a_script_or_style_in_its_markup() -> None:
    page = (FOLDER / "index.html").read_text("utf-8")
    assert "style=" not in page
    assert page.count("<script") == 1
    assert "></script>" in page
    for path in FOLDER.iterdir():
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, path
        written = [each for each in ("innerHTML", "insertAdjacentHTML") if each in text]
        assert not written, path


async def test_live_tells_what_changed_and_ends_with_the_session() -> None:
    door = StubDoor(keyring=KEYRING)
    limits = HttpLimits(max_body_bytes=LIMITS.max_body_bytes, look_s=0.01)
    state = {"state": "ready", "generations": [{"age_s": 1.0}]}
    door.status = lambda: state  # type: ignore[method-assign]
    async with serving(door, limits) as served:
        await sign_in(served.client)
        async with served.client.stream("GET", "/v1/live", headers=EVENTS) as response:
            told = response.aiter_lines()

            async def next_event() -> tuple[str, object]:
                event = await anext(told)
                data = await anext(told)
                await anext(told)
                return event.removeprefix("event: "), json.loads(data.removeprefix("data: "))

            first = dict([await next_event() for _ in range(3)])
            assert first == {
                "status": state,
                "asks": {"asks": []},
                "recent": {"totals": {"asks": 1}, "asks": [{"ask_id": "a1"}]},
            }
            state["generations"] = [{"age_s": 2.0}]
            state["state"] = "draining"
            assert await next_event() == ("status", state)
            door.keyring = keyring_of(bot={})
            assert await next_event() == ("ended", {})


async def test_live_ends_when_the_daemon_stops() -> None:
    async with serving(StubDoor()) as served:
        async with served.client.stream("GET", "/v1/live") as response:
            lines = response.aiter_lines()
            assert await anext(lines) == "event: status"
            served.stop.set()
            assert "event: ended" not in [line async for line in lines]
