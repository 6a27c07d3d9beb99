"""The numbers that a monitoring system reads from a runtime (REL-3); their text form is ``trace``'s."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, get_args

from session_runtime import __version__
from session_runtime.ask.service import AskService
from session_runtime.config.live import LiveConfig
from session_runtime.config.receipt import Trigger, Verdict
from session_runtime.generation.live import Generations
from session_runtime.registry.lookups import OUTCOMES, Found
from session_runtime.trace.metrics import Family, Sample, gauge

MOST_SERVERS: Final = 200
Kind = Literal["gauge", "counter"]

_EXACT_DIGITS: Final = 13
"""So many hexadecimal digits of a digest are exact as a floating-point number."""


def metrics(
    generations: Generations,
    live: LiveConfig,
    asks: int,
    ready: bool,
    lookups: Mapping[Found, int],
) -> Iterator[Family]:
    """All families, with the same names and labels at any time, but for the configured servers."""
    yield gauge("build_info", "Always 1; the label is the version.", 1, {"version": __version__})
    yield gauge("ready", "1 while asks are taken, else 0.", ready)
    yield gauge("asks_running", "Asks that are running.", asks)
    yield from _of_generations(generations)
    yield from _of_configuration(live)
    yield Family(
        "tool_lookups_total",
        "counter",
        "Names that models called, by what was found: the tool, one that no server can run now, none.",
        tuple(Sample(lookups[found], {"found": found}) for found in OUTCOMES),
    )
    yield from _of_servers([*generations.current.servers.status()])


def of_waiting(service: AskService) -> Iterator[Family]:
    """Asks that do not run: those that wait, and those that were refused."""
    yield gauge("asks_waiting", "Asks that wait for their turn.", service.waiting)
    yield gauge(
        "limits_users", "Users of whom it is remembered what they used.", service.known_users
    )
    yield Family(
        "asks_refused_total",
        "counter",
        "Asks that were refused before they began, by the code of their error.",
        tuple(Sample(count, {"code": code}) for code, count in service.refused.items()),
    )


def _of_generations(generations: Generations) -> Iterator[Family]:
    current, catalog = generations.current, generations.current.catalog
    yield gauge("generation", "Number of the generation in force.", current.number)
    yield gauge(
        "generations_live",
        "Generations that still matter: the one in force, and older ones with running asks.",
        len(generations.report()),
    )
    yield gauge("tools", "Tools of the generation in force.", len(catalog.specs))
    yield gauge(
        "tools_quarantined",
        "Tools that are there and cannot be used as they are.",
        len(catalog.quarantined),
    )
    yield gauge(
        "config_hash",
        "The digest of configuration and tools in force as a number, to compare daemons.",
        int(current.digest[:_EXACT_DIGITS], 16),
    )


def _of_servers(servers: Sequence[Mapping[str, Any]]) -> Iterator[Family]:
    """Each server with all of its sessions; of very many only the first ones are told."""
    sessions = {
        server["name"]: [
            each for each in (server, *server.get("credentials", ())) if "state" in each
        ]
        for server in servers[:MOST_SERVERS]
    }
    yield gauge("servers", "Servers that are configured.", len(servers))

    def of_each(
        name: str, kind: Kind, meaning: str, value: Callable[[list[Mapping[str, Any]]], float]
    ) -> Family:
        return Family(
            name,
            kind,
            meaning,
            tuple(Sample(value(of), {"server": server}) for server, of in sessions.items()),
        )

    yield of_each(
        "server_ready",
        "gauge",
        "1 if the server can be called, in all of its sessions.",
        _all_ready,
    )
    yield of_each("server_tools", "gauge", "Tools that the server lists.", partial(_most, "tools"))
    yield of_each(
        "server_refused",
        "gauge",
        "Tools that it lists and that cannot be used.",
        partial(_most, "refused"),
    )
    yield of_each(
        "server_stale",
        "gauge",
        "1 if its last list is old, as a newer one failed.",
        partial(_most, "stale"),
    )
    yield of_each("server_calls", "gauge", "Calls that run there now.", partial(_sum, "calls"))
    yield of_each(
        "server_restarts_total",
        "counter",
        "New connections after a lost one.",
        partial(_sum, "restarts"),
    )


def _all_ready(sessions: Sequence[Mapping[str, Any]]) -> float:
    return float(all(session["state"] == "ready" for session in sessions))


def _most(field: str, sessions: Sequence[Mapping[str, Any]]) -> float:
    return max((float(session[field]) for session in sessions), default=0.0)


def _sum(field: str, sessions: Sequence[Mapping[str, Any]]) -> float:
    return sum(float(session[field]) for session in sessions)


def _of_configuration(live: LiveConfig) -> Iterator[Family]:
    since, applied = live.rejected_since, live.receipts.applied
    yield gauge(
        "config_in_force",
        "1 if what the sources of the configuration say is in force, 0 if it was rejected.",
        since is None,
    )
    yield gauge(
        "config_rejected_seconds",
        "For how long the sources have said what cannot be used; 0 if they can.",
        0.0 if since is None else max(0.0, time.time() - since),
    )
    yield gauge(
        "config_restart_needed",
        "Edited keys that act after a restart only.",
        len(live.waiting),
    )
    yield gauge(
        "config_last_applied_timestamp_seconds",
        "When the last change that came into force began, in seconds since 1970.",
        0.0 if applied is None else applied.at,
    )
    counts = live.receipts.counts()
    yield Family(
        "config_reloads_total",
        "counter",
        "Attempts to change the configuration by what caused them and how they ended.",
        tuple(
            Sample(counts.get((trigger, verdict), 0), {"trigger": trigger, "verdict": verdict})
            for trigger in get_args(Trigger)
            for verdict in get_args(Verdict)
        ),
    )
