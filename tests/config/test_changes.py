"""What differs between two readings of the configuration."""

import pytest

from session_runtime.config.changes import Change, changes
from tests.config.conftest import Reader

CHAT = '[models.main]\nmodel = "m"\nbase_url = "http://127.0.0.1/v1"\n'


def test_each_changed_key_is_listed_with_both_values_and_when_it_acts(read: Reader) -> None:
    old = read("[http]\nport = 1\n[skills]\ntool_search_max_results = 3\n")
    new = read('[http]\nport = 2\n[skills]\nprefetch_tools = ["a"]\n')
    assert changes(old, new) == (
        Change("skills.tool_search_max_results", 3, 5, "next ask"),
        Change("skills.prefetch_tools", ["get_current_time"], ["a"], "next ask"),
        Change("http.port", 1, 2, "restart"),
    )


def test_the_same_content_is_no_change(read: Reader) -> None:
    assert changes(read(CHAT), read(f"# comment\n{CHAT}")) == ()


def test_an_edit_that_a_variable_hides_is_listed_with_its_name(read: Reader) -> None:
    env = {"TOOL_SEARCH_MAX_RESULTS": "7"}
    old = read("[skills]\ntool_search_max_results = 3\n", env=env)
    new = read("[skills]\ntool_search_max_results = 4\n", env=env)
    gone = read("[skills]\n", env=env)
    source, key = "env TOOL_SEARCH_MAX_RESULTS", "skills.tool_search_max_results"
    assert changes(old, new) == (Change(key, 3, 4, "next ask", shadowed_by=source),)
    assert changes(new, gone) == (Change(key, 4, None, "next ask", shadowed_by=source),)


def test_writing_a_default_into_the_file_changes_nothing(read: Reader) -> None:
    assert changes(read("[http]\n"), read("[http]\nport = 8040\n")) == ()
    assert changes(read("[http]\nport = 8040\n"), read("[http]\n")) == ()


def test_a_new_profile_is_listed_key_by_key(read: Reader) -> None:
    listed = {change.key: change for change in changes(read(), read(CHAT))}
    assert listed["models.main.model"] == Change("models.main.model", None, "m", "next ask")
    gone = {change.key: change for change in changes(read(CHAT), read("[log]\n"))}
    assert gone["models.main.model"] == Change("models.main.model", "m", None, "next ask")


def test_of_a_new_table_only_what_was_written_is_listed(read: Reader) -> None:
    server = '[mcp.servers.shop]\ncommand = "x"\n'
    tool = f"{server}[mcp.servers.shop.tools.buy]\ndestructive = true\n"
    key = "mcp.servers.shop.tools.buy.destructive"
    assert changes(read(server), read(tool)) == (Change(key, None, True, "next ask"),)
    assert changes(read(tool), read(server)) == (Change(key, True, None, "next ask"),)
    [default] = changes(read(f"{tool}deprecated = 'old'"), read(tool))
    assert (default.key, default.new) == ("mcp.servers.shop.tools.buy.deprecated", None)


@pytest.mark.requirement("REL-3")
@pytest.mark.parametrize(
    ("table", "entries"),
    [
        ("models", CHAT.replace("main", "{}")),
        (
            "mcp.servers.shop.credentials",
            '[mcp.servers.shop.credentials.{}]\nusers = ["*"]\nenv = {{ A = "b" }}\n',
        ),
    ],
)
def test_another_order_of_a_table_whose_order_matters_is_a_change(
    read: Reader, table: str, entries: str
) -> None:
    server = '[mcp.servers.shop]\ncommand = "x"\n'
    old, new = (read(server + "".join(map(entries.format, names))) for names in ("abc", "acb"))
    assert changes(old, new) == (Change(table, ["a", "b", "c"], ["a", "c", "b"], "next ask"),)
    assert old.digest != new.digest


def test_a_rotated_secret_is_a_change_that_shows_no_secret(read: Reader) -> None:
    old, new = (read(CHAT, env={"OPENAI_API_KEY": key}) for key in ("old secret", "new secret"))
    assert changes(old, new) == (Change("models.main.api_key", "***", "***", "next ask"),)


def test_a_new_text_in_the_prompt_file_is_a_change(read: Reader) -> None:
    text = '[ask]\nprompt_file = "prompt.md"\n'
    prompt = read.file("prompt.md", "Be brief.")
    old = read(text)
    prompt.write_text("Be kind.")
    assert changes(old, read(text)) == (
        Change("ask.prompt_file", str(prompt), str(prompt), "next ask"),
    )


def test_a_new_prompt_in_the_file_is_one_change(read: Reader) -> None:
    old, new = (read(f'[ask]\nsystem_prompt = "{prompt}"\n') for prompt in ("a", "b"))
    assert changes(old, new) == (Change("ask.system_prompt", "a", "b", "next ask"),)
