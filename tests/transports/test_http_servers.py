"""Servers of tools over HTTP: readiness names those that are missing, admins look and act (RTE-1, RTE-4)."""

import pytest

from tests.transports.stub import StubDoor, bearer, calling, keyring_of

PATHS = [("GET", "log"), ("POST", "refresh"), ("POST", "restart")]


@pytest.mark.requirement("RTE-1")
async def test_readiness_names_the_servers_that_are_missing_and_stays_ready() -> None:
    door = StubDoor()
    async with calling(door) as client:
        assert (await client.get("/readyz")).json() == {"status": "ready"}
        door.absent = ("crm", "wiki")
        told = await client.get("/readyz")
    assert (told.status_code, told.json()) == (200, {"status": "ready", "missing": ["crm", "wiki"]})


@pytest.mark.requirement("RTE-4")
async def test_a_server_can_be_looked_at_listed_again_and_restarted() -> None:
    door = StubDoor()
    async with calling(door) as client:
        log = await client.get("/v1/servers/a/log")
        assert log.json() == {"logs": [{"credential": None, "lines": ["12:00 hello"]}]}
        await client.get("/v1/servers/a/log?lines=7")
        for what in ("refresh", "restart"):
            done = await client.post(f"/v1/servers/a/{what}")
            assert (done.status_code, done.json()) == (200, {"servers": [], "receipt": {}})
    assert door.servers.done == [
        ("log", "a", 100),
        ("log", "a", 7),
        ("refresh", "a"),
        ("restart", "a"),
    ]


@pytest.mark.parametrize(("method", "what"), PATHS)
async def test_an_unknown_server_is_a_fault_of_the_request(method: str, what: str) -> None:
    async with calling(StubDoor()) as client:
        told = await client.request(method, f"/v1/servers/b/{what}")
    assert (told.status_code, told.json()["error"]["code"]) == (404, "request.unknown_server")


@pytest.mark.parametrize("lines", ["0", "1001", "all", "9" * 30, ""])
async def test_a_number_of_lines_that_is_none_is_refused(lines: str) -> None:
    async with calling(StubDoor()) as client:
        assert (await client.get(f"/v1/servers/a/log?lines={lines}")).status_code == 400


@pytest.mark.requirement("NET-2")
@pytest.mark.parametrize(("method", "what"), PATHS)
async def test_servers_are_for_admins(method: str, what: str) -> None:
    door = StubDoor(keyring=keyring_of(bot={}, root={"roles": ("admin",)}))
    async with calling(door) as client:
        for name, status in (("bot", 403), ("root", 200)):
            told = await client.request(method, f"/v1/servers/a/{what}", headers=bearer(name))
            assert told.status_code == status
    assert len(door.servers.done) == 1
