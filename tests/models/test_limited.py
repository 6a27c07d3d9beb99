"""How many requests of a profile run at once, and who is next."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import TransientError
from session_runtime.models.base import ModelReply, ModelRequest, OnText
from session_runtime.models.limited import LimitedModel
from tests.models.building import request


class Held:
    """A model that answers a request when it is told to; ``running`` are the questions under way."""

    def __init__(self) -> None:
        self.running: dict[str, asyncio.Future[ModelReply]] = {}
        self.most = 0
        self.closed = 0

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        name = str(request.carry)
        future: asyncio.Future[ModelReply] = asyncio.get_running_loop().create_future()
        self.running[name] = future
        self.most = max(self.most, len(self.running))
        try:
            return await future
        finally:
            del self.running[name]

    async def aclose(self) -> None:
        self.closed += 1


async def settle() -> None:
    """Let everything go on that can: nothing here waits for the outside."""
    for _ in range(10):
        await asyncio.sleep(0)


def asked(model: LimitedModel, name: str) -> asyncio.Task[ModelReply]:
    wanted = ModelRequest(request().messages, (), request().names, name)
    return asyncio.create_task(model.reply(wanted, lambda text: None))


@pytest.mark.requirement("INT-1b")
async def test_those_beyond_the_limit_wait_and_come_first_come_first_served() -> None:
    held = Held()
    model = LimitedModel(held, 2)
    tasks = {name: asked(model, name) for name in "abcd"}
    served = []
    for name in "abcd":
        await settle()
        served.append(tuple(held.running))
        held.running[name].set_result(ModelReply(name))
    replies = [await task for task in tasks.values()]
    assert served == [("a", "b"), ("b", "c"), ("c", "d"), ("d",)]
    assert [reply.text for reply in replies] == list("abcd")


@pytest.mark.requirement("INT-1b")
async def test_a_request_that_fails_gives_its_place_to_the_next() -> None:
    held = Held()
    model = LimitedModel(held, 1)
    first, second = asked(model, "a"), asked(model, "b")
    await settle()
    held.running["a"].set_exception(TransientError("cut", code="model.broken_reply"))
    await asyncio.wait([first])
    await settle()
    held.running["b"].set_result(ModelReply("b"))
    assert isinstance(first.exception(), TransientError)
    assert (await second).text == "b"


@pytest.mark.requirement("INT-1b")
async def test_closing_closes_the_model() -> None:
    held = Held()
    await LimitedModel(held, 1).aclose()
    assert held.closed == 1


STEPS = st.lists(st.tuples(st.sampled_from(["ask", "answer", "cancel"]), st.integers(0, 5)))


@pytest.mark.requirement("INT-1b")
@given(st.integers(1, 3), STEPS)
async def test_whoever_is_cancelled_waiting_or_running_leaves_no_trace(
    most: int, steps: list[tuple[str, int]]
) -> None:
    held = Held()
    model = LimitedModel(held, most)
    tasks: dict[str, asyncio.Task[ModelReply]] = {}
    for step, number in steps:
        open_tasks = [task for task in tasks.values() if not task.done()]
        open_replies = [reply for reply in held.running.values() if not reply.done()]
        match step:
            case "ask":
                tasks[str(len(tasks))] = asked(model, str(len(tasks)))
            case "answer" if open_replies:
                open_replies[number % len(open_replies)].set_result(ModelReply("hi"))
            case "cancel" if open_tasks:
                open_tasks[number % len(open_tasks)].cancel()
        if number % 2:  # now and then several things happen before anybody runs
            await settle()
    await settle()
    while held.running:
        for future in held.running.values():
            future.set_result(ModelReply("late"))
        await settle()
    assert all(task.done() for task in tasks.values())
    assert held.most <= most
    again = [asked(model, f"again {n}") for n in range(most)]
    await settle()
    assert len(held.running) == most
    for task in again:
        task.cancel()
    await asyncio.wait(again)
