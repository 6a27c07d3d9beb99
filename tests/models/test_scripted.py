"""Playing replies from a file: what comes next follows from the messages alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from session_runtime.errors import ConfigError, PermanentError, TransientError
from session_runtime.models.base import ModelReply
from session_runtime.models.scripted import ScriptedModel, read_script
from session_runtime.types import ImagePart, Message, TextPart, ToolCall
from tests.models.building import ask, failure, request, tool


def player(folder: Path, **script: Any) -> ScriptedModel:
    path = folder / "script.json"
    path.write_text(json.dumps(script, ensure_ascii=False), "utf-8")
    return ScriptedModel(read_script(path, "models.m.script"))


def user(text: str) -> Message:
    return Message("user", text)


async def test_replies_follow_one_another_within_a_question_and_start_again_with_the_next(
    tmp_path: Path,
) -> None:
    model = player(tmp_path, replies=[{"text": "one two"}, {"text": "three"}])
    first, told = await ask(model, request(user("a")))
    second, _ = await ask(model, request(user("a"), Message("assistant", "one two")))
    again, _ = await ask(model, request(user("a"), Message("assistant", "x"), user("b")))
    assert (first, second.text, again.text) == (
        ModelReply("one two", finish_reason="stop"),
        "three",
        "one two",
    )
    assert told == ["one ", "two"]


async def test_without_a_question_the_whole_conversation_counts(tmp_path: Path) -> None:
    model = player(tmp_path, replies=[{"text": "one"}, {"text": "two"}])
    reply, _ = await ask(model, request(Message("assistant", "one"), Message("system", "go on")))
    assert reply.text == "two"


async def test_calls_carry_arguments_as_objects_or_as_they_stand(tmp_path: Path) -> None:
    calls = [
        {"name": "web__search", "arguments": {"q": "猫"}},
        {"name": "web.search", "arguments": "{broken"},
        {"name": "invented"},
    ]
    model = player(tmp_path, replies=[{"calls": calls, "text": "Wait."}])
    earlier = Message("assistant", None, (ToolCall("call_0", "x", "{}"),))
    reply, _ = await ask(model, request(earlier, user("a"), tools=[tool("web.search")]))
    assert reply == ModelReply(
        "Wait.",
        (
            ToolCall("call_1", "web.search", '{"q": "猫"}'),
            ToolCall("call_2", "web.search", "{broken"),
            ToolCall("call_3", "invented", "{}"),
        ),
        finish_reason="tool_calls",
    )


@pytest.mark.parametrize(
    ("question", "answer"),
    [("How is the WEATHER?", "sunny"), ("天气呢", "晴"), ("anything", "default")],
)
async def test_the_first_scene_that_matches_the_question_is_played(
    tmp_path: Path, question: str, answer: str
) -> None:
    model = player(
        tmp_path,
        scenes=[
            {"match": "weather", "replies": [{"text": "sunny"}]},
            {"match": "天气", "replies": [{"text": "晴"}]},
            {"match": "Weather", "replies": [{"text": "never"}]},
        ],
        replies=[{"text": "default"}],
    )
    parts = Message("user", (TextPart(question), ImagePart("data:,")))
    assert (await ask(model, request(parts)))[0].text == answer


@pytest.mark.requirement("ASK-9")
async def test_failures_can_be_played(tmp_path: Path) -> None:
    passing = {"code": "model.rate_limited", "message": "slow", "transient": True}
    model = player(
        tmp_path,
        scenes=[
            {"match": "a", "replies": [{"error": {**passing, "retry_after_s": 2}}]},
            {"match": "b", "replies": [{"error": {"code": "model.refused", "message": "no"}}]},
        ],
    )
    slow, refused = (
        await failure(model, request(user("a"))),
        await failure(model, request(user("b"))),
    )
    assert isinstance(slow, TransientError)
    assert (slow.code, str(slow), slow.retry_after_s) == ("model.rate_limited", "slow", 2.0)
    assert (type(refused), refused.code) == (PermanentError, "model.refused")


async def test_a_script_that_ends_says_so(tmp_path: Path) -> None:
    model = player(tmp_path, replies=[{"text": "only"}])
    error = await failure(model, request(user("Why?"), Message("assistant", "only")))
    assert (type(error), error.code) == (PermanentError, "model.script_ended")
    assert str(error) == (
        "the script has 1 replies to 'Why?' and reply 2 is asked for: add it, or end the ask earlier"
    )


def refusals(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_script(path, "models.m.script")
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("{", ["not valid JSON: EOF while parsing an object at line 1 column 1"]),
        ('{"replies":\n  [}', ["not valid JSON: expected value at line 2 column 4"]),
        ("[]", ["must be an object (given: a list)"]),
        ('{"replys": []}', ["replys: unknown key; did you mean replies?"]),
        ('{"replies": {}}', ["replies: must be a list (given: an object)"]),
        (
            '{"replies": [{"txt": ""}, {"calls": [{}]}]}',
            [
                "replies[0].txt: unknown key; did you mean text?",
                "replies[1].calls[0].name: is missing",
            ],
        ),
        (
            '{"replies": [{"calls": [{"name": "a", "arguments": 5}]}]}',
            ["replies[0].calls[0].arguments: must be an object or text (given: 5)"],
        ),
        (
            '{"scenes": [{"match": "a", "replies": [{"error": {"transient": "soon"}}]}]}',
            ['scenes[0].replies[0].error.transient: must be true or false (given: "soon")'],
        ),
        (
            '{"scenes": [{"match": "a", "replies": [{"error": {"mesage": "no"}}]}]}',
            ["scenes[0].replies[0].error.mesage: unknown key; did you mean message?"],
        ),
        (
            '{"replies": [{"text": "a", "error": {}}]}',
            ["replies[0]: a reply with an error has neither text nor calls"],
        ),
    ],
)
def test_every_fault_of_a_file_is_told_with_the_key_that_names_it(
    tmp_path: Path, text: str, faults: list[str]
) -> None:
    path = tmp_path / "script.json"
    path.write_text(text, "utf-8")
    assert refusals(path) == [f"models.m.script: {path}: {fault}" for fault in faults]


def test_a_file_that_cannot_be_read_is_named_beside_the_key(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.json"
    assert refusals(path) == [f"models.m.script: {path} cannot be read: No such file or directory"]
    assert refusals(tmp_path) == [f"models.m.script: {tmp_path} is no plain file"]
