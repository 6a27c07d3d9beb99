"""What a server once called destructive stays that until the operator takes it back (RTE-9)."""

from pathlib import Path

import pytest

from session_runtime.mcp.base import Listing
from tests.generation.sites import Site, servers, site
from tests.mcp.links import definition, listing

WIDER = {"type": "object", "properties": {"all": {"type": "boolean"}}}


def wiping(*, changed: bool = False, destructive: bool = True) -> Listing:
    schema = WIDER if changed else None
    return listing("read", definition("wipe", None, schema, destructive=destructive))


async def lists(place: Site, found: Listing) -> None:
    place.board.last("a").lists(found)
    await place.live.refresh("servers")


@pytest.mark.requirement("RTE-9c")
@pytest.mark.parametrize("changed", [False, True])
async def test_a_tool_that_its_server_called_destructive_stays_that_when_it_says_so_no_more(
    tmp_path: Path, changed: bool
) -> None:
    async with site(tmp_path, servers("a"), a=wiping()) as place:
        place.board.last("a").lists(wiping(changed=changed, destructive=False))
        receipt = await place.live.refresh("servers")
        [warning] = [str(each) for each in receipt.warnings if "counts as" in str(each)]
        if changed:
            await place.builder._approvals.approve(
                [each.seen for each in place.generation.servers.waiting]
            )
            await lists(place, wiping(changed=changed, destructive=False))
        assert place.generation.catalog.lookup("a.wipe").annotations.destructive
    assert warning == (
        "mcp.servers.a.tools: 'wipe' counts as destructive because it was before, and nobody says so now:"
        " set destructive = false for it to take that back"
    )


@pytest.mark.requirement("RTE-9c")
@pytest.mark.parametrize("says_so_now", [True, False])
async def test_the_operator_takes_back_what_a_server_said_before_but_not_what_it_says(
    tmp_path: Path, says_so_now: bool
) -> None:
    async with site(tmp_path, servers("a"), a=wiping()) as place:
        await lists(place, wiping(destructive=says_so_now))
        words = "[mcp.servers.a.tools.wipe]\ndestructive = false\n"
        await place.edit(servers("a", a=words))
        now = place.generation.catalog.lookup("a.wipe").annotations.destructive
        await place.edit(servers("a"))
        assert place.generation.catalog.lookup("a.wipe").annotations.destructive
    assert now is says_so_now


@pytest.mark.requirement("RTE-9c")
async def test_what_any_session_of_a_server_called_destructive_stays_that(tmp_path: Path) -> None:
    staff = '[mcp.servers.a.credentials.staff]\nroles = ["staff"]\n'
    lists = {"a": wiping(destructive=False), "a/staff": wiping()}
    async with site(tmp_path, servers("a", a=staff), **lists) as place:
        place.board.last("a/staff").lists(wiping(destructive=False))
        await place.live.refresh("servers")
        assert place.generation.catalog.lookup("a.wipe").annotations.destructive
