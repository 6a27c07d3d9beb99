"""Numbering and closing of one ask's events."""

import pytest

from session_runtime.ask.emitter import Emitter
from session_runtime.types import AskEvent, AskFinished, AskResult, MessageSent, TextDelta


@pytest.mark.requirement("INT-3")
def test_events_carry_the_ask_and_count_from_one() -> None:
    seen: list[AskEvent] = []
    emitter = Emitter("ask_1", seen.append)
    emitter.send(TextDelta(text="a"))
    emitter.message("hi")
    assert seen == [
        TextDelta(ask_id="ask_1", seq=1, text="a"),
        MessageSent(ask_id="ask_1", seq=2, text="hi"),
    ]
    assert emitter.messages == ("hi",)


@pytest.mark.requirement("ASK-1")
def test_nothing_follows_the_last_event() -> None:
    seen: list[AskEvent] = []
    emitter = Emitter("ask_1", seen.append)
    emitter.finish(AskFinished(result=AskResult("ask_1", "answered")))
    emitter.message("late")
    emitter.finish(AskFinished(result=AskResult("ask_1", "failed")))
    assert [event.type for event in seen] == ["ask.finished"]
    assert emitter.messages == ()
