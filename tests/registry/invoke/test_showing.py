"""What a call costs after its tool is done: bounded, stopped in time, and never kept too late."""

import asyncio
import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.handler import HandlerContext, Image, Table
from session_runtime.registry.invoke import results
from session_runtime.registry.invoke.encode import least_chars
from session_runtime.registry.invoke.results import MOST_AT_ONCE, SLICE_CHARS, Renderer
from tests.registry.invoke.calling import SOON_S, Shelf, invoke, returning
from tests.registry.invoke.test_encode import SCALARS

LONG = "x" * 40_000
NOTE = "Note: this is call 3 of t with the same arguments; another identical one will be refused."


class Gate(dict[str, int]):
    """Data whose encoding begins when it is reached and goes on when it is released."""

    def __init__(self) -> None:
        super().__init__(a=1)
        self.reached, self.release = threading.Event(), threading.Event()

    def items(self) -> Any:
        self.reached.set()
        self.release.wait()
        return super().items()


async def all_ended(renderer: Renderer) -> None:
    """Wait until the only place of a renderer is free."""
    await renderer.draft(LONG, 500, None)


@pytest.mark.requirement("REG-3")
async def test_a_result_is_encoded_no_further_when_the_time_of_its_call_is_up() -> None:
    gate, rest, renderer = Gate(), Gate(), Renderer(1)
    rest.release.set()
    result = await invoke(returning([gate, LONG, rest]), timeout_s=SOON_S, renderer=renderer)
    assert result.error_code == "tool.timeout"
    gate.release.set()
    await all_ended(renderer)
    assert not rest.reached.is_set()


async def test_a_result_is_encoded_no_further_when_its_caller_is_cancelled() -> None:
    gate, rest, renderer = Gate(), Gate(), Renderer(1)
    rest.release.set()
    call = asyncio.create_task(invoke(returning([gate, LONG, rest]), renderer=renderer))
    await asyncio.to_thread(gate.reached.wait)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    gate.release.set()
    await all_ended(renderer)
    assert not rest.reached.is_set()


async def test_results_that_take_long_are_made_readable_a_few_at_a_time() -> None:
    gates, renderer = [Gate() for _ in range(MOST_AT_ONCE + 1)], Renderer()
    calls = [
        asyncio.create_task(invoke(returning([gate, LONG]), renderer=renderer)) for gate in gates
    ]
    for gate in gates[:-1]:
        await asyncio.to_thread(gate.reached.wait)
    calls[-1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await calls[-1]
    for gate in gates:
        gate.release.set()
    await asyncio.gather(*calls[:-1])
    assert not gates[-1].reached.is_set()


@pytest.mark.requirement("REG-3")
async def test_the_time_limit_holds_while_a_result_waits_for_its_turn() -> None:
    result = await invoke(returning(LONG), timeout_s=SOON_S, renderer=Renderer(0))
    assert result.error_code == "tool.timeout"


@pytest.mark.requirement("ASK-8b")
@pytest.mark.parametrize("late", ["x" * 600, LONG, [[LONG]]])
async def test_what_a_tool_returns_after_its_time_is_not_kept(late: object) -> None:
    shelf, renderer, release = Shelf(), Renderer(1), asyncio.Event()

    async def stubborn(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return late

    options = {"renderer": renderer, "place": shelf.place(), "max_result_chars": 500}
    result = await invoke(stubborn, timeout_s=SOON_S, **options)
    assert result.error_code == "tool.timeout"
    release.set()
    await asyncio.gather(*(t for t in asyncio.all_tasks() if t.get_name() == "call of t"))
    await all_ended(renderer)
    assert shelf.kept == []


@pytest.mark.requirement("ASK-8b")
async def test_what_is_encoded_after_its_time_is_not_kept() -> None:
    gate, shelf, renderer = Gate(), Shelf(), Renderer(1)
    options = {"renderer": renderer, "place": shelf.place(), "max_result_chars": 500}
    await invoke(returning([LONG, gate]), timeout_s=SOON_S, **options)
    gate.release.set()
    await all_ended(renderer)
    assert shelf.kept == []


@pytest.mark.requirement("ASK-8b")
@pytest.mark.parametrize(
    "value", [LONG, [LONG], {"a": LONG}, Table(["a"], [[LONG]]), LONG.encode()]
)
async def test_where_there_is_no_room_the_model_reads_that_the_rest_is_not_kept(
    value: object,
) -> None:
    result = await invoke(returning(value), place=Shelf(full=True).place(), max_result_chars=600)
    assert (result.status, len(result.content) <= 600) == ("ok", True)
    assert "not kept" in result.content
    assert "result_1" not in result.content
    assert "results.read" not in result.content


@pytest.mark.requirement("ASK-8a")
@pytest.mark.parametrize("chars", [1, 700, 709, 710, 711, 800, 20_000])
async def test_a_note_below_a_result_is_within_the_limit_too(chars: int) -> None:
    shelf = Shelf()
    result = await invoke(
        returning("x" * chars), place=shelf.place(), note=NOTE, max_result_chars=800
    )
    content, _, note = result.content.rpartition("\n")
    assert (note, len(result.content) <= 800) == (NOTE, True)
    assert content == "x" * chars or shelf.kept == ["x" * chars]


@pytest.mark.requirement("ASK-8a")
async def test_a_note_that_would_take_half_of_the_limit_is_left_out() -> None:
    for limit, noted in ((2 * len(NOTE), False), (2 * len(NOTE) + 1, True)):
        result = await invoke(returning("x" * 1_000), note=NOTE, max_result_chars=limit)
        assert (len(result.content) <= limit, result.content.endswith(NOTE)) == (True, noted)


HALVES = st.text(st.characters(exclude_categories=()), max_size=50)
HUGE = st.integers(0, 9).map(lambda n: 1 << (70_000 + n))
LEAVES = SCALARS | HALVES | st.floats() | st.binary(max_size=20) | HUGE
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(HALVES | st.none() | st.booleans() | st.integers(), inner)
    ),
    max_leaves=100,
)


