"""Each kind of value that a tool may return has one reading, as the page on handlers says."""

import enum
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterator
from datetime import date
from typing import Any, NamedTuple

import pytest

from session_runtime.handler import Image, Table
from tests.registry.invoke.calling import Shelf, invoke, returning, told


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Point(NamedTuple):
    x: int
    y: int


class TrapBytes(bytes):
    """Lies about itself wherever it is asked."""

    def __len__(self) -> int:
        return -1

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError("trap")

    def startswith(self, *args: Any) -> bool:
        raise RuntimeError("trap")


class TrapText(str):
    """Lies about itself wherever it is asked."""

    __slots__ = ()

    def __len__(self) -> int:
        return -1

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError("trap")


def counting() -> Iterator[int]:
    yield 1


async def arriving() -> AsyncIterator[int]:
    yield 1


def kind(value: object) -> str:
    return type(value).__name__


def ring() -> list[object]:
    around: list[object] = [{}]
    around[0] = {"again": around}
    return around


@pytest.mark.requirement("RTE-10")
@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("a\ud800b", "a?b"),
        (["\udfff", {"\ud800": 1}], '["?",{"?":1}]'),
        (Colour.RED, "red"),
        ([Colour.RED, Level.HIGH], '["red",3]'),
        (TrapText("text"), "text"),
        ({TrapText("a"): TrapText("b")}, '{"a":"b"}'),
        (Point(1, 2), "[1,2]"),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        (Counter("aab"), '{"a":2,"b":1}'),
        ({2: "a", 2.5: "b", None: "c", True: "d"}, '{"2":"a","2.5":"b","null":"c","true":"d"}'),
        (1e308, "1e+308"),
        (10**600, "1" + "0" * 600),
    ],
    ids=kind,
)
async def test_text_and_data_of_every_kind_are_shown_as_json(value: object, content: str) -> None:
    assert told(await invoke(returning(value), max_result_chars=1_000)) == ("ok", None, content)


@pytest.mark.requirement("RTE-10")
@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        [float("inf")],
        {float("nan"): 1},
        ring(),
        counting(),
        arriving(),
        [counting()],
        {"a": {1, 2}},
        {("a",): 1},
        date(2026, 1, 1),
        bytearray(b"x"),
        memoryview(b"x"),
        [b"x"],
        Image("no bytes", "image/png"),  # type: ignore[arg-type]
        Table(["a"], [[object()]]),
        10**5_000,
        [1 << 100_000],
    ],
    ids=kind,
)
async def test_everything_else_cannot_be_shown(value: object) -> None:
    result = await invoke(returning(value))
    assert (result.status, result.error_code) == ("error", "tool.bad_result")
    assert f"returned a {kind(value)}, which cannot be shown" in result.content


@pytest.mark.requirement("RTE-10")
async def test_bytes_of_a_class_of_their_own_are_described_like_any() -> None:
    shelf = Shelf()
    options: dict[str, Any] = {"max_result_chars": 500}
    trap = await invoke(returning(TrapBytes(b"%PDF-1")), place=shelf.place(), **options)
    plain = await invoke(returning(b"%PDF-1"), place=Shelf().place(), **options)
    assert (trap.content, shelf.kept) == (plain.content, ["JVBERi0x"])


@pytest.mark.requirement("ASK-8b")
async def test_an_object_of_very_many_keys_is_summarised_by_the_first() -> None:
    value = {f"key {n}": n for n in range(200_000)}
    result = await invoke(returning(value), place=Shelf().place(), max_result_chars=500)
    assert (result.status, len(result.content) <= 500) == ("ok", True)
    assert '"count":200000,"fields":{"key 0":0,"key 1":1,' in result.content


def test_rows_that_can_be_read_only_once_are_no_table() -> None:
    with pytest.raises(TypeError, match="rows of a Table must be a list, not a generator"):
        Table(["n"], ([n] for n in range(3)))  # type: ignore[arg-type]
