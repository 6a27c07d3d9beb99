"""What a remote tool returns becomes what a handler could return."""

from base64 import b64encode
from typing import Any

import pytest

from session_runtime.errors import ToolError
from session_runtime.handler import Image
from session_runtime.mcp import content as module
from session_runtime.mcp.content import value_of

PNG = b"\x89PNG\r\n\x1a\nrest"
ENCODED = b64encode(PNG).decode()
IMAGE = {"type": "image", "data": ENCODED, "mimeType": "image/png"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def value(*content: object, **more: Any) -> object:
    return await value_of({"content": list(content), **more})


@pytest.mark.requirement("RTE-10")
async def test_texts_become_one_text() -> None:
    assert await value(text("one")) == "one"
    assert await value(text("one"), text("two")) == "one\ntwo"
    assert await value() == ""


@pytest.mark.requirement("RTE-10")
@pytest.mark.parametrize("data", [{"sum": 3}, [1, 2], 0, False])
async def test_structured_data_is_preferred_to_its_text_and_stays_data(data: object) -> None:
    assert await value(text("three"), structuredContent=data) == data


@pytest.mark.requirement("RTE-10")
async def test_a_picture_becomes_an_image_and_sound_bytes() -> None:
    assert await value(IMAGE) == Image(PNG, "image/png")
    assert await value({"type": "audio", "data": ENCODED, "mimeType": "audio/wav"}) == PNG
    assert await value({**IMAGE, "mimeType": "text/html"}) == PNG


@pytest.mark.requirement("RTE-10")
async def test_a_picture_beside_a_text_is_described() -> None:
    assert await value(text("see"), IMAGE) == [
        "see",
        {"kind": "image", "media_type": "image/png", "bytes": len(PNG)},
    ]


@pytest.mark.requirement("RTE-10")
async def test_resources_and_links_become_references() -> None:
    held = {"uri": "file:///n.txt", "mimeType": "text/plain", "text": "words"}
    blob = {"uri": "file:///n.png", "blob": ENCODED}
    link = {"type": "resource_link", "uri": "https://a.invalid/r", "name": "r", "icons": [{}]}
    assert await value({"type": "resource", "resource": held}) == {
        "kind": "resource",
        "uri": "file:///n.txt",
        "media_type": "text/plain",
        "text": "words",
    }
    assert await value({"type": "resource", "resource": blob}, link) == [
        {"kind": "resource", "uri": "file:///n.png", "bytes": len(PNG)},
        {"kind": "link", "uri": "https://a.invalid/r", "name": "r"},
    ]


async def test_a_kind_of_content_that_nobody_knows_is_named() -> None:
    assert await value({"type": "hologram", "data": "?"}) == {
        "kind": "unknown",
        "type": "hologram",
    }


@pytest.mark.requirement("RTE-10")
async def test_an_error_stays_an_error_with_as_much_of_its_words_as_anybody_reads() -> None:
    with pytest.raises(ToolError, match=r"^no such room$"):
        await value(text("no such room"), isError=True, structuredContent={"a": 1})
    with pytest.raises(ToolError) as caught:
        await value(text("x" * 100_000), text("y"), isError=True)
    assert str(caught.value) == "x" * module.MAX_ERROR_CHARS
    with pytest.raises(ToolError, match="did not say why"):
        await value(isError=True)


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"content": "text"},
        {"content": [3]},
        {"content": [{"type": "text"}]},
        {"content": [{"type": "image", "data": "???"}]},
        {"content": [{"type": "resource", "resource": []}]},
        {"content": [None] * (module.MAX_PARTS + 1)},
    ],
)
async def test_what_cannot_be_read_is_told(result: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"it has|of its content|in its content"):
        await value_of(result)


async def test_a_large_result_is_read_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    aside: list[str] = []

    async def recorded(name: str, function: Any) -> object:
        aside.append(name)
        return function()

    monkeypatch.setattr(module, "aside", recorded)
    assert await value(text("x" * 300_000)) == "x" * 300_000
    assert await value(text("x")) == "x"
    assert aside == ["reading a result"]
