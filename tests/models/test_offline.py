"""The offline model, turn by turn: it calls what fits, loads what is deferred, tells what came back."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.config.models import ModelProfile
from session_runtime.models.base import NUDGE, ModelReply, ModelRequest
from session_runtime.models.factory import open_model
from session_runtime.models.offline import OfflineModel
from session_runtime.registry.names import build_wire_names
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import Message, ToolCall
from tests.models.building import ask, properties, request, tool

S, WHOLE = {"type": "string"}, {"type": "integer"}
MEAL = {"type": "string", "enum": ["breakfast", "lunch", "dinner"]}
MATH = tool(
    "math.evaluate", "Evaluate an arithmetic expression.", properties("expression", expression=S)
)
TIME = tool("get_current_time", "Tell the current date and time.", properties(timezone=S))
TABLE = tool(
    "table.reserve",
    "Reserve a table in a restaurant.",
    properties("restaurant", "guests", "meal", restaurant=S, guests=WHOLE, meal=MEAL),
)
WEATHER = tool("forecast", "查询城市的天气预报。", properties("city", city=S))
SEND = tool("send_message", "Send a message to the person who asks.", properties("text", text=S))
END = tool("end", "End the conversation.")
LOADER = tool("tool_search", "Loads tools.", properties("query", query=S), "virtual")
ALL = (END, MATH, SEND, TABLE, TIME, WEATHER)
NAMES = build_wire_names([spec.name for spec in ALL], "__")

Run = Callable[[str, str], str]


def called(reply: ModelReply) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in reply.calls]


async def reply_to(*messages: Message | str, tools: Sequence[ToolSpec] = ALL) -> ModelReply:
    told = [Message("user", one) if isinstance(one, str) else one for one in messages]
    reply, pieces = await ask(OfflineModel(), ModelRequest(tuple(told), tuple(tools), NAMES))
    assert "".join(pieces) == reply.text
    return reply


def result(content: str, name: str = "math.evaluate", number: int = 0) -> tuple[Message, Message]:
    call = ToolCall(f"call_{number}", name, "{}")
    return Message("assistant", None, (call,)), Message("tool", content, tool_call_id=call.id)


def directory(*names: str) -> Message:
    lines = "\n".join(names)
    return Message("system", f"<available_deferred_tools>\n{lines}\n</available_deferred_tools>")


@pytest.mark.parametrize(
    ("question", "calls"),
    [
        ("What is 15% of 2480?", [("math.evaluate", {"expression": "15% of 2480"})]),
        ("What time is it in Asia/Tokyo?", [("get_current_time", {"timezone": "Asia/Tokyo"})]),
        ("What time is it?", [("get_current_time", {})]),
        ("现在几点了？", [("get_current_time", {})]),
        (
            "Reserve a table at 'Blue Lagoon' for 4 guests for dinner",
            [("table.reserve", {"restaurant": "Blue Lagoon", "guests": 4, "meal": "dinner"})],
        ),
        ("北京的天气怎么样？", [("forecast", {"city": "北京"})]),
        (
            "What is 2 + 2 and what time is it in Tokyo?",
            [
                ("math.evaluate", {"expression": "2 + 2"}),
                ("get_current_time", {"timezone": "Asia/Tokyo"}),
            ],
        ),
    ],
)
async def test_the_tool_that_fits_is_called_with_what_the_question_says(
    question: str, calls: list[tuple[str, Any]]
) -> None:
    reply = await reply_to(question)
    assert (called(reply), reply.text) == (calls, "")


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        ("372", "372"),
        ("The answer is 372.", "The answer is 372."),
        ('{"expression": "15% of 2480", "result": 372.0}', "372.0"),
        ('{"time": "10:00", "zone": {"name": "UTC"}}', "time: 10:00, zone: name: UTC"),
        ('["a", true, null]', "a, yes, none"),
        ('{"error": "division by zero"}', "math.evaluate failed: division by zero"),
        ("math.evaluate was not run: expression is missing.",) * 2,
        ("", "math.evaluate gave no result."),
    ],
)
async def test_a_result_is_told_as_the_answer(content: str, answer: str) -> None:
    reply = await reply_to("What is 15% of 2480?", *result(content))
    assert reply == ModelReply(answer, finish_reason="stop")


async def test_several_results_are_told_together_in_call_order() -> None:
    first, second = result("4"), result("10:00", "get_current_time", 1)
    reply = await reply_to("both?", *first, *second)
    assert reply.text == "math.evaluate: 4\nget_current_time: 10:00"


async def test_results_of_an_earlier_question_are_not_told() -> None:
    reply = await reply_to("What is 1 + 1?", *result("2"), "What is 2 + 3?")
    assert called(reply) == [("math.evaluate", {"expression": "2 + 3"})]
    assert reply.calls[0].id == "call_1"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Reserve a table for 4 guests", "To use table.reserve I still need: restaurant, meal."),
        ("天气预报", "要使用 forecast，还需要：city。"),
        ("Sing a song", "I found no tool for this question."),
        ("唱首歌吧", "我没有找到适合这个问题的工具。"),
        ("Call 555-1234", "I found no tool for this question."),
        ("Find the end of the road", "I found no tool for this question."),
        ("", "I found no tool for this question."),
    ],
)
async def test_what_cannot_be_done_is_said(question: str, answer: str) -> None:
    assert await reply_to(question) == ModelReply(answer, finish_reason="stop")


async def test_a_tool_that_carries_answers_is_not_taken_for_one_that_finds_them() -> None:
    assert (await reply_to("Tell a person at work to end it all")).calls == ()
    reply = await reply_to("Send me a message saying good luck")
    assert called(reply) == [("send_message", {"text": "good luck"})]


NUDGED = (Message("assistant", "It is 10:00."), Message("user", NUDGE))


@pytest.mark.requirement("ASK-7")
async def test_an_answer_that_was_not_delivered_is_sent_through_tools() -> None:
    asked = (Message("user", "What time is it?"), *result("10:00", "get_current_time"), *NUDGED)
    sending = await reply_to(*asked)
    assert called(sending) == [("send_message", {"text": "It is 10:00."})]
    ending = await reply_to(*asked, *result("sent", "send_message", 1))
    assert (called(ending), ending.text) == ([("end", {})], "")


@pytest.mark.requirement("ASK-7")
async def test_an_answer_that_no_tool_can_deliver_is_repeated() -> None:
    assert called(await reply_to("What time is it?", *NUDGED, tools=[END])) == [("end", {})]
    assert (await reply_to("What time is it?", *NUDGED, tools=[])).text == "It is 10:00."


async def play(
    question: str, exposed: Sequence[ToolSpec], deferred: Sequence[ToolSpec]
) -> list[Any]:
    """All calls, then the answer, of an ask with tool search over ``deferred``."""
    messages = [directory(*(spec.name for spec in deferred)), Message("user", question)]
    tools = [*exposed, LOADER]
    seen: list[Any] = []
    for _ in range(6):
        reply = await reply_to(*messages, tools=tools)
        if not reply.calls:
            return [*seen, reply.text]
        seen += called(reply)
        messages.append(Message("assistant", None, reply.calls))
        for call in reply.calls:
            loaded = [spec for spec in deferred if spec.name in call.arguments]
            tools += [spec for spec in loaded if spec not in tools]
            content = json.dumps({"loaded": [spec.name for spec in loaded]})
            done = content if call.name == "tool_search" else "done"
            messages.append(Message("tool", done, tool_call_id=call.id))
    raise AssertionError(f"no end: {seen}")


async def test_a_tool_of_the_directory_is_loaded_and_then_called() -> None:
    assert await play(
        "Reserve a table at 'X' for 4 guests for lunch", [SEND, END], [TABLE, TIME]
    ) == [
        ("tool_search", {"query": "select:table.reserve"}),
        ("table.reserve", {"restaurant": "X", "guests": 4, "meal": "lunch"}),
        "done",
    ]


async def test_a_deferred_tool_that_fits_better_goes_before_a_callable_one() -> None:
    mail = tool("mail.send_message", "Mails.", properties("to", "text", to=S, text=S))
    seen = await play("Send a mail message 'hi' to Bob", [SEND], [mail, TIME])
    assert seen[1] == ("mail.send_message", {"to": "Bob", "text": "hi"})


async def test_tools_for_several_parts_are_loaded_with_one_search() -> None:
    seen = await play("What is 2 + 2 and what time is it?", [END], [MATH, TIME])
    assert seen == [
        ("tool_search", {"query": "select:math.evaluate,get_current_time"}),
        ("math.evaluate", {"expression": "2 + 2"}),
        ("get_current_time", {}),
        "math.evaluate: done\nget_current_time: done",
    ]


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("Sing me a song, please", "sing song"),
        ("What is 1+1?", "calculate math evaluate expression"),
    ],
)
async def test_without_a_name_that_fits_it_searches_by_words_once(
    question: str, query: str
) -> None:
    assert await play(question, [END], [TIME]) == [
        ("tool_search", {"query": query}),
        "I found no tool for this question.",
    ]


async def test_a_tool_that_a_search_does_not_load_is_not_searched_for_again() -> None:
    messages = [directory("weather.forecast"), Message("user", "How is the weather?")]
    for query in ("select:weather.forecast", "weather"):
        reply = await reply_to(*messages, tools=[LOADER])
        assert called(reply) == [("tool_search", {"query": query})]
        messages.append(Message("assistant", None, reply.calls))
        messages.append(Message("tool", '{"loaded": []}', tool_call_id=reply.calls[0].id))
    assert (await reply_to(*messages, tools=[LOADER])).calls == ()


async def test_names_in_the_directory_are_unescaped_and_groups_are_no_names() -> None:
    messages = [directory("r&amp;d.weather", "weather.* (12 tools)"), Message("user", "weather?")]
    reply = await reply_to(*messages, tools=[LOADER])
    assert called(reply) == [("tool_search", {"query": "select:r&d.weather"})]


async def test_what_was_fetched_beforehand_answers_a_question_that_names_it() -> None:
    fetched = Message(
        "system", "Results of tools:\n- get_current_time: 10:00\n  UTC\n- other.thing: 5"
    )
    reply = await reply_to(fetched, "What time is it?", tools=[END, LOADER])
    assert reply.text == "10:00\n  UTC"


@given(
    question=st.lists(
        st.sampled_from("what time is it 15% of 2480 reserve a table weather 天气 and . ?".split())
    ).map(" ".join)
    | st.text(max_size=30),
    exposed=st.sets(st.sampled_from(range(len(ALL)))),
)
async def test_no_question_keeps_it_from_ending(question: str, exposed: set[int]) -> None:
    now = [ALL[number] for number in sorted(exposed)]
    later = [spec for spec in ALL if spec not in now and spec is not END]
    seen = await play(question, now, later)
    assert isinstance(seen[-1], str)
    assert await play(question, now, later) == seen


async def test_the_offline_profile_imports_its_model_when_it_is_asked() -> None:
    model = open_model("offline", ModelProfile(wire="offline"))
    reply = await model.reply(request(Message("user", "hello")), lambda text: None)
    assert reply.text
    await model.aclose()
