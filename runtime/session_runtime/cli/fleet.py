"""``status --fleet``: every replica beside the others, and what is wrong with them (NET-6, NET-7)."""

import asyncio
import importlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click

from session_runtime.cli import exits
from session_runtime.cli.options import Files
from session_runtime.cli.reading import Look, reader_of
from session_runtime.cli.screen import one_line, print_json
from session_runtime.client import fleet_http
from session_runtime.client.fleet import Finding, findings, merged
from session_runtime.client.mqtt_line import Broker
from session_runtime.config.addresses import broker_address
from session_runtime.config.fleet import replica_url
from session_runtime.config.mqtt import MqttSettings, tls_context
from session_runtime.config.secrets import UnreadableError, is_reference, resolve
from session_runtime.config.settings import Settings
from session_runtime.errors import ConfigError, Problem, RequestError, SessionRuntimeError
from session_runtime.wire.presence import Presence

_MQTT: Final = ("session_runtime.client.mqtt_broker", "session_runtime.client.fleet_mqtt")
_LARGEST_PACKET: Final = 1_048_576
"""Larger than any status that is read, so that one which is too large is seen and told of."""


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """``urls`` are asked instead of those configured, ``check`` makes warnings an exit code."""

    urls: tuple[str, ...]
    check: bool
    stopped_are_fine: bool


def show_fleet(files: Files, options: FleetOptions, *, as_json: bool) -> int:
    """Ask all replicas, print what they said, and give the exit code."""
    reader = reader_of(files)
    settings = Look(reader)().settings
    seen = asyncio.run(_asked(settings, _urls(settings, options), reader.path.parent))
    replicas = seen.replicas
    wrong = findings(
        replicas,
        stopped_are_fine=options.stopped_are_fine,
        left_out=seen.left_out,
        broker_fault=seen.broker_fault,
    )
    if as_json:
        print_json(_page(replicas, wrong))
    else:
        now = time.time()
        for each in replicas:
            click.echo(one_line(_line(each, now)))
        for finding in wrong:
            click.echo(one_line(f"warning: {finding.text}"))
    return exits.FAILED if wrong and options.check else exits.OK


def _urls(settings: Settings, options: FleetOptions) -> Sequence[str]:
    for url in options.urls:
        try:
            replica_url(url)
        except ValueError as error:
            raise click.UsageError(f"--url {error}") from None
    urls = options.urls or settings.fleet.urls
    if not urls and not settings.mqtt.enabled:
        raise RequestError(
            "no replica can be asked: configure [mqtt], or name their addresses in fleet.urls or by --url",
            code="fleet.nowhere",
        )
    return urls


@dataclass(frozen=True, slots=True)
class _Seen:
    """What replicas said; how many statuses at the broker were not looked at, and why none was."""

    replicas: tuple[Presence, ...]
    left_out: int = 0
    broker_fault: str | None = None


async def _asked(settings: Settings, urls: Sequence[str], folder: Path) -> _Seen:
    """Ask at the addresses and at the broker; a broker that cannot be read hides no answer of the others."""
    by_http = await fleet_http.presences(urls, _key(settings, folder)) if urls else ()
    if not settings.mqtt.enabled:
        return _Seen(merged(by_http))
    try:
        by_mqtt, left_out = await _by_mqtt(settings.mqtt)
    except SessionRuntimeError as error:
        if not urls:
            raise
        return _Seen(merged(by_http), broker_fault=str(error))
    return _Seen(merged(by_mqtt, by_http), left_out)


def _key(settings: Settings, folder: Path) -> str | None:
    """The key of [fleet], which is looked for here and now; None, with a warning, if it is not to be had.

    Replicas that ask for none, or whose broker tells of them, can be shown without it.
    """
    written = settings.fleet.admin_from
    if written is None:
        return None
    try:
        found = resolve(written, settings.runtime.secret_sources, os.environ, folder)
    except UnreadableError as error:
        warning = f"warning: fleet.admin_from: {error}; asked without a key"
        click.echo(one_line(warning), err=True)
        return None
    return None if found.value is None else found.value.get_secret_value()


async def _by_mqtt(mqtt: MqttSettings) -> tuple[tuple[Presence, ...], int]:
    # aiomqtt is an extra; that it is there was checked with the configuration
    line, reading = (importlib.import_module(name) for name in _MQTT)
    try:
        tls = tls_context(mqtt)
    except OSError as error:
        told = f"the certificates cannot be read: {error}"
        raise ConfigError([Problem(told, key="mqtt.tls_ca")]) from error
    at = broker_address(mqtt.url)
    # whether it is encrypted was decided by who wrote mqtt.url
    broker = Broker(at.host, at.port, mqtt.username, _password(mqtt), tls, plain_text=True)
    connect = line.BrokerConnect(broker, _LARGEST_PACKET)
    seen = await reading.presences(connect, mqtt.prefix)
    return seen.presences, seen.left_out


def _password(mqtt: MqttSettings) -> str | None:
    """The password of [mqtt]; ConfigError if only the daemon can reach it."""
    if mqtt.password is None:
        return None
    written = mqtt.password.get_secret_value()
    if is_reference(written):
        told = (
            f"{written} cannot be reached from here: give it to this command as the daemon has it"
        )
        raise ConfigError([Problem(told, key="mqtt.password")])
    return written


def _page(replicas: Sequence[Presence], wrong: Sequence[Finding]) -> Mapping[str, Any]:
    return {
        "good": not wrong,
        "replicas": [asdict(each) for each in replicas],
        "warnings": [asdict(each) for each in wrong],
    }


def _line(each: Presence, now: float) -> str:
    return f"{each.replica}: {'; '.join(_parts(each, now))} ({each.told_by})"


def _parts(each: Presence, now: float) -> Iterator[str]:
    yield each.state + ("" if each.since is None else f" for {_seconds(now - each.since)}")
    if each.fault is not None:
        yield each.fault
    if each.state in ("ready", "draining"):
        yield f"version {_told(each.version)}"
        yield f"generation {_told(each.generation)}"
        yield f"configuration {_told(each.config_digest)}"
        yield f"tools {_told(each.tools_digest)}"
        yield f"{_told(each.asks)} of {_told(each.most_asks)} asks run, {_told(each.waiting)} wait"
        yield f"last edit {_told(each.verdict)}{_ago(each.receipt_at, now)}"
    if each.age_s is not None:
        yield f"heard {_seconds(each.age_s)} ago"


def _told(value: object) -> str:
    return "?" if value is None else str(value)


def _ago(at: float | None, now: float) -> str:
    return "" if at is None else f" {_seconds(now - at)} ago"


def _seconds(seconds: float) -> str:
    return f"{max(0.0, seconds):.0f} s"
