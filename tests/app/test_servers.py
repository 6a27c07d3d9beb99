"""What operators see of servers, and what they do with them."""

from pathlib import Path

import pytest

from session_runtime.app.metrics import metrics
from session_runtime.app.servers import ServerControl
from session_runtime.errors import RequestError
from session_runtime.registry.lookups import Lookups
from session_runtime.trace.metrics import exposition
from tests.generation.sites import Site, servers, site
from tests.mcp.links import listing

BOSS = '[mcp.servers.a.credentials.boss]\nroles = ["boss"]\n'


def control(place: Site) -> ServerControl:
    return ServerControl(lambda: place.generation, place.live)


def told_of_servers(place: Site, lookups: Lookups) -> list[str]:
    families = metrics(place.builder.generations, place.live, 0, True, lookups.counts())
    lines = exposition(families).splitlines()
    ours = ("session_runtime_server", "session_runtime_tool_lookups")
    return [line for line in lines if line.startswith(ours)]


@pytest.mark.requirement("RTE-1")
@pytest.mark.requirement("REG-5")
async def test_metrics_tell_how_each_server_is_and_what_became_of_called_names(
    tmp_path: Path,
) -> None:
    answers = {"a": listing("x", "y"), "a/boss": listing("x"), "b": None}
    lookups = Lookups()
    for found in ("hit", "hit", "unavailable", "unknown"):
        lookups.add(found)
    async with site(tmp_path, servers("a", "b", a=BOSS), **answers) as place:
        assert told_of_servers(place, lookups) == [
            'session_runtime_tool_lookups_total{found="hit"} 2',
            'session_runtime_tool_lookups_total{found="unavailable"} 1',
            'session_runtime_tool_lookups_total{found="unknown"} 1',
            "session_runtime_servers 2",
            'session_runtime_server_ready{server="a"} 1',
            'session_runtime_server_ready{server="b"} 0',
            'session_runtime_server_tools{server="a"} 2',
            'session_runtime_server_tools{server="b"} 0',
            'session_runtime_server_refused{server="a"} 0',
            'session_runtime_server_refused{server="b"} 0',
            'session_runtime_server_stale{server="a"} 0',
            'session_runtime_server_stale{server="b"} 0',
            'session_runtime_server_calls{server="a"} 0',
            'session_runtime_server_calls{server="b"} 0',
            'session_runtime_server_restarts_total{server="a"} 0',
            'session_runtime_server_restarts_total{server="b"} 0',
        ]
        place.board.last("a/boss").fails()
        assert 'session_runtime_server_ready{server="a"} 0' in told_of_servers(place, lookups)


@pytest.mark.requirement("INT-4")
async def test_the_status_of_a_server_tells_of_each_of_its_sessions(tmp_path: Path) -> None:
    answers = {"a": listing("x", "y"), "a/boss": None}
    session = {
        "state": "ready",
        "since": 1.0,
        "error": None,
        "protocol": None,
        "server": None,
        "version": None,
        "tools": 2,
        "refused": 0,
        "stale": False,
        "calls": 0,
        "failures": 0,
        "restarts": 0,
        "skipped_lines": 0,
        "retry_in_s": None,
        "pid": None,
    }
    error = "it is broken; 'session-runtime tools logs a' shows what it wrote"
    boss = {**session, "name": "boss", "state": "down", "error": error, "tools": 0}
    async with site(tmp_path, servers("a", a='group = "g"\n' + BOSS), **answers) as place:
        assert [*place.generation.servers.status()] == [
            {"id": "mcp:a", "name": "a", "group": "g", **session, "credentials": [boss]}
        ]


@pytest.mark.requirement("RTE-4")
async def test_to_list_a_server_again_asks_each_of_its_sessions_and_puts_in_force_what_they_say(
    tmp_path: Path,
) -> None:
    answers = {"a": listing("x"), "a/boss": listing("x"), "b": listing("z")}
    async with site(tmp_path, servers("a", "b", a=BOSS), **answers) as place:
        place.board.last("a/boss").after_refresh = listing("x", "y")
        told = await control(place).refresh("a")
        assert told["receipt"]["tools"] == {"added": ["a.y"]}
        assert [each["name"] for each in told["servers"]] == ["a"]
        assert [link.refreshes for link in place.board.opened] == [1, 1, 0]


async def test_a_log_is_read_from_its_end_for_each_session(tmp_path: Path) -> None:
    async with site(tmp_path, servers("a", a=BOSS), a=listing("x"), **{"a/boss": None}) as place:
        logs = place.live.snapshot.settings.runtime.state_dir / "mcp"
        logs.mkdir(parents=True)
        (logs / "a.log").write_text("".join(f"line {number}\n" for number in range(50_000)))
        assert await control(place).log("a", 2) == [
            {"credential": None, "lines": ["line 49998", "line 49999"]},
            {"credential": "boss", "lines": []},
        ]
        everything = await control(place).log("a", 1_000_000)
        assert len(everything[0]["lines"]) < 50_000
        assert all(line.startswith("line ") for line in everything[0]["lines"])


@pytest.mark.parametrize("name", ["x", "../a", "A"])
async def test_only_configured_servers_can_be_looked_at(tmp_path: Path, name: str) -> None:
    async with site(tmp_path, servers("a"), a=listing("x")) as place:
        with pytest.raises(RequestError) as caught:
            await control(place).log(name, 1)
        assert caught.value.code == "request.unknown_server"
