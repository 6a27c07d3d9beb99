"""What a value typed on a command line means."""

import pytest

from session_runtime.config.keys import parse_dotted
from session_runtime.config.typed import typed_value


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("ask.max_steps", "7", 7),
        ("ask.max_steps", "1_000", 1000),
        ("ask.max_steps", " 7 ", 7),
        ("ask.max_steps", "many", "many"),
        ("ask.max_steps", "1\nother = 2", "1\nother = 2"),
        ("ask.ask_timeout_s", "1.5", 1.5),
        ("runtime.ask_timeout_s", "5", 5),
        ("log.level", "debug", "debug"),
        ("log.level", '"debug"', "debug"),
        ("runtime.name", "123", "123"),
        ("runtime.name", "true", "true"),
        ("runtime.name", "2026-01-01", "2026-01-01"),
        ("runtime.name", "", ""),
        ("runtime.name", "1\nother = 2", "1\nother = 2"),
        ("runtime.state_dir", "/var/lib/x", "/var/lib/x"),
        ("models.m.api_key", "env:M_API_KEY", "env:M_API_KEY"),
        ("skills.tool_search_enabled", "true", True),
        ("skills.tool_search_enabled", "yes", True),
        ("skills.tool_search_enabled", "perhaps", "perhaps"),
        ("skills.prefetch_tools", "a, b", ["a", "b"]),
        ("skills.prefetch_tools", '["a", "b"]', ["a", "b"]),
        ("skills.prefetch_tools", '"a"', ["a"]),
        ("skills.prefetch_tools", "", []),
        ("web.ports", "80,443", [80, 443]),
        ("web.ports", "80", [80]),
        ("models.m.extra_body.top_k", "5", 5),
        ("models.m.extra_body.mode", "fast", "fast"),
        ("models.m.extra_body.more", "{ a = [1] }", {"a": [1]}),
        ("models.m.extra_body.more", '{"a": [1]}', {"a": [1]}),
        ("models.m", '{ model = "x" }', {"model": "x"}),
        ("models.m", '{"model": "x"}', {"model": "x"}),
        ("models.m", "x", "x"),
        ("no.such", "5", 5),
        ("runtime.name", "[" * 100_000, "[" * 100_000),
    ],
)
def test_a_text_means_what_the_key_can_hold(key: str, text: str, value: object) -> None:
    found = typed_value(parse_dotted(key), text)
    assert (found, type(found)) == (value, type(value))
