"""What a model is shown of a result: all of it, or a summary that fits, with a reference to the whole."""

import asyncio
import base64
import json
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.handler import Image, Table
from session_runtime.registry.invoke.results import MOST_KEPT_CHARS, Place, Renderer, Shown
from tests.registry.invoke.calling import Shelf
from tests.registry.invoke.test_encode import DATA, plain

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)


async def show(value: object, limit: int, place: Place | None) -> Shown | None:
    """What is shown of a result that came in time."""
    draft = await Renderer().draft(value, limit, None if place is None else place.reference)
    return None if draft is None else draft.settle(place)


async def shown(value: object, limit: int = 500, shelf: Shelf | None = None) -> Any:
    """What is shown of a result that is too long, as data where it is data."""
    result = await show(value, limit, (shelf or Shelf()).place())
    assert result is not None
    assert len(result.content) <= limit
    return json.loads(result.content)


@pytest.mark.requirement("ASK-8b")
@pytest.mark.parametrize(
    ("value", "content"),
    [
        (None, "done"),
        ("天" * 500, "天" * 500),
        ({"a": [1, True]}, '{"a":[1,true]}'),
        (
            Table(["a", "b"], [(1, "x"), (2, None)]),
            '{"columns":["a","b"],"rows":[\n[1,"x"],\n[2,null]]}',
        ),
    ],
)
async def test_what_fits_is_shown_as_it_is_and_not_kept(value: object, content: str) -> None:
    shelf = Shelf()
    assert await show(value, 500, shelf.place()) == Shown(content)
    assert shelf.kept == []


@pytest.mark.requirement("ASK-8b")
async def test_an_object_is_summarised_by_its_plain_fields_and_what_the_others_are() -> None:
    value = {
        "rows": [{"id": n, "name": f"n{n}"} for n in range(100)],
        "total": 100,
        "next": None,
        "more": True,
        "note": "x" * 600,
        "deep": {"a": 1, "b": 2},
        "grid": [[1, 2, 3]],
        "none": [],
    }
    shelf = Shelf()
    assert await shown(value, 600, shelf) == {
        "kind": "object",
        "characters": len(plain(value)),
        "count": 8,
        "fields": {"total": 100, "next": None, "more": True},
        "left_out": {
            "rows": "array of 100, first: object of 2: id, name",
            "note": "text of 600 characters",
            "deep": "object of 2: a, b",
            "grid": "array of 1, first: array of 3",
            "none": "array of 0",
        },
        "reference": "result_1",
        "note": "Shortened. results.read gives the whole by its reference, from the next turn on.",
    }
    assert shelf.kept == [plain(value)]


@pytest.mark.requirement("ASK-8b")
async def test_an_array_is_summarised_by_its_count_and_the_first_items_that_fit() -> None:
    value = [{"id": n, "text": "y" * 40} for n in range(1_000)]
    summary = await shown(value, 500)
    assert summary | {"first": []} == {
        "kind": "array",
        "characters": len(plain(value)),
        "count": 1_000,
        "first": [],
        "reference": "result_1",
        "note": "Shortened. results.read gives the whole by its reference, from the next turn on.",
    }
    assert summary["first"] == value[: len(summary["first"])] != []


@pytest.mark.requirement("ASK-8b")
async def test_an_array_whose_first_item_does_not_fit_says_what_it_is() -> None:
    summary = await shown([{"text": "y" * 600}, 1], 500)
    assert summary["left_out"] == "first: object of 1: text"


@pytest.mark.requirement("ASK-8b")
@pytest.mark.parametrize("letter", ["k", "\x01"])
async def test_what_an_item_is_does_not_break_the_limit_either(letter: str) -> None:
    item = {f"{n}{letter * 60}": "y" * 600 for n in range(20)}
    summary = await shown([item], 500)
    assert (summary["kind"], summary["count"], "first" in summary) == ("array", 1, False)
    assert (await shown(item, 500))["count"] == 20


@pytest.mark.requirement("ASK-8b")
async def test_a_table_is_summarised_by_its_columns_and_first_rows() -> None:
    table = Table(["id", "name"], [(n, "z" * 50) for n in range(100)])
    shelf = Shelf()
    summary = await shown(table, 500, shelf)
    assert (summary["kind"], summary["count"], summary["columns"]) == ("table", 100, ["id", "name"])
    assert summary["rows"] == [[n, "z" * 50] for n in range(len(summary["rows"]))] != []
    assert json.loads(shelf.kept[0])["rows"] == [list(row) for row in table.rows]


@pytest.mark.requirement("ASK-8b")
async def test_text_is_cut_in_the_middle_at_the_ends_of_lines() -> None:
    text = "".join(f"line {n:04}\n" for n in range(1_000))
    result = await show(text, 500, Shelf().place())
    assert result is not None
    beginning, gap, end = (
        result.content.split("\n[")[0],
        *result.content.split("\n[")[1].split("]\n"),
    )
    start, stop = len(beginning), len(text) - len(end)
    assert gap == (
        f"Characters {start} to {stop} of 10000 are left out here. results.read gives them by the "
        'reference "result_1", from the next turn on.'
    )
    assert text == beginning + text[start:stop] + end
    assert beginning.endswith(text[start - 9 : start])
    assert end.startswith("line ")
    assert 400 < len(result.content) <= 500


