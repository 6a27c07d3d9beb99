"""Conversations that have no room: what becomes short, what goes, what stays."""

import asyncio
import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime import AskRequest
from session_runtime.ask import compaction
from session_runtime.ask.compaction import SHORT_CHARS, characters, compacted, within
from session_runtime.ask.history import repair_history
from session_runtime.ask.kept import KeptResults
from session_runtime.testing.replies import reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import Content, ImagePart, Message, TextPart, ToolCall, ToolsLoaded
from tests.support import ask, chat_profile, opened, write_handler

LONG = "x" * 4_000
SYSTEM = Message("system", "Be kind.")
LEFT_OUT = "(Earlier messages of this conversation are left out here.)"


def turn(number: int, text: Content = LONG) -> list[Message]:
    """A question, a call, its result, an answer."""
    call = ToolCall(f"c{number}", "look", "{}")
    return [
        Message("user", f"q{number}"),
        Message("assistant", None, (call,)),
        Message("tool", text, tool_call_id=call.id),
        Message("assistant", f"a{number}"),
    ]


def fit(
    messages: list[Message], question_at: int, most: int, results: KeptResults | None = None
) -> tuple[Message, ...]:
    kept = results or KeptResults()
    return asyncio.run(compacted(messages, question_at, most, kept, readable=True))


def lengths(messages: tuple[Message, ...]) -> list[int]:
    return [len(str(each.content)) for each in messages if each.role == "tool"]


@pytest.mark.requirement("ASK-2")
def test_the_oldest_results_become_short_until_there_is_room_and_can_be_read_whole() -> None:
    results = KeptResults()
    messages = [SYSTEM, *turn(1), *turn(2), *turn(3), Message("user", "now?")]
    shorter = fit(messages, 13, 8_000, results)
    first, second, third = lengths(shorter)
    assert (first <= SHORT_CHARS, second <= SHORT_CHARS, third) == (True, True, 4_000)
    reference = re.findall(r"result_\d+", str(shorter[3].content))[-1]
    assert results.read(reference, 0, 9_999).text == LONG
    assert results.tool_of(reference) == "look"
    assert [each for each in shorter if each.role != "tool"] == [
        each for each in messages if each.role != "tool"
    ]


@pytest.mark.requirement("ASK-2")
def test_the_results_of_the_newest_turn_stay_whole() -> None:
    messages = [SYSTEM, *turn(1), *turn(2)[:3]]
    assert lengths(fit(messages, 5, 2_000))[-1] == 4_000


@pytest.mark.requirement("ASK-2")
def test_a_huge_result_of_the_newest_turn_of_a_history_becomes_short_before_any_turn_goes() -> None:
    history = [*turn(1, "one"), *turn(2, LONG * 5)]
    messages = [SYSTEM, *history, Message("user", "now?")]
    shorter = fit(messages, len(history) + 1, 4_000)
    assert [each.role for each in shorter] == [each.role for each in messages]
    assert [length <= SHORT_CHARS for length in lengths(shorter)] == [True, True]


@pytest.mark.requirement("ASK-2")
def test_then_the_oldest_turns_of_the_history_go_and_never_the_question() -> None:
    history = [*turn(1, "one"), *turn(2, "two"), Message("user", LONG), Message("assistant", "ok")]
    messages = [SYSTEM, *history, Message("user", "now?" * 500), *turn(9, "nine")[1:]]
    shorter = fit(messages, len(history) + 1, 3_000)
    assert [(each.role, str(each.content)[:4]) for each in shorter] == [
        ("system", "Be k"),
        ("system", "(Ear"),
        ("user", "now?"),
        ("assistant", "None"),
        ("tool", "nine"),
        ("assistant", "a9"),
    ]


