"""``tools logs``, ``refresh`` and ``approve``: the servers of a running daemon, by name (RTE-4, RTE-6)."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import click

from session_runtime.cli import exits
from session_runtime.cli.config_live import details_of
from session_runtime.cli.daemon import daemon_options
from session_runtime.cli.options import json_option
from session_runtime.cli.screen import print_json
from session_runtime.cli.status import server_line
from session_runtime.cli.waiting import waiting_lines
from session_runtime.client.control import ControlClient
from session_runtime.wire import printable


@click.command("logs", epilog=exits.TABLE)
@click.argument("name")
@click.option("--lines", type=click.IntRange(1, 1000), default=100, show_default=True)
@daemon_options
@json_option
def logs(name: str, lines: int, daemon: ControlClient, as_json: bool) -> None:
    """Show what the server NAME last wrote to its standard error."""
    found = daemon.request("GET", f"/v1/servers/{_in_path(name)}/log?lines={lines}")["logs"]
    if as_json:
        print_json(found)
        return
    for session in found:
        if len(found) > 1:
            who = session["credential"]
            click.echo(f"{name}, {'without a credential' if who is None else f'credential {who}'}:")
        for line in session["lines"]:
            click.echo(printable(line))
    if not any(session["lines"] for session in found):
        click.echo("it wrote nothing", err=True)


@click.command("refresh", epilog=exits.TABLE)
@click.argument("name")
@click.option(
    "--restart", is_flag=True, help="End the connection first, and the process behind it."
)
@daemon_options
@json_option
def refresh(name: str, restart: bool, daemon: ControlClient, as_json: bool) -> int:
    """Make the daemon list the tools of the server NAME again, for new asks."""
    what = "restart" if restart else "refresh"
    told = daemon.request("POST", f"/v1/servers/{_in_path(name)}/{what}")
    if as_json:
        print_json(told)
    else:
        _tell(told)
    return exits.OK if all(map(_is_ready, told["servers"])) else exits.UNAVAILABLE


@click.command("approve", epilog=exits.TABLE)
@click.argument("name", required=False)
@click.option("--form", "digest", metavar="DIGEST", help="The form to approve, as it is shown.")
@click.option("--all", "server", metavar="SERVER", help="All tools of a server, as they wait now.")
@daemon_options
@json_option
def approve(
    name: str | None, digest: str | None, server: str | None, daemon: ControlClient, as_json: bool
) -> None:
    """Show what changed of the destructive tool NAME, or with --form approve it in that form."""
    if (name is None) == (server is None) or (digest is not None and name is None):
        raise click.UsageError("Give either NAME, with or without --form DIGEST, or --all SERVER.")
    if name is not None and digest is None:
        _show_waiting(name, daemon, as_json)
        return
    wanted = {"name": name, "digest": digest} if server is None else {"server": server}
    told = daemon.request("POST", "/v1/tools/approve", wanted)
    if as_json:
        print_json(told)
        return
    for each in told["approved"]:
        click.echo(printable(f"approved: {each}"))
    for line in details_of(told["receipt"]):
        click.echo(printable(f"  {line}"))


def _show_waiting(name: str, daemon: ControlClient, as_json: bool) -> None:
    told = daemon.request("GET", f"/v1/tools/waiting/{_in_path(name)}")
    if as_json:
        print_json(told)
        return
    for line in waiting_lines(told):
        click.echo(printable(line))


def _is_ready(server: Mapping[str, Any]) -> bool:
    """Whether all sessions of a server are; one that is off or has credentials alone has no own state."""
    sessions = (server, *server.get("credentials", ()))
    return all(session.get("state", "ready") == "ready" for session in sessions)


def _tell(told: dict[str, Any]) -> None:
    for server in told["servers"]:
        for line in server_line(server):
            click.echo(printable(line))
    receipt = told["receipt"]
    click.echo(f"{receipt['verdict']}: generation {receipt['generation']} is in force")
    for line in details_of(receipt):
        click.echo(printable(line))


def _in_path(name: str) -> str:
    return quote(name, safe="")


COMMANDS: Final = (logs, refresh, approve)
"""To be added to the group ``tools``."""
