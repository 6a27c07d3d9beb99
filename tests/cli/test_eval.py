"""``eval`` tells how well the right tools are found, for people, for programs and for a pipeline."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from session_runtime.cli import exits
from tests.cli.conftest import Done, Run
from tests.support import write_handler
from tests.system.server_config import table

CONFIG = '[handlers]\npaths = ["tools"]\nbundled = false\n'
CASES: list[dict[str, Any]] = [
    {"id": "one", "kind": "short", "query": "forecast", "gold": ["weather.forecast"]},
    {"kind": "long", "query": "please play me a song", "gold": ["music.play"]},
    {"kind": "long", "query": "will it rain", "gold": ["weather.forecast"]},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A configuration with two tools, and three cases of which one is missed."""
    (tmp_path / "config.toml").write_text(CONFIG)
    write_handler(tmp_path / "tools", "weather.forecast", description="Tells the weather.")
    write_handler(tmp_path / "tools", "music.play", description="Plays a song.")
    write(tmp_path / "cases.jsonl", CASES)
    return tmp_path


def write(path: Path, lines: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def rows(done: Done) -> list[list[str]]:
    """The table, with times and tokens left out, as they depend on the machine and the wording."""
    lines = [line.split() for line in done.out.splitlines()]
    return [
        line[:-3] + line[-1:]
        for line in lines
        if len(line) > 3 and re.fullmatch(r"\d+\.\d", line[-1])
    ]


def data(done: Done) -> Any:
    return json.loads(done.out)


def test_the_figures_come_by_kind_and_over_all_with_what_was_missed(run: Run, folder: Path) -> None:
    done = run("eval", "cases.jsonl")
    assert (done.code, done.err) == (exits.OK, "")
    assert rows(done) == [
        ["short", "1", "100.0", "100.0", "100.0", "100.0", "100.0", "0.0"],
        ["long", "2", "50.0", "50.0", "50.0", "50.0", "50.0", "0.0"],
        ["all", "3", "66.7", "66.7", "66.7", "66.7", "66.7", "0.0"],
    ]
    assert done.out.splitlines()[-2:] == [
        "nothing wanted among the first 5 in 1 of 3 cases:",
        "  line 3 'will it rain': wanted weather.forecast, first is nothing",
    ]


def test_hints_of_the_catalogue_count(run: Run, folder: Path) -> None:
    path = folder / "tools" / "weather" / "forecast" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"runtime": {"search_hints": ["rain"]}}))
    assert rows(run("eval", "cases.jsonl"))[-1][2] == "100.0"


@pytest.mark.requirement("NET-7b")
@pytest.mark.requirement("OPS-2")
def test_programs_get_everything_as_json(run: Run, folder: Path) -> None:
    told = data(run("eval", "cases.jsonl", "--json"))
    assert (told["name"], told["tools"], told["unknown"]) == ("config.toml", 2, [])
    assert list(told["kinds"]) == ["short", "long"]
    times_and_tokens = {key: told["all"].pop(key) for key in ("median_ms", "tokens")}
    assert min(times_and_tokens.values()) > 0
    assert told["all"] == {
        "cases": 3,
        **dict.fromkeys(("hit_1", "hit_5", "recall_1", "recall_5", "ndcg_5"), 66.6667),
        "wasted": 0.0,
    }
    assert told["cases"][0].pop("tokens") > 0
    assert told["cases"][0] == {
        "line": 1,
        **CASES[0],
        "found": ["weather.forecast"],
        "loaded": ["weather.forecast"],
        "ranks": {"weather.forecast": 1},
    }


def test_a_pipeline_can_ask_for_a_least_recall(run: Run, folder: Path) -> None:
    assert run("eval", "cases.jsonl", "--fail-under", "66.6").code == exits.OK
    done = run("eval", "cases.jsonl", "--fail-under", "67", "--json")
    assert (done.code, done.err) == (exits.FAILED, "error: R@5 is 66.67, below 67\n")
    assert data(done)["all"]["cases"] == 3
    for nonsense in ("101", "-1", "nan"):
        assert run("eval", "cases.jsonl", "--fail-under", nonsense).code == exits.USAGE


def test_a_wanted_name_that_no_tool_has_is_told_with_a_near_one(run: Run, folder: Path) -> None:
    write(folder / "cases.jsonl", [*CASES, {"query": "x", "gold": ["weather.forcast", "nope"]}])
    done = run("eval", "cases.jsonl")
    assert done.code == exits.OK
    assert done.err.splitlines() == [
        "warning: cases.jsonl:4: no tool 'weather.forcast'; did you mean 'weather.forecast'?",
        "warning: cases.jsonl:4: no tool 'nope'",
        "warning: wanted names that no tool has: 2, in 1 of 4 cases; they count as not found",
    ]
    assert rows(done)[-1][:3] == ["all", "4", "50.0"]
    assert data(run("eval", "cases.jsonl", "--json"))["unknown"] == [
        {"line": 4, "name": "weather.forcast", "nearest": "weather.forecast"},
        {"line": 4, "name": "nope", "nearest": None},
    ]


def test_two_configurations_stand_side_by_side_with_the_cases_that_changed(
    run: Run, folder: Path
) -> None:
    (folder / "old.toml").write_text(CONFIG + 'disabled = ["music.*"]\n')
    done = run("eval", "cases.jsonl", "--against", "old.toml")
    assert [row[:4] for row in rows(done)] == [
        ["short", "old.toml", "1", "100.0"],
        ["short", "config.toml", "1", "100.0"],
        ["long", "old.toml", "2", "0.0"],
        ["long", "config.toml", "2", "50.0"],
        ["all", "old.toml", "3", "33.3"],
        ["all", "config.toml", "3", "66.7"],
    ]
    assert done.out.splitlines()[-3:] == [
        "better: 1",
        "  line 2 'please play me a song': music.play - -> 1",
        "worse: 0",
    ]


