"""``status``: how a running daemon is (INT-4)."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from session_runtime.cli import exits
from session_runtime.cli.config_live import details_of, head_of
from session_runtime.cli.daemon import daemon_of
from session_runtime.cli.fleet import FleetOptions, show_fleet
from session_runtime.cli.options import Files, daemon_file_options, json_option
from session_runtime.cli.screen import print_json
from session_runtime.wire import printable


@click.command(name="status", epilog=exits.TABLE)
@daemon_file_options
@click.option("--fleet", is_flag=True, help="Show all replicas instead, and how they differ.")
@click.option(
    "--url",
    "urls",
    metavar="URL",
    multiple=True,
    help="Address of a replica to ask, instead of fleet.urls; may be repeated.",
)
@click.option("--check", is_flag=True, help="End with 1 if there is anything to warn of.")
@click.option(
    "--stopped-ok",
    "stopped_are_fine",
    is_flag=True,
    help="Do not warn of replicas that were stopped, as a rollout leaves some.",
)
@json_option
def command(files: Files, fleet: bool, as_json: bool, **options: Any) -> int:
    """Show how the daemon is: what is in force, what runs, and what an operator should know.

    With --fleet: how all replicas are, as they tell the MQTT broker, or answer at addresses of their own.
    """
    if fleet:
        return show_fleet(files, FleetOptions(**options), as_json=as_json)
    if any(options.values()):
        raise click.UsageError(
            "--url, --check and --stopped-ok are for --fleet: say status --fleet --check."
        )
    status = daemon_of(files).request("GET", "/v1/status")
    if as_json:
        print_json(status)
        return exits.OK
    for line in (*_state(status), *_configuration(status), *_to_know(status)):
        click.echo(printable(line))
    return exits.OK


def _state(status: Mapping[str, Any]) -> Iterator[str]:
    yield f"{status['name']} {status['version']}: {state_of(status)}, {status['asks']} asks run"
    yield f"tools: {status['tools']}"
    for each in status["servers"]:
        if "name" in each:
            yield from server_line(each)
    for each in status["generations"]:
        force = "in force" if each["in_force"] else "until its asks end"
        yield (
            f"generation {each['generation']}: {force}, {each['asks']} asks,"
            f" {each['age_s']:.0f} s old, digest {each['digest']}"
        )


def state_of(status: Mapping[str, Any]) -> str:
    """As ``/readyz`` says it: not ready before there was a connection to the broker of MQTT."""
    mqtt = status["mqtt"]
    if status["state"] == "ready" and mqtt is not None and not mqtt["connections"]:
        return "not ready: there was no connection to the MQTT broker yet"
    return str(status["state"])


def server_line(server: Mapping[str, Any]) -> Iterator[str]:
    """One server, and each of its credentials, as ``/v1/status`` tells of them."""
    group = "" if server["group"] is None else f" of the group {server['group']}"
    if "state" in server:
        yield f"server {server['name']}{group}: {_session(server)}"
    for each in server.get("credentials", ()):
        yield f"server {server['name']}{group}, credential {each['name']}: {_session(each)}"


def _session(session: Mapping[str, Any]) -> str:
    for_s = max(0.0, time.time() - session["since"])
    told = [f"{session['state']} for {for_s:.0f} s, {session['tools']} tools"]
    if session["refused"]:
        told.append(f"{session['refused']} refused")
    if session["stale"]:
        told.append("as last listed")
    if session["restarts"]:
        told.append(f"{session['restarts']} restarts")
    if session["skipped_lines"]:
        told.append(f"{session['skipped_lines']} lines skipped")
    if session["error"]:
        told.append(session["error"])
    return ", ".join(told)


def _configuration(status: Mapping[str, Any]) -> Iterator[str]:
    config, watcher = status["config"], status["watcher"]
    if config["in_force"]:
        yield "configuration: what its sources say is in force"
    else:
        since = max(0.0, time.time() - config["rejected_since"])
        entry = config["entry"]
        stays = "the one before" if entry is None else f"entry {entry} of the history"
        yield f"configuration: its sources have been unusable for {since:.0f} s; in force is {stays}"
    yield f"last attempt: {head_of(config['last_receipt'])}"
    yield from (f"  {line}" for line in details_of(config["last_receipt"]))
    if config["restart_needed"]:
        yield f"waits for a restart: {', '.join(config['restart_needed'])}"
    looks = (
        "" if watcher["mode"] == "off" else f", all is looked at every {watcher['recheck_s']:g} s"
    )
    yield f"edits are noticed by: {watcher['mode']}{looks}"
    yield from (f"warning: {warning}" for warning in watcher["warnings"])
    if watcher["failure"] is not None:
        yield f"warning: watching failed and goes on: {watcher['failure']}"


def _audit(audit: Mapping[str, Any] | None) -> Iterator[str]:
    if audit is None:
        yield "audit log: off"
        return
    if audit["sequence"]:
        yield f"audit log: ends with record {audit['sequence']}:{audit['head']} in {audit['file']}"
    if audit["lost"]:
        yield f"warning: {audit['lost']} audit records are lost"
    if audit["trouble"] is not None:
        yield f"warning: the audit log cannot be written: {audit['trouble']}"
    if audit["altered"] is not None:
        yield f"warning: the audit log was altered: {audit['altered']}"


def mqtt_line(mqtt: Mapping[str, Any] | None) -> Iterator[str]:
    """The MQTT door, if there is one, as ``/v1/status`` tells of it."""
    if mqtt is None:
        return
    fault = f" ({mqtt['fault']})" if mqtt["fault"] else ""
    since = mqtt["connected_since"]
    up = f"not connected{fault}"
    if since is not None:
        up = f"connected for {max(0.0, time.time() - since):.0f} s"
    answered = mqtt["messages"]["answered"]
    yield f"mqtt: {up} as {mqtt['replica']}, {mqtt['in_hand']} in hand, {answered} answered"
    if mqtt["name_disputed"]:
        yield (
            "warning: connections to the MQTT broker broke soon after they were made: does another"
            f" daemon have the name {mqtt['replica']}? Give each its own (mqtt.client_id)"
        )


def callback_lines(callbacks: Mapping[str, Any]) -> Iterator[str]:
    """Results for callbacks, as ``/v1/status`` tells of them; nothing if there were none."""
    if any(callbacks[name] for name in ("waiting", "delivered", "failed", "dropped")):
        yield (
            f"callbacks: {callbacks['waiting']} waiting, {callbacks['delivered']} delivered,"
            f" {callbacks['failed']} failed"
        )
    for each in callbacks["failures"]:
        ago_s = max(0.0, time.time() - each["at"])
        yield (
            f"warning: the callback {each['callback']} did not take the result of {each['ask_id']}"
            f" {ago_s:.0f} s ago: {each['reason']}"
        )


def _to_know(status: Mapping[str, Any]) -> Iterator[str]:
    yield from mqtt_line(status["mqtt"])
    yield from callback_lines(status["callbacks"])
    yield from _audit(status["audit"])
    for each in status["approvals"]["waiting"]:
        yield f"waits for an approval: {each['name']} in the form {each['digest']}"
    if trouble := status["approvals"]["trouble"]:
        yield f"warning: what was seen and approved of tools cannot be kept: {trouble}"
    for each in status["revocations"]:
        reason = f" ({each['reason']})" if each["reason"] else ""
        yield f"revoked: {each['pattern']}{reason}"
    for bad in status["quarantined"]:
        fate = "keeps its last good form" if bad["stale"] else "is left out"
        yield f"tool {bad['name']} {fate}: {bad['place']}: {bad['reason']}"
    yield from (f"warning: {warning}" for warning in status["warnings"])
