"""The help of every command is whole: what each does, and what its exit code means."""

import click
import pytest

from tests.cli.tree import groups_and_commands, leaves

ALL = {name: (command, context) for name, command, context in groups_and_commands()}
GROUPS = [name for name, (command, _) in ALL.items() if isinstance(command, click.Group)]


@pytest.mark.parametrize("name", GROUPS)
def test_a_list_of_commands_cuts_no_sentence(name: str) -> None:
    command, context = ALL[name]
    listed = command.get_help(context).partition("\nCommands:\n")[2].partition("\n\n")[0]
    assert [line for line in listed.splitlines() if line.endswith("...")] == []
    assert listed.endswith(".")


def test_every_command_explains_its_exit_codes() -> None:
    silent = [name for name, each in leaves() if "Exit codes:\n  0 " not in str(each.epilog)]
    assert silent == []
