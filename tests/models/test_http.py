"""Services behind either wire: what they are sent, how they fail, and that both wires take it alike."""

import asyncio
import contextlib
import gzip

import pytest
from pydantic import SecretStr

from session_runtime.errors import PermanentError, TransientError
from session_runtime.models.http import open_client
from session_runtime.testing.replies import (
    Pace,
    Reply,
    reply_bytes,
    reply_error,
    reply_text,
)
from session_runtime.testing.upstream import Upstream
from session_runtime.types import Message
from tests.models.building import KEY, HttpWire, ask, failure, opened, profile, request, service

KEY_HEADERS = {
    "chat": {"authorization": f"Bearer {KEY}"},
    "responses": {"authorization": f"Bearer {KEY}"},
    "anthropic": {"x-api-key": KEY, "anthropic-version": "2023-06-01"},
}
WIRES = pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])


@WIRES
async def test_the_headers_carry_the_key_and_nothing_from_the_environment(
    wire: HttpWire,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    async with service(wire, [reply_text("ok")]) as (model, upstream):
        await ask(model)
    (headers,) = upstream.headers
    assert {name: headers[name] for name in headers if name not in {"host", "content-length"}} == {
        **KEY_HEADERS[wire],
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
        "connection": "keep-alive",
        "content-type": "application/json",
        "user-agent": "session-runtime",
    }


@WIRES
@pytest.mark.parametrize("api_key", [None, ""])
async def test_without_a_key_no_authorization_is_sent(wire: HttpWire, api_key: str | None) -> None:
    async with service(wire, [reply_text("ok")], api_key=api_key) as (model, upstream):
        await ask(model)
    assert "authorization" not in upstream.headers[0]


@WIRES
@pytest.mark.parametrize("base", ["{}", "{}/", "{}?api-version=1"])
async def test_the_path_is_added_to_any_form_of_base_url(wire: HttpWire, base: str) -> None:
    async with Upstream([reply_text("ok")]) as upstream:
        model = opened(profile(base.format(upstream.base_url), wire=wire))
        reply, _ = await ask(model)
        await model.aclose()
    assert reply.text == "ok"


async def test_only_a_server_with_https_needs_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    await open_client("http://model.test/v1").aclose()
    with pytest.raises(FileNotFoundError):
        open_client("HTTPS://model.test/v1")


@WIRES
async def test_a_connection_is_used_again(wire: HttpWire) -> None:
    async with service(wire, [reply_text("a"), reply_text("b"), reply_text("c")]) as (
        model,
        upstream,
    ):
        for _ in range(3):
            await ask(model)
        assert upstream.open_connections == 1


@WIRES
@pytest.mark.requirement("ASK-9")
async def test_a_failure_is_told_once_and_never_tried_again(wire: HttpWire) -> None:
    busy = reply_error(429, "slow down", headers={"retry-after": "3"})
    async with service(wire, [busy, reply_text("too early")]) as (model, upstream):
        error = await failure(model)
    assert isinstance(error, TransientError)
    assert (error.code, error.retry_after_s) == ("model.rate_limited", 3.0)
    assert len(upstream.requests) == 1


@WIRES
@pytest.mark.requirement("ASK-9")
@pytest.mark.parametrize("cut_after", [0, 1, 2])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_connection_that_is_cut_may_work_later(
    wire: HttpWire, cut_after: int, stream: bool
) -> None:
    pieces = (b'data: {"choices": [{"delta": {"content": "H"}}]}\n\n',) * 3
    cut = reply_bytes(*pieces, pace=Pace(cut_after=cut_after))
    async with service(wire, [cut], stream=stream) as (model, _):
        error = await failure(model)
    assert (type(error), error.code) == (TransientError, "model.connection_lost")


@WIRES
@pytest.mark.requirement("ASK-9")
@pytest.mark.parametrize("pace", ["before the first byte", "in the middle"])
async def test_a_server_that_falls_silent_may_answer_later(wire: HttpWire, pace: str) -> None:
    never = Pace(gate=asyncio.Event())
    if pace == "in the middle":
        never = Pace(step=asyncio.Semaphore(1))
    async with service(wire, [reply_text("one two", pace=never)], timeout_s=0.05) as (model, _):
        error = await failure(model)
    assert (type(error), error.code) == (TransientError, "model.timeout")


@WIRES
@pytest.mark.requirement("ASK-9")
async def test_a_server_that_is_not_there_may_be_there_later(wire: HttpWire) -> None:
    async with Upstream([]) as upstream:
        base_url = upstream.base_url
    model = opened(profile(base_url, wire=wire))
    error = await failure(model)
    await model.aclose()
    assert (type(error), error.code) == (TransientError, "model.unreachable")
    assert base_url in str(error)


@WIRES
@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
async def test_a_key_that_the_provider_repeats_is_not_told(wire: HttpWire, status: int) -> None:
    async with service(wire, [reply_error(status, f"wrong key {KEY} in model m")]) as (model, _):
        error = await failure(model)
    assert "wrong key *** in model m" in str(error)


@WIRES
@pytest.mark.requirement("CFG-4")
async def test_a_key_that_cannot_be_sent_is_not_told_either(wire: HttpWire) -> None:
    async with Upstream([]) as upstream:
        settings = profile(upstream.base_url, wire=wire)
        model = opened(settings.model_copy(update={"api_key": SecretStr(f"{KEY}\nx")}))
        error = await failure(model)
        await model.aclose()
    assert (type(error), error.code) == (PermanentError, "model.bad_request")
    assert KEY not in str(error)
    assert error.__suppress_context__
    assert upstream.requests == []


@WIRES
async def test_a_redirect_is_not_followed(wire: HttpWire) -> None:
    async with Upstream([reply_text("ok")]) as other:
        there = reply_error(
            307, "moved", headers={"location": f"{other.base_url}/chat/completions"}
        )
        async with service(wire, [there]) as (model, _):
            error = await failure(model)
        assert other.requests == []
    assert (type(error), error.code) == (PermanentError, "model.redirected")


@WIRES
async def test_a_web_page_instead_of_an_api_names_the_way_out(wire: HttpWire) -> None:
    page = reply_bytes(b"<!doctype html><title>Sign in</title>", content_type="text/html")
    async with service(wire, [page]) as (model, upstream):
        error = await failure(model)
        base_url = upstream.base_url
    assert (type(error), error.code) == (PermanentError, "model.not_an_api")
    assert base_url in str(error)


@WIRES
async def test_an_endless_body_is_not_read_to_the_end(wire: HttpWire) -> None:
    megabyte = b'data: {"choices": []}\n\n' + b": " + b"x" * 1_000_000 + b"\n\n"
    async with service(wire, [reply_bytes(*[megabyte] * 40)]) as (model, _):
        error = await failure(model)
    assert (type(error), error.code) == (PermanentError, "model.reply_too_large")


@WIRES
async def test_an_encoding_that_nobody_asked_for_is_refused_unread(wire: HttpWire) -> None:
    bomb = reply_bytes(gzip.compress(b"\n" * 1_000_000), headers={"content-encoding": "GZip"})
    async with service(wire, [bomb]) as (model, _):
        error = await failure(model)
    assert (type(error), error.code) == (TransientError, "model.broken_reply")
    assert "content-encoding is 'GZip', and none was asked for" in str(error)


@WIRES
async def test_a_huge_refusal_is_cut(wire: HttpWire) -> None:
    async with service(wire, [reply_bytes(*[b"x" * 100_000] * 9, status=500)]) as (model, _):
        error = await failure(model)
    assert len(str(error)) < 400


@WIRES
async def test_a_cancelled_request_leaves_the_server(wire: HttpWire) -> None:
    async with service(wire, [reply_text("late", pace=Pace(gate=asyncio.Event()))]) as (
        model,
        upstream,
    ):
        task = asyncio.create_task(ask(model))
        await upstream.received(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await upstream.left()
        assert upstream.open_connections == 0


@WIRES
async def test_replies_in_parallel_do_not_mix(wire: HttpWire) -> None:
    questions = [f"question {number}" for number in range(20)]
    replies = {question: [reply_text(f"re: {question}")] for question in questions}
    async with service(wire, replies) as (model, _):
        answers = await asyncio.gather(
            *(ask(model, request(Message("user", question))) for question in questions)
        )
    assert [reply.text for reply, _ in answers] == [f"re: {question}" for question in questions]


@WIRES
@pytest.mark.requirement("ASK-9")
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (reply_error(401, "who are you"), "model.unauthorized"),
        (reply_error(403, "not you"), "model.unauthorized"),
        (reply_error(500, "oops"), "model.unavailable"),
        (reply_error(400, "too long", code="context_length_exceeded"), "model.context_too_long"),
        (reply_error(404, "no such model"), "model.refused"),
        (reply_bytes(b"", content_type="application/json"), "model.broken_reply"),
        (reply_bytes(b'{"status": "ok"}', content_type="application/json"), "model.not_an_api"),
        (reply_bytes(b'{"error": {"message": "x", "code": 429}}'), "model.rate_limited"),
        (reply_bytes(b'data: {"error": {"message": "x"}}\n\n'), "model.unavailable"),
        (reply_bytes(b'event: error\ndata: {"code": "overloaded"}\n\n'), "model.unavailable"),
        (reply_bytes(b'data: {"type": "error", "message": "x"}\n\n'), "model.unavailable"),
        (reply_bytes(b": ping\n\n"), "model.broken_reply"),
        (reply_bytes(b"data: {\n\n"), "model.broken_reply"),
    ],
)
async def test_both_wires_call_a_fault_by_the_same_code(
    wire: HttpWire, answer: Reply, code: str
) -> None:
    async with service(wire, [answer]) as (model, _):
        error = await failure(model)
    assert error.code == code


