"""All commands of the command line, as click knows them."""

from collections.abc import Iterator

import click

from session_runtime.cli import commands


def groups_and_commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Each with its name (``config set``) and the context that its help is told in; groups come first."""
    root = click.Context(commands, info_name="session-runtime")
    yield "", commands, root
    yield from _inside(commands, root, "")


def leaves() -> Iterator[tuple[str, click.Command]]:
    """Each command that does something."""
    for name, command, _ in groups_and_commands():
        if not isinstance(command, click.Group):
            yield name, command


def _inside(
    group: click.Group, context: click.Context, before: str
) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name)
        yield f"{before}{name}", command, inner
        if isinstance(command, click.Group):
            yield from _inside(command, inner, f"{before}{name} ")
