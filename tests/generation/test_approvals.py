"""A destructive tool of a server that changes is left out until an operator approved its new form (RTE-4)."""

from pathlib import Path

import pytest

from session_runtime.app.approvals import ToolApproval
from session_runtime.errors import PermanentError, RequestError
from session_runtime.handler import HandlerContext
from session_runtime.mcp.base import Listing
from session_runtime.types import Identity
from tests.generation.sites import Site, servers, site
from tests.mcp.links import definition, listing

WIDER = {"type": "object", "properties": {"all": {"type": "boolean"}}}
KEPT = {"not_kept": 0, "trouble": None}
PATH = {"type": "object", "properties": {"path": {}}}


def wiping(*, changed: bool = False, destructive: bool = True) -> Listing:
    schema = WIDER if changed else None
    return listing("read", definition("wipe", None, schema, destructive=destructive))


def approval(place: Site) -> ToolApproval:
    return ToolApproval(place.approvals, lambda: place.generation, place.live)


def digest_of(place: Site) -> str:
    """The form in which the one tool waits."""
    [waiting] = approval(place).status()["waiting"]
    return str(waiting["digest"])


async def lists(place: Site, found: Listing) -> None:
    place.board.last("a").lists(found)
    await place.live.refresh("servers")


@pytest.mark.requirement("RTE-4")
async def test_a_destructive_tool_that_changed_waits_and_the_others_go_on(tmp_path: Path) -> None:
    async with site(tmp_path, servers("a"), a=wiping()) as place:
        assert place.tools == ["a.read", "a.wipe"]
        await lists(place, wiping(changed=True))
        assert place.tools == ["a.read"]
        assert [
            (bad.name, bad.place, bad.reason) for bad in place.generation.catalog.quarantined
        ] == [
            (
                "a.wipe",
                "mcp.servers.a",
                "it is destructive, and its parameters or its result changed since it was approved:"
                " session-runtime tools approve a.wipe shows how, and takes it",
            )
        ]
        [waiting] = place.generation.servers.waiting
        told = {"name": "a.wipe", "server": "a", "tool": "wipe", "digest": waiting.seen.digest}
        assert approval(place).status() == {"waiting": [told], "drifted": 0, **KEPT}


@pytest.mark.requirement("RTE-4")
async def test_what_is_to_be_approved_is_shown_beside_what_it_was(tmp_path: Path) -> None:
    async with site(tmp_path, servers("a"), state=True, a=wiping()) as place:
        await lists(place, wiping(changed=True, destructive=False))
    async with site(tmp_path, servers("a"), state=True, a=wiping(changed=True)) as place:
        shown = approval(place).show("a.wipe")
        common = {"output": None, "destructive": True}
        assert shown == {
            "name": "a.wipe",
            "forms": [
                {
                    "server": "a",
                    "tool": "wipe",
                    "digest": digest_of(place),
                    "before": {"parameters": {"type": "object", "properties": {}}, **common},
                    "now": {"parameters": WIDER, **common},
                }
            ],
        }
        with pytest.raises(RequestError, match=r"no tool 'a\.read' waits for an approval"):
            approval(place).show("a.read")


@pytest.mark.requirement("RTE-4")
async def test_only_the_form_that_was_looked_at_is_approved(tmp_path: Path) -> None:
    other = definition("wipe", None, PATH, destructive=True)
    async with site(tmp_path, servers("a"), a=wiping()) as place:
        await lists(place, wiping(changed=True))
        looked_at = digest_of(place)
        await lists(place, listing("read", other))
        assert digest_of(place) != looked_at
        with pytest.raises(RequestError, match=f"but in {digest_of(place)}") as raised:
            await approval(place).approve("a.wipe", looked_at, "ops")
        assert (raised.value.code, place.tools) == ("request.other_form", ["a.read"])
        told = await approval(place).approve("a.wipe", digest_of(place), "ops")
        assert (told["approved"], place.tools) == (["a.wipe"], ["a.read", "a.wipe"])
        assert place.generation.servers.waiting == ()


@pytest.mark.requirement("RTE-4")
async def test_what_changes_again_while_it_is_approved_is_not_told_to_be_approved(
    tmp_path: Path,
) -> None:
    async with site(tmp_path, servers("a"), a=wiping()) as place:
        await lists(place, wiping(changed=True))
        looked_at = digest_of(place)
        other = definition("wipe", None, PATH, destructive=True)
        place.board.last("a").lists(listing("read", other))
        told = await approval(place).approve("a.wipe", looked_at, "ops")
        assert (told["approved"], place.tools) == ([], ["a.read"])
        assert digest_of(place) != looked_at


@pytest.mark.requirement("RTE-4")
@pytest.mark.parametrize("all_of_a_server", [False, True])
async def test_once_approved_it_is_there_in_its_new_form(
    tmp_path: Path, all_of_a_server: bool
) -> None:
    async with site(tmp_path, servers("a"), a=wiping()) as place:
        await lists(place, wiping(changed=True))
        if all_of_a_server:
            told = await approval(place).approve_all("a", "ops")
        else:
            told = await approval(place).approve("a.wipe", digest_of(place), "ops")
        assert (told["approved"], told["receipt"]["verdict"]) == (["a.wipe"], "applied")
        assert place.generation.catalog.lookup("a.wipe").parameters == WIDER
        assert place.generation.catalog.quarantined == ()


