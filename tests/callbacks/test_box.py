"""Results on their way: who may name a callback, how many there may be, what operators see of them."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import SecretStr

from session_runtime.callbacks.box import Callbacks, Expected
from session_runtime.callbacks.sending import Answer, World
from session_runtime.callbacks.shares import Most
from session_runtime.config.callbacks import Callback
from session_runtime.errors import BusyError, RequestError
from session_runtime.types import AskResult
from session_runtime.wire import parse_json, result_to_json
from tests.callbacks.receiver import SECRET

BOT = Callback(url="https://b.example/?token=abc", secret=SecretStr(SECRET), principals=("a*",))
RESULT = AskResult("ask_1", "answered", "hi")


@dataclass
class Line:
    """A way to send that gives one answer."""

    answer: Answer = field(default_factory=lambda: Answer(200))
    sent: list[bytes] = field(default_factory=list)
    closed: bool = False

    async def __call__(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float
    ) -> Answer:
        self.sent.append(body)
        return self.answer

    async def aclose(self) -> None:
        self.closed = True


async def no_pause(seconds: float) -> None:
    del seconds


def callbacks(line: Line, most: Most | None = None) -> Callbacks:
    world = World(no_pause, today=lambda: 7.0)
    return Callbacks(lambda: {"bot": BOT}, lambda: line, world, most)


def expected(ask_id: str = "ask_1", result: AskResult | None = RESULT) -> Expected:
    async def finished() -> AskResult:
        return result or await asyncio.Event().wait()  # type: ignore[return-value]

    return Expected("bot", ask_id, "ann", "u1", finished)


def numbers(there: Callbacks) -> dict[str, Any]:
    return {
        f"{family.name}{''.join(sample.labels.values())}": sample.value
        for family in there.metrics()
        for sample in family.samples
    }


@pytest.mark.requirement("SEC-3b")
async def test_the_result_is_sent_once_however_often_it_is_asked_for() -> None:
    line = Line()
    there = callbacks(line)
    there.expect(expected())
    there.expect(expected())
    await there.idle()
    there.expect(expected())
    await there.idle()
    assert [parse_json(body) for body in line.sent] == [
        {
            "type": "ask.finished",
            "ask_id": "ask_1",
            "principal": "ann",
            "user": "u1",
            "result": result_to_json(RESULT),
        }
    ]
    assert numbers(there) == {
        "callbacks_waiting": 0,
        "callback_attempts_total": 1,
        "callbacks_totaldelivered": 1,
        "callbacks_totalfailed": 0,
        "callbacks_totaldropped": 0,
    }
    await there.aclose()
    assert line.closed


@pytest.mark.requirement("SEC-3b")
async def test_what_is_not_taken_is_seen_by_operators_without_the_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    there = callbacks(Line(Answer(500)))
    there.expect(expected())
    await there.idle()
    assert there.status() == {
        "waiting": 0,
        "delivered": 0,
        "failed": 1,
        "dropped": 0,
        "failures": [
            {
                "callback": "bot",
                "ask_id": "ask_1",
                "at": 7.0,
                "attempts": 6,
                "reason": "it answered with 500",
            }
        ],
    }
    assert "ask_1 was not taken by the callback 'bot' after 6 attempts" in caplog.text
    assert "abc" not in caplog.text


@pytest.mark.requirement("SEC-3b")
async def test_others_principals_are_told_the_same_as_of_a_name_that_is_not_there() -> None:
    there = callbacks(Line())
    with there.reserve("bot", "ann"):
        pass
    texts = set()
    for name in ("bot", "nothing"):
        with pytest.raises(RequestError) as refused, there.reserve(name, "bob"):
            pass
        texts.add((refused.value.code, str(refused.value).replace(name, "X")))
    assert len(texts) == 1


async def test_there_is_a_bound_and_what_is_on_its_way_is_given_up_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    there = callbacks(Line(), Most(results=2))
    for number in range(2):
        with there.reserve("bot", "ann"):
            there.expect(expected(f"ask_{number}", None))
    with pytest.raises(BusyError) as busy, there.reserve("bot", "ann"):
        pass
    await asyncio.sleep(0)
    await there.aclose()
    assert (busy.value.code, there.status()["dropped"]) == ("busy.callbacks", 2)
    assert "the result of ask_0 was not sent to 'bot'" in caplog.text


async def test_results_that_take_too_much_room_together_are_not_kept() -> None:
    line, pausing, go_on = Line(Answer(503)), asyncio.Event(), asyncio.Event()

    async def wait(seconds: float) -> None:
        pausing.set()
        await go_on.wait()

    there = Callbacks(
        lambda: {"bot": BOT}, lambda: line, World(wait), Most(bytes=10, bytes_waiting=0)
    )
    there.expect(expected("ask_1"))
    await pausing.wait()
    there.expect(expected("ask_2"))
    [second_one] = [t for t in asyncio.all_tasks() if t.get_name() == "callback of ask_2"]
    await second_one
    go_on.set()
    await there.idle()
    first, second = there.status()["failures"]  # type: ignore[misc]
    assert (second["ask_id"], second["attempts"]) == ("ask_2", 0)
    assert (first["ask_id"], first["attempts"]) == ("ask_1", 6)


async def test_room_is_held_from_the_check_to_the_end_of_the_request() -> None:
    there = callbacks(Line(), Most(results=1))
    with there.reserve("bot", "ann"):
        with pytest.raises(BusyError) as busy, there.reserve("bot", "ann"):
            pass
        there.expect(expected())
    await there.idle()
    with there.reserve("bot", "ann"):
        pass
    assert (busy.value.code, busy.value.retry_after_s) == ("busy.callbacks", 10.0)
    await there.aclose()
