"""Servers of tools in generations: what is waited for, kept, published anew and let go (RTE-1, RTE-4)."""

import asyncio
from pathlib import Path

import pytest

from session_runtime.generation.unavailable import unavailable_to
from session_runtime.types import LOCAL, Identity
from tests.generation.sites import servers, site
from tests.mcp.links import definition, listing
from tests.support import write_handler


@pytest.mark.requirement("RTE-1")
async def test_a_start_has_the_tools_of_good_servers_and_waits_for_a_stuck_one_no_longer_than_told(
    tmp_path: Path,
) -> None:
    text = servers("good", "dead", "stuck", wait_s=0.01)
    async with site(tmp_path, text, good=listing("x"), dead=None) as place:
        assert place.tools == ["good.x"]
        assert place.generation.servers.missing == ("dead", "stuck")
        place.board.last("stuck").lists(listing("late"))
        receipt = await place.live.refresh("servers")
        assert place.tools == ["good.x", "stuck.late"]
    assert (receipt.trigger, receipt.verdict) == ("servers", "applied")
    assert receipt.tools == {"added": ("stuck.late",)}
    assert receipt.changes == ()


@pytest.mark.requirement("RTE-1")
@pytest.mark.parametrize("list_changed", [False, True])
async def test_nothing_waits_behind_an_edit_that_waits_for_a_stuck_server(
    tmp_path: Path, list_changed: bool
) -> None:
    async with site(tmp_path, servers("a"), a=listing("x")) as place:
        adding = asyncio.create_task(place.edit(servers("a", "stuck", wait_s=600.0)))
        async with asyncio.timeout(20):
            await place.board.opens(2)
            if list_changed:
                place.board.last("a").lists(listing("y"))
                after = await place.live.refresh("servers")
            else:
                deny = '[access.rules.r]\ndeny = ["a.x"]\n'
                after = await place.edit(servers("a", "stuck", wait_s=600.0) + deny)
                assert after.verdict == "applied"
            assert (await adding).verdict == "applied"
        assert place.tools == (["a.y"] if list_changed else ["a.x"])
        assert place.board.alive == ["a", "stuck"]


@pytest.mark.requirement("RTE-4")
async def test_what_a_server_lists_anew_is_for_new_generations_and_the_receipt_names_it(
    tmp_path: Path,
) -> None:
    other = definition("y", None, {"type": "object", "properties": {"q": {"type": "string"}}})
    async with site(tmp_path, servers("a"), a=listing("x", "y", "z")) as place:
        before = place.generation
        place.board.last("a").lists(listing("w", "x", other))
        receipt = await place.live.refresh("servers")
        after = place.generation
    assert receipt.tools == {"added": ("a.w",), "changed": ("a.y",), "removed": ("a.z",)}
    assert [spec.name for spec in before.catalog.specs] == ["a.x", "a.y", "a.z"]
    assert before.servers.sources[0].specs == before.catalog.specs
    assert after.catalog.lookup("a.x") is before.catalog.lookup("a.x")
    assert after.catalog.checks["a.x"] is before.catalog.checks["a.x"]
    assert after.handlers is before.handlers


@pytest.mark.requirement("RTE-4")
async def test_the_same_list_again_is_no_new_generation(tmp_path: Path) -> None:
    async with site(tmp_path, servers("a"), a=listing("x")) as place:
        place.board.last("a").lists(listing("x"))
        receipt = await place.live.refresh("servers")
    assert (receipt.verdict, receipt.generation) == ("unchanged", 1)


@pytest.mark.requirement("RTE-2")
async def test_a_list_that_only_one_credential_sees_changed_is_a_new_generation(
    tmp_path: Path,
) -> None:
    credential = '[mcp.servers.a.credentials.boss]\nroles = ["boss"]\n'
    answers = {"a": listing("x"), "a/boss": listing("y")}
    async with site(tmp_path, servers("a", a=credential), **answers) as place:
        boss = Identity(roles=frozenset({"boss"}))
        before = place.generation
        place.board.last("a/boss").lists(listing("x", "y"))
        receipt = await place.live.refresh("servers")
        masks = [each.policy.mask(boss) for each in (before, place.generation)]
    assert (receipt.verdict, dict(receipt.tools)) == ("applied", {})
    assert masks == [0b10, 0b11]


async def test_lists_come_into_force_while_the_file_says_what_cannot_be_used(
    tmp_path: Path,
) -> None:
    async with site(tmp_path, servers("a"), a=listing("x")) as place:
        rejected = await place.edit("[skills]\nx = 1\n")
        place.board.last("a").lists(listing("y"))
        receipt = await place.live.refresh("servers")
        assert (rejected.verdict, receipt.verdict) == ("rejected", "applied")
        assert place.tools == ["a.y"]
        assert place.live.rejected_since == rejected.at
        assert place.live.rejected == rejected


@pytest.mark.requirement("REL-1")
async def test_adding_changing_and_removing_a_server_act_on_the_next_generation(
    tmp_path: Path,
) -> None:
    answers = {"a": listing("x"), "b": listing("y"), "c": listing("z")}
    async with site(tmp_path, servers("a", "b"), **answers) as place:
        receipt = await place.edit(servers("b", "c", b='args = ["new"]'))
        assert receipt.tools == {"added": ("c.z",), "removed": ("a.x",)}
        assert place.tools == ["b.y", "c.z"]
        opened = [link.wanted.name for link in place.board.opened]
        await asyncio.wait_for(place.board.opened[0].closed.wait(), 20)
        assert opened == ["a", "b", "b", "c"]
        assert place.board.alive == ["b", "c"]