def test_a_result_that_bears_a_reference_keeps_it() -> None:
    results = KeptResults(max_chars=2_000)
    place = results.place(readable=True, tool="look")
    assert place is not None
    place.keep("the whole" * 9_999)
    shown = json.dumps({"kind": "text", "reference": place.reference, "start": LONG})
    results.note(shown, place)
    shorter = fit([SYSTEM, *turn(1, shown), *turn(2, "b")], 1, 2_000, results)
    assert place.reference in str(shorter[3].content)
    assert "result_2" not in str(shorter[3].content)


def test_a_result_that_names_the_reference_of_another_is_kept_itself() -> None:
    results = KeptResults(max_chars=2_000)
    place = results.place(readable=True, tool="look")
    assert place is not None
    place.keep("another" * 9_999)
    precious = f"[job {place.reference} is done] {LONG}"
    shorter = fit([SYSTEM, *turn(1, precious), *turn(2, "b")], 1, 2_000, results)
    assert results.read("result_2", 0, 9_999).text == precious
    assert "result_2" in str(shorter[3].content)


@pytest.mark.parametrize("history", [0, 1])
def test_what_was_left_out_is_told_once_and_only_where_something_was(history: int) -> None:
    before = turn(1, LONG) * history
    messages = [SYSTEM, *before, Message("user", LONG), *turn(9, "nine")[1:]]
    once = fit(messages, 1 + len(before), 3_000)
    twice = fit(list(once), len(once) - 4, 3_000)
    notes = [each for each in twice if each.role == "system" and each != SYSTEM]
    assert (len(notes), twice) == (history, once)


@pytest.mark.requirement("ASK-2")
def test_a_result_of_several_parts_becomes_short_too_and_its_text_can_be_read_whole() -> None:
    results = KeptResults()
    parts = (TextPart("a" * 2_000), ImagePart("data:image/png;base64,AA=="), TextPart("b" * 2_000))
    shorter = fit([SYSTEM, *turn(1, parts), *turn(2, "b")], 1, 2_000, results)
    short = shorter[3].content
    assert isinstance(short, str)
    assert len(short) <= SHORT_CHARS
    reference = re.findall(r"result_\d+", short)[-1]
    whole = f"{'a' * 2_000}\n[an image, not shown]\n{'b' * 2_000}"
    assert results.read(reference, 0, 9_999).text == whole


@pytest.mark.requirement("ASK-2")
def test_an_image_in_an_old_result_becomes_a_note_and_that_of_the_newest_turn_stays() -> None:
    parts = (TextPart("see"), ImagePart("https://a.test/b.png"))
    results = KeptResults()
    shorter = fit([SYSTEM, *turn(1, parts), *turn(2, parts)[:3]], 1, 6_000, results)
    contents = [each.content for each in shorter if each.role == "tool"]
    assert contents == ["see\n[an image, not shown]", parts]
    assert not results.used


def test_without_a_reader_no_reference_is_given() -> None:
    messages = [SYSTEM, *turn(1), *turn(2, "b")]
    work = compacted(messages, 1, 2_000, KeptResults(), readable=False)
    shorter = asyncio.run(work)
    assert "result_" not in str(shorter[3].content)


def test_data_says_what_it_holds() -> None:
    rows = json.dumps([{"id": at, "name": "n" * 50} for at in range(100)])
    shorter = fit([SYSTEM, *turn(1, rows), *turn(2, "b")], 1, 2_000)
    assert json.loads(str(shorter[3].content))["count"] == 100


TEXTS = st.sampled_from(["", "a", LONG, "[1, 2]" * 400, '{"a": ' * 2_000])
PARTS = st.tuples(st.builds(TextPart, TEXTS), st.just(ImagePart("data:image/png;base64,A")))
SAID = st.builds(Message, st.sampled_from(["user", "assistant", "system"]), TEXTS | PARTS)
CALLED = st.tuples(st.integers(0, 99), TEXTS).map(lambda pair: turn(*pair)[1:])
TURNS = st.lists(SAID.map(lambda each: [each]) | CALLED, max_size=8)


