"""Tools that changed are approved over HTTP, by admins alone (RTE-4)."""

import pytest

from tests.transports.stub import StubDoor, bearer, calling, keyring_of

PATH = "/v1/tools/approve"


@pytest.mark.requirement("RTE-4")
@pytest.mark.parametrize("wanted", [{"name": "a.b", "digest": "f0"}, {"server": "a"}])
async def test_a_tool_in_one_form_or_all_of_a_server_are_approved(wanted: dict[str, str]) -> None:
    door = StubDoor()
    async with calling(door) as client:
        done = await client.post(PATH, json=wanted)
    assert (done.status_code, done.json()) == (200, {"approved": ["a.b"], "receipt": {}})
    assert door.approval.done == [(*wanted.values(), "local")]


@pytest.mark.requirement("RTE-4")
async def test_what_waits_is_shown_to_admins() -> None:
    door = StubDoor(keyring=keyring_of(bot={"roles": ()}, boss={"roles": ("admin",)}))
    async with calling(door) as client:
        answers = [
            await client.get(f"/v1/tools/waiting/{name}", headers=bearer(who))
            for who, name in (("bot", "a.b"), ("boss", "a.b"), ("boss", "c"))
        ]
    assert [answer.status_code for answer in answers] == [403, 200, 404]
    assert answers[1].json() == {"name": "a.b", "forms": []}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "a.b"},
        {"digest": "f0"},
        {"name": "a.b", "digest": ""},
        {"server": "a", "digest": "f0"},
        {"name": "a.b", "digest": "f0", "server": "a"},
        {"name": "", "digest": "f0"},
        {"name": 5, "digest": "f0"},
        {"tool": "a.b"},
        [],
    ],
)
async def test_a_body_that_names_not_one_thing_is_refused(body: object) -> None:
    async with calling(StubDoor()) as client:
        done = await client.post(PATH, json=body)
    assert (done.status_code, done.json()["error"]["code"]) == (400, "request.invalid")


@pytest.mark.parametrize(
    ("name", "digest", "told"),
    [("c", "f0", (404, "request.nothing_to_approve")), ("a.b", "f1", (409, "request.other_form"))],
)
async def test_what_does_not_wait_so_is_refused(
    name: str, digest: str, told: tuple[int, str]
) -> None:
    async with calling(StubDoor()) as client:
        done = await client.post(PATH, json={"name": name, "digest": digest})
    assert (done.status_code, done.json()["error"]["code"]) == told


async def test_only_admins_approve() -> None:
    door = StubDoor(keyring=keyring_of(bot={"roles": ()}, boss={"roles": ("admin",)}))
    async with calling(door) as client:
        for who, status in (("bot", 403), ("boss", 200)):
            done = await client.post(PATH, json={"server": "a"}, headers=bearer(who))
            assert done.status_code == status
    assert [by for *_, by in door.approval.done] == ["boss"]