async def test_a_generation_with_a_running_ask_keeps_the_connections_that_an_edit_took_away(
    tmp_path: Path,
) -> None:
    async with site(tmp_path, servers("a"), a=listing("x")) as place:
        with place.builder.generations.pin():
            await place.edit(servers())
            assert place.board.alive == ["a"]
        await asyncio.wait_for(place.board.last("a").closed.wait(), 20)


@pytest.mark.requirement("RTE-4")
async def test_a_server_whose_settings_changed_keeps_its_list_until_the_new_connection_has_one(
    tmp_path: Path,
) -> None:
    async with site(tmp_path, servers("a"), a=listing("x")) as place:
        del place.board.answers["a"]
        receipt = await place.edit(servers("a", wait_s=0.01, a='args = ["new"]'))
        assert (receipt.verdict, place.tools) == ("applied", ["a.x"])
        (status,) = place.generation.servers.status()
        assert (status["state"], status["stale"]) == ("connecting", True)
        place.board.last("a").lists(listing("y"))
        await place.live.refresh("servers")
        assert place.tools == ["a.y"]


async def test_to_try_an_edit_starts_and_connects_to_nothing(tmp_path: Path) -> None:
    async with site(tmp_path, servers("a"), a=listing("x")) as place:
        text = servers("a", "b", a='args = ["new"]') + "[trace]\nenabled = false\n"
        receipt = await place.live.validate(text.encode())
        assert [link.wanted.name for link in place.board.opened] == ["a"]
        assert (receipt.verdict, dict(receipt.tools)) == ("applied", {})
        assert [told for told in receipt.warnings if "mcp" in str(told)] == []
        assert place.board.alive == ["a"]


async def test_an_edit_that_cannot_be_used_leaves_no_new_connection_open(tmp_path: Path) -> None:
    bad = '[models.main]\nwire = "scripted"\nscript = "gone.json"\n'
    async with site(tmp_path, servers("a"), a=listing("x"), b=listing("y")) as place:
        receipt = await place.edit(servers("a", "b") + bad)
        assert receipt.verdict == "rejected"
        assert place.board.alive == ["a"]


@pytest.mark.requirement("TS-2")
@pytest.mark.parametrize(
    ("access", "told"),
    [
        ("", ("listed", "unheard")),
        ('[access]\ndefault = "deny"\n', ()),
        ('[access.rules.r]\ndeny = ["unheard.*"]\n', ("listed",)),
        ('[access.rules.r]\nusers = ["eve"]\ndeny = ["listed.*"]\n', ("unheard",)),
        ('[access]\ndefault = "deny"\n[access.rules.r]\nallow = ["unheard.*"]\n', ("unheard",)),
    ],
)
async def test_only_who_may_use_the_tools_of_a_server_that_is_down_is_told_its_name(
    tmp_path: Path, access: str, told: tuple[str, ...]
) -> None:
    text = servers("fine", "listed", "unheard") + access
    answers = {"fine": listing("x"), "listed": listing("y"), "unheard": None}
    async with site(tmp_path, text, **answers) as place:
        place.board.last("listed").fails()
        identity = Identity("eve")
        mask = place.generation.policy.mask(identity)
        assert unavailable_to(place.generation, LOCAL, identity, mask) == told


@pytest.mark.requirement("RTE-3")
async def test_a_group_is_unavailable_only_when_all_of_its_servers_are(tmp_path: Path) -> None:
    text = servers("one", "two", one='group = "db"', two='group = "db"')
    async with site(tmp_path, text, one=listing("x"), two=listing("x")) as place:
        anybody = Identity()
        mask = place.generation.policy.mask(anybody)
        place.board.last("one").fails()
        assert unavailable_to(place.generation, LOCAL, anybody, mask) == ()
        assert place.generation.servers.missing == ("one",)
        assert place.generation.servers.states() == {"mcp:group:db": "ready"}
        place.board.last("two").fails()
        assert unavailable_to(place.generation, LOCAL, anybody, mask) == ("db",)
        assert place.generation.servers.states() == {"mcp:group:db": "down"}


@pytest.mark.requirement("RTE-3")
async def test_no_server_takes_the_name_of_a_handler_that_is_broken_just_now(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "good")
    (write_handler(tmp_path / "tools", "pay") / "config.json").write_text("{")
    text = servers("a", a='naming = "bare"').replace("[handlers]", '[handlers]\npaths = ["tools"]')
    async with site(tmp_path, text, a=listing("pay", "x")) as place:
        assert place.tools == ["good", "x"]
        quarantined = place.generation.catalog.quarantined
        assert sorted((bad.name, bad.place) for bad in quarantined)[1] == ("pay", "mcp.servers.a")


@pytest.mark.requirement("RTE-3")
async def test_what_is_left_out_is_told_once_and_shown_as_long_as_it_lasts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = servers("a", "b", a='naming = "bare"', b='naming = "bare"')
    async with site(tmp_path, text, a=listing("x"), b=listing("x")) as place:
        place.board.last("a").lists(listing("x", "y"))
        await place.live.refresh("servers")
        told = [line for line in caplog.messages if "also exists in" in line]
        assert [line.partition(":")[0] for line in told] == ["tool x is left out"] * 2
        shown = [bad for bad in place.generation.catalog.quarantined if bad.name == "x"]
        assert [bad.place for bad in shown] == ["mcp.servers.a", "mcp.servers.b"]
        place.board.last("b").lists(listing("z"))
        await place.live.refresh("servers")
        assert place.tools == ["x", "y", "z"]
