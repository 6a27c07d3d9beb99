"""The same ask by every door: the model is sent the same, and the same comes of it (NET-1)."""

import asyncio
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from session_runtime.registry.keyring import hash_of
from session_runtime.testing.replies import (
    Call,
    ChatReply,
    Reply,
    reply_calls,
    reply_error,
    reply_text,
)
from session_runtime.testing.upstream import Upstream
from session_runtime.types import AskEvent, ToolFinished, TurnStarted
from tests.support import chat_profile, tool_folder, write_handler
from tests.system import doors
from tests.system.doors import Came, Door, Place, Question, in_process
from tests.system.mosquitto import needs_broker
from tests.transports.stub import key_of

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
SEARCH = '{"query": "select:weather.now,mail.send"}'
PARAMETERS = {
    "type": "object",
    "required": ["city"],
    "properties": {"city": {"type": "string"}},
}
ANSWERED = (
    ChatReply("", (Call("tool_search", SEARCH, "c0"),), USAGE, "tool_calls"),
    reply_calls(
        ("weather__now", {"city": "Bonn"}),
        ("weather__now", {"city": 7}),
        ("weather__now", "{no JSON"),
        ("mail__send", {}),
        ("files__read", {}),
        ("no__such", {}),
    ),
    reply_calls(("send_message", {"text": "Sun so far."})),
    reply_text("Sun, then rain.", usage=USAGE),
)
SAID = "Sun so far.\n\nSun, then rain."
WAITS = (reply_calls(("diary__delete", {"id": 3}), text="Shall I?"),)
ASKED = 'Shall I?\n\nThis call waits for your consent and did not run:\n- diary.delete {"id": 3}'
FAILS = (reply_error(400, "the model will not"),)
KEY = f"""
[http.keys.bot]
hash = "{hash_of(key_of("bot"))}"
act_for = ["tg-*"]
channel = "telegram"
"""
GUEST = Question(user="tg-1", roles=("guest",))
STAFF = Question(user="tg-2", roles=("staff",))
NOBODY = Question()
OWNED = replace(
    GUEST,
    instructions="Be short.",
    history=({"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello!"}),
    key="bot",
)
OURS = ("diary.delete", "files.read", "mail.send", "weather.now")
BUT_MAIL = ("diary.delete", "files.read", "weather.now")


@dataclass(frozen=True)
class Scenario:
    """What is asked, with or without tool search, and what the model replies.

    Then which of our tools it is shown in the first and last turn, what comes of its calls, what the person
    is told by a door that has one text for all, or the error.
    """

    question: Question
    search: bool
    replies: tuple[Reply, ...]
    exposed: tuple[tuple[str, ...], tuple[str, ...]]
    calls: tuple[tuple[str, str], ...] = ()
    content: str | None = None
    error: str | None = None

    def config(self, base_url: str) -> str:
        return (
            f"[skills]\ntool_search_enabled = {str(self.search).lower()}\nprefetch_tools = []\n"
            'tool_search_always_loaded = ["send_message", "diary.delete"]\n'
            '[access.rules.guests]\nroles = ["guest"]\ndeny = ["mail.*"]\n'
            + (KEY if self.question.key else "")
            + chat_profile(base_url)
        )


def _answered(question: Question, search: bool) -> Scenario:
    """All calls that can go wrong, and then an answer; only staff may know of mail."""
    knows_mail = question is STAFF
    known = OURS if knows_mail else BUT_MAIL
    loaded = tuple(name for name in known if name != "files.read")
    always = ("diary.delete",)
    calls = (
        ("tool_search", "ok" if search else "tool.unknown"),
        ("weather.now", "ok"),
        ("weather.now", "tool.invalid_arguments"),
        ("weather.now", "tool.invalid_arguments"),
        ("mail.send", "ok") if knows_mail else ("mail__send", "tool.unknown"),
        ("files.read", "tool.not_loaded" if search else "ok"),
        ("no__such", "tool.unknown"),
        ("send_message", "ok"),
    )
    exposed = (always, loaded) if search else (known, known)
    return Scenario(question, search, ANSWERED, exposed, calls, SAID)


def _waits(question: Question, search: bool) -> Scenario:
    """A destructive call waits for a yes."""
    first = ("diary.delete",) if search else OURS if question is STAFF else BUT_MAIL
    calls = (("diary.delete", "tool.needs_confirmation"),)
    return Scenario(question, search, WAITS, (first, first), calls, ASKED)