@given(TURNS, TURNS, st.integers(1, 20_000))
def test_calls_keep_their_results_and_what_must_stay_stays(
    before: list[Any], after: list[Any], most: int
) -> None:
    flat = [[each for some in turns for each in some] for turns in (before, after)]
    history, question = repair_history(flat[0], [Message("user", "now?"), *flat[1]])
    messages = [SYSTEM, *history, *question]
    shorter = fit(messages, len(history) + 1, most)
    assert repair_history(shorter)[0] == shorter
    assert shorter[0] == SYSTEM
    assert sum(map(characters, shorter)) <= sum(map(characters, messages)) + 100
    kept = [each for each in question if each.role != "tool"]
    assert [each for each in shorter if each.role != "tool"][-len(kept) :] == kept


@pytest.mark.requirement("ASK-2")
@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])
async def test_an_ask_whose_results_fill_the_context_goes_on_with_short_ones(
    tmp_path: Path, wire: str
) -> None:
    code = "def execute(args, context):\n    return str(args['n']) * 4000\n"
    write_handler(tmp_path / "tools", "look", code=code)
    replies = [reply_calls(("look", {"n": at})) for at in range(4)]
    text = f"[handlers]\npaths = ['{tmp_path / 'tools'}']\n[skills]\nprefetch_tools = []\n"
    async with (
        Upstream([*replies, reply_text("Done.")]) as upstream,
        opened(
            tmp_path, text + chat_profile(upstream.base_url, wire=wire, context_window=3_334)
        ) as runtime,
    ):
        asked = await ask(runtime, "look")
    assert asked.result.text == "Done."
    assert max(len(body) for body in upstream.bodies) < 20_000
    last = json.dumps(upstream.requests[-1])
    assert ("3" * 4_000 in last, "0" * 4_000 in last) == (True, False)
    whole = [len(str(each.content)) for each in asked.result.new_messages if each.role == "tool"]
    assert whole == [4_000] * 4


def shown(request: Any) -> list[tuple[str, str]]:
    return [(each["role"], str(each.get("content"))) for each in request["messages"]]


async def asked_after(
    folder: Path, history: list[Message], **settings: int
) -> tuple[list[tuple[str, str]], list[str]]:
    """What the model is sent in the first turn of an ask with this history: messages, names of tools."""
    folder = folder / str(len(settings))
    write_handler(folder / "tools", "look")
    lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
    text = (
        f"[handlers]\npaths = ['{folder / 'tools'}']\n"
        "[skills]\ntool_search_enabled = true\nprefetch_tools = []\n"
        f"[ask]\nsystem_prompt = 'Be kind.'\n{lines}"
    )
    async with (
        Upstream([reply_text("Now.")]) as upstream,
        opened(folder, text + chat_profile(upstream.base_url)) as runtime,
    ):
        await ask(runtime, AskRequest("now?" * 500, history=tuple(history), instructions=LONG))
    first = upstream.requests[0]
    return shown(first), [each["function"]["name"] for each in first["tools"]]


@pytest.mark.requirement("INT-1a")
async def test_of_a_long_history_old_results_are_sent_short_and_question_and_instructions_whole(
    tmp_path: Path,
) -> None:
    history = [*turn(1), *turn(2)]
    whole, few = await asked_after(tmp_path, history)
    sent, tools = await asked_after(tmp_path, history, history_tokens=1_300)
    assert [role for role, _ in sent] == [role for role, _ in whole]
    changed = [at for at, said in enumerate(whole) if sent[at] != said]
    assert [whole[at] for at in changed] == [("tool", LONG)]
    assert len(sent[changed[0]][1]) <= SHORT_CHARS
    assert "result_1" in sent[changed[0]][1]
    assert tools == [*few, "results__read"]


