"""Whoever names a tool of a large real catalogue gets it first, in whatever form it is named."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_runtime.registry.names import build_wire_names
from session_runtime.search import SearchIndex, index_tools

CATALOGUES = os.environ.get("TOOL_CATALOGUES")
pytestmark = pytest.mark.skipif(
    not CATALOGUES, reason="TOOL_CATALOGUES names no folder of tool catalogues"
)


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    lines = (Path(CATALOGUES or "") / "mcp_all" / "tools.jsonl").read_text("utf-8").splitlines()
    return index_tools(map(json.loads, lines))


def squashed(text: str) -> str:
    """Equal for forms that differ by nothing but case and separators."""
    return re.sub(r"[\W_]+", "", text).casefold()


def tails(name: str) -> list[str]:
    """The name, and what follows each of its segments."""
    return [name, *(name[end.end() :] for end in re.finditer(r"[./:]|__", name))]


def in_full(name: str, wire: str) -> Iterator[str]:
    yield from (name, name.upper(), f"`{name}`", f'"{name}"', f"select:{name}", f"  {name}.", wire)


def in_part(tail: str) -> Iterator[str]:
    words = [word for word in re.split(r"[\W_]+", tail) if word]
    camel = "".join([words[0], *(word[:1].upper() + word[1:] for word in words[1:])])
    yield from (tail, camel, "_".join(words), "-".join(words))


IN_CHINESE = (
    "请用{}帮我",
    "{}查一下",
    "调用{}工具",
    "{}，谢谢",
    "使用“{}”",
    "使用`{}`完成",
    "调用{}()",
)


def not_first(index: SearchIndex, name: str, forms: Iterator[str]) -> list[tuple[str, str]]:
    return [(name, form) for form in forms if [best for best, _ in index.rank(form, 1)] != [name]]


@pytest.mark.requirement("TS-7")
def test_every_tool_is_first_by_its_full_name_in_any_spelling(index: SearchIndex) -> None:
    wire = build_wire_names(index.names, "__")
    spelt = Counter(name.casefold() for name in index.names)
    assert [
        missed
        for name in index.names
        if spelt[name.casefold()] == 1
        for missed in not_first(index, name, in_full(name, wire.encode(name)))
    ] == []


@pytest.mark.requirement("TS-8")
def test_every_tool_is_first_by_each_part_of_its_name_that_no_other_has(index: SearchIndex) -> None:
    owners = Counter(
        form for name in index.names for form in {squashed(tail) for tail in tails(name)} - {""}
    )
    assert [
        missed
        for name in index.names
        for tail in tails(name)
        if owners[squashed(tail)] == 1
        for missed in not_first(index, name, in_part(tail))
    ] == []


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize("sentence", IN_CHINESE)
def test_every_tool_is_first_by_its_full_name_in_a_chinese_sentence(
    index: SearchIndex, sentence: str
) -> None:
    spelt = Counter(name.casefold() for name in index.names)
    assert [
        missed
        for name in index.names
        if re.fullmatch(r"\w+(?:[._-]+\w+)+", name) and spelt[name.casefold()] == 1
        for missed in not_first(index, name, iter((sentence.format(name),)))
    ] == []
