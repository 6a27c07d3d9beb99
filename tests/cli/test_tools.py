import json
from pathlib import Path

import pytest

from session_runtime.cli import exits
from tests.cli.conftest import Run
from tests.support import write_handler

RULES = """
[access.rules.guests]
roles = ["guest"]
deny = ["math.*"]
"""
BUNDLED = [
    "end",
    "get_current_time",
    "math.evaluate",
    "notes.add",
    "notes.delete",
    "notes.list",
    "notes.search",
    "results.read",
    "send_message",
]


def names(text: str) -> list[str]:
    return [tool["name"] for tool in json.loads(text)]


@pytest.mark.requirement("INT-5")
def test_all_tools_are_listed_by_name(run: Run) -> None:
    text, data = run("tools", "list"), run("tools", "list", "--json")
    assert [line.split()[0] for line in text.out.splitlines()] == BUNDLED
    assert names(data.out) == BUNDLED
    assert json.loads(data.out)[2].keys() >= {"name", "description", "parameters", "source"}


@pytest.mark.requirement("INT-5")
def test_an_identity_sees_its_own_tools_only(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(RULES)
    guest = ("--user", "u", "--role", "guest")
    assert names(run("tools", "list", "--json").out) == BUNDLED
    assert names(run("tools", "list", "--json", *guest).out) == [
        name for name in BUNDLED if name != "math.evaluate"
    ]
    assert names(run("tools", "search", "evaluate expression", "--json").out) == ["math.evaluate"]
    assert names(run("tools", "search", "evaluate expression", "--json", *guest).out) == []
    assert run("tools", "show", "math.evaluate", *guest).code == exits.USAGE


@pytest.mark.requirement("INT-5")
def test_one_tool_is_shown_with_its_parameters(run: Run) -> None:
    text = run("tools", "show", "math.evaluate").out.splitlines()
    data = json.loads(run("tools", "show", "math.evaluate", "--json").out)
    assert text[0].startswith("math.evaluate (bundled")
    assert "  expression: string, required" in text
    assert data["name"] == "math.evaluate"
    assert data["parameters"]["required"] == ["expression"]


@pytest.mark.requirement("INT-5")
def test_the_values_that_a_parameter_may_have_are_shown(run: Run, tmp_path: Path) -> None:
    properties = {
        "unit": {"type": "string", "enum": ["metric", "imperial", None]},
        "only": {"const": 3},
        "maybe": {"type": ["number", "null"]},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        "either": {"anyOf": [{"type": "integer"}, {"const": "all"}]},
        "open": {},
        "never": False,
        "tricky": {"enum": ["\x1b[2J"]},
        "odd": {"type": "array", "items": [{"type": "string"}]},
        "all": {"$ref": "#/properties/unit"},
    }
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": properties,
        "required": ["unit"],
    }
    write_handler(tmp_path / "tools", "c", parameters=schema)
    (tmp_path / "config.toml").write_text('[handlers]\npaths = ["tools"]\n')
    assert run("tools", "show", "c").out.splitlines()[2:] == [
        '  unit: "metric" or "imperial" or null, required',
        "  only: 3",
        "  maybe: number or null",
        '  tags: array of "a" or "b"',
        '  either: integer or "all"',
        "  open: any",
        "  never: none",
        r'  tricky: "\u001b[2J"',
        "  odd: array",
        "  all: any",
    ]


def test_a_tool_is_shown_with_the_place_where_it_is_registered(run: Run, tmp_path: Path) -> None:
    entry = '[handlers.entries."a.b"]\nimport = "m:f"\ndescription = "Does it."\n'
    (tmp_path / "config.toml").write_text(f'[handlers]\npaths = ["tools"]\n{entry}')
    folder = write_handler(tmp_path / "tools", "c")
    shown = {name: run("tools", "show", name).out.splitlines()[0] for name in ("a.b", "c")}
    assert shown == {
        "a.b": 'a.b (handler, handlers.entries."a.b" (m:f))',
        "c": f"c (handler, {folder})",
    }
    assert json.loads(run("tools", "show", "c", "--json").out)["place"] == str(folder)


def test_an_unknown_tool_is_answered_with_the_nearest(run: Run) -> None:
    done = run("tools", "show", "math.eval")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert done.err == "error: there is no tool 'math.eval'; did you mean 'math.evaluate'?\n"