@pytest.mark.requirement("ASK-8b")
async def test_without_anybody_to_read_it_the_summary_has_no_reference() -> None:
    for value in ({"a": "x" * 600}, "x" * 600, [0] * 600):
        result = await show(value, 500, None)
        assert result is not None
        assert "reference" not in result.content
        assert "results.read" not in result.content
        assert "Ask the tool for less" in result.content


@pytest.mark.requirement("ASK-8b")
@given(DATA, st.integers(500, 2_000))
async def test_any_data_is_shown_within_the_limit_as_json_and_kept_whole(
    value: object, limit: int
) -> None:
    shelf = Shelf()
    result = await show([value] * 60, limit, shelf.place())
    assert result is not None
    assert len(result.content) <= limit
    seen = json.loads(result.content)
    if len(plain([value] * 60)) <= limit:
        assert seen == [value] * 60
    else:
        assert seen["count"] == 60
        assert shelf.kept == [plain([value] * 60)]


@pytest.mark.requirement("ASK-8b")
@given(st.text(min_size=501, max_size=5_000), st.integers(500, 600))
async def test_any_text_is_shown_within_the_limit_and_kept_whole(text: str, limit: int) -> None:
    shelf = Shelf()
    result = await show(text, limit, shelf.place())
    assert result is not None
    assert len(result.content) <= limit
    assert [*shelf.kept, result.content][0] == text


@pytest.mark.requirement("ASK-8b")
@given(st.dictionaries(st.text(max_size=300), DATA, min_size=1, max_size=4), st.integers(1, 700))
async def test_a_limit_holds_however_small_it_is(value: dict[str, Any], limit: int) -> None:
    shelf = Shelf()
    result = await show(value, limit, shelf.place())
    assert result is not None
    assert len(result.content) <= limit
    if limit < 500:
        assert shelf.kept == []


@pytest.mark.requirement("ASK-8b")
@pytest.mark.parametrize(
    ("limit", "content"),
    [(64, f"{'x' * 37} [cut off: 1000 characters]"), (30, "x" * 30), (1, "x")],
)
async def test_a_limit_without_room_for_a_summary_leaves_the_beginning(
    limit: int, content: str
) -> None:
    assert await show("x" * 1_000, limit, Shelf().place()) == Shown(content, 1_000)


@pytest.mark.requirement("RTE-10")
async def test_bytes_are_described_and_kept_as_base64() -> None:
    shelf = Shelf()
    assert await shown(b"%PDF-1.7 \xff", shelf=shelf) == {
        "kind": "bytes",
        "media_type": "application/pdf",
        "bytes": 10,
        "digest": blake2b(b"%PDF-1.7 \xff", digest_size=8).hexdigest(),
        "reference": "result_1",
        "note": "Not shown, it is no text. results.read gives it as base64 by its reference, from the "
        "next turn on.",
    }
    assert base64.b64decode(shelf.kept[0]) == b"%PDF-1.7 \xff"


@pytest.mark.requirement("RTE-10")
async def test_an_image_is_described_by_the_type_that_its_tool_gave() -> None:
    summary = await shown(Image(PNG, "image/webp"))
    assert (summary["kind"], summary["media_type"], summary["bytes"]) == ("image", "image/webp", 32)
    assert summary["reference"] == "result_1"


@pytest.mark.requirement("RTE-10")
async def test_bytes_that_nobody_can_read_have_no_reference() -> None:
    result = await show(b"\x00\x01", 500, None)
    assert result is not None
    assert json.loads(result.content).keys() == {"kind", "bytes", "digest", "note"}
    assert (await shown(b""))["bytes"] == 0


@pytest.mark.parametrize("media_type", ["text/plain", "image/", "image/PNG", "image/a\nb", "png"])
def test_an_image_needs_the_media_type_of_an_image(media_type: str) -> None:
    with pytest.raises(ValueError, match="is no media type of an image: say image/png"):
        Image(b"", media_type)


def test_every_row_of_a_table_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="row 1 has 1 cells for 2 columns"):
        Table(["a", "b"], [(1, 2), (3,)])


@pytest.mark.requirement("ASK-8b")
async def test_what_is_too_long_to_be_kept_is_summarised_without_a_reference() -> None:
    shelf = Shelf()
    result = await show("x" * (MOST_KEPT_CHARS + 1), 500, shelf.place())
    assert result is not None
    assert (result.whole_chars, shelf.kept) == (MOST_KEPT_CHARS + 1, [])
    assert "Ask the tool for less" in result.content


@pytest.mark.requirement("ASK-8b")
async def test_the_event_loop_goes_on_while_a_large_result_is_encoded() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await show([[n] for n in range(200_000)], 500, None)
    counting.cancel()
    assert turns > 10
