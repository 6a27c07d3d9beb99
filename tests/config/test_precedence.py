"""Which source wins, and that every value knows the sources it hides."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.config.explain import explain
from tests.config.conftest import Reader

KEY = "skills.tool_search_max_results"
LONG = "SESSION_RUNTIME__SKILLS__TOOL_SEARCH_MAX_RESULTS"
SHORT = "TOOL_SEARCH_MAX_RESULTS"
SOURCES = (
    "explicit",
    "long variable",
    "table variable",
    "short variable",
    "long file",
    "short file",
    "long line of .env",
    "short line of .env",
    "config.toml",
)


@pytest.mark.requirement("CFG-2")
@pytest.mark.requirement("CFG-3")
@given(st.dictionaries(st.sampled_from(SOURCES), st.integers(1, 99)))
def test_the_first_source_that_gives_a_key_wins_and_hides_the_others(
    given_by: dict[str, int],
) -> None:
    with TemporaryDirectory() as folder:
        read = Reader(Path(folder))
        expected = {
            "explicit": "explicit",
            "long variable": f"env {LONG}",
            "table variable": "env SESSION_RUNTIME__SKILLS",
            "short variable": f"env {SHORT}",
            "long file": f"file {folder}/long file",
            "short file": f"file {folder}/short file",
            "long line of .env": ".env:1",
            "short line of .env": ".env:2",
            "config.toml": "config.toml:2",
        }
        order = [source for source in SOURCES if source in given_by]
        snapshot = read(
            f"[skills]\ntool_search_max_results = {given_by['config.toml']}\n"
            if "config.toml" in given_by
            else None,
            explicit={KEY: given_by["explicit"]} if "explicit" in given_by else {},
            env=environment(read, given_by),
            dotenv=f"{line(LONG, given_by.get('long line of .env'))}\n"
            f"{line(SHORT, given_by.get('short line of .env'))}\n",
        )
        explanation = explain(snapshot, KEY)
    assert explanation.value == (given_by[order[0]] if order else 5)
    assert [explanation.source, *explanation.shadowed] == (
        [expected[source] for source in order] or ["default"]
    )


def environment(read: Reader, given_by: Mapping[str, int]) -> dict[str, str]:
    env: dict[str, str] = {}
    if "long variable" in given_by:
        env[LONG] = str(given_by["long variable"])
    if "table variable" in given_by:
        value = given_by["table variable"]
        env["SESSION_RUNTIME__SKILLS"] = f'{{"tool_search_max_results": {value}}}'
    if "short variable" in given_by:
        env[SHORT] = str(given_by["short variable"])
    for source, name in (("long file", LONG), ("short file", SHORT)):
        if source in given_by:
            env[f"{name}_FILE"] = str(read.file(source, f"{given_by[source]}\n"))
    return env


def line(name: str, value: int | None) -> str:
    return "#" if value is None else f"{name}={value}"


@pytest.mark.requirement("CFG-2")
def test_tables_of_several_sources_are_merged_key_by_key(read: Reader) -> None:
    settings = read(
        "[features]\na = true\nb = true\n[ask]\nmax_steps = 1\nmax_tool_calls = 2\n",
        env={"SESSION_RUNTIME__FEATURES": '{"b": false, "c": true}'},
        explicit={"features": {"c": False}, "ask.max_steps": 3},
    ).settings
    assert settings.features == {"a": True, "b": False, "c": False}
    assert (settings.ask.max_steps, settings.ask.max_tool_calls) == (3, 2)


@pytest.mark.requirement("CFG-2")
def test_of_explicit_values_the_more_specific_one_wins(read: Reader) -> None:
    explicit = {"http": {"port": 1, "max_body_bytes": 2}, "http.port": 3}
    http = read(explicit=explicit).settings.http
    assert (http.port, http.max_body_bytes) == (3, 2)


@pytest.mark.requirement("CFG-2")
def test_an_explicit_value_may_make_a_new_entry_in_a_table(read: Reader) -> None:
    settings = read(explicit={'models."m.1".wire': "offline", "features.beta": True}).settings
    assert (settings.models["m.1"].wire, settings.models["m.1"].timeout_s) == ("offline", 120.0)
    assert settings.features == {"beta": True}


@pytest.mark.requirement("CFG-1")
def test_an_explicit_value_is_checked_like_any_other(read: Reader) -> None:
    assert read.problems(explicit={"http.port": 70000, "http.prot": 1}) == [
        "explicit: http.prot: unknown key (given: 1); did you mean port?",
        "explicit: http.port: must be at most 65535 (given: 70000)",
    ]


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize("key", ["a b", "", "ask.", 'ask."max', "ask.max_steps = 1\nlog.level"])
def test_an_explicit_key_that_cannot_be_read_is_a_problem_like_any_other(
    read: Reader, key: str
) -> None:
    assert read.problems(explicit={key: 1, "http.port": 70000}) == [
        f"explicit: {key!r} is not one dotted key; write it like models.main.base_url, with quotes"
        " around a part that has other characters than letters, digits, _ and -",
        "explicit: http.port: must be at most 65535 (given: 70000)",
    ]


@pytest.mark.requirement("CFG-2")
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (None, "there is no file {file}"),
        ("\n", "{file} is empty"),
        ("x" * 2**20 + "x", "{file} is larger than 1048576 bytes"),
    ],
    ids=["absent", "empty", "large"],
)
def test_a_file_that_a_variable_points_to_must_hold_a_value(
    read: Reader, text: str | None, fault: str
) -> None:
    file = read.folder / "value"
    if text is not None:
        file.write_text(text)
    assert read.problems(env={f"{SHORT}_FILE": "value"}) == [
        f"env {SHORT}_FILE: {KEY}: {fault.format(file=file)}"
    ]


@pytest.mark.requirement("CFG-2")
def test_a_key_that_ends_in_file_is_no_pointer_to_a_file(read: Reader) -> None:
    read.file("prompt.md", "Be brief.\n")
    read.file("name", "prompt.md")
    by_path = read(env={"SESSION_RUNTIME__ASK__PROMPT_FILE": "prompt.md"})
    assert (by_path.system_prompt, by_path.settings.ask.system_prompt) == ("Be brief.", "")
    by_file = read(env={"SESSION_RUNTIME__ASK__PROMPT_FILE_FILE": "name"})
    assert by_file.system_prompt == "Be brief."
    assert by_file.files == (read.folder / "name", read.folder / "prompt.md")