@pytest.mark.requirement("INT-1a")
async def test_then_its_oldest_turns_are_left_out_with_their_calls_and_a_note(
    tmp_path: Path,
) -> None:
    sent, _ = await asked_after(
        tmp_path, [*turn(1), *turn(2, "two"), *turn(3, "three")], history_tokens=6
    )
    assert LONG in sent[0][1]
    assert sent[2:] == [
        ("system", LEFT_OUT),
        ("user", "q3"),
        ("assistant", "None"),
        ("tool", "three"),
        ("assistant", "a3"),
        ("user", "now?" * 500),
    ]


def test_the_results_of_the_newest_turn_of_a_history_become_short_too() -> None:
    history = turn(1)
    shorter = asyncio.run(within(history, 1_000, KeptResults(), readable=False))
    assert [each.role for each in shorter] == [each.role for each in history]
    assert lengths(shorter)[0] <= SHORT_CHARS


@given(TURNS, st.integers(1, 20_000))
def test_a_history_keeps_within_its_bound_and_no_call_loses_its_result(
    turns: list[Any], most: int
) -> None:
    history, _ = repair_history([each for some in turns for each in some])
    shorter = asyncio.run(within(history, most, KeptResults(), readable=True))
    assert repair_history(shorter)[0] == shorter
    said = [each for each in shorter if not str(each.content).startswith(LEFT_OUT)]
    system = [[each for each in some if each.role == "system"] for some in (history, said)]
    assert system[0] == system[1]
    assert sum(map(characters, said)) <= most or said == system[1]


@pytest.mark.requirement("TS-6")
async def test_tools_of_the_last_turns_are_loaded_again_if_they_are_permitted(
    tmp_path: Path,
) -> None:
    for name in ("a", "b", "c", "secret"):
        write_handler(tmp_path / "tools", name)
    text = (
        f"[handlers]\nbundled = false\npaths = ['{tmp_path / 'tools'}']\n"
        "[skills]\ntool_search_enabled = true\nprefetch_tools = []\n"
        "tool_search_always_loaded = []\ntool_search_sticky_turns = 2\n"
        "[access.rules.no]\ndeny = ['secret']\n"
    )
    history = [
        Message("user", "hi"),
        *(
            message
            for at, name in enumerate(("c", "secret", "a"))
            for message in (
                Message("assistant", None, (ToolCall(f"c{at}", name, "{}"),)),
                Message("tool", "ok", tool_call_id=f"c{at}"),
            )
        ),
    ]
    async with (
        Upstream([reply_text("ok")]) as upstream,
        opened(tmp_path, text + chat_profile(upstream.base_url)) as runtime,
    ):
        asked = await ask(runtime, AskRequest(text="again", history=tuple(history)))
    sent = [tool["function"]["name"] for tool in upstream.requests[0]["tools"]]
    assert sent == ["tool_search", "a"]
    assert [each.names for each in asked.of(ToolsLoaded)] == [("a",)]
    assert asked.result.loaded_tools == ("a",)


@pytest.mark.requirement("ASK-2")
def test_many_thousands_of_turns_are_left_out_in_linear_time() -> None:
    history = [Message("user", "hi")] * 200_000
    shorter = asyncio.run(within(history, 60, KeptResults(), readable=True))
    assert len(shorter) == 31


@pytest.mark.requirement("ASK-2")
def test_a_long_history_is_gone_through_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    names: set[str] = set()
    monkeypatch.setattr(
        compaction, "characters", lambda _: names.add(threading.current_thread().name) or 1
    )
    fit([Message("user", "hi")] * 1_001, 1_000, 60)
    assert names == {"planning what to leave out"}


@pytest.mark.requirement("ASK-8b")
@pytest.mark.parametrize(("most", "kept"), [(1, False), (1_000, True)])
def test_of_results_whose_turns_are_left_out_nothing_is_kept(most: int, kept: bool) -> None:
    results = KeptResults()
    asyncio.run(within([*turn(1), *turn(2)], most, results, readable=True))
    assert results.used is kept
    references = [results.tool_of(f"result_{number}") for number in (1, 2)]
    assert references == (["look", None] if kept else [None, None])
