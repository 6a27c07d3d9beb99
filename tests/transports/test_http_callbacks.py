"""Callbacks by name over HTTP: what a request may say, and that the result gets there (SEC-3)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from session_runtime.wire import parse_json
from session_runtime.wire.callback import verify
from tests.callbacks.receiver import SECRET, TAKEN, Receiver, receiving, status
from tests.transports.configured import code
from tests.transports.invoking import tools
from tests.transports.stub import bearer

ALL = 'enabled = true\nallow = ["*"]\n'


def configured(receiver: Receiver, **more: str) -> str:
    keys = "".join(f"{name} = {value}\n" for name, value in more.items())
    return f'[callbacks.bot]\nurl = "{receiver.url}"\nsecret = "{SECRET}"\n{keys}'


@pytest.mark.requirement("SEC-3b")
async def test_the_result_of_a_detached_call_is_posted_signed(tmp_path: Path) -> None:
    async with receiving() as receiver, tools(tmp_path, ALL, configured(receiver)) as at:
        body = {"arguments": {"n": 1}, "detach": True, "callback": "bot"}
        accepted = (await at.invoke("a.note", body)).json()
        headers, posted = await receiver.received(1)
        kept = await at.client.get(f"/v1/asks/{accepted['ask_id']}", headers=bearer("ann"))
        await at.runtime.callbacks.idle()
        state = at.runtime.status()["callbacks"]
        assert 'session_runtime_callbacks_total{outcome="delivered"} 1' in at.runtime.metrics()
    now = float(headers["webhook-timestamp"])
    assert verify(SECRET, headers, posted, now) == accepted["ask_id"]
    told: Any = parse_json(posted)
    assert told == {
        "type": "ask.finished",
        "ask_id": accepted["ask_id"],
        "principal": "ann",
        "user": "ann",
        "result": kept.json()["result"],
    }
    assert told["result"]["call"]["structured"]["got"] == {"n": 1}
    assert state == {"waiting": 0, "delivered": 1, "failed": 0, "dropped": 0, "failures": []}


@pytest.mark.requirement("SEC-3b")
async def test_the_result_of_a_detached_ask_is_posted_and_the_ask_does_not_wait_for_it(
    tmp_path: Path,
) -> None:
    async with receiving(status(410)) as receiver, tools(tmp_path, ALL, configured(receiver)) as at:
        body = {"text": "What is 1 + 1?", "detach": True, "callback": "bot"}
        answer = await at.client.post("/v1/ask", json=body, headers=bearer("ann"))
        _, posted = await receiver.received(1)
        await at.runtime.callbacks.idle()
        [failure] = at.runtime.status()["callbacks"]["failures"]
    told: Any = parse_json(posted)
    assert (answer.status_code, told["result"]["outcome"]) == (202, "answered")
    assert (failure["callback"], failure["reason"]) == ("bot", "it answered with 410")


@pytest.mark.requirement("SEC-3b")
@pytest.mark.parametrize(
    ("callback", "more", "wanted"),
    [
        ("nobody", "", "request.unknown_callback"),
        ("https://evil.example/", "", "request.unknown_callback"),
        ("bot", 'principals = ["bob"]\n', "request.unknown_callback"),
        (7, "", "request.invalid"),
        ("", "", "request.invalid"),
    ],
)
async def test_only_a_name_that_the_principal_may_give_is_taken_and_never_an_address(
    tmp_path: Path, callback: object, more: str, wanted: str
) -> None:
    async with receiving() as receiver, tools(tmp_path, ALL, configured(receiver) + more) as at:
        body = {"arguments": {}, "detach": True, "callback": callback}
        assert code(await at.invoke("a.note", body)) == (400, wanted)
        assert (at.ran, receiver.got) == ([], [])


@pytest.mark.requirement("SEC-3b")
async def test_no_address_can_be_changed_over_the_network(tmp_path: Path) -> None:
    async with receiving() as receiver, tools(tmp_path, ALL, configured(receiver)) as at:
        boss = at.runtime.editor
        for key, value in (("url", "http://evil.example/"), ("secret", SECRET), ("tries", 1)):
            with pytest.raises(Exception, match="over the network"):
                await boss.set_values(
                    {f"callbacks.bot.{key}": value}, lambda _: True, any_key=False, trigger="http"
                )


@pytest.mark.requirement("REL-8")
async def test_a_drain_waits_for_what_is_on_its_way_but_not_for_long(tmp_path: Path) -> None:
    async with (
        receiving(status(503, "retry-after: 299"), TAKEN) as receiver,
        tools(tmp_path, ALL, configured(receiver)) as at,
    ):
        at.resources["go_on"].set()
        await at.invoke("a.note", {"detach": True, "callback": "bot"})
        await receiver.received(1)
        await asyncio.wait_for(at.runtime.drain(0.05), 30)
        assert at.runtime.status()["callbacks"]["waiting"] == 1
        callbacks = at.runtime.callbacks
    assert callbacks.status()["dropped"] == 1