@pytest.mark.requirement("RTE-4")
@pytest.mark.parametrize("destructive", [True, False])
async def test_an_ask_that_began_before_does_not_call_a_destructive_tool_in_its_new_form(
    tmp_path: Path, destructive: bool
) -> None:
    async with site(tmp_path, servers("a"), a=wiping(destructive=destructive)) as place:
        old = place.generation.catalog
        [route] = old.sources["mcp:a"].routes(old.lookup("a.wipe"), Identity())
        await lists(place, wiping(changed=True, destructive=destructive))
        if destructive:
            with pytest.raises(PermanentError, match="is destructive and changed"):
                await route.run({}, HandlerContext())
        else:
            assert await route.run({}, HandlerContext())


async def test_going_back_to_the_approved_form_needs_nobody(tmp_path: Path) -> None:
    async with site(tmp_path, servers("a"), a=wiping()) as place:
        await lists(place, wiping(changed=True))
        await lists(place, wiping())
        assert place.tools == ["a.read", "a.wipe"]


async def test_what_the_operator_calls_destructive_waits_too(tmp_path: Path) -> None:
    text = servers("a", a="[mcp.servers.a.tools.wipe]\ndestructive = true\n")
    async with site(tmp_path, text, a=wiping(destructive=False)) as place:
        await lists(place, wiping(changed=True, destructive=False))
        assert place.tools == ["a.read"]


@pytest.mark.requirement("RTE-4")
async def test_another_form_of_a_harmless_tool_is_told_in_the_receipt_and_counted(
    tmp_path: Path,
) -> None:
    async with site(tmp_path, servers("a"), a=wiping(destructive=False)) as place:
        place.board.last("a").lists(wiping(changed=True, destructive=False))
        receipt = await place.live.refresh("servers")
        assert receipt.to_json()["tools"] == {"changed": ["a.wipe"]}
        assert str(receipt.warnings[0]) == (
            "mcp.servers.a.tools: 'wipe' has other parameters or another result than when it was last seen"
        )
        assert approval(place).status() == {"waiting": [], "drifted": 1, **KEPT}
        assert place.tools == ["a.read", "a.wipe"]


@pytest.mark.parametrize(
    ("name", "server", "told"),
    [
        ("a.wip", "", "no tool 'a.wip' waits for an approval; did you mean 'a.wipe'?"),
        ("", "b", "no tool of the server 'b' waits for an approval; "),
    ],
)
async def test_what_does_not_wait_cannot_be_approved(
    tmp_path: Path, name: str, server: str, told: str
) -> None:
    async with site(tmp_path, servers("a"), a=wiping()) as place:
        await lists(place, wiping(changed=True))
        approving = (
            approval(place).approve(name, digest_of(place), "ops")
            if name
            else approval(place).approve_all(server, "ops")
        )
        with pytest.raises(RequestError) as raised:
            await approving
        assert str(raised.value).startswith(told)
        assert raised.value.code == "request.nothing_to_approve"


async def test_what_does_not_come_into_force_is_not_remembered(tmp_path: Path) -> None:
    async with site(tmp_path, servers("a"), a=listing("read")) as place:
        place.board.last("a").lists(wiping())
        prepared = await place.builder.prepare(place.live.snapshot)
        await prepared.abort()
        await lists(place, wiping(changed=True))
        assert place.tools == ["a.read", "a.wipe"]


@pytest.mark.requirement("RTE-9c")
async def test_a_tool_that_was_called_destructive_in_a_form_that_waits_counts_as_that_in_all_forms(
    tmp_path: Path,
) -> None:
    third = listing("read", definition("wipe", None, PATH, destructive=False))
    async with site(tmp_path, servers("a"), a=wiping(destructive=False)) as place:
        await lists(place, wiping(changed=True))
        await lists(place, third)
        assert place.tools == ["a.read"]
        await lists(place, wiping(destructive=False))
        assert place.tools == ["a.read", "a.wipe"]
        assert place.generation.catalog.lookup("a.wipe").annotations.destructive


@pytest.mark.requirement("RTE-9c")
async def test_what_another_process_saw_or_approved_counts_for_the_next_list(
    tmp_path: Path,
) -> None:
    async with (
        site(tmp_path, servers("a"), state=True, a=wiping(destructive=False)) as daemon,
        site(tmp_path, servers("a"), state=True, a=wiping(destructive=False)) as pipe,
    ):
        await lists(daemon, wiping(changed=True))
        await approval(daemon).approve("a.wipe", digest_of(daemon), "ops")
        third = listing("read", definition("wipe", None, PATH, destructive=False))
        await lists(pipe, third)
        assert pipe.tools == ["a.read"]
        await lists(pipe, wiping(changed=True, destructive=False))
        assert pipe.generation.catalog.lookup("a.wipe").annotations.destructive
