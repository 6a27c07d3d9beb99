"""One message on its way: how often it is sent, how long is waited, what ends it (SEC-3)."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field

import pytest
from pydantic import SecretStr

from session_runtime.callbacks.sending import Answer, NoAnswerError, Sent, World, send
from session_runtime.config.callbacks import Callback
from session_runtime.wire.callback import verify
from tests.callbacks.receiver import SECRET

Said = Answer | NoAnswerError
AT = 1_767_225_600.5
DOWN = NoAnswerError("it cannot be reached (ConnectError)")


def callback(**changes: object) -> Callback:
    return Callback(url="https://bot.example/r", secret=SecretStr(SECRET), **changes)


@dataclass
class Line:
    """Answers in turn, the last one again and again; notes what was sent and how long was waited."""

    said: Sequence[Said]
    sent: list[tuple[str, Mapping[str, str], bytes, float]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    async def __call__(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float
    ) -> Answer:
        self.sent.append((url, headers, body, timeout_s))
        said = self.said[min(len(self.sent), len(self.said)) - 1]
        if isinstance(said, NoAnswerError):
            raise said
        return said

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def send(self, target: Callable[[], Callback | None] = callback) -> Sent:
        world = World(self.sleep, lambda: 1.0, lambda: AT + len(self.sent))
        return await send(target, nullcontext, self, "ask_1", b'{"a":1}', world)


@pytest.mark.requirement("SEC-3b")
async def test_a_message_is_sent_once_signed_with_the_time() -> None:
    line = Line([Answer(204)])
    assert await line.send() == Sent(1)
    [(url, headers, body, timeout_s)] = line.sent
    assert (url, body, timeout_s) == ("https://bot.example/r", b'{"a":1}', 10.0)
    assert headers == {
        "webhook-id": "ask_1",
        "webhook-timestamp": "1767225600",
        "webhook-signature": headers["webhook-signature"],
        "content-type": "application/json",
        "user-agent": "session-runtime",
    }
    assert verify(SECRET, headers, body, AT) == "ask_1"


@pytest.mark.requirement("SEC-3b")
async def test_what_may_pass_is_tried_again_with_longer_pauses_and_a_new_time_stamp() -> None:
    line = Line([DOWN, Answer(503), Answer(429, "40"), Answer(500), Answer(502), Answer(408)])
    assert await line.send() == Sent(6, "it answered with 408")
    assert line.waits == [1.0, 4.0, 40.0, 64.0, 256.0]
    assert len({headers["webhook-timestamp"] for _, headers, _, _ in line.sent}) == 6
    assert len({headers["webhook-id"] for _, headers, _, _ in line.sent}) == 1


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 410])
async def test_a_redirect_or_a_refusal_ends_it(status: int) -> None:
    line = Line([Answer(status)])
    assert await line.send() == Sent(1, f"it answered with {status}")


@pytest.mark.parametrize("header", ["soon", "-1", "Wed, 21 Oct 2026 07:28:00 GMT", "９"])
async def test_a_wait_that_is_no_number_counts_as_none_and_a_long_one_is_cut(header: str) -> None:
    line = Line([Answer(503, header), Answer(503, "99999"), Answer(200)])
    await line.send()
    assert line.waits == [1.0, 300.0]


async def test_it_ends_when_the_operator_takes_the_address_away() -> None:
    given = iter([callback(), None])
    line = Line([DOWN])
    assert await line.send(lambda: next(given)) == Sent(1, "it is not configured any more")


async def test_as_many_tries_as_are_configured() -> None:
    line = Line([DOWN])
    assert await line.send(lambda: callback(tries=2)) == Sent(2, str(DOWN))
    assert line.waits == [1.0]


@pytest.mark.requirement("SEC-3b")
async def test_what_waited_for_its_turn_is_stamped_and_addressed_when_it_is_sent() -> None:
    now, targets = [AT], {"bot": callback()}
    line = Line([Answer(200)])

    @asynccontextmanager
    async def turn() -> AsyncIterator[None]:
        now[0] += 600.0  # so long it waited, and an operator changed the address meanwhile
        targets["bot"] = Callback(url="https://new.example/r", secret=SecretStr(SECRET))
        yield

    world = World(line.sleep, lambda: 1.0, lambda: now[0])
    assert await send(lambda: targets["bot"], turn, line, "ask_1", b"{}", world) == Sent(1)
    [(url, headers, body, _)] = line.sent
    assert url == "https://new.example/r"
    assert verify(SECRET, headers, body, AT + 600.0) == "ask_1"


@pytest.mark.requirement("SEC-3b")
async def test_an_address_that_was_taken_away_while_a_message_waited_gets_nothing() -> None:
    targets = {"bot": callback()}
    line = Line([Answer(200)])

    @asynccontextmanager
    async def turn() -> AsyncIterator[None]:
        targets.clear()
        yield

    sent = await send(lambda: targets.get("bot"), turn, line, "ask_1", b"{}", World(line.sleep))
    assert (sent, line.sent) == (Sent(0, "it is not configured any more"), [])
