"""What an operator adds to the requests of a profile: headers and fields of the body."""

import json
from typing import Any

import pytest
from pydantic import SecretStr

from session_runtime.models.factory import profile_digest
from session_runtime.testing.replies import reply_error, reply_text
from tests.models.building import KEY, ask, chat, failure, profile

URL = "http://model.test/v1"
SECRET = "s3cr3t-of-the-gateway"


def headers(**values: str) -> dict[str, SecretStr]:
    return {name.replace("_", "-"): SecretStr(value) for name, value in values.items()}


@pytest.mark.requirement("INT-1b")
async def test_added_headers_are_sent_and_may_replace_only_the_name_of_the_client() -> None:
    added = headers(X_Org="o-1", User_Agent="bot/2")
    async with chat([reply_text("hi")], headers=added) as (model, upstream):
        await ask(model)
    (sent,) = upstream.headers
    assert {name: sent[name] for name in sent if name not in {"host", "content-length"}} == {
        "authorization": f"Bearer {KEY}",
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
        "connection": "keep-alive",
        "content-type": "application/json",
        "user-agent": "bot/2",
        "x-org": "o-1",
    }


@pytest.mark.requirement("INT-1b")
async def test_without_a_key_authorization_may_be_a_header() -> None:
    added = headers(Authorization="Basic dXNlcjpwYXNz")
    async with chat([reply_text("hi")], headers=added, api_key=None) as (model, upstream):
        await ask(model)
    assert upstream.headers[0]["authorization"] == "Basic dXNlcjpwYXNz"


@pytest.mark.requirement("CFG-4")
async def test_a_service_that_repeats_a_header_does_not_bring_it_into_a_message() -> None:
    added = headers(Authorization=f"Custom {SECRET}", X_Part="s3cr3t", X_Org="org-4711")
    said = f"no access for {SECRET} of org-4711 part s3cr3t"
    async with chat([reply_error(403, said)], headers=added, api_key=None) as (model, _):
        error = await failure(model)
    assert "no access for *** of *** part ***" in str(error)
    assert "gateway" not in str(error)


@pytest.mark.requirement("INT-1b")
@pytest.mark.parametrize("stream", [True, False])
async def test_added_fields_stand_in_the_body_as_they_were_given(stream: bool) -> None:
    fields = {"top_k": 40, "stop": ["a"], "template": {"thinking": {"on": True, "n": None}}}
    async with chat([reply_text("hi")] * 2, extra_body=fields, stream=stream) as (model, upstream):
        await ask(model)
        await ask(model)
    expected: dict[str, Any] = {"model": "m", **fields}
    if stream:
        expected |= {"stream": True, "stream_options": {"include_usage": True}}
    expected["messages"] = [{"role": "user", "content": "hello"}]
    assert json.loads(upstream.bodies[0]) == expected
    assert upstream.bodies[0] == upstream.bodies[1]


@pytest.mark.parametrize(
    "change",
    [
        {"headers": headers(X_Org="b")},
        {"headers": headers(X_Orga="a")},
        {"headers": {}},
        {"extra_body": {"deep": {"er": [1, 3]}}},
        {"extra_body": {}},
    ],
)
def test_profiles_that_add_something_else_have_different_digests(change: dict[str, Any]) -> None:
    common: dict[str, Any] = {
        "headers": headers(X_Org="a"),
        "extra_body": {"deep": {"er": [1, 2]}},
    }
    digest = profile_digest(profile(URL, **common))
    assert digest == profile_digest(profile(URL, **common))
    assert digest != profile_digest(profile(URL, **{**common, **change}))
