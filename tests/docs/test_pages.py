"""The reader of Markdown pages finds what the tests of the examples rely on."""

from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.pages import Block, blocks, links, prints


def test_output_belongs_to_the_block_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# T\n\n```sh run\necho 1\n```\n\nprints\n\n```text output\n1\n```\n\n```json\n{}\n```\n"
    )
    assert list(blocks(page)) == [
        Block("page.md", 3, "sh run", "echo 1\n", "1\n"),
        Block("page.md", 13, "json", "{}\n"),
    ]


def test_links_are_those_to_files_outside_of_code(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "[a](a.md#part) [b](#here) [c](https://example.org/)\n```text\n[d](d.md)\n```\n"
    )
    assert list(links(page)) == ["a.md"]


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("a\n...\nz\n", "a\nb\nc\nz", True),
        ("a\n...\nz\n", "a\nz", True),
        ("a\n...\nz\n", "a\nbz", False),
        ('{"text": "...372..."}', 'x {"text": "is 372."} y', True),
        ("a...z", "z a", False),
        ("1.5", "115", False),
    ],
)
def test_dots_stand_for_anything_in_expected_output(expected: str, actual: str, same: bool) -> None:
    assert prints(expected, actual) is same