@pytest.mark.requirement("ASK-8b")
@given(ANYTHING, st.integers(1, 2_000), st.sampled_from(["", NOTE]), st.integers(1, 500))
async def test_any_value_becomes_one_result_within_the_limit(
    value: object, limit: int, note: str, size: int
) -> None:
    shelf = Shelf()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "SLICE_CHARS", size)
        result = await invoke(
            returning(value), place=shelf.place(), note=note, max_result_chars=limit
        )
    result.content.encode()
    match result.status:
        case "ok":
            assert len(result.content) <= limit
            assert result.whole_chars is not None or not shelf.kept
        case status:
            assert (status, result.error_code, shelf.kept) == ("error", "tool.bad_result", [])


async def in_the_loop(value: object) -> bool:
    """Whether a result is made readable without a thread: here there is none to be had."""
    drafting = asyncio.create_task(Renderer(0).draft(value, 500, None))
    await asyncio.sleep(0)
    done = drafting.done()
    drafting.cancel()
    return done


@given(ANYTHING, st.integers(0, 300))
async def test_what_is_larger_than_a_slice_is_never_made_readable_in_the_loop(
    value: object, size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "SLICE_CHARS", size)
        done = await in_the_loop(value)
    work = len(value) // 16 if isinstance(value, str | bytes) else least_chars(value, size)
    assert done == (work <= size)


@pytest.mark.parametrize(
    "value",
    [
        "x" * SLICE_CHARS * 17,
        [0] * (SLICE_CHARS // 2),
        [1.5] * (SLICE_CHARS // 4),
        {"a": [10 ** (SLICE_CHARS * 10 // 9)]},
        bytes(SLICE_CHARS * 17),
        Image(bytes(SLICE_CHARS * 17), "image/png"),
        Table(["a"], [["x" * SLICE_CHARS]]),
        Table(["a" * SLICE_CHARS], [[1]]),
        Table([str(n) for n in range(SLICE_CHARS)], []),
        Table(["a", "b"], [range(2)] * (SLICE_CHARS // 3)),
    ],
    ids=["text", "ints", "floats", "number", "bytes", "image", "cell", "column", "columns", "rows"],
)
async def test_each_kind_of_result_is_weighed_whole(value: object) -> None:
    assert not await in_the_loop(value)


@pytest.mark.parametrize("value", ["x" * 100, [0] * 100, b"x", Table(["a"], [[1]]), None])
async def test_small_results_need_no_thread(value: object) -> None:
    assert await in_the_loop(value)


def test_what_the_loop_makes_readable_is_not_much_longer_than_a_slice() -> None:
    heaviest = [
        "\x01" * SLICE_CHARS,
        [1.2345678901234567e-300] * (SLICE_CHARS // 4),
        [None] * 2_000,
    ]
    for value in heaviest:
        assert len(json.dumps(value)) <= 8 * least_chars(value, SLICE_CHARS * 2)
