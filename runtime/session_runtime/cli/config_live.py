"""The configuration of a running daemon (REL-3): ``reload``, ``receipts``, ``--diff``, ``--daemon``."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import click

from session_runtime.cli import exits
from session_runtime.cli.daemon import daemon_of, daemon_options
from session_runtime.cli.options import Files, json_option
from session_runtime.cli.reading import reader_of
from session_runtime.cli.screen import print_json
from session_runtime.client.control import ControlClient
from session_runtime.config.edit import open_file
from session_runtime.config.explain import Explanation
from session_runtime.errors import Problem, RequestError
from session_runtime.wire import printable


@click.command("reload", epilog=exits.TABLE)
@daemon_options
@json_option
def reload(daemon: ControlClient, as_json: bool) -> int:
    """Make the daemon read its configuration again, and tell what that came to."""
    receipt = daemon.request("POST", "/v1/config/reload", patient=True)
    return _tell(receipt, f"generation {receipt['generation']} is in force", as_json)


@click.command("receipts", epilog=exits.TABLE)
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@daemon_options
@json_option
def receipts(limit: int, daemon: ControlClient, as_json: bool) -> None:
    """List what the last attempts to change the configuration came to, the newest first.

    An entry is the number by which config rollback goes back to it.
    """
    found = daemon.request("GET", f"/v1/config/history?limit={limit}")["receipts"]
    if as_json:
        print_json(found)
        return
    for receipt in found:
        entry = "" if receipt["entry"] is None else f"  entry {receipt['entry']}"
        click.echo(printable(f"{receipt['id']:5}  {head_of(receipt)}{entry}"))
        for line in details_of(receipt):
            click.echo(printable(f"       {line}"))


COMMANDS: Final = (reload, receipts)
"""To be added to the group ``config``."""


def would_change(files: Files, as_json: bool) -> int:
    """Tell what the file would change in the daemon, which tries it and changes nothing."""
    reader = reader_of(files)
    daemon = daemon_of(files)
    text = open_file(reader.path, may_be_absent=True).content
    if text is None:
        _expect_no_file(daemon, reader.path)
    receipt = daemon.request("POST", "/v1/config/validate", toml=text)
    return _tell(receipt, "this is what a reload would come to", as_json)


def _expect_no_file(daemon: ControlClient, path: Path) -> None:
    """Refuse to compare a file that is not there with what the daemon reads from another."""
    file = daemon.request("GET", "/v1/config")["file"]
    if file is not None and Path(file) != path:
        raise RequestError(
            f"there is no file {path} to compare: the daemon reads {file}, name that by --config"
        )


def in_force(files: Files) -> tuple[Explanation, ...]:
    """Every key that the daemon has in force."""
    return _explanations(daemon_of(files).request("GET", "/v1/config")["keys"])


def explained(files: Files, key: str) -> Explanation | tuple[Explanation, ...]:
    """What the daemon has in force of one key, or of a section; RequestError if there is none."""
    query = urlencode({"key": key})
    found = daemon_of(files).request("GET", f"/v1/config/explain?{query}")
    return _explanations(found["keys"]) if "section" in found else _explanation(found)


def _explanations(found: Iterable[Mapping[str, Any]]) -> tuple[Explanation, ...]:
    return tuple(_explanation(each) for each in found)


def _explanation(found: Mapping[str, Any]) -> Explanation:
    return Explanation(**{**found, "shadowed": tuple(found["shadowed"])})


def head_of(receipt: Mapping[str, Any]) -> str:
    """When an attempt was made, what caused it and how it ended."""
    return f"{receipt['time']}  {receipt['trigger']:6}  {receipt['verdict']}"


def details_of(receipt: Mapping[str, Any]) -> Iterator[str]:
    """What an attempt changed, or why it was rejected, one thing per line."""
    for change in receipt["changes"]:
        shadow = change["shadowed_by"]
        acts = f"acts: {change['acts']}" if shadow is None else f"no effect: shadowed by {shadow}"
        yield f"{change['key']}: {_value(change['old'])} -> {_value(change['new'])} ({acts})"
    for kind, names in receipt["tools"].items():
        yield f"tools {kind}: {', '.join(names)}"
    for change in receipt["restart_needed"]:
        values = f"{_value(change['old'])} -> {_value(change['new'])}"
        yield f"waits for a restart: {change['key']}: {values}"
    for kind in ("errors", "warnings"):
        yield from (f"{kind[:-1]}: {Problem(**problem)}" for problem in receipt[kind])


def _tell(receipt: Mapping[str, Any], meaning: str, as_json: bool) -> int:
    rejected = receipt["verdict"] == "rejected"
    if as_json:
        print_json(receipt)
    else:
        click.echo(f"{receipt['verdict']}: {meaning}")
        for line in details_of(receipt):
            click.echo(printable(line), err=rejected)
    return exits.CONFIG if rejected else exits.OK


def _value(value: object) -> str:
    return "unset" if value is None else json.dumps(value, ensure_ascii=False)
