"""``asks``: which asks run in a daemon, and how to end them (REL-9)."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

import click

from session_runtime.ask.service import ALL
from session_runtime.cli import exits
from session_runtime.cli.daemon import daemon_options
from session_runtime.cli.groups import Group
from session_runtime.cli.options import json_option
from session_runtime.cli.screen import print_json
from session_runtime.client.control import ControlClient
from session_runtime.errors import RequestError
from session_runtime.wire import printable


@click.group(name="asks", cls=Group)
def command() -> None:
    """Show and end the asks that run in a daemon."""


@command.command("list", epilog=exits.TABLE)
@daemon_options
@json_option
def list_asks(daemon: ControlClient, as_json: bool) -> None:
    """List the asks that run, the oldest first."""
    asks = daemon.request("GET", "/v1/asks")["asks"]
    if as_json:
        print_json(asks)
        return
    for ask in asks:
        click.echo(printable(_line(ask)))
    if not asks:
        click.echo("no ask is running", err=True)


@command.command("cancel", epilog=exits.TABLE)
@click.argument("ask_ids", metavar="ID...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every ask that runs.")
@click.option(
    "--reason",
    metavar="TEXT",
    default="an operator ended this ask",
    show_default=True,
    help="What the callers are told.",
)
@daemon_options
@json_option
def cancel_asks(
    ask_ids: tuple[str, ...],
    everything: bool,
    reason: str,
    daemon: ControlClient,
    as_json: bool,
) -> int:
    """End the asks with these IDs at once; their callers get the outcome cancelled."""
    if everything == bool(ask_ids):
        raise click.UsageError("Give either IDs or --all.")
    if ALL in ask_ids:
        raise click.UsageError(f"{ALL!r} is no ID: say --all to end every ask.")
    cancelled, faults = _cancel(daemon, [ALL] if everything else ask_ids, reason)
    if as_json:
        print_json({"cancelled": cancelled, "problems": faults})
    else:
        for fault in faults:
            click.echo(f"error: {printable(fault)}", err=True)
        click.echo(f"cancelled {cancelled}")
    return exits.USAGE if faults else exits.OK


def _cancel(daemon: ControlClient, ask_ids: Sequence[str], reason: str) -> tuple[int, list[str]]:
    """End each; one that has ended by itself keeps none of the others from being told."""
    query = f"?{urlencode({'reason': reason})}"
    cancelled, faults = 0, []
    for ask_id in ask_ids:
        try:
            told = daemon.request("DELETE", f"/v1/asks/{quote(ask_id, safe='')}{query}")
        except RequestError as error:
            faults.append(_fault(ask_id, error))
        else:
            cancelled += told["cancelled"]
    return cancelled, faults


def _fault(ask_id: str, error: RequestError) -> str:
    """Say it in terms of the command line, where the daemon names a request."""
    if error.code == "request.unknown_ask":
        return f"no ask {ask_id[:100]!r} is running; asks list shows those that are"
    return str(error)


def _line(ask: dict[str, Any]) -> str:
    state = "cancelling" if ask["cancelling"] else ask["state"]
    who = ask["principal"] if ask["user"] is None else f"{ask['user']} ({ask['principal']})"
    did = f"{ask['steps']} steps, {ask['tool_calls']} calls"
    return f"{ask['ask_id']}  {ask['age_s']:8.1f} s  {state:10}  {ask['model']}  {who}  {did}"
