"""Files of cases and tools are read line by line within bounds; a fault is told with its line."""

import json
import os
import tracemalloc
from pathlib import Path

import pytest

from session_runtime.errors import RequestError
from session_runtime.evaluation import Case, lines, read_cases, read_catalogue

GOOD = '{"query": "q", "gold": ["a"]}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cases.jsonl"


def complaint(path: Path) -> str:
    with pytest.raises(RequestError) as caught:
        read_cases(path)
    return str(caught.value).removeprefix(str(path.parent) + "/")


def test_cases_are_read_with_and_without_labels(path: Path) -> None:
    path.write_bytes(
        b"\xef\xbb\xbf"
        + GOOD.encode()
        + b"\r\n\r\n"
        + '{"id": 7, "kind": "k", "query": "查\u2028x", "gold": ["b", "a", "b"], "note": 1}'.encode()
    )
    assert read_cases(path) == (
        Case(1, "q", ("a",)),
        Case(3, "查\u2028x", ("b", "a"), "k", "7"),
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"query": "q"', "it is no JSON: Expecting ',' delimiter at column 14"),
        ("[1]", "it must be a JSON object, in braces and on one line"),
        ('{"gold": ["a"]}', "query is missing"),
        ('{"query": " ", "gold": ["a"]}', "query must be a text that is not blank"),
        ('{"query": 3, "gold": ["a"]}', "query must be a text that is not blank"),
        ('{"query": "q"}', "gold must name at least one tool, in a list"),
        ('{"query": "q", "gold": []}', "gold must name at least one tool, in a list"),
        ('{"query": "q", "gold": "a"}', "gold must be a list of texts"),
        ('{"query": "q", "gold": [1]}', "gold must be a list of texts"),
        ('{"query": "q", "gold": ["a"], "kind": 1}', "kind must be a text"),
        ('{"query": "q", "gold": ["a"], "id": [1]}', "id must be a text or a number"),
        ('{"query": "q", "query": "r", "gold": ["a"]}', "the key 'query' is given twice"),
        (
            json.dumps({"query": "q" * 10_001, "gold": ["a"]}),
            "query has 10,001 characters, and 10,000 are the most",
        ),
        (
            json.dumps({"query": "q", "gold": [str(n) for n in range(101)]}),
            "gold has 101 entries, and 100 are the most",
        ),
        (
            json.dumps({"query": "q", "gold": ["a"], "kind": "k" * 201}),
            "kind and id have 200 characters at most",
        ),
    ],
)
def test_a_wrong_line_is_named_with_the_reason(path: Path, line: str, reason: str) -> None:
    path.write_text(f"{GOOD}\n{line}\n")
    assert complaint(path) == f"cases.jsonl:2: {reason}"


def test_bytes_that_are_no_text_are_named_with_their_line(path: Path) -> None:
    path.write_bytes(GOOD.encode() + b'\n{"query": "\xff"}')
    assert complaint(path) == "cases.jsonl:2: it is not UTF-8 at byte 11 of the line"


def test_all_wrong_lines_are_named_the_first_with_its_reason(path: Path) -> None:
    path.write_text("\n".join([GOOD, *["{}"] * 12]))
    assert complaint(path) == (
        "cases.jsonl:2: gold must name at least one tool, in a list;"
        " wrong too: lines 3, 4, 5, 6, 7, 8, 9, 10 and 3 others"
    )


def test_a_fault_cannot_take_over_the_terminal(path: Path) -> None:
    path.write_text('{"query": "q", "gold": ["a"], "\\u001b[2J": 1, "\\u001b[2J": 2}')
    assert "\x1b" not in complaint(path)


def test_a_file_without_a_case_says_how_one_is_written(path: Path) -> None:
    path.write_text("\n \n")
    assert '{"query": "…", "gold": ["tool"]}' in complaint(path)


def test_a_missing_file_is_an_error_of_the_request(path: Path) -> None:
    assert complaint(path) == "cases.jsonl cannot be read: No such file or directory"


def test_size_and_lines_are_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(f"{GOOD}\n" * 3)
    monkeypatch.setattr(lines, "MAX_OBJECTS", 2)
    assert complaint(path) == "cases.jsonl:3: more than 2 lines: split the file into several"
    monkeypatch.setattr(lines, "MAX_BYTES", 80)
    assert "is larger than" in complaint(path)


def test_a_file_that_is_too_large_is_not_read_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.touch()
    os.truncate(path, 32 << 20)
    monkeypatch.setattr(lines, "MAX_BYTES", 80)
    tracemalloc.start()
    try:
        assert "is larger than" in complaint(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_catalogue_is_read_with_its_hints_and_the_first_of_equal_names(path: Path) -> None:
    path.write_text(
        '{"name": "a b", "description": null, "aliases": ["x"], "search_hints": ["y"]}\n'
        '{"name": "c", "examples": ["z"], "server": "s", "parameters": {"type": "object"}}\n'
        '{"name": "a b", "description": "again"}\n'
    )
    catalogue = read_catalogue(path)
    first, second = catalogue.specs
    assert (first.name, first.description, first.aliases) == ("a b", "", ("x",))
    assert (first.search_hints, second.examples) == (("y",), ("z",))
    assert second.parameters == {"type": "object"}
    assert catalogue.repeated == ((3, "a b"),)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"description": "d"}', "name is missing"),
        ('{"name": "a", "description": 3}', "description must be a text"),
        ('{"name": "a", "parameters": []}', "parameters must be an object, a JSON Schema"),
        ('{"name": "a", "aliases": "b"}', "aliases must be a list of texts"),
    ],
)
def test_a_wrong_tool_is_named_with_its_line(path: Path, line: str, reason: str) -> None:
    path.write_text(line)
    with pytest.raises(RequestError, match=rf":1: {reason}$"):
        read_catalogue(path)


def test_a_catalogue_without_a_tool_says_how_one_is_written(path: Path) -> None:
    path.write_text("")
    with pytest.raises(RequestError, match="holds no tool: write one per line"):
        read_catalogue(path)
