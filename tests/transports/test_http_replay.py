"""What an edit would change of recorded asks, over HTTP, for administrators alone (OPS-3)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from session_runtime.config.written import REMOVED
from tests.transports.configured import code, here
from tests.transports.stub import StubDoor, bearer, calling, keyring_of

REPLAY = "/v1/config/replay"
TOML = {"content-type": "application/toml"}

pytestmark = pytest.mark.requirement("OPS-3")


class StubPreview:
    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    async def of(self, text: bytes | None, most: int) -> Mapping[str, Any]:
        self.asked.append((text, most))
        return {"replay": None}

    async def of_values(
        self, values: Mapping[str, object], most: int, *, any_key: bool
    ) -> Mapping[str, Any]:
        self.asked.append((values, most, any_key))
        return {"replay": None}


class Door(StubDoor):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.preview = StubPreview()


async def test_a_file_an_edit_and_the_file_as_it_is_are_passed_on() -> None:
    door = Door()
    async with calling(door) as client:
        answers = [
            await client.post(REPLAY),
            await client.post(f"{REPLAY}?asks=7", content=b"[ask]\n", headers=TOML),
            await client.post(REPLAY, json={"ask.max_steps": None, "ask.require_end": True}),
        ]
    assert [each.json() for each in answers] == [{"replay": None}] * 3
    assert door.preview.asked == [
        (None, 200),
        (b"[ask]\n", 7),
        ({"ask.max_steps": REMOVED, "ask.require_end": True}, 200, False),
    ]


@pytest.mark.parametrize("query", ["asks=0", "asks=2001", "asks=x", "ask=1"])
async def test_a_wrong_query_is_refused(query: str) -> None:
    door = Door()
    async with calling(door) as client:
        response = await client.post(f"{REPLAY}?{query}")
    assert code(response) == (400, "request.invalid")
    assert door.preview.asked == []


async def test_a_key_without_the_role_of_administrators_is_refused() -> None:
    door = Door(keyring=keyring_of(bot={}))
    async with calling(door) as client:
        response = await client.post(REPLAY, headers=bearer("bot"))
    assert code(response) == (403, "auth.admin_needed")
    assert door.preview.asked == []


@pytest.mark.requirement("NET-3")
async def test_a_key_that_may_not_be_changed_over_the_network_is_not_tried(tmp_path: Path) -> None:
    async with here(tmp_path) as one:
        response = await one.client.post(REPLAY, json={"models.main.model": "x"})
        told = await one.client.post(REPLAY, json={"ask.max_steps": 5})
    assert code(response) == (403, "config.not_over_network")
    assert (told.json()["replay"], told.json()["receipt"]["verdict"]) == (None, "applied")
