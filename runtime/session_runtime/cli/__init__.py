"""The command line: which commands there are, and what an error means for the exit code.

Each command lives in a module of its own, which is imported when the command is used.
"""

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final, cast

import click

from session_runtime import __version__
from session_runtime.cli import exits
from session_runtime.errors import ConfigError, SessionRuntimeError
from session_runtime.wire import printable

COMMANDS: Final = {
    "ask": "Ask once, in this process.",
    "asks": "Show and end the asks that run in a daemon.",
    "audit": "Verify and show the record of tool calls.",
    "config": "Check, show, explain and edit the configuration; go back to an earlier one.",
    "doctor": "Look at all that a daemon needs, and say what to do.",
    "eval": "Measure how well tool search finds the right tools.",
    "keys": "Make, list and remove the keys that let callers in.",
    "mcp": "Offer the tools to the MCP client that starts this.",
    "replay": "Tell what a configuration would change for recorded asks.",
    "revoke": "Take tools away from a running daemon at once, and give them back.",
    "serve": "Run the daemon.",
    "status": "Show how a running daemon is.",
    "tools": "List, show and search the tools; write a new one.",
    "trace": "Show what became of asks that ended.",
}


class LazyGroup(click.Group):
    """The commands by name; ``--help`` lists them without importing any."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, sorted."""
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        if cmd_name == "serve":  # its imports take a while, in which SIGHUP must not end it either
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        module = importlib.import_module(f"session_runtime.cli.{cmd_name}")
        return cast(click.Command, module.command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


@click.command(cls=LazyGroup, epilog=exits.TABLE)
@click.version_option(__version__, prog_name="session-runtime")
def commands() -> None:
    """Answer asks with tools: as a daemon, or right here."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code and prints expected errors without a traceback."""
    try:
        code = _run(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.UsageError as error:
        error.show()
        return exits.USAGE
    except ConfigError as error:
        return _complain([str(problem) for problem in error.problems], exits.of_error(error))
    except SessionRuntimeError as error:
        return _complain([str(error)], exits.of_error(error))
    except BrokenPipeError:
        _forget_stdout()
        return exits.BROKEN_PIPE
    except OSError as error:
        return _complain([_os_fault(error)], exits.FAILED)
    return code


def _run(arguments: list[str]) -> int:
    for argument in arguments:
        if argument.encode("utf-8", "ignore").decode() != argument:
            raise click.UsageError(f"The argument {printable(argument)} is not UTF-8.")
    with commands.make_context("session-runtime", arguments) as context:
        code = commands.invoke(context)
    return code if isinstance(code, int) else exits.OK


def _os_fault(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{os.fsdecode(error.filename)}: {error.strerror}"


def _complain(lines: Sequence[str], code: int) -> int:
    for line in lines:
        one_line = " ".join(line.splitlines())
        click.echo(f"error: {printable(one_line)}", err=True)
    return code


def _forget_stdout() -> None:
    """Let the interpreter flush into nothing when it ends, instead of failing once more."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
