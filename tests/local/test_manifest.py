"""What a config.json may say, and how its faults are told."""

import json
from typing import Any

import pytest

from session_runtime.config.handlers import Deprecation
from session_runtime.errors import PermanentError
from session_runtime.local.manifest import Manifest, read_manifest

PLAIN: dict[str, Any] = {"type": "function", "function": {"name": "a", "description": "Does a."}}


def manifest(**runtime: Any) -> Manifest:
    return read_manifest(json.dumps({**PLAIN, "runtime": runtime}).encode(), "config.json")


def fault(content: bytes) -> str:
    with pytest.raises(PermanentError) as caught:
        read_manifest(content, "config.json")
    assert caught.value.code == "tool.manifest_invalid"
    return str(caught.value).removeprefix("config.json: ")


@pytest.mark.requirement("REG-3")
def test_every_runtime_option_is_read() -> None:
    options = manifest(
        requires=["admin"],
        feature="beta",
        destructive=True,
        idempotent=True,
        timeout_s=2,
        max_result_chars=50,
        aliases=["b.c"],
        search_hints=["删除"],
        examples=["Do it."],
        deprecated={"reason": "old", "replacement": "new"},
    ).runtime
    assert options.model_dump() == {
        "requires": ("admin",),
        "feature": "beta",
        "destructive": True,
        "read_only": False,
        "idempotent": True,
        "timeout_s": 2.0,
        "max_result_chars": 50,
        "aliases": ("b.c",),
        "search_hints": ("删除",),
        "examples": ("Do it.",),
        "deprecated": {"reason": "old", "replacement": "new"},
    }
    assert options.deprecated == Deprecation(reason="old", replacement="new")


def test_without_parameters_a_tool_takes_none() -> None:
    assert manifest().function.parameters == {"type": "object", "properties": {}}


def test_a_byte_order_mark_is_no_fault() -> None:
    content = b"\xef\xbb\xbf" + json.dumps(PLAIN).encode()
    assert read_manifest(content, "config.json") == manifest()


@pytest.mark.requirement("REG-3")
@pytest.mark.parametrize(
    ("runtime", "told"),
    [
        ({"timout_s": 1}, "runtime.timout_s: unknown key; did you mean timeout_s?"),
        ({"colour": 1}, "runtime.colour: unknown key"),
        ({"deprecated": {"why": ""}}, "runtime.deprecated.why: unknown key"),
        ({"timeout_s": 0}, "runtime.timeout_s: must be more than 0 (given: 0)"),
        ({"timeout_s": "5"}, 'runtime.timeout_s: must be a number (given: "5")'),
        ({"destructive": 1}, "runtime.destructive: must be true or false (given: 1)"),
        ({"max_result_chars": 0}, "runtime.max_result_chars: must be at least 1 (given: 0)"),
        ({"aliases": ["a b"]}, "runtime: 'a b' cannot be a name: write 'a_b'"),
        ({"aliases": ["."]}, "runtime: '.' cannot be a name: it holds nothing that can be read"),
        (
            {"aliases": ["a b", "ok", "."], "deprecated": {"replacement": "c d"}},
            "runtime: 'a b' cannot be a name: write 'a_b'; '.' cannot be a name: it holds nothing"
            " that can be read; 'c d' cannot be a name: write 'c_d'",
        ),
        (
            {"deprecated": {"reason": ""}},
            "runtime: deprecated says nothing: give a reason or a replacement",
        ),
        ({"search_hints": [" "]}, "runtime.search_hints[0]: must not be blank"),
        ({"search_hints": "a"}, 'runtime.search_hints: must be a list (given: "a")'),
        (
            {"destructive": True, "read_only": True},
            "runtime: a tool cannot be both destructive and read_only",
        ),
    ],
)
def test_a_faulty_option_is_named_by_its_key(runtime: dict[str, Any], told: str) -> None:
    assert fault(json.dumps({**PLAIN, "runtime": runtime}).encode()).startswith(told)


@pytest.mark.requirement("REG-4")
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "not valid JSON: EOF while parsing a value at line 1 column 0"),
        (b'{\n"type": ]', "not valid JSON: expected value at line 2 column 9"),
        (b"\xff", "it is not UTF-8 (byte 0)"),
        (b"[]", "must be an object (given: a list)"),
        (b"{}", "type: is missing; function: is missing"),
        (b'{"type": "function", "function": null}', "function: must be an object (given: null)"),
        (
            b'{"type": "function", "function": {"name": "a", "description": " "}}',
            'function.description: must not be blank (given: " ")',
        ),
        (
            b'{"type": "function", "function": {"name": 123, "description": "x"}}',
            "function.name: must be text (given: 123)",
        ),
        (
            b'{"type": "function", "function": {"name": "a", "description": "x"}, "search_hints": ["rain"]}',
            "search_hints: unknown key here; write runtime.search_hints",
        ),
        (
            b'{"type": "function", "function": {"name": "a", "description": "x"}, "funktion": 1}',
            "funktion: unknown key; did you mean function?",
        ),
        (
            b'{"type": "function", "function": {"name": "a", "description": "x", "parameter": {}}}',
            "function.parameter: unknown key; did you mean parameters?",
        ),
    ],
)
def test_a_file_that_cannot_be_used_says_why(content: bytes, told: str) -> None:
    assert fault(content) == told
