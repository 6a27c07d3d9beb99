"""``revoke``: takes tools away from a running daemon at once, and gives them back (REL-9)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from session_runtime.cli import exits
from session_runtime.cli.daemon import daemon_options
from session_runtime.cli.options import json_option
from session_runtime.cli.screen import print_json
from session_runtime.client.control import ControlClient
from session_runtime.errors import RequestError
from session_runtime.wire import printable

NAMED = 10


@click.command(name="revoke", epilog=exits.TABLE)
@click.argument("pattern", required=False)
@click.option("--reason", metavar="TEXT", help="Why, for other operators.")
@click.option("--list", "listing", is_flag=True, help="Show what is revoked.")
@click.option("--lift", metavar="NUMBER|PATTERN", help="Give back what this revocation took.")
@daemon_options
@json_option
def command(
    pattern: str | None,
    reason: str | None,
    listing: bool,
    lift: str | None,
    daemon: ControlClient,
    as_json: bool,
) -> None:
    """Take away the tools that PATTERN matches, such as files.*, also from asks that run.

    They stay away, over restarts too, until they are given back with --lift.
    """
    if [pattern is not None, listing, lift is not None].count(True) != 1:
        raise click.UsageError("Give either PATTERN, --list or --lift.")
    if reason is not None and pattern is None:
        raise click.UsageError("--reason belongs to PATTERN.")
    if pattern is not None:
        _revoke(daemon, {"pattern": pattern, "reason": reason}, as_json)
    elif lift is not None:
        _lift(daemon, lift, as_json)
    else:
        _list(daemon, as_json)


def _revoke(daemon: ControlClient, wanted: Mapping[str, Any], as_json: bool) -> None:
    found = daemon.request("POST", "/v1/revocations", wanted)
    if as_json:
        print_json(found)
        return
    tools = found["tools"]
    more = f" and {len(tools) - NAMED} more" if len(tools) > NAMED else ""
    named = ", ".join(tools[:NAMED]) + more if tools else "no tool for now"
    click.echo(printable(f"revoked, number {found['number']}: {named}"))
    for warning in found["warnings"]:
        click.echo(f"warning: {printable(warning)}", err=True)


def _lift(daemon: ControlClient, which: str, as_json: bool) -> None:
    lifted = daemon.request("DELETE", f"/v1/revocations/{_number(daemon, which)}")
    if as_json:
        print_json(lifted)
        return
    click.echo(printable(f"lifted, number {lifted['number']}: {lifted['pattern']}"))


def _list(daemon: ControlClient, as_json: bool) -> None:
    revocations = daemon.request("GET", "/v1/revocations")["revocations"]
    if as_json:
        print_json(revocations)
        return
    for each in revocations:
        at = datetime.fromtimestamp(each["time"]).astimezone().isoformat(" ", "seconds")
        why = f": {each['reason']}" if each["reason"] else ""
        click.echo(printable(f"{each['number']:4}  {each['pattern']}  ({at} by {each['by']}{why})"))
    if not revocations:
        click.echo("nothing is revoked", err=True)


def _number(daemon: ControlClient, which: str) -> int:
    """The number of a revocation that was named by its number or its pattern."""
    revocations = daemon.request("GET", "/v1/revocations")["revocations"]
    for each in revocations:
        if which in (str(each["number"]), each["pattern"]):
            return int(each["number"])
    raise RequestError(
        f"no revocation has the number or pattern {which!r}; revoke --list shows all",
        code="request.unknown_revocation",
    )
