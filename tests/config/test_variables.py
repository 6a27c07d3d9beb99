"""Environment variables: which key a name means, and how its text becomes a value."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.config.load import load
from session_runtime.config.shape import leaf_at
from session_runtime.config.variables import parse_text
from session_runtime.errors import ConfigError
from tests.config.conftest import Reader

CHAT = '[models.my-gpt]\nmodel = "m"\nbase_url = "http://127.0.0.1/v1"\n'
ITEMS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda item: item == item.strip() and "," not in item and not item.startswith("[")
)
TOOLS = leaf_at(("skills", "prefetch_tools"))


@pytest.mark.requirement("CFG-2")
def test_all_short_names_act_at_once(read: Reader) -> None:
    skills = read(
        "[skills]\ntool_search_enabled = true\n",
        env={
            "TOOL_SEARCH_ENABLED": "false",
            "TOOL_SEARCH_ALWAYS_LOADED": "x",
            "TOOL_SEARCH_MAX_RESULTS": "3",
            "PREFETCH_TOOLS": "[]",
            "PREFETCH_TOOLS_HIDE": "off",
        },
    ).settings.skills
    assert skills.tool_search_enabled is False
    assert skills.tool_search_always_loaded == ("x",)
    assert skills.tool_search_max_results == 3
    assert skills.prefetch_tools == ()
    assert skills.prefetch_tools_hide is False


@pytest.mark.requirement("CFG-2")
@given(st.lists(ITEMS), st.sampled_from([",", " , ", ",\t"]), st.booleans())
def test_a_list_may_be_separated_by_commas(items: list[str], comma: str, trailing: bool) -> None:
    text = comma.join(items) + (comma if trailing else "")
    assert parse_text(text, TOOLS) == items


@pytest.mark.requirement("CFG-2")
@given(st.lists(st.text()))
def test_a_list_may_be_json(items: list[str]) -> None:
    assert parse_text(f" {json.dumps(items)}", TOOLS) == items


@pytest.mark.requirement("CFG-2")
@given(st.integers() | st.floats(allow_nan=False))
def test_a_number_is_read_as_it_is_written(number: float) -> None:
    key = ("search", "name") if isinstance(number, float) else ("ask", "max_steps")
    assert parse_text(f" {number} ", leaf_at(key)) == number


@pytest.mark.requirement("CFG-2")
@given(st.text())
def test_text_is_taken_literally(text: str) -> None:
    assert parse_text(text, leaf_at(("ask", "system_prompt"))) == text


@pytest.mark.requirement("CFG-2")
@given(st.text())
def test_reading_any_text_raises_nothing(text: str) -> None:
    for key in (("ask", "max_steps"), ("search", "name"), ("handlers", "bundled")):
        assert parse_text(text, leaf_at(key)) is not None
    assert isinstance(parse_text(text, TOOLS), list | str)


@pytest.mark.requirement("CFG-2")
@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("True", True), ("1", True), ("on", True), ("no", False), (" FALSE ", False)],
)
def test_a_switch_may_be_spelled_in_the_usual_ways(read: Reader, text: str, value: bool) -> None:
    assert read(env={"TOOL_SEARCH_ENABLED": text}).settings.skills.tool_search_enabled is value


@pytest.mark.requirement("CFG-2")
def test_an_empty_variable_counts_as_absent(read: Reader) -> None:
    snapshot = read(
        "[skills]\ntool_search_max_results = 9\n",
        env={"TOOL_SEARCH_MAX_RESULTS": "", "TOOL_SEARCH_ENABLED": "", "SESSION_RUNTIME__X": ""},
    )
    assert snapshot.settings.skills.tool_search_max_results == 9
    assert snapshot.settings.skills.tool_search_enabled is False
    assert snapshot.warnings == ()


@pytest.mark.requirement("CFG-2")
def test_the_case_of_a_name_does_not_matter(read: Reader) -> None:
    settings = read(env={"tool_search_max_results": "3", "Session_Runtime__Log__level": "debug"})
    assert settings.settings.skills.tool_search_max_results == 3
    assert settings.settings.log.level == "debug"


@pytest.mark.requirement("CFG-2")
def test_two_spellings_of_one_name_must_agree(read: Reader) -> None:
    assert read.problems(env={"PREFETCH_TOOLS": "a", "prefetch_tools": "b"}) == [
        "env prefetch_tools: means the same as PREFETCH_TOOLS and holds another value;"
        " remove one of them"
    ]
    assert read(env={"PREFETCH_TOOLS": "a", "prefetch_tools": "a"}).warnings == ()


@pytest.mark.requirement("CFG-2")
def test_a_variable_finds_the_table_whose_name_needs_other_characters(read: Reader) -> None:
    models = read(CHAT, env={"SESSION_RUNTIME__MODELS__MY_GPT__MODEL": "other"}).settings.models
    assert {name: profile.model for name, profile in models.items()} == {"my-gpt": "other"}


@pytest.mark.requirement("CFG-2")
def test_a_variable_finds_a_table_whose_name_holds_two_underscores(read: Reader) -> None:
    text = CHAT.replace("my-gpt", '"a--b"') + "[features]\na__b_file = false\n"
    settings = read(
        text,
        env={
            "SESSION_RUNTIME__MODELS__A__B__MODEL": "other",
            "SESSION_RUNTIME__FEATURES__A__B_FILE": "true",
        },
    ).settings
    assert settings.models["a--b"].model == "other"
    assert settings.features == {"a__b_file": True}


@pytest.mark.requirement("CFG-2")
def test_variables_make_new_entries_in_tables(read: Reader) -> None:
    settings = read(
        CHAT,
        env={
            "SESSION_RUNTIME__MODELS__NEW_ONE__WIRE": "offline",
            "SESSION_RUNTIME__FEATURES__BETA": "true",
            "SESSION_RUNTIME__ACCESS__RULES__GUESTS__DENY": "files.*, web.*",
        },
    ).settings
    assert tuple(settings.models) == ("my-gpt", "new_one")
    assert settings.models["new_one"].wire == "offline"
    assert settings.features == {"beta": True}
    assert settings.access.rules["guests"].deny == ("files.*", "web.*")


@pytest.mark.requirement("CFG-2")
def test_a_whole_table_may_be_json_and_single_keys_add_to_it(read: Reader) -> None:
    profile = {"base_url": "http://json", "model": "json", "max_retries": 7}
    models = read(
        CHAT,
        env={
            "SESSION_RUNTIME__MODELS": json.dumps({"my-gpt": profile, "m.2": {"wire": "offline"}}),
            "SESSION_RUNTIME__MODELS__MY_GPT": '{"model": "table"}',
            "SESSION_RUNTIME__MODELS__MY_GPT__TIMEOUT_S": "1.5",
            "SESSION_RUNTIME__MODELS__M_2__STREAM": "false",
        },
    ).settings.models
    gpt = models["my-gpt"]
    assert (gpt.base_url, gpt.model, gpt.max_retries, gpt.timeout_s) == (
        "http://json",
        "table",
        7,
        1.5,
    )
    assert (models["m.2"].wire, models["m.2"].stream) == ("offline", False)


@pytest.mark.requirement("CFG-2")
@pytest.mark.parametrize("text", ["[1]", "{", "true", "debug"])
def test_a_table_that_is_no_json_object_is_refused(read: Reader, text: str) -> None:
    assert read.problems(env={"SESSION_RUNTIME__LOG": text}) == [
        "env SESSION_RUNTIME__LOG: log: must be a JSON object: this name means a whole table"
    ]


@pytest.mark.requirement("CFG-2")
def test_json_is_as_strict_as_the_file(read: Reader) -> None:
    env = {"SESSION_RUNTIME__ASK": '{"max_steps": "8", "max_step": 8}'}
    assert read.problems(env=env) == [
        "env SESSION_RUNTIME__ASK: ask.max_step: unknown key (given: 8); did you mean max_steps?",
        'env SESSION_RUNTIME__ASK: ask.max_steps: must be a whole number (given: "8")',
    ]


@pytest.mark.requirement("CFG-2")
def test_names_that_share_a_variable_are_an_error(read: Reader) -> None:
    text = "[features]\nnew-ui = true\nnew_ui = false\n"
    assert read.problems(text) == [
        "config.toml:3: features.new_ui: features.new-ui is also"
        " SESSION_RUNTIME__FEATURES__NEW_UI in the environment; rename one of them"
    ]


@pytest.mark.requirement("CFG-2")
def test_names_in_other_scripts_do_not_share_a_variable(read: Reader) -> None:
    assert len(read("[features]\n'绘图' = true\n'搜索' = true\n").settings.features) == 2


@pytest.mark.requirement("CFG-2")
@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("TOOL_SEARCH_MAX_RESLTS", "TOOL_SEARCH_MAX_RESULTS"),
        ("PREFETCH_TOOL", "PREFETCH_TOOLS"),
        ("TOOL_SEARCH_EXPLAIN", "SESSION_RUNTIME__SKILLS__TOOL_SEARCH_EXPLAIN"),
        ("SESSION_RUNTIME__ASK__MAX_STEP", "SESSION_RUNTIME__ASK__MAX_STEPS"),
        ("SESSION_RUNTIME__MODELS__MY_GPT__MODLE", "SESSION_RUNTIME__MODELS__MY_GPT__MODEL"),
    ],
)
def test_an_unknown_variable_is_a_warning_with_the_nearest_name(
    read: Reader, name: str, nearest: str
) -> None:
    assert [str(warning) for warning in read(CHAT, env={name: "secret value"}).warnings] == [
        f"env {name}: unknown variable {name}, ignored; did you mean {nearest}?"
    ]


@pytest.mark.requirement("CFG-2")
def test_foreign_variables_are_no_business_of_ours(read: Reader) -> None:
    env = {
        "PATH": "/bin",
        "SESSION_RUNTIME_PORT": "tcp://10.0.0.1:80",
        "SESSION_RUNTIME_CONFIG": "c",
    }
    assert read(env=env).warnings == ()


@pytest.mark.requirement("CFG-2")
def test_a_dotenv_file_is_taken_literally_and_foreign_names_in_it_are_ignored(
    read: Reader,
) -> None:
    snapshot = read(
        env={"HOME": "/root"},
        dotenv=(
            "# switches\nOTHER=1\nexport TOOL_SEARCH_ENABLED=true\nPREFETCH_TOOLS=\n"
            "SESSION_RUNTIME__ASK__SYSTEM_PROMPT='Costs ${HOME} $5'\nTOOL_SEARCH_MAX=3\n"
        ),
    )
    assert snapshot.settings.skills.tool_search_enabled is True
    assert snapshot.settings.skills.prefetch_tools == ("get_current_time",)
    assert snapshot.system_prompt == "Costs ${HOME} $5"
    assert [str(warning) for warning in snapshot.warnings] == [
        ".env:6: unknown variable TOOL_SEARCH_MAX, ignored; did you mean TOOL_SEARCH_MAX_RESULTS?"
    ]
    assert snapshot.files == (read.folder / ".env",)


@pytest.mark.requirement("CFG-2")
def test_a_line_of_a_dotenv_file_that_assigns_nothing_is_refused(read: Reader) -> None:
    assert read.problems(dotenv="TOOL_SEARCH_ENABLED=true\nnot an assignment\n") == [
        ".env:2: is not NAME=value"
    ]


@pytest.mark.requirement("CFG-2")
def test_a_dotenv_file_that_was_named_must_be_readable(tmp_path: Path) -> None:
    absent, wrong = tmp_path / "absent.env", tmp_path / "wrong.env"
    wrong.write_bytes(b"TOOL_SEARCH_ENABLED=\xff\n")
    for path, fault in (
        (absent, f"absent.env: {absent} cannot be read: No such file or directory"),
        (wrong, "wrong.env: is not UTF-8"),
    ):
        with pytest.raises(ConfigError) as caught:
            load(None, named=False, env={}, dotenv=path)
        assert str(caught.value) == fault


@pytest.mark.requirement("CFG-2")
def test_a_variable_that_is_not_utf8_is_refused(read: Reader) -> None:
    assert read.problems(env={"PREFETCH_TOOLS": "\udcff"}) == [
        "env PREFETCH_TOOLS: skills.prefetch_tools: is not UTF-8"
    ]


@pytest.mark.requirement("CFG-2")
def test_numbers_may_be_separated_by_commas_too(read: Reader) -> None:
    settings = read(env={"SESSION_RUNTIME__WEB__PORTS": "80, 8443,"}).settings
    assert settings.web.ports == (80, 8443)
    assert read.problems(env={"SESSION_RUNTIME__WEB__PORTS": "80,https"}) == [
        'env SESSION_RUNTIME__WEB__PORTS: web.ports: item 2 must be a whole number (given: "https")'
    ]
