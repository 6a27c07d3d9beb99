"""The servers of another program's JSON, as this configuration says them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.config.mcp_json import Imported, servers_of
from session_runtime.errors import RequestError


def test_commands_and_addresses_become_tables_and_variables_references() -> None:
    assert servers_of(
        {
            "mcpServers": {
                "git hub": {
                    "command": "gh-server",
                    "args": ["--stdio"],
                    "cwd": "/srv",
                    "env": {"GH_TOKEN": "${GH_TOKEN}", "MODE": "fast", "N_TOKEN": "${env:N_TOKEN}"},
                },
                "maps": {"type": "http", "url": "https://maps.example/mcp", "disabled": True},
                "off": {"command": "x", "enabled": False, "type": "stdio"},
            }
        }
    ) == Imported(
        {
            "git-hub": {
                "command": "gh-server",
                "args": ["--stdio"],
                "cwd": "/srv",
                "env": {"GH_TOKEN": "env:GH_TOKEN", "MODE": "fast", "N_TOKEN": "env:N_TOKEN"},
            },
            "maps": {"enabled": False, "url": "https://maps.example/mcp"},
            "off": {"enabled": False, "command": "x"},
        },
        ("'git hub': it is called git-hub here, as names are up to 48 letters, digits, _ and -",),
    )


@pytest.mark.parametrize(
    "data",
    [
        {"servers": {"a": {"command": "x"}}},
        {"mcp": {"servers": {"a": {"command": "x"}}}},
        {"mcpServers": {"a": {"command": "x"}}, "theme": "dark"},
    ],
)
def test_the_places_where_other_programs_keep_them_are_known(data: object) -> None:
    assert servers_of(data).servers == {"a": {"command": "x"}}


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        ({"command": "x", "autoApprove": []}, "'autoApprove' is not taken over"),
        ({"type": "sse", "url": "http://h/sse"}, "left out: it speaks the old SSE transport"),
        ({}, "left out: it has neither a command nor a url"),
        ("x", "left out: it is no object"),
        ({"command": "x", "args": "one"}, "args is no list of texts: write it yourself"),
        ({"command": "x", "env": {"A": "Bearer ${A}"}}, "'env.A' is left out, as only a part"),
        ({"url": "http://h", "headers": {"A": "${input:key}"}}, "'headers.A' is left out"),
        ({"command": "x", "env": {"A": 3}}, "'env.A' is no text and left out"),
        ({"command": "x", "env": {"A": "env:B"}}, "'env.A' begins like a reference"),
        ({"command": "x", "env": ["A=1"]}, "env is no table and left out"),
        ({"command": "x", "cwd": 3}, "cwd is no text and left out"),
        (
            {"command": "x", "cwd": "${workspaceFolder}/a"},
            "cwd is left out, as '${workspaceFolder}'",
        ),
        ({"command": "x", "cwd": "~/a"}, "cwd is left out, as '~' is not filled in here"),
        (
            {"command": "x", "args": ["--token", "${TOKEN}", "${input:key}"]},
            "args holds '${TOKEN}', '${input:key}': that is not filled in here",
        ),
        ({"command": "x", "args": ["~/notes"]}, "args holds '~': that is not filled in here"),
        ({"command": "${HOME}/x"}, "command holds '${HOME}': that is not filled in here"),
        ({"command": "npx -y foo"}, "command 'npx -y foo' is taken for the name of one program"),
        ({"url": "https://${HOST}/mcp"}, "url holds '${HOST}': that is not filled in here"),
        ({"url": "http://h", "httpUrl": "http://i"}, "'httpUrl' is not taken over: url counts"),
        ({"command": "x", "url": "http://h"}, "'url' is not taken over: it has a command"),
        ({"command": "x", "headers": {"A": "b"}}, "'headers' is not taken over: it has a command"),
        ({"url": "http://h", "env": {"A": "b"}}, "'env' is not taken over: it has a url"),
        ({"command": "x", "disabled": "yes"}, "disabled is neither true nor false: it is off"),
        ({"command": "x", "type": "http"}, "its type is 'http', and it has a command"),
        ({"url": "http://h", "type": "ws"}, "left out: its type is 'ws'"),
        ({"command": 3}, "left out: its command is no text"),
        ({"command": ["npx", "x"]}, "left out: its command is no text"),
        ({"command": "  "}, "left out: it has neither a command nor a url"),
    ],
)
def test_what_is_not_taken_over_is_told(entry: object, note: str) -> None:
    (told,) = servers_of({"mcpServers": {"a": entry}}).notes
    assert told.startswith(f"'a': {note}")


def test_an_empty_command_beside_an_address_is_none() -> None:
    entry = {"command": "", "args": [], "env": {}, "url": "http://h/x"}
    assert servers_of({"mcpServers": {"a": entry}}) == Imported({"a": {"url": "http://h/x"}}, ())


@pytest.mark.parametrize(
    "data",
    [
        [],
        {},
        {"mcpServers": []},
        {"mcpServers": {"a b": {"command": "x"}, "a-b": {"command": "y"}}},
        {"mcpServers": {"...": {"command": "x"}}},
    ],
)
def test_a_file_without_usable_names_is_refused(data: object) -> None:
    with pytest.raises(RequestError):
        servers_of(data)


def test_two_servers_that_would_have_one_name_are_both_named() -> None:
    with pytest.raises(RequestError, match="'a b' and 'a-b' both come to the name 'a-b'"):
        servers_of({"mcpServers": {"a b": {"command": "x"}, "a-b": {"command": "y"}}})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
TAKEN = {"command", "args", "env", "cwd", "url", "headers"}
KEYS = st.sampled_from(["command", "args", "env", "cwd", "url", "headers", "type", "disabled", "x"])


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.dictionaries(KEYS, JSON) | JSON))
def test_whatever_stands_there_gives_tables_or_notes(entries: dict[str, object]) -> None:
    imported = servers_of({"mcpServers": entries})
    told = {note.split(":")[0].strip("'") for note in imported.notes}
    assert set(entries) <= imported.servers.keys() | told
    for name, table in imported.servers.items():
        given = {key for key, value in entries[name].items() if value or key not in TAKEN}
        for key in given - table.keys() - {"type", "disabled"}:
            assert any(f"'{name}': " in note and key in note for note in imported.notes), key
