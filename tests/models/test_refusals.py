"""Refusals as services send them: broken, stalled or endless ones keep their status, and end soon."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from session_runtime.testing.replies import Pace, Reply, reply_bytes, reply_text
from tests.models.building import HttpWire, ask, failure, service
from tests.models.clock import hurried

WIRES = pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])


@dataclass(frozen=True)
class Broken:
    """A body that cannot be read to its end, and the text that arrives of it."""

    pieces: tuple[bytes, ...]
    shown: str
    headers: dict[str, str]
    pace: Pace


def cut() -> Broken:
    return Broken((b"key gone", b"!"), "key gone", {}, Pace(cut_after=1))


def cut_before_the_body() -> Broken:
    return Broken((b"", b"x"), "no reason given", {}, Pace(cut_after=1))


def stalled() -> Broken:
    return Broken((b"key gone", b"!"), "key gone", {}, Pace(step=asyncio.Semaphore(1)))


def not_encoded_as_said() -> Broken:
    return Broken((b"no gzip",), "no reason given", {"content-encoding": "gzip"}, Pace())


BODIES = [cut, cut_before_the_body, stalled, not_encoded_as_said]


def refusal(status: int, body: Broken) -> Reply:
    return reply_bytes(*body.pieces, status=status, headers=body.headers, pace=body.pace)


@WIRES
@pytest.mark.requirement("ASK-9")
@pytest.mark.parametrize("broken", BODIES, ids=lambda make: make.__name__)
@pytest.mark.parametrize(
    ("status", "code"),
    [(401, "model.unauthorized"), (429, "model.rate_limited"), (503, "model.unavailable")],
)
async def test_a_refusal_whose_body_cannot_be_read_keeps_its_status(
    wire: HttpWire,
    broken: Callable[[], Broken],
    status: int,
    code: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = broken()
    async with service(wire, [refusal(status, body)]) as (model, _), hurried(monkeypatch):
        error = await failure(model)
    assert error.code == code
    assert f"answered {status}: {body.shown}" in str(error)


@WIRES
async def test_a_refusal_that_drips_for_ever_is_read_only_for_a_moment(
    wire: HttpWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = asyncio.Semaphore(0)
    drips = reply_bytes(*[b"."] * 100_000, status=503, pace=Pace(step=steps))
    async with service(wire, [drips, reply_text("ok")]) as (model, upstream):
        dripping = asyncio.create_task(_drip(steps))
        async with hurried(monkeypatch):
            error = await failure(model)
        dripping.cancel()
        await upstream.left()
        reply, _ = await ask(model)
    assert (error.code, reply.text) == ("model.unavailable", "ok")


async def _drip(steps: asyncio.Semaphore) -> None:
    while True:
        steps.release()
        await asyncio.sleep(0)
