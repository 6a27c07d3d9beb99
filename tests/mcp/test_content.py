"""What a remote tool returns becomes what a handler could return."""

import json
from base64 import b64encode
from typing import Any

import pytest

from session_runtime.errors import ToolError
from session_runtime.handler import Image
from session_runtime.mcp import content as module
from session_runtime.mcp.content import value_of
from session_runtime.registry.invoke.output import Parts

PNG = b"\x89PNG\r\n\x1a\nrest\xff\xfe\xfb!"
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
        {"content": [{"type": "text"}, 3]},
        {"content": [{"type": "image", "data": "???"}]},
        {"content": [{"type": "resource", "resource": []}]},
        {"content": [None] * (module.MAX_PARTS + 1)},
    ],
)
async def test_what_cannot_be_read_is_told(result: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"it has|of its content|in its content"):
        await value_of(result)


@pytest.mark.requirement("RTE-10")
@pytest.mark.parametrize(
    ("bad", "described"),
    [
        ({"type": "text", "text": None}, {"type": "text", "why": "it has no text"}),
        ({"type": "image", "data": "???"}, {"type": "image", "why": "it is no base64"}),
        ({"type": "audio"}, {"type": "audio", "why": "it has no data"}),
        ({"type": "resource"}, {"type": "resource", "why": "its resource is no object"}),
        (
            {"type": "resource", "resource": {"uri": "a:b", "blob": "?"}},
            {"type": "resource", "why": "it is no base64"},
        ),
        (None, {"type": None, "why": "it is a NoneType"}),
    ],
)
async def test_a_part_that_cannot_be_read_is_described_alone(bad: object, described: Any) -> None:
    expected = ["the answer is 42", {"kind": "unusable", **described}]
    assert await value(text("the answer is 42"), bad) == expected
    beside = await value(bad, text("n is 1"), structuredContent={"n": 1})
    is_text = described["type"] == "text"
    assert beside == ({"n": 1} if is_text else [{"n": 1}, {"kind": "unusable", **described}])


@pytest.mark.requirement("RTE-10")
@pytest.mark.parametrize(
    "data",
    [
        "\r\n".join(ENCODED[at : at + 4] for at in range(0, len(ENCODED), 4)),
        ENCODED.rstrip("="),
        ENCODED.replace("+", "-").replace("/", "_"),
    ],
)
async def test_base64_is_read_with_line_ends_without_padding_and_for_addresses(data: str) -> None:
    assert await value({**IMAGE, "data": data}) == Image(PNG, "image/png")


@pytest.mark.requirement("RTE-10")
async def test_what_structured_data_does_not_say_stands_beside_it() -> None:
    link = {"type": "resource_link", "uri": "https://a.invalid/r"}
    described = {"kind": "image", "media_type": "image/png", "bytes": len(PNG)}
    reference = {"kind": "link", "uri": "https://a.invalid/r"}
    beside = await value(text('{"n": 1}'), IMAGE, link, structuredContent={"n": 1})
    assert beside == [{"n": 1}, described, reference]
    assert isinstance(beside, Parts)
    assert beside.data == {"n": 1}
    for nothing in ({}, []):
        alone = await value(text("the answer is 42"), structuredContent=nothing)
        assert alone == [nothing, "the answer is 42"]
        assert await value(text(""), structuredContent=nothing) == nothing
        assert await value(text(json.dumps(nothing)), structuredContent=nothing) == nothing


@pytest.mark.requirement("RTE-10")
@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"structuredContent": {"error": "quota exceeded"}}, '{"error":"quota exceeded"}'),
        ({"structuredContent": ["quota"], "content": [text(" ")]}, '["quota"]'),
        (
            {"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "no quota"}}]},
            "no quota",
        ),
        ({"content": "no quota"}, "no quota"),
        ({}, "the tool failed and did not say why"),
        ({"structuredContent": {"n": "x" * 20_000}}, '{"n":"' + "x" * 7_994),
    ],
)
async def test_an_error_keeps_its_reason_wherever_it_stands(
    result: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ToolError) as caught:
        await value_of({"content": [], **result, "isError": True})
    assert str(caught.value) == reason


async def test_a_large_result_is_read_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    aside: list[str] = []

    async def recorded(name: str, function: Any) -> object:
        aside.append(name)
        return function()

    monkeypatch.setattr(module, "aside", recorded)
    assert await value(text("x" * 300_000)) == "x" * 300_000
    assert await value(text("x")) == "x"
    assert aside == ["reading a result"]
