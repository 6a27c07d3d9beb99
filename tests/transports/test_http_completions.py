"""Chat completions over HTTP, whole and streamed, and what is told when they fail."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from session_runtime.errors import RequestError
from session_runtime.registry.policy import acting_for
from session_runtime.transports.http.door import HttpLimits
from session_runtime.types import (
    AskEvent,
    AskRequest,
    AskResult,
    AskStarted,
    ErrorInfo,
    Identity,
    MessageSent,
    PendingCall,
    TextDelta,
    ToolStarted,
    TurnStarted,
    Usage,
)
from session_runtime.wire import error_to_json
from tests.transports.configured import fits
from tests.transports.stub import (
    AskFunction,
    BlockedAsk,
    Emit,
    StubDoor,
    StubLive,
    bearer,
    calling,
    finish,
    keyring_of,
    serving,
)

PATH = "/v1/chat/completions"
BODY = {"model": "main", "messages": [{"role": "user", "content": "hi"}]}
STREAM = {**BODY, "stream": True}
USED = Usage(7, 3, 2, 1, 2)
USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "total_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 2},
    "completion_tokens_details": {"reasoning_tokens": 1},
}
STARTED = AskStarted(ask_id="a1", generation=1, model="fast")
TOOL = ToolStarted(ask_id="a1", call_id="c", name="t", arguments={})
PENDING = PendingCall("secret", "notes.delete", {"id": 3, "who": "安"}, "c", 9.5)
PLAIN = {"ask_id": "a1", "messages": [], "steps": 0, "loaded_tools": [], "generation": 0}


def turn(attempt: int = 1, step: int = 1) -> TurnStarted:
    return TurnStarted(ask_id="a1", step=step, exposed=(), model="m", attempt=attempt)


def said(text: str) -> TextDelta:
    return TextDelta(ask_id="a1", text=text)


def sent(text: str) -> MessageSent:
    return MessageSent(ask_id="a1", text=text)


def playing(result: AskResult, *events: AskEvent) -> AskFunction:
    """An ask that emits these events, and lets each be read."""

    async def play(request: AskRequest, emit: Emit) -> AskResult:
        for event in events:
            emit(event)
            await asyncio.sleep(0.001)
        return finish(result, emit)

    return play


def pieces(text: str) -> list[Any]:
    """The JSON of each frame of a stream that ends as it should."""
    *frames, done, rest = text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(frame.removeprefix("data: ")) for frame in frames if frame[0] != ":"]


async def post(ask: AskFunction, body: Any = BODY, /, **settings: Any) -> httpx2.Response:
    door = StubDoor(ask)
    door.live = StubLive(**settings)
    async with calling(door) as client:
        return await client.post(PATH, json=body)


async def streamed(ask: AskFunction, /, **settings: Any) -> str:
    """All content of a stream."""
    response = await post(ask, STREAM, **settings)
    return "".join(
        piece["choices"][0]["delta"].get("content", "") for piece in pieces(response.text)
    )


def without_time(data: Any) -> Any:
    assert data.pop("created") > 1_600_000_000
    return data


@pytest.mark.requirement("NET-1e")
async def test_an_answer_holds_what_was_sent_and_the_final_text() -> None:
    result = AskResult("a1", "answered", "Done.", ("One.", "Two."), usage=USED, steps=2)
    response = await post(playing(result, STARTED), {**BODY, "temperature": 1})
    assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
    assert fits("Completion", response.json()) == []
    assert without_time(response.json()) == {
        "id": "a1",
        "object": "chat.completion",
        "model": "fast",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "One.\n\nTwo.\n\nDone.",
                    "refusal": None,
                },
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": USAGE,
        "session_runtime": {
            **PLAIN,
            "outcome": "answered",
            "text": "Done.",
            "messages": ["One.", "Two."],
            "steps": 2,
            "ignored": ["temperature"],
        },
    }


@pytest.mark.requirement("NET-1e")
async def test_a_stream_begins_with_the_role_and_ends_with_usage_and_done() -> None:
    result = AskResult("a1", "answered", "Sun, rain", usage=USED)
    events = (STARTED, turn(), said("Sun, "), said("rain"))
    response = await post(
        playing(result, *events), {**STREAM, "stream_options": {"include_usage": True}}
    )
    assert response.headers["content-type"] == "text/event-stream"

    def piece(delta: dict[str, str], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**head, "choices": [choice], "usage": None}

    head = {"id": "a1", "object": "chat.completion.chunk", "model": "fast"}
    extension = {**PLAIN, "outcome": "answered", "text": "Sun, rain", "ignored": []}
    assert [without_time(data) for data in pieces(response.text)] == [
        piece({"role": "assistant", "content": "Sun, "}),
        piece({"content": "rain"}),
        {**piece({}, "stop"), "session_runtime": extension},
        {**head, "choices": [], "usage": USAGE},
    ]


async def test_usage_is_streamed_only_to_those_who_want_it() -> None:
    response = await post(playing(AskResult("a1", "answered", "x"), STARTED), STREAM)
    assert [set(data) & {"usage"} for data in pieces(response.text)] == [set(), set()]


@pytest.mark.parametrize(
    ("events", "text", "content"),
    [
        ((turn(), sent("One."), turn(step=2), said("Two.")), "Two.", "One.\n\nTwo."),
        ((turn(), said("Let me look."), TOOL, turn(step=2), said("4")), "4", "Let me look.\n\n4"),
        ((turn(), said("Bye.")), "Bye.", "Bye."),
        ((turn(), said("May I?"), sent("Wait.")), "May I?", "May I?\n\nWait."),
        ((turn(), said("Sun "), turn(2), said("Sun and")), "Sun and rain", "Sun and rain"),
        ((turn(), said("Snow"), turn(2), said("Sun")), "Sun", "Snow\n\nSun"),
        ((turn(), turn(2), said("Sun")), "Sun", "Sun"),
        ((turn(), said("Look."), turn(step=2), said("Half")), "Look.", "Look.\n\nHalf"),
        ((), "", ""),
        ((), "Only at the end.", "Only at the end."),
    ],
    ids=[
        *("messages", "beside calls", "all streamed", "text before a message", "asked again"),
        *("begun otherwise", "nothing said yet", "cut off", "nothing", "unstreamed"),
    ],
)
async def test_a_stream_tells_text_while_it_is_written_and_nothing_twice(
    events: Sequence[AskEvent], text: str, content: str
) -> None:
    assert await streamed(playing(AskResult("a1", "answered", text), STARTED, *events)) == content


async def test_prose_that_may_be_sent_back_to_the_model_is_not_streamed_before_it_is_final() -> (
    None
):
    events = (turn(), said("I think"), turn(step=2), sent("4"), said("Bye"))
    ask = playing(AskResult("a1", "ended", "Bye", ("4",)), STARTED, *events)
    assert await streamed(ask, ask={"require_end": True}) == "4\n\nBye"


@pytest.mark.requirement("ASK-1")
async def test_a_slow_reader_of_a_stream_gets_the_whole_text_all_the_same() -> None:
    words = [f"{number} " for number in range(5_000)]

    async def flood(request: AskRequest, emit: Emit) -> AskResult:
        for event in (STARTED, turn(), *map(said, words)):
            emit(event)
        return finish(AskResult("a1", "answered", "".join(words)), emit)

    assert await streamed(flood) == "".join(words)


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("result", "content", "reason"),
    [
        (AskResult("a1", "ended", "", ("Hi.",)), "Hi.", "stop"),
        (
            AskResult("a1", "limit", "So far", error=ErrorInfo("limit.steps", "x")),
            "So far",
            "length",
        ),
        (
            AskResult("a1", "needs_confirmation", "Shall I?", pending=(PENDING,)),
            "Shall I?\n\nThis call waits for your consent and did not run:\n"
            '- notes.delete {"id": 3, "who": "安"}',
            "stop",
        ),
    ],
    ids=["ended", "limit", "waits"],
)
@pytest.mark.requirement("NET-1e")
async def test_how_an_ask_ended_is_its_finish_reason(
    result: AskResult, content: str, reason: str, body: dict[str, Any]
) -> None:
    response = await post(playing(result, STARTED, *map(sent, result.messages)), body)
    if body is BODY:
        (choice,) = response.json()["choices"]
        told, extension = choice["message"]["content"], response.json()["session_runtime"]
    else:
        *first, last = pieces(response.text)
        told = "".join(piece["choices"][0]["delta"]["content"] for piece in first)
        (choice,), extension = last["choices"], last["session_runtime"]
    assert (told, choice["finish_reason"]) == (content, reason)
    assert extension["outcome"] == result.outcome
    waits = [pending["token"] for pending in extension.get("pending", ())]
    assert waits == [pending.token for pending in result.pending]


FAILURES = [
    ("request.unknown_model", False, None, 404, "invalid_request_error", "model_not_found"),
    ("auth.act_for", False, None, 403, "permission_error", "auth.act_for"),
    ("confirmation.invalid", False, None, 409, "invalid_request_error", "confirmation.invalid"),
    ("busy.capacity", True, 2.2, 503, "server_error", "busy.capacity"),
    ("model.rate_limited", True, 20.0, 429, "rate_limit_error", "rate_limit_exceeded"),
    ("model.rate_limited", True, None, 429, "rate_limit_error", "rate_limit_exceeded"),
    ("model.unavailable", True, None, 503, "server_error", "model.unavailable"),
    ("model.timeout", True, None, 504, "server_error", "model.timeout"),
    ("model.unauthorized", False, None, 502, "server_error", "model.unauthorized"),
    (
        *("model.context_too_long", False, None, 400),
        *("invalid_request_error", "context_length_exceeded"),
    ),
    ("cancelled.operator", False, None, 503, "server_error", "cancelled.operator"),
    ("internal", False, None, 500, "server_error", "internal"),
]


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("ours", "retryable", "wait_s", "status", "kind", "code"), FAILURES, ids=lambda value: None
)
@pytest.mark.requirement("NET-1e")
async def test_an_ask_that_came_to_nothing_is_an_error_with_the_right_status(
    ours: str,
    retryable: bool,
    wait_s: float | None,
    status: int,
    kind: str,
    code: str,
    body: dict[str, Any],
) -> None:
    error = ErrorInfo(ours, "why", retryable, wait_s)
    outcome: Any = "cancelled" if ours.startswith("cancelled") else "failed"
    response = await post(playing(AskResult("a1", outcome, error=error), STARTED), body)
    assert response.status_code == status
    told = response.json()["error"]
    assert fits("CompletionError", response.json()) == []
    assert {**told, "param": None, "session_runtime": None} == {
        "message": "why",
        "type": kind,
        "param": None,
        "code": code,
        "session_runtime": None,
    }
    assert told["session_runtime"] == error_to_json(error)
    assert response.headers["x-should-retry"] == ("true" if retryable else "false")
    assert ("retry-after" in response.headers) == (status in (429, 503) and retryable)


async def test_what_may_have_run_is_not_to_be_sent_again_by_a_client_of_its_own_accord() -> None:
    error = ErrorInfo("model.unavailable", "gone", True, 5.0)
    response = await post(playing(AskResult("a1", "failed", error=error), STARTED, TOOL))
    assert (response.status_code, response.headers["x-should-retry"]) == (503, "false")


async def test_a_stream_that_fails_in_the_middle_ends_with_the_error_and_is_not_done() -> None:
    error = ErrorInfo("model.connection_lost", "gone", True)
    ask = playing(AskResult("a1", "failed", error=error), STARTED, turn(), said("Sun"))
    response = await post(ask, STREAM)
    first, last, rest = response.text.split("\n\n")
    assert json.loads(first.removeprefix("data: "))["choices"][0]["delta"]["content"] == "Sun"
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "model.connection_lost"
    assert rest == ""


async def test_a_silent_stream_is_kept_alive_by_comment_lines() -> None:
    go_on = asyncio.Event()

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        emit(STARTED)
        await go_on.wait()
        return finish(AskResult("a1", "answered", "x"), emit)

    limits = HttpLimits(max_body_bytes=1_000, ping_s=0.01)
    async with (
        serving(StubDoor(ask), limits) as served,
        served.client.stream("POST", PATH, json=STREAM) as response,
    ):
        lines = response.aiter_lines()
        begun = [await anext(lines) for _ in range(4)]
        go_on.set()
        rest = [line async for line in lines if line and line != ": ping"]
    assert begun == [": ping", "", ": ping", ""]
    assert len(rest) == 3


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize("events", [(STARTED,), (STARTED, said("x"))], ids=["silent", "talking"])
async def test_a_client_that_goes_away_cancels_its_ask(
    body: dict[str, Any], events: tuple[AskEvent, ...]
) -> None:
    ask = BlockedAsk(*events)
    async with serving(StubDoor(ask)) as served:
        asking = asyncio.create_task(served.client.post(PATH, json=body))
        await ask.started.wait()
        asking.cancel()
        await ask.cancelled.wait()


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["whole", "stream"])
async def test_stopping_answers_asks_that_still_run_as_busy(body: dict[str, Any]) -> None:
    ask = BlockedAsk()
    async with serving(StubDoor(ask)) as served:
        asking = asyncio.create_task(served.client.post(PATH, json=body))
        await ask.started.wait()
        served.stop.set()
        response = await asking
    assert response.status_code == 503
    assert response.json()["error"]["type"] == "server_error"


async def test_profiles_are_models_and_the_default_one_comes_first() -> None:
    async with calling() as client:
        listed = (await client.get("/v1/models")).json()
        one = (await client.get("/v1/models/org%2Fb")).json()
        none = await client.get("/v1/models/c")
    entry = {"object": "model", "created": 0, "owned_by": "session-runtime"}
    assert listed == {
        "object": "list",
        "data": [{"id": name, **entry} for name in ("main", "a", "org/b")],
    }
    assert [fits("Model", each) for each in listed["data"]] == [[], [], []]
    assert one == {"id": "org/b", **entry}
    assert (none.status_code, none.json()["error"]["code"]) == (404, "model_not_found")


@pytest.mark.requirement("NET-2b")
async def test_a_key_says_who_asks_and_the_user_for_whom() -> None:
    async def check(request: AskRequest, emit: Emit) -> AskResult:
        try:
            identity = acting_for(request.principal, request.identity)
        except RequestError as error:
            told = ErrorInfo(error.code, str(error))
            return finish(AskResult("a1", "failed", error=told), emit)
        return finish(AskResult("a1", "answered", str(identity.user)), emit)

    door = StubDoor(check, keyring_of(bot={"act_for": ("tg-*",)}))
    async with calling(door) as client:
        answers = {
            user: await client.post(PATH, json={**BODY, "user": user}, headers=bearer("bot"))
            for user in (None, "tg-17", "eve")
        }
        models = await client.get("/v1/models", headers=bearer("bot"))
    content = {
        user: answer.json()["choices"][0]["message"]["content"]
        for user, answer in answers.items()
        if answer.status_code == 200
    }
    assert content == {None: "bot", "tg-17": "tg-17"}
    refused = answers["eve"].json()["error"]
    assert (answers["eve"].status_code, refused["param"]) == (403, "user")
    assert models.status_code == 200
    assert door.principals[0].identity == Identity("bot", frozenset())


@pytest.mark.parametrize(
    ("method", "path", "headers", "content", "status", "code"),
    [
        ("POST", PATH, {}, b"{}", 401, "invalid_api_key"),
        ("POST", PATH, bearer("eve"), b"{}", 401, "invalid_api_key"),
        ("POST", PATH, bearer("bot"), b"{}", 400, "request.invalid"),
        ("POST", PATH, bearer("bot"), b"{", 400, "request.json"),
        ("POST", PATH, bearer("bot"), b"x" * 10_001, 413, "request.too_large"),
        (
            "POST",
            PATH,
            {**bearer("bot"), "content-type": "text/plain"},
            b"",
            415,
            "request.media_type",
        ),
        ("GET", PATH, bearer("bot"), b"", 405, "request.method"),
        ("GET", "/v1/models", {}, b"", 401, "invalid_api_key"),
        ("GET", "/v1/models/x", {}, b"", 401, "invalid_api_key"),
        ("GET", "/v1/models?x=1", bearer("bot"), b"", 400, "request.invalid"),
        ("GET", "/v1/models/%2E%2E/config", bearer("bot"), b"", 404, "model_not_found"),
    ],
)
@pytest.mark.requirement("NET-1e")
async def test_every_error_has_the_form_of_openai(
    method: str, path: str, headers: dict[str, str], content: bytes, status: int, code: str
) -> None:
    headers = {"content-type": "application/json", **headers}
    async with calling(StubDoor(keyring=keyring_of(bot={}))) as client:
        response = await client.request(method, path, headers=headers, content=content)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, code)
    assert response.headers["x-should-retry"] == "false"
    assert ("www-authenticate" in response.headers) == (status == 401)


async def test_a_fault_of_ours_has_it_too_and_no_details() -> None:
    async def break_down(request: AskRequest, emit: Emit) -> AskResult:
        raise ZeroDivisionError("secret details")

    for body in (BODY, STREAM):
        response = await post(break_down, body)
        assert response.status_code == 500
        assert response.json()["error"]["type"] == "server_error"
        assert "secret" not in response.text
