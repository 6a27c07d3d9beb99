"""How a group of commands lists them: each with its first sentence, however long that is."""

from typing import Final

import click

_ANY_LENGTH: Final = 10_000


class Group(click.Group):
    """A group whose list of commands is wrapped, where click would cut it."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, each.get_short_help_str(_ANY_LENGTH)) for name, each in found if each]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