def _scenarios() -> Iterator[tuple[str, Scenario]]:
    askers = {"guest": GUEST, "staff": STAFF, "nobody": NOBODY, "guest of a key": OWNED}
    for (who, question), search in itertools.product(askers.items(), (True, False)):
        about = f"{who}, {'searching' if search else 'seeing all'}"
        yield f"answered to {about}", _answered(question, search)
        yield f"waits for {about}", _waits(question, search)
    shown = (("diary.delete",),) * 2
    yield "fails", Scenario(GUEST, True, FAILS, shown, error="model.refused")
    unknown = replace(GUEST, model="no-such")
    yield "refused", Scenario(unknown, True, (), ((), ()), error="request.unknown_model")
    foreign = replace(OWNED, user="eve")
    yield "not to act for", Scenario(foreign, True, (), ((), ()), error="auth.act_for")


SCENARIOS = dict(_scenarios())
DOORS = {
    "http": Door(doors.over_http),
    "events": Door(doors.as_events),
    "completion": Door(doors.as_completion),
    "chunks": Door(doors.as_chunks),
    "mqtt": Door(doors.over_mqtt),
    "command": Door(doors.by_command, lambda question: question.is_plain),
}


@dataclass(frozen=True)
class Played:
    """What the model was sent in the course of a scenario, and what came of it."""

    sent: Sequence[Any]
    came: Came
    base_url: str
    events: Sequence[AskEvent] = ()

    @property
    def story(self) -> dict[str, Any]:
        """All that must be the same by every door: nothing that names this ask alone."""
        own = ("ask_id", "new_messages", "usage", "ignored")
        told = {name: value for name, value in self.came.result.items() if name not in own}
        if "pending" in told:
            calls = [{**call, "token": "", "expires_at": 0} for call in told["pending"]]
            told["pending"] = calls
        error = self.came.error
        why = error and (error["code"], error["message"].replace(self.base_url, "the model"))
        return {"sent": self.sent, "result": told, "error": why}

    @property
    def exposed(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Which of our tools were shown in the first and in the last turn."""
        turns = [event.exposed for event in self.events if isinstance(event, TurnStarted)] or [()]
        first, last = (tuple(sorted({*OURS} & {*turn})) for turn in (turns[0], turns[-1]))
        return first, last

    @property
    def calls(self) -> list[tuple[str, str]]:
        """What came of the calls, whichever ended first."""
        ended = (event for event in self.events if isinstance(event, ToolFinished))
        return sorted((call.name, call.error_code or call.status) for call in ended)


async def play(folder: Path, scenario: Scenario, door: Door | None = None) -> Played:
    """Ask by a door, or in this process."""
    tools = folder / "tools"
    write_handler(tools, "weather.now", parameters=PARAMETERS)
    for name in ("mail.send", "files.read"):
        write_handler(tools, name)
    write_handler(tools, "diary.delete", runtime={"destructive": True})
    async with Upstream(scenario.replies) as upstream:
        place = Place(folder, tool_folder(folder) + scenario.config(upstream.base_url))
        if door is not None:
            came = await door.ask(place, scenario.question)
            return Played(upstream.requests, came, upstream.base_url)
        events: list[AskEvent] = []
        came = await in_process(place, scenario.question, events.append)
        return Played(upstream.requests, came, upstream.base_url, events)


async def play_all(folder: Path, door: Door | None = None) -> dict[str, Played]:
    """Every scenario that the door takes, a few at a time."""
    taken = [name for name, each in SCENARIOS.items() if not door or door.takes(each.question)]
    few = asyncio.Semaphore(3)

    async def one(number: int, name: str) -> Played:
        async with few:
            place = folder / str(number)
            place.mkdir()
            return await play(place, SCENARIOS[name], door)

    played = await asyncio.gather(*(one(number, name) for number, name in enumerate(taken)))
    return dict(zip(taken, played, strict=True))


async def test_an_ask_in_process_is_shown_refused_and_told_what_it_should_be(
    tmp_path: Path,
) -> None:
    played = await play_all(tmp_path)
    shown = {name: (each.exposed, each.calls) for name, each in played.items()}
    assert shown == {name: (each.exposed, sorted(each.calls)) for name, each in SCENARIOS.items()}
    errors = {name: each.came.error and each.came.error["code"] for name, each in played.items()}
    assert errors == {name: each.error for name, each in SCENARIOS.items()}
    for name, each in played.items():
        mail = "mail" in json.dumps([request["tools"] for request in each.sent])
        assert mail == ("mail.send" in SCENARIOS[name].exposed[1])


@pytest.mark.requirement("NET-1e")
@pytest.mark.parametrize(
    "door",
    [pytest.param(name, marks=needs_broker if name == "mqtt" else ()) for name in DOORS],
)
async def test_every_door_exposes_refuses_and_answers_the_same(tmp_path: Path, door: str) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    here = await play_all(tmp_path / "here")
    there = await play_all(tmp_path / "there", DOORS[door])
    for name, played in there.items():
        assert played.story == here[name].story, name
        assert played.came.content in (None, SCENARIOS[name].content), name
