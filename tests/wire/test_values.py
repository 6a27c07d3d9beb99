"""How many values a request may have: counted before they are made, and not in its texts."""

import json

import pytest

from session_runtime.errors import RequestError
from session_runtime.wire import parse_request
from session_runtime.wire.strict import MAX_VALUES

KEYS = {f"k{number}": number for number in range(MAX_VALUES + 1)}


@pytest.mark.requirement("NET-5")
@pytest.mark.parametrize(
    "body",
    [
        json.dumps(KEYS),
        json.dumps({name: str(value) for name, value in KEYS.items()}),
        json.dumps({"metadata": {"deep": [0] * (MAX_VALUES + 1)}}),
        json.dumps(['"\\'] * (MAX_VALUES + 1)),
    ],
    ids=["numbers", "texts", "list", "escapes"],
)
def test_a_request_of_too_many_values_is_refused(body: str) -> None:
    with pytest.raises(RequestError, match="more than 100000 values") as refused:
        parse_request(body.encode())
    assert refused.value.code == "request.json"


@pytest.mark.requirement("NET-5")
@pytest.mark.parametrize("text", [",", '",', "\\,", '\\",', '"\\'])
def test_a_text_may_have_as_many_commas_as_it_likes(text: str) -> None:
    data = {"text": text * (MAX_VALUES + 1), "history": [{"content": text}] * 10}
    assert parse_request(json.dumps(data).encode()) == data


def test_what_is_no_json_is_told_as_such() -> None:
    for broken in (b'{"a": "' + b"," * 200_000, b'{"a": 1,' + b'"' * 300_001 + b"," * 200_000):
        with pytest.raises(RequestError, match="JSON"):
            parse_request(broken)
