import json
from dataclasses import replace

import pytest

from session_runtime.trace.record import (
    AskRecord,
    RequestRecord,
    SearchRecord,
    ToolSearchRecord,
    TurnRecord,
    record_call,
    record_to_json,
)
from session_runtime.types import ErrorInfo, Identity, Principal, ToolResult, Usage

RESULT = ToolResult("c1", "weather.now", "ok", "sunny", attempts=2, latency_s=0.1234567891)
RECORD = AskRecord(
    ask_id="a1",
    started_at="2026-01-02T03:04:05+00:00",
    generation=3,
    config_digest="d",
    model="fast",
    principal=Principal("bot"),
    identity=Identity("u", frozenset({"b", "a"})),
    tool_search=ToolSearchRecord(True, "deferred", 40, 120),
    prefetch=(),
    confirmed=(),
    turns=(),
    outcome="answered",
    error=None,
    usage=Usage(),
    duration_s=1.5,
    daemon_s=0.002,
    tokens_full_list=4_000,
    tokens_exposed=700,
)


@pytest.mark.requirement("OPS-1a")
def test_a_call_is_kept_as_redacted_arguments_and_the_result_as_digest_and_size() -> None:
    call = record_call(RESULT, {"city": "Berlin", "api_key": "abc"}, repairs=("fence",))
    turn = TurnRecord(
        1, "fast", ("weather.now",), 90, 1, 0.5, 0.2, Usage(10, 2, 8), "tool_calls", (call,)
    )
    assert record_to_json(replace(RECORD, turns=(turn,)))["turns"] == [
        {
            "step": 1,
            "model": "fast",
            "exposed": ["weather.now"],
            "exposed_tokens": 90,
            "attempts": 1,
            "at_s": 0.0,
            "model_s": 0.5,
            "tools_s": 0.2,
            "usage": {
                "input_tokens": 10,
                "output_tokens": 2,
                "total_tokens": 12,
                "cached_tokens": 8,
                "reasoning_tokens": 0,
                "model_calls": 0,
                "estimated": False,
            },
            "finish_reason": "tool_calls",
            "calls": [
                {
                    "call_id": "c1",
                    "name": "weather.now",
                    "arguments": {"city": "Berlin", "api_key": "***"},
                    "status": "ok",
                    "error_code": None,
                    "result_digest": call.result_digest,
                    "result_chars": 5,
                    "attempts": 2,
                    "latency_s": 0.123457,
                    "repairs": ["fence"],
                }
            ],
        }
    ]


@pytest.mark.requirement("OPS-1a")
def test_an_ask_is_kept_with_what_tool_search_decided_and_saved() -> None:
    data = record_to_json(RECORD)
    assert data["tool_search"] == {
        "active": True,
        "rule": "deferred",
        "deferred": 40,
        "directory_tokens": 120,
    }
    assert (data["tokens_full_list"], data["tokens_exposed"], data["tokens_saved"]) == (
        4_000,
        700,
        3_300,
    )
    assert data["identity"] == {"user": "u", "roles": ["a", "b"], "channel": None, "group": None}
    assert data["error"] is None


def test_equal_results_have_equal_digests_and_others_do_not() -> None:
    same = record_call(replace(RESULT, call_id="c2"), None)
    other = record_call(replace(RESULT, content="rain"), None)
    assert record_call(RESULT, None).result_digest == same.result_digest != other.result_digest


@pytest.mark.requirement("OPS-1a")
def test_a_result_that_was_shortened_is_kept_with_the_length_of_the_whole() -> None:
    calls = (record_call(replace(RESULT, whole_chars=90_000), None), record_call(RESULT, None))
    short, whole = record_to_json(replace(RECORD, prefetch=calls))["prefetch"]
    assert (short["result_chars"], short["whole_chars"]) == (5, 90_000)
    assert "whole_chars" not in whole


def test_the_result_text_itself_is_not_kept() -> None:
    call = record_call(replace(RESULT, content="PRIVATE"), {})
    assert "PRIVATE" not in json.dumps(record_to_json(replace(RECORD, prefetch=(call,))))


def test_later_changes_of_the_arguments_do_not_reach_the_record() -> None:
    arguments = {"items": [1]}
    call = record_call(RESULT, arguments)
    arguments["items"].append(2)
    assert call.arguments == {"items": [1]}


@pytest.mark.requirement("CFG-4a")
def test_searches_errors_and_invented_names_are_redacted() -> None:
    secret = "sk-abcdefgh12345678"
    call = record_call(
        replace(RESULT, name=f"no.such {secret}"),
        None,
        search=SearchRecord(f"find {secret}", not_found=(f"find {secret}",)),
    )
    error = ErrorInfo("model.auth", f"401: wrong key {secret}")
    text = json.dumps(record_to_json(replace(RECORD, prefetch=(call,), error=error)))
    assert secret not in text
    assert '"query": "find ***"' in text
    assert "wrong key ***" in text


@pytest.mark.requirement("OPS-1a")
def test_what_a_provider_names_is_redacted_and_bounded() -> None:
    call = record_call(replace(RESULT, call_id="sk-abcdefgh12345678"), None)
    turn = TurnRecord(1, "fast", (), 0, 1, 0.5, 0.2, Usage(), "x" * 100_000, (call,))
    [data] = record_to_json(replace(RECORD, turns=(turn,)))["turns"]
    assert data["calls"][0]["call_id"] == "***"
    assert len(data["finish_reason"]) < 5_000


@pytest.mark.requirement("NET-1f")
def test_a_call_that_stood_instead_of_a_question_is_kept_beside_the_turns() -> None:
    result = ToolResult("call_0", "a.note", "ok", "text", latency_s=0.25)
    data = record_to_json(replace(RECORD, turns=(), invoked=record_call(result, None)))
    assert (data["turns"], data["invoked"]["name"], data["invoked"]["latency_s"]) == (
        [],
        "a.note",
        0.25,
    )
    assert "invoked" not in record_to_json(RECORD)


@pytest.mark.requirement("OPS-2")
def test_of_a_request_is_kept_what_decides_about_its_tools_with_names_redacted_and_cut() -> None:
    secret = "sk-abcdefgh12345678"
    request = RequestRecord(
        secret, True, Identity("bot", frozenset({"b", "a"})), ((secret, "x" * 500),), ("a.b",), "t"
    )
    assert record_to_json(replace(RECORD, request=request))["request"] == {
        "model": "***",
        "key": True,
        "bound": {"user": "bot", "roles": ["a", "b"], "channel": None, "group": None},
        "earlier": [["***", "x" * 200]],
        "revoked": ["a.b"],
        "tool": "t",
    }


@pytest.mark.requirement("OPS-2")
def test_a_call_that_counted_against_the_limit_says_so() -> None:
    calls = (record_call(RESULT, None, counted=True), record_call(RESULT, None))
    first, second = record_to_json(replace(RECORD, prefetch=calls))["prefetch"]
    assert (first["counted"], "counted" in second) == (True, False)
