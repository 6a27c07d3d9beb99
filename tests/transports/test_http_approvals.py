"""Tools that changed are approved over HTTP, by admins alone (RTE-4)."""

import pytest

from tests.transports.stub import StubDoor, bearer, calling, keyring_of

PATH = "/v1/tools/approve"


@pytest.mark.requirement("RTE-4")
@pytest.mark.parametrize("wanted", [{"name": "a.b"}, {"server": "a"}])
async def test_a_tool_or_all_of_a_server_are_approved_by_name(wanted: dict[str, str]) -> None:
    door = StubDoor()
    async with calling(door) as client:
        done = await client.post(PATH, json=wanted)
    assert (done.status_code, done.json()) == (200, {"approved": ["a.b"], "receipt": {}})
    assert door.approval.done == [(wanted.get("name"), wanted.get("server"), "local")]


@pytest.mark.parametrize(
    "body", [{}, {"name": "a.b", "server": "a"}, {"name": ""}, {"name": 5}, {"tool": "a.b"}, []]
)
async def test_a_body_that_names_not_one_thing_is_refused(body: object) -> None:
    async with calling(StubDoor()) as client:
        done = await client.post(PATH, json=body)
    assert (done.status_code, done.json()["error"]["code"]) == (400, "request.invalid")


async def test_what_does_not_wait_is_not_found() -> None:
    async with calling(StubDoor()) as client:
        done = await client.post(PATH, json={"name": "c"})
    assert (done.status_code, done.json()["error"]["code"]) == (404, "request.nothing_to_approve")


async def test_only_admins_approve() -> None:
    door = StubDoor(keyring=keyring_of(bot={"roles": ()}, boss={"roles": ("admin",)}))
    async with calling(door) as client:
        for who, status in (("bot", 403), ("boss", 200)):
            done = await client.post(PATH, json={"name": "a.b"}, headers=bearer(who))
            assert done.status_code == status
    assert [by for *_, by in door.approval.done] == ["boss"]