@WIRES
async def test_a_refusal_names_the_path_that_was_added(wire: HttpWire) -> None:
    path = {"chat": "/chat/completions", "responses": "/responses", "anthropic": "/messages"}[wire]
    async with service(wire, [reply_error(404, "nothing here")]) as (model, _):
        error = await failure(model)
    assert f"('{path}' is added to it)" in str(error)


@WIRES
async def test_no_cookie_leads_from_one_request_to_the_next(wire: HttpWire) -> None:
    first = reply_error(500, "later", headers={"set-cookie": "sid=for-alice; Path=/"})
    async with service(wire, [first, reply_text("ok")]) as (model, upstream):
        await failure(model)
        await ask(model)
    assert "cookie" not in upstream.headers[1]


@WIRES
async def test_an_error_object_without_end_is_a_broken_reply(wire: HttpWire) -> None:
    nested = b'{"error":' * 968 + b"1" + b"}" * 968
    reply = reply_bytes(nested, content_type="application/json")
    async with service(wire, [reply]) as (model, _):
        error = await failure(model)
    assert error.code == "model.broken_reply"


@pytest.mark.requirement("CFG-4")
@WIRES
async def test_a_key_in_the_query_of_an_address_is_never_told(wire: HttpWire) -> None:
    async with Upstream([reply_error(403, "no access for SEKRET22 today")]) as upstream:
        address = f"{upstream.base_url}?api_key=SEKRET22&x=1"
        async with contextlib.aclosing(opened(profile(address, wire=wire))) as model:
            refused = str(await failure(model))
    async with contextlib.aclosing(opened(profile(address, wire=wire))) as model:
        unreachable = str(await failure(model))
    assert f"{upstream.base_url}?api_key=***&x=1" in refused
    assert f"{upstream.base_url}?api_key=***&x=1" in unreachable
    assert "SEKRET22" not in refused + unreachable