def test_a_comparison_as_json_has_both_and_what_changed(run: Run, folder: Path) -> None:
    (folder / "new.toml").write_text(CONFIG + 'disabled = ["music.*"]\n')
    told = data(
        run("eval", "cases.jsonl", "--config", "new.toml", "--against", "config.toml", "--json")
    )
    assert (told["name"], told["against"]["name"]) == ("new.toml", "config.toml")
    assert (told["all"]["hit_1"], told["against"]["all"]["hit_1"]) == (33.3333, 66.6667)
    assert told["better"] == []
    assert told["worse"] == [
        {
            "line": 2,
            "id": "",
            "query": "please play me a song",
            "before": {"music.play": 1},
            "after": {"music.play": None},
        }
    ]


def test_tools_can_come_from_a_file_under_the_settings_of_a_configuration(
    run: Run, folder: Path
) -> None:
    write(
        folder / "tools.jsonl",
        [
            {"name": "weather.forecast", "description": "Tells of rain."},
            {"name": "music.play", "description": "Plays a song."},
            {"name": "music.play", "description": "Plays it again."},
        ],
    )
    given = ("eval", "cases.jsonl", "--catalogue", "tools.jsonl")
    done = run(*given)
    assert (
        done.err == "warning: tools.jsonl:3: 'music.play' is there already: the first one counts\n"
    )
    assert rows(done)[-1][:4] == ["all", "3", "100.0", "100.0"]
    (folder / "other.toml").write_text("[search]\ndescription = 0\n")
    against = data(run(*given, "--against", "other.toml", "--json"))["against"]
    assert (against["tools"], against["all"]["hit_1"]) == (2, 66.6667)


def test_an_identity_finds_its_own_tools_only(run: Run, folder: Path) -> None:
    rule = '[access.rules.guests]\nroles = ["guest"]\ndeny = ["music.*"]\n'
    (folder / "config.toml").write_text(CONFIG + rule)
    guest = ("--user", "u", "--role", "guest")
    told = data(run("eval", "cases.jsonl", "--json", *guest))
    assert (told["tools"], told["cases"][1]["found"]) == (1, [])
    assert told["unknown"] == [{"line": 2, "name": "music.play", "nearest": None}]
    done = run("eval", "cases.jsonl", "--catalogue", "cases.jsonl", *guest)
    assert (done.code, done.out) == (exits.USAGE, "")


def test_a_wrong_line_ends_it_before_anything_is_opened(run: Run, folder: Path) -> None:
    (folder / "config.toml").write_text("[nonsense]\n")
    (folder / "cases.jsonl").write_text('{"query": "q", "gold": ["a"]}\n{"gold": ["a"]}\n')
    done = run("eval", "cases.jsonl")
    assert (done.code, done.out, done.err) == (
        exits.USAGE,
        "",
        "error: cases.jsonl:2: query is missing\n",
    )


def test_tools_of_a_server_that_is_not_there_are_not_measured(run: Run, folder: Path) -> None:
    server = table("far", command="/nowhere/at-all")
    (folder / "config.toml").write_text(CONFIG + server)
    done = run("eval", "cases.jsonl")
    assert (done.code, done.out) == (exits.UNAVAILABLE, "")
    assert "the tools of far are not known" in done.err


def test_queries_cannot_take_over_the_terminal(run: Run, folder: Path) -> None:
    write(
        folder / "cases.jsonl",
        [{"query": "zz\x1b[2J\nall 9", "gold": ["x\x1b[2J"], "kind": "\x1b"}],
    )
    done = run("eval", "cases.jsonl")
    assert "\x1b" not in done.out + done.err


def test_a_case_is_missed_only_if_nothing_wanted_is_among_the_best(run: Run, folder: Path) -> None:
    query = {"query": "weather", "gold": ["music.weather"]}
    write_handler(folder / "tools", "music.weather", description="Plays rain and wind all day.")
    write(folder / "cases.jsonl", [query, {"query": "weather", "gold": ["weather.forecast"]}])
    done = run("eval", "cases.jsonl")
    assert rows(done) == [["all", "2", "50.0", "100.0", "50.0", "100.0", "81.5", "1.0"]]
    assert len(done.out.splitlines()) == 2


def test_only_the_tools_that_moved_are_told_of_a_changed_case(run: Run, folder: Path) -> None:
    both = ["weather.forecast", "music.play"]
    write(folder / "cases.jsonl", [{"query": "weather forecast and play", "gold": both}])
    (folder / "old.toml").write_text(CONFIG + 'disabled = ["music.*"]\n')
    lines = run("eval", "cases.jsonl", "--against", "old.toml").out.splitlines()
    assert lines[-3:-1] == [
        "better: 1",
        "  line 1 'weather forecast and play': music.play - -> 2",
    ]


def test_long_lists_of_cases_are_cut(run: Run, folder: Path) -> None:
    write(folder / "cases.jsonl", [{"query": "zzzz " * 99, "gold": ["music.play"]}] * 23)
    lines = run("eval", "cases.jsonl").out.splitlines()
    assert lines[-1] == "  and 3 more: --json tells all"
    assert max(map(len, lines)) < 160
