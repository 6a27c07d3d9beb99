"""The page of the interfaces names every command of the command line, and no other."""

import re

import pytest

from tests.cli.tree import leaves
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "transports.md"


def in_the_table() -> set[str]:
    """What the first column of the table calls commands; arguments and options left out."""
    text = PAGE.read_text("utf-8").partition("## On the command line\n")[2]
    rows = re.findall(r"^\| (`[^|]*) \|", text.partition("\n\nAll take")[0], re.MULTILINE)
    spans = [span for row in rows for span in re.findall(r"`([a-z][^`]*)`", row)]
    return {" ".join(re.findall(r"(?<!\S)[a-z][a-z-]*(?!\S)", span)) for span in spans}


def test_every_command_has_a_row_and_every_row_a_command() -> None:
    assert in_the_table() == {name for name, _ in leaves()}


@pytest.mark.parametrize("option", ["--json", "--config", "--env-file"])
def test_who_takes_an_option_is_told(option: str) -> None:
    lacking = {
        name
        for name, command in leaves()
        if not any(option in parameter.opts for parameter in command.params)
    }
    assert lacking == ({"mcp", "tools import-mcp"} & lacking if option == "--json" else set())
