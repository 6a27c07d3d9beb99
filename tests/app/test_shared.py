"""What another process revokes, marks or approves acts in this one too, without a restart."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from session_runtime.app.shared import PAUSE_S, SharedState
from session_runtime.mcp.base import Listing
from session_runtime.registry.revocations import Revocations, open_revocations
from tests.app.test_list_watch import Pauses
from tests.generation.sites import Site, servers, site
from tests.mcp.links import definition, listing
from tests.mcp.processes import until
from tests.support import opened, write_handler

HANGS_S = 60.0  # a test that waits for what never comes fails instead of hanging


def wiping(*, changed: bool = False, destructive: bool = False) -> Listing:
    schema = {"type": "object", "properties": {"all": {}}} if changed else None
    return listing(definition("wipe", None, schema, destructive=destructive))


async def lists(place: Site, found: Listing) -> None:
    place.board.last("a").lists(found)
    await place.live.refresh("servers")
    await place.approvals.approve([])  # what was seen is written then


@asynccontextmanager
async def following(place: Site, pauses: Pauses) -> AsyncIterator[None]:
    shared = SharedState(
        Revocations(), place.approvals, lambda: place.generation, place.live, pauses
    )
    async with shared.running():
        yield


async def looked(pauses: Pauses) -> None:
    """One look is over."""
    await pauses.past()
    async with asyncio.timeout(HANGS_S):
        await pauses.begun.acquire()
    pauses.begun.release()


@pytest.mark.requirement("RTE-9c")
async def test_a_mark_that_another_process_saw_acts_on_a_tool_that_is_in_force(
    tmp_path: Path,
) -> None:
    pauses = Pauses()
    async with (
        site(tmp_path, servers("a"), state=True, a=wiping()) as daemon,
        site(tmp_path, servers("a"), state=True, a=wiping()) as pipe,
        following(pipe, pauses),
    ):
        await lists(daemon, wiping(destructive=True))
        await looked(pauses)
        assert pipe.generation.catalog.lookup("a.wipe").annotations.destructive
    assert set(pauses.asked) == {PAUSE_S}


@pytest.mark.requirement("RTE-4")
async def test_an_approval_in_another_process_gives_the_tool_back(tmp_path: Path) -> None:
    pauses = Pauses()
    async with (
        site(tmp_path, servers("a"), state=True, a=wiping(destructive=True)) as daemon,
        site(tmp_path, servers("a"), state=True, a=wiping(destructive=True)) as pipe,
        following(pipe, pauses),
    ):
        for place in (daemon, pipe):
            await lists(place, wiping(changed=True, destructive=True))
        assert pipe.tools == []
        await daemon.approvals.approve([each.seen for each in daemon.generation.servers.waiting])
        await looked(pauses)
        assert pipe.tools == ["a.wipe"]
        number = pipe.generation.number
        await looked(pauses)
        assert pipe.generation.number == number


@pytest.mark.requirement("RTE-4")
async def test_what_fails_to_come_into_force_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = Pauses()
    async with (
        site(tmp_path, servers("a"), state=True, a=wiping()) as daemon,
        site(tmp_path, servers("a"), state=True, a=wiping()) as pipe,
        following(pipe, pauses),
    ):
        await lists(daemon, wiping(destructive=True))
        with monkeypatch.context() as patch:
            patch.delattr(pipe.live.__class__, "refresh")
            await looked(pauses)
        assert not pipe.generation.catalog.lookup("a.wipe").annotations.destructive
        await looked(pauses)
        assert pipe.generation.catalog.lookup("a.wipe").annotations.destructive


@pytest.mark.requirement("REL-9")
async def test_what_is_revoked_elsewhere_is_revoked_in_a_runtime_that_is_open_and_lifted_again(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "a.wipe")
    text = '[handlers]\npaths = ["tools"]\n[runtime]\nrecheck_s = 0.05\n'
    async with opened(tmp_path, text) as runtime:
        brake = open_revocations(tmp_path / ".session-runtime")
        await brake.revoke("a.*")
        await until(lambda: bool(runtime.brake.list()))
        [tool] = [each for each in runtime.tools() if each["name"] == "a.wipe"]
        await brake.lift("a.*")
        await until(lambda: not runtime.brake.list())
    assert tool["revoked"]
