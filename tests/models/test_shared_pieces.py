"""What bodies of different asks hold in common, so that many that wait for answers take little memory."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from session_runtime.config.models import ModelProfile
from session_runtime.models.base import ModelRequest
from session_runtime.models.chat_body import ChatBodyWriter
from session_runtime.models.http_body import Body
from session_runtime.models.messages_body import MessagesBodyWriter
from session_runtime.models.responses_body import Chain, ResponsesBodyWriter
from session_runtime.types import Message
from tests.models.building import profile, properties, request, tool

SEARCH = tool("music.search", properties(q="string"))
PROMPT = "Names of tools: " + "search, " * 1_000
Write = Callable[[ModelRequest], Body]


def chat(settings: ModelProfile) -> Write:
    writer = ChatBodyWriter(settings)
    return lambda asked: writer.write(asked, frozenset())


def messages(settings: ModelProfile) -> Write:
    writer = MessagesBodyWriter(settings, "here")
    return lambda asked: writer.write(asked, 1, frozenset())


def responses(settings: ModelProfile) -> Write:
    writer = ResponsesBodyWriter(settings, "here")
    return lambda asked: writer.write(asked, Chain(), frozenset())


WRITERS = [chat, messages, responses]


def asking(question: str) -> ModelRequest:
    return request(Message("system", PROMPT), Message("user", question), tools=[SEARCH])


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("settings", [{}, {"prompt_cache": False}], ids=["cached", "not cached"])
def test_the_prompt_and_the_tools_of_all_asks_are_one_object(
    writer: Callable[[ModelProfile], Write], settings: Mapping[str, Any]
) -> None:
    write = writer(profile("http://model.test/v1", **settings))
    one, other = write(asking("one?")), write(asking("and the other?"))
    shared = {id(piece) for piece in one.pieces} & {id(piece) for piece in other.pieces}
    own = sum(len(piece) for piece in other.pieces if id(piece) not in shared)
    assert own < 300 < len(PROMPT) < other.length == len(other.content)