def test_a_tool_that_is_destructive_is_shown_as_such(run: Run, tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "refund", runtime={"destructive": True})
    (tmp_path / "config.toml").write_text('[handlers]\npaths = ["tools"]\nbundled = false\n')
    shown = run("tools", "show", "refund").out.splitlines()
    assert shown[2] == "destructive: it waits for a confirmation"


def test_what_a_neighbour_in_the_group_and_words_side_by_side_brought_is_explained_in_words(
    run: Run,
) -> None:
    lines = run("tools", "search", "--explain", "list notes").out.splitlines()
    reasons = {line.split(None, 1)[1] for line in lines}
    assert "another tool of its group matches better" in reasons
    assert "list note: side by side in one of its texts" in reasons
    assert not [line for line in lines if line.startswith(" " * 9) and " 0.000 " in line]


def test_an_explained_search_without_a_hit_tells_why(run: Run) -> None:
    done = run("tools", "search", "zzzz", "--explain")
    assert (done.code, done.out, done.err) == (
        0,
        "",
        "nothing found: no tool that may be used here has enough of these words, or of what means the same:"
        " give the tool that is meant search_hints with them\n",
    )


@pytest.mark.requirement("INT-5")
def test_a_search_gives_names_scores_and_parts_in_order(run: Run) -> None:
    found = json.loads(run("tools", "search", "current time", "--json").out)
    assert found[0]["name"] == "get_current_time"
    assert [hit.keys() for hit in found] == [{"name", "score", "parts"}] * len(found)
    assert [hit["score"] for hit in found] == sorted((h["score"] for h in found), reverse=True)
    text = run("tools", "search", "current time").out
    assert [line.split()[1] for line in text.splitlines()] == [hit["name"] for hit in found]


@pytest.mark.requirement("INT-5")
def test_every_part_of_a_score_is_explained_and_they_add_up(run: Run, tmp_path: Path) -> None:
    hints = {"search_hints": ["downpour"], "aliases": ["skylight"]}
    schema = {
        "type": "object",
        "properties": {"town": {"type": "string", "description": "Harbour", "enum": ["Lyon"]}},
    }
    write_handler(tmp_path / "tools", "weather.forecast", parameters=schema, runtime=hints)
    (tmp_path / "config.toml").write_text('[handlers]\npaths = ["tools"]\nbundled = false\n')
    query = "weathr forecast skylight downpour does town harbour lyon"
    whole, *parts = run("tools", "search", query, "--explain").out.splitlines()
    figures = [line.split(None, 1) for line in parts]
    assert whole.split()[1] == "weather.forecast"
    assert sum(float(score) for score, _ in figures) == pytest.approx(
        float(whole.split()[0]), abs=0.01
    )
    assert {reason for _, reason in figures} >= {
        "weathr: a synonym or a correction of it",
        "forecast: in its name",
        "skylight: in its aliases",
        "downpour: in its search_hints or examples",
        "town: in the names of its parameters",
        "harbour: in the descriptions of its parameters",
        "lyon: in the values that its parameters allow",
    }


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("math.evaluate", "the query names it in full"),
        ("mathEvaluate", "the query is another form of its name"),
        ("evaluate math", "every word is in its name, group or aliases"),
    ],
)
def test_how_sure_a_match_is_is_explained_in_words(run: Run, query: str, reason: str) -> None:
    lines = run("tools", "search", query, "--explain", "--limit", "1").out.splitlines()
    assert lines[0].split()[1] == "math.evaluate"
    assert lines[1].split(None, 1)[1] == reason


def test_a_search_without_a_hit_is_empty(run: Run) -> None:
    assert json.loads(run("tools", "search", "zzzz", "--json").out) == []
    done = run("tools", "search", "zzzz")
    assert (done.code, done.out, done.err) == (0, "", "nothing found\n")


@pytest.mark.parametrize("query", ["", "  "])
def test_a_search_for_nothing_is_a_wrong_use_of_the_command(run: Run, query: str) -> None:
    result = run("tools", "search", query)
    assert result.code == 64
    assert "QUERY is empty: give a name or a few keywords" in result.err


def test_a_search_can_be_limited(run: Run) -> None:
    assert (
        len(json.loads(run("tools", "search", "message time", "--json", "--limit", "1").out)) == 1
    )
