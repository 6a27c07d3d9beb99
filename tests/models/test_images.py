"""Images as callers give them, and as each wire sends them: by address, or as base64 and nothing else."""

import base64
import json
from typing import Any

import pytest

from session_runtime.models.chat_body import ChatBodyWriter
from session_runtime.models.content import IMAGE_NOTE
from session_runtime.models.messages_body import MessagesBodyWriter
from session_runtime.models.responses_body import Chain, ResponsesBodyWriter
from session_runtime.types import ImagePart, Message
from tests.models.building import profile, request

SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'
SVG_64 = base64.b64encode(SVG.encode()).decode()
IMAGES = {
    "data:image/png;base64,AAAA": ("image/png", "AAAA"),
    "DATA:Image/PNG;charset=x;BASE64,AAAA": ("image/png", "AAAA"),
    "data:image/png;base64,AA%2BA\n": ("image/png", "AA+A"),
    f"data:image/svg+xml,{SVG}": ("image/svg+xml", SVG_64),
    "data:image/svg+xml;charset=utf-8,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22/%3E": (
        "image/svg+xml",
        SVG_64,
    ),
    "data:image/gif,\ud800": ("image/gif", base64.b64encode(b"?").decode()),
    "data:image/gif,%00%ff": ("image/gif", base64.b64encode(b"\x00\xff").decode()),
}
OTHERS = [
    "data:,hello",
    "data:text/html,<b>x</b>",
    "data:application/pdf;base64,AAAA",
    "data:image/",
]
ADDRESS = "https://a.test/b.png?data:image/png;base64,AA"


def message(url: str) -> Any:
    return request(Message("user", (ImagePart(url),)))


def by_messages(url: str) -> Any:
    settings = profile("http://model.test/v1", wire="anthropic", prompt_cache=False)
    body = MessagesBodyWriter(settings, "here").write(message(url), 0, frozenset())
    return json.loads(body.content)["messages"][0]["content"][0]


def by_chat(url: str) -> Any:
    body = ChatBodyWriter(profile("http://model.test/v1")).write(message(url), frozenset())
    return json.loads(body.content)["messages"][0]["content"][0]["image_url"]["url"]


def by_responses(url: str) -> Any:
    writer = ResponsesBodyWriter(profile("http://model.test/v1", wire="responses"), "here")
    body = writer.write(message(url), Chain(), frozenset())
    return json.loads(body.content)["input"][0]["content"][0]["image_url"]


@pytest.mark.requirement("ASK-2")
@pytest.mark.parametrize("url", IMAGES)
def test_data_of_an_image_is_sent_as_base64_on_every_wire(url: str) -> None:
    media_type, data = IMAGES[url]
    source = {"type": "base64", "media_type": media_type, "data": data}
    assert by_messages(url) == {"type": "image", "source": source}
    assert by_chat(url) == by_responses(url) == f"data:{media_type};base64,{data}"


@pytest.mark.requirement("ASK-2")
@pytest.mark.parametrize("url", OTHERS)
def test_data_of_anything_else_is_no_image_for_the_messages_wire(url: str) -> None:
    assert by_messages(url) == {"type": "text", "text": IMAGE_NOTE}
    assert by_chat(url) == by_responses(url) == url


def test_an_address_is_sent_as_it_is() -> None:
    assert by_messages(ADDRESS) == {"type": "image", "source": {"type": "url", "url": ADDRESS}}
    assert by_chat(ADDRESS) == by_responses(ADDRESS) == ADDRESS
