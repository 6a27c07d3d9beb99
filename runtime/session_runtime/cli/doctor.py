"""``doctor``: whether everything is there that a daemon needs, and what to do where it is not (NET-7)."""

import asyncio
from collections import Counter
from typing import Final

import click

from session_runtime.app.doctor import Finding, examine
from session_runtime.app.logs import set_up_logging
from session_runtime.cli import exits
from session_runtime.cli.options import Files, daemon_file_options, json_option
from session_runtime.cli.reading import reader_of
from session_runtime.cli.screen import one_line, print_json
from session_runtime.config.runtime import LogSettings

_QUIET: Final = LogSettings(level="error")
_MOST_CHARS: Final = 1_000


@click.command(name="doctor", epilog=exits.TABLE)
@click.option(
    "--connect",
    is_flag=True,
    help="Connect to servers of tools too, and send each model a minimal request, which may cost money.",
)
@daemon_file_options
@json_option
def command(files: Files, connect: bool, as_json: bool) -> int:
    """Look at all that a daemon needs, whether one runs or not; exit code 1 if something fails."""
    set_up_logging(_QUIET)
    findings = asyncio.run(_all(files, connect, told=not as_json))
    counts = Counter(finding.verdict for finding in findings)
    if as_json:
        checks = [finding.to_json() for finding in findings]
        print_json({"ok": not counts["fail"], "checks": checks})
    else:
        click.echo(f"{counts['ok']} ok, {counts['warn']} to look at, {counts['fail']} failed")
    return exits.FAILED if counts["fail"] else exits.OK


async def _all(files: Files, connect: bool, *, told: bool) -> list[Finding]:
    """Every finding; each is told as soon as it is there, as some take a while."""
    findings = []
    async for finding in examine(reader_of(files), connect=connect):
        findings.append(finding)
        if told:
            _tell(finding)
    return findings


def _tell(finding: Finding) -> None:
    click.echo(
        f"{finding.verdict:4}  {one_line(f'{finding.check}: {finding.found}'[:_MOST_CHARS])}"
    )
    if finding.do and finding.verdict != "ok":
        click.echo(f"      -> {one_line(finding.do[:_MOST_CHARS])}")
