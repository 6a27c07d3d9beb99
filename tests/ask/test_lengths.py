"""How long a request counts is what its sender can make long, wherever in it that is (NET-5)."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from session_runtime import AskRequest, AskResult
from session_runtime.ask.emitter import Emit
from session_runtime.ask.kept_asks import KeptAsks
from session_runtime.ask.lengths import chars_of_request
from session_runtime.ask.places import Bounds, Claim, Places
from session_runtime.direct import DirectCall
from session_runtime.types import AskFinished
from session_runtime.wire import invoke_from_json, request_from_json

LONG = "x" * 1_000
EMPTY_BYTES = sys.getsizeof({})

BODIES: dict[str, Callable[[str], dict[str, Any]]] = {
    "a field of a message that nobody knows": lambda long: {
        "history": [{"role": "user", "content": "x", "blob": long}]
    },
    "a name of such a field": lambda long: {
        "history": [{"role": "user", "content": "x", "blob": {long: [1]}}]
    },
    "a field of a call": lambda long: {
        "history": [_calling({"id": "1", "name": "t", "arguments": "{}"}, blob=long)]
    },
    "the id of a call": lambda long: {
        "history": [_calling({"id": long, "name": "t", "arguments": "{}"})]
    },
    "the name of a call": lambda long: {
        "history": [_calling({"id": "1", "name": long, "arguments": "{}"})]
    },
    "the call that a result is of": lambda long: {
        "history": [{"role": "tool", "content": "x", "tool_call_id": long}]
    },
    "instructions": lambda long: {"instructions": long},
    "roles": lambda long: {"identity": {"roles": [long]}},
    "a user": lambda long: {"identity": {"user": long}},
    "metadata": lambda long: {"metadata": {"a": [{"b": long}]}},
}


def _calling(call: dict[str, str], **more: str) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": call["arguments"]}
    made = {"id": call["id"], "type": "function", "function": function, **more}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def counted(body: dict[str, Any], **more: str) -> int:
    return chars_of_request(request_from_json({"text": "hi", **body, **more}))


@pytest.mark.requirement("NET-5b")
@pytest.mark.parametrize("where", BODIES)
def test_all_of_a_request_counts_that_may_be_long(where: str) -> None:
    body, short = BODIES[where](LONG[:100]), BODIES[where]("x")
    assert counted(body) - counted(short) == 99


@pytest.mark.requirement("NET-5b")
def test_arguments_of_a_tool_count_even_if_nobody_has_measured_them() -> None:
    call = DirectCall("t", {"a": LONG})
    assert chars_of_request(AskRequest(call=call)) > len(LONG)


@pytest.mark.requirement("NET-5b")
@pytest.mark.parametrize(
    "many",
    [
        {"history": [{"role": "user", "content": "a", "foo": [{} for _ in range(1_000)]}]},
        {"history": [{"role": "user", "content": "a", "foo": [[] for _ in range(1_000)]}]},
        {"history": [{"role": "user", "content": "a", "foo": ["" for _ in range(1_000)]}]},
        {"history": [{"role": "user", "content": "a", "foo": [0 for _ in range(1_000)]}]},
        {"history": [{"role": "user", "content": [{"type": "text", "text": ""}] * 1_000}]},
        {"metadata": {"a": [[{}] for _ in range(500)]}},
    ],
)
def test_very_many_values_count_by_the_memory_that_they_take(many: dict[str, Any]) -> None:
    assert counted(many) > 1_000 * EMPTY_BYTES


@pytest.mark.requirement("NET-5b")
def test_very_many_values_among_arguments_of_a_tool_count_so_too() -> None:
    data = {"arguments": {"a": [{} for _ in range(1_000)]}}
    assert chars_of_request(invoke_from_json(data, DirectCall("t", {}))) > 1_000 * EMPTY_BYTES


@dataclass
class Looks:
    """A list that counts how often all of it is looked at."""

    count: int = 0

    def values(self) -> dict[str, Any]:
        looks = self

        class Counted(list[str]):
            def __iter__(self) -> Iterator[str]:
                looks.count += 1
                return super().__iter__()

        return {"a": Counted([LONG])}


@pytest.mark.requirement("NET-5b")
async def test_what_its_door_has_measured_is_not_measured_again() -> None:
    looks, told = Looks(), list[int]()

    async def ask(request: AskRequest, emit: Emit, ask_id: str, chars: int) -> AskResult:
        told.append(chars)
        result = AskResult(ask_id, "answered")
        emit(AskFinished(ask_id=ask_id, seq=1, result=result))
        return result

    request = AskRequest("hi", metadata=looks.values())
    kept = KeptAsks(ask)
    await kept.start(request, chars=5_000)
    assert Claim("a1", "bot", request=request, measured=6_000).chars == 6_000
    assert (told, looks.count) == ([5_000], 0)
    await kept.aclose()


@pytest.mark.requirement("INT-6")
def test_a_request_does_not_say_itself_how_long_it_is() -> None:
    lengths = {"chars": 0}
    with pytest.raises(TypeError):
        AskRequest("x" * 1_000, **lengths)  # type: ignore[arg-type]


@pytest.mark.requirement("NET-5b")
async def test_an_ask_that_waits_is_measured_once() -> None:
    looks = Looks()
    places = Places(lambda: Bounds(running=1, waiting=8, waiting_in_all=16))
    busy, first, waits = (Claim(name, "bot", conversation="c") for name in "abc")
    waits = replace(waits, request=AskRequest("hi", metadata=looks.values()))
    await places.enter(busy)
    before = asyncio.create_task(places.enter(first))
    await asyncio.sleep(0)
    places.check(waits)
    task = asyncio.create_task(places.enter(waits))
    await asyncio.sleep(0)
    assert (places.waiting, looks.count) == (2, 1)
    for each in (before, task):
        each.cancel()
    await asyncio.wait([before, task])


@pytest.mark.requirement("NET-5b")
async def test_an_ask_that_is_kept_is_measured_once() -> None:
    looks = Looks()
    go_on = asyncio.Event()

    async def ask(request: AskRequest, emit: Emit, ask_id: str, chars: int) -> AskResult:
        await go_on.wait()
        result = AskResult(ask_id, "answered")
        emit(AskFinished(ask_id=ask_id, seq=1, result=result))
        return result

    kept = KeptAsks(ask)
    one = await kept.start(AskRequest("hi", metadata=looks.values()))
    assert one.chars > len(LONG)
    go_on.set()
    await one.finished()
    assert (looks.count, one.chars < len(LONG)) == (1, True)
    await kept.aclose()


def test_what_contains_itself_counts_once() -> None:
    cyclic: dict[str, Any] = {"text": LONG}
    cyclic |= {"again": cyclic, "and": [cyclic, cyclic]}
    request = AskRequest("hi", metadata=cyclic)
    assert len(LONG) < Claim("a1", "bot", request=request).chars < 2 * len(LONG)
