"""A record says who had which tool do what, and holds no secret."""

import json
from dataclasses import replace
from typing import Any

import pytest

from session_runtime.audit.entry import Entry, Outcome, Subject, digest_of, entry_to_json
from session_runtime.types import Identity

SCHEMA = {"type": "object", "patternProperties": {"^s_": {"writeOnly": True}}}


def subject(arguments: dict[str, Any]) -> Subject:
    return Subject(
        1_700_000_000.5,
        "ask_1",
        "c1",
        "bank.pay",
        "mcp:bank",
        "bot",
        Identity("u1", frozenset({"b", "a"}), "web"),
        json.dumps(arguments).encode(),
        {"type": "object"},
    )


@pytest.mark.requirement("RTE-13")
def test_a_record_has_who_what_when_and_how_it_came_out() -> None:
    outcome = Outcome("ok", None, 2, 0.25, digest_of("done"), 4)
    assert entry_to_json(Entry(subject({"n": 1, "api_key": "k"}), outcome)) == {
        "event": "call",
        "time": "2023-11-14T22:13:20.500+00:00",
        "ask_id": "ask_1",
        "call_id": "c1",
        "tool": "bank.pay",
        "source": "mcp:bank",
        "principal": "bot",
        "identity": {"user": "u1", "roles": ["a", "b"], "channel": "web", "group": None},
        "arguments": {"n": 1, "api_key": "***"},
        "status": "ok",
        "error_code": None,
        "attempts": 2,
        "duration_s": 0.25,
        "result": {"sha256": digest_of("done"), "chars": 4},
    }


def test_the_digest_is_that_of_the_text_in_utf_8() -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest_of("") == empty


def test_a_call_that_begins_has_no_outcome_yet() -> None:
    data = entry_to_json(Entry(subject({})))
    assert data["event"] == "begun"
    assert "status" not in data


@pytest.mark.requirement("RTE-13")
def test_what_the_schema_calls_secret_is_not_in_the_record() -> None:
    call = replace(subject({"s_word": "x", "n": 1}), schema=SCHEMA)
    assert entry_to_json(Entry(call))["arguments"] == {"s_word": "***", "n": 1}


def test_names_from_outside_are_bounded() -> None:
    long = Subject(0.0, "a", "c" * 1000, "t", "s", "p", Identity("u" * 10_000), b"{}", {})
    data = entry_to_json(Entry(long))
    assert len(data["call_id"]) == len(data["identity"]["user"]) == 257


def test_arguments_that_would_make_a_line_too_long_are_left_out() -> None:
    call = subject({"numbers": [10**4000] * 1000})
    assert entry_to_json(Entry(call))["arguments"] == "[cut]"
