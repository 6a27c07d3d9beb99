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
        },
        (),
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
    ],
)
def test_what_is_not_taken_over_is_told(entry: object, note: str) -> None:
    (told,) = servers_of({"mcpServers": {"a": entry}}).notes
    assert told.startswith(f"'a': {note}")


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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(["command", "args", "env", "cwd", "url", "headers", "type", "disabled", "x"])


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.dictionaries(KEYS, JSON) | JSON))
def test_whatever_stands_there_gives_tables_or_notes(entries: dict[str, object]) -> None:
    imported = servers_of({"mcpServers": entries})
    told = {note.split(":")[0].strip("'") for note in imported.notes}
    assert set(entries) <= imported.servers.keys() | told
