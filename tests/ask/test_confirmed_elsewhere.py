"""A yes for a tool of one server counts at that server alone, connected to in the way that it was."""

from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, AskResult, Identity
from session_runtime.ask.service import AskService
from session_runtime.mcp.base import Listing
from tests.ask.confirming import following
from tests.ask.test_confirmed import forget
from tests.generation.sites import Site, servers, site
from tests.mcp.links import definition, listing
from tests.support import calls, says, scripted

STAFF = Identity("ann", frozenset({"staff"}))
CREDENTIAL = '[mcp.servers.db.credentials.staff]\nroles = ["staff"]\n'


def wiping() -> Listing:
    return listing("look", definition("wipe", destructive=True))


def configured(folder: Path, *names: str, **more: str) -> str:
    script = scripted(folder, calls(("db.wipe", {})), says("done"))
    return f"{servers(*names, **more)}{script}"


async def asked(
    place: Site, edited: str, identity: Identity = STAFF
) -> tuple[AskResult, list[str]]:
    """Ask, edit the configuration, say yes; gives the result, and at which servers the tool ran."""
    ran: list[str] = []
    service = AskService(place.builder.generations, forget, {})
    first = await service.ask(AskRequest("wipe it", identity=identity))
    assert first.outcome == "needs_confirmation"
    await place.edit(edited)
    for link in place.board.opened:
        link.answer = _recording(ran, link.wanted.name)
    return await service.ask(following(first, identity=identity)), ran


def _recording(ran: list[str], name: str) -> Any:
    async def answer(*_: object) -> object:
        ran.append(name)
        return "gone"

    return answer


def texts(result: AskResult) -> list[str]:
    return [str(message.content) for message in result.new_messages if message.role == "tool"]


CHANGES = {
    "command": "COMMAND",
    "arguments": 'args = ["--database", "production"]\n',
    "environment": 'env = { DATABASE = "production" }\n',
    "folder": 'cwd = "/"\n',
}


@pytest.mark.requirement("RTE-9b")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_server_that_is_another_one_meanwhile_gets_no_call_that_was_confirmed_before(
    tmp_path: Path, change: str
) -> None:
    async with site(tmp_path, configured(tmp_path, "db"), db=wiping()) as place:
        edited = configured(tmp_path, "db", db="" if change == "COMMAND" else change)
        if change == "COMMAND":
            edited = edited.replace('command = "x"', 'command = "y"')
        result, ran = await asked(place, edited)
    assert texts(result)[0].startswith(
        "db.wipe was not run and nothing was changed: the tool is not"
    )
    assert (result.outcome, ran) == ("answered", [])


@pytest.mark.requirement("RTE-9b")
@pytest.mark.parametrize(("identity", "runs"), [(STAFF, []), (Identity("bob"), ["db"])])
async def test_it_is_the_session_of_the_caller_that_has_to_be_the_same(
    tmp_path: Path, identity: Identity, runs: list[str]
) -> None:
    before = configured(tmp_path, "db", db=CREDENTIAL)
    lists = {"db": wiping(), "db/staff": wiping()}
    async with site(tmp_path, before, **lists) as place:
        other = f'{CREDENTIAL}env = {{ TOKEN = "another" }}\n'
        _, ran = await asked(place, configured(tmp_path, "db", db=other), identity)
    assert ran == runs


@pytest.mark.requirement("RTE-9b")
async def test_of_equal_servers_too_only_those_count_that_there_were(tmp_path: Path) -> None:
    group = {"one": 'group = "db"\n', "two": 'group = "db"\npriority = 1\n'}
    lists = {"one": wiping(), "two": wiping()}
    async with site(tmp_path, configured(tmp_path, "one", **group), **lists) as place:
        result, ran = await asked(place, configured(tmp_path, "one", "two", **group))
    assert (texts(result)[0][:19], ran) == ("db.wipe was not run", [])


@pytest.mark.requirement("RTE-9b")
async def test_what_does_not_change_the_place_changes_no_confirmation(tmp_path: Path) -> None:
    async with site(tmp_path, configured(tmp_path, "db"), db=wiping()) as place:
        edited = configured(tmp_path, "db", db="[mcp.servers.db.tools.look]\nenabled = false\n")
        result, ran = await asked(place, edited)
        assert "db.look" not in place.tools
    assert (result.outcome, ran) == ("answered", ["db"])
