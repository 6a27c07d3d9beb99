"""Edits act on the next list and the next call of every client, and clients are told."""

import asyncio
from pathlib import Path

import pytest
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import ToolListChangedNotification

from tests.support import write_config, write_handler
from tests.transports.mcp.served import (
    HANDSHAKE,
    ON,
    SEARCHING,
    STATELESS,
    Mode,
    listed,
    serving,
    text_of,
    tools,
)
from tests.transports.mcp.test_sessions import TWO_KEYS, key_entry
from tests.transports.stub import bearer

NEW = "def execute(args, context):\n    return 'the new one'\n"


class Ears:
    """What a client hears without having asked."""

    def __init__(self) -> None:
        self.told = asyncio.Event()
        self.times = 0

    async def hear(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.times += 1
            self.told.set()


@pytest.mark.requirement("REL-1")
@pytest.mark.parametrize("mode", [HANDSHAKE, STATELESS])
async def test_each_list_and_call_is_of_the_configuration_in_force(
    tmp_path: Path, mode: Mode
) -> None:
    async with serving(tmp_path, tools(tmp_path) + ON) as served, served.client(mode) as client:
        before = await listed(client)
        write_handler(tmp_path / "tools", "a.new", code=NEW)
        await served.runtime.live.reload("cli")
        assert set(await listed(client)) - set(before) == {"a.new"}
        assert text_of(await client.call_tool("a.new", {})) == "the new one"
        (current,) = served.runtime.status()["generations"]
    assert (current["generation"], current["asks"]) == (2, 0)


@pytest.mark.requirement("NET-1d")
async def test_a_client_with_a_session_is_told_that_its_list_is_another_one(tmp_path: Path) -> None:
    ears = Ears()
    config = tools(tmp_path) + ON
    async with (
        serving(tmp_path, config) as served,
        served.client(message_handler=ears.hear) as client,
    ):
        await listed(client)
        write_handler(tmp_path / "tools", "a.new")
        await served.runtime.live.reload("cli")
        await ears.told.wait()
        assert "a.new" in await listed(client)


async def test_a_client_is_not_told_of_what_it_does_not_see(tmp_path: Path) -> None:
    ears = Ears()
    config = tools(tmp_path) + ON + SEARCHING
    async with (
        serving(tmp_path, config) as served,
        served.client(message_handler=ears.hear) as client,
    ):
        await listed(client)
        write_handler(tmp_path / "tools", "a.deferred")
        await served.runtime.live.reload("cli")
        found = await client.call_tool("tool_search", {"query": "select:a.deferred"})
    assert found.structured_content is not None
    assert found.structured_content["loaded"] == ["a.deferred"]
    assert ears.times == 1  # by the search


async def test_what_a_client_loaded_stays_loaded_over_edits(tmp_path: Path) -> None:
    config = tools(tmp_path) + ON + SEARCHING
    async with serving(tmp_path, config) as served, served.client() as client:
        await client.call_tool("tool_search", {"query": "select:mail.list,mail.send"})
        folder = tmp_path / "tools" / "mail" / "send"
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        await served.runtime.live.reload("cli")
        assert await listed(client) == ["tool_search", "mail.list"]


async def test_a_client_without_a_session_can_listen_for_changes(tmp_path: Path) -> None:
    config = tools(tmp_path) + ON
    async with serving(tmp_path, config) as served, served.client(STATELESS) as client:
        async with client.listen(tools_list_changed=True) as changes:
            write_handler(tmp_path / "tools", "a.new")
            await served.runtime.live.reload("cli")
            async for _ in changes:
                break
        assert "a.new" in await listed(client)


LEFT = {"taken away": key_entry("bob"), "replaced": key_entry("ann", "sr_new")}


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize("left", LEFT.values(), ids=LEFT)
async def test_who_listens_without_a_session_is_let_go_when_its_key_is_taken_away_or_replaced(
    tmp_path: Path, left: str
) -> None:
    config = tools(tmp_path) + ON
    async with (
        serving(tmp_path, config + TWO_KEYS) as served,
        served.client(STATELESS, bearer("ann")) as client,
    ):
        async with client.listen(tools_list_changed=True) as changes:
            write_config(tmp_path, config + left)
            await served.runtime.live.reload("cli")
            with pytest.raises(SubscriptionLost) as lost:
                async for _ in changes:
                    pass
    assert "may not come in any more" in str(lost.value.__cause__)
