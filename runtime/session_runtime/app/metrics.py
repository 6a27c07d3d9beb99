"""The numbers that a monitoring system reads from a runtime (REL-3); their text form is ``trace``'s."""

import time
from collections.abc import Iterator
from typing import Final, get_args

from session_runtime import __version__
from session_runtime.config.live import LiveConfig
from session_runtime.config.receipt import Trigger, Verdict
from session_runtime.generation.live import Generations
from session_runtime.trace.metrics import Family, Sample, gauge

_EXACT_DIGITS: Final = 13
"""So many hexadecimal digits of a digest are exact as a floating-point number."""


def metrics(generations: Generations, live: LiveConfig, asks: int, ready: bool) -> Iterator[Family]:
    """All families, with the same names and labels at any time."""
    yield gauge("build_info", "Always 1; the label is the version.", 1, {"version": __version__})
    yield gauge("ready", "1 while asks are taken, else 0.", ready)
    yield gauge("asks_running", "Asks that are running.", asks)
    yield from _of_generations(generations)
    yield from _of_configuration(live)


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
