"""What a backend hands to either client is checked before anything is sent (INT-2)."""

import asyncio
import math
from typing import Any

import pytest

from session_runtime import AskRequest, Identity
from session_runtime.client.asking import LONGEST_S, asked, seconds
from session_runtime.client.http import HttpClient
from session_runtime.client.mqtt import MqttClient
from session_runtime.errors import RequestError
from session_runtime.wire import written_request
from tests.client.mqtt_memory import RESULT, Broker


@pytest.mark.parametrize(
    "request_",
    ["hi", {"text": "hi"}, AskRequest("hi"), AskRequest("hi", identity=Identity())],
)
async def test_both_clients_take_text_an_object_and_a_request(request_: Any) -> None:
    broker = Broker()
    assert asked(request_) == {"text": "hi"}
    async with MqttClient(connect=broker) as client:
        task = asyncio.create_task(client.ask(request_))
        sent = await broker.got(1)
        broker.say(sent, "result", RESULT)
        await task
    assert sent.body == b'{"text":"hi"}'


def cyclic() -> dict[str, Any]:
    data: dict[str, Any] = {}
    data["self"] = [data]
    return data


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"a": [1, object()]}, r"metadata\.a\[1\] is a Python object"),
        ({"a": {"b": math.nan}}, r"metadata\.a\.b is nan"),
        (cyclic(), r"metadata\.self\[0\] contains itself"),
    ],
)
async def test_what_json_cannot_hold_is_named_by_both_clients(
    metadata: dict[str, Any], told: str
) -> None:
    request = {"text": "hi", "metadata": metadata}
    async with MqttClient(connect=Broker()) as client:
        with pytest.raises(RequestError, match=told):
            await client.ask(request)
    async with HttpClient() as other:
        with pytest.raises(RequestError, match=told):
            await other.ask(request)


def test_half_a_surrogate_pair_does_not_keep_a_request_from_being_sent() -> None:
    assert written_request({"text": "a\ud800"}) == '{"text":"a\ufffd"}'.encode()


@pytest.mark.parametrize("wrong", [7, None, b"hi", ["hi"]])
def test_what_is_no_request_is_refused(wrong: Any) -> None:
    with pytest.raises(RequestError, match="give text, an object, or an AskRequest"):
        asked(wrong)


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, 2 * LONGEST_S, "5", True])
def test_a_deadline_that_is_no_time_is_refused_however_it_is_given(wrong: Any) -> None:
    for request, deadline_s in (
        ({"text": "hi", "deadline_s": wrong}, None),
        (AskRequest("hi", deadline_s=wrong), None),
        ("hi", wrong),
    ):
        with pytest.raises(RequestError, match="deadline_s is"):
            asked(request, deadline_s)


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, 1e10, None, "5"])
async def test_a_time_out_that_is_no_time_is_refused_by_both_clients(wrong: Any) -> None:
    with pytest.raises(RequestError, match="timeout_s is"):
        HttpClient(timeout_s=wrong)
    async with MqttClient(connect=Broker()) as client:
        with pytest.raises(RequestError, match="timeout_s is"):
            await client.ask("hi", timeout_s=wrong)


def test_a_good_number_of_seconds_is_kept_as_it_is() -> None:
    assert (seconds("timeout_s", 3), seconds("timeout_s", LONGEST_S)) == (3, LONGEST_S)
