"""Chat completions over HTTP, whole, how they end, and what is told when they fail."""

import asyncio
from typing import Any

import pytest

from session_runtime.errors import RequestError
from session_runtime.registry.policy import acting_for
from session_runtime.types import (
    AskEvent,
    AskRequest,
    AskResult,
    ErrorInfo,
    Identity,
)
from session_runtime.wire import error_to_json
from tests.spec.errors_page import described
from tests.transports.completing import (
    BODY,
    PATH,
    PENDING,
    PLAIN,
    STARTED,
    STREAM,
    TOOL,
    USAGE,
    USED,
    pieces,
    playing,
    post,
    said,
    sent,
    without_time,
)
from tests.transports.configured import fits
from tests.transports.stub import (
    BlockedAsk,
    Emit,
    StubDoor,
    bearer,
    calling,
    finish,
    keyring_of,
    refused,
    serving,
)


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


def limit(kind: str, text: str = "", *messages: str) -> AskResult:
    return AskResult("a1", "limit", text, messages, error=ErrorInfo(f"limit.{kind}", "x"))


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("result", "content", "reason"),
    [
        (AskResult("a1", "answered", "Sun."), "Sun.", "stop"),
        (AskResult("a1", "ended", "", ("Hi.",)), "Hi.", "stop"),
        (AskResult("a1", "answered", "Sun an", cut_off="length"), "Sun an", "length"),
        (AskResult("a1", "answered", "", cut_off="content_filter"), "", "content_filter"),
        (limit("steps", "So far"), "So far", "length"),
        (limit("calls"), "", "length"),
        (limit("tokens"), "", "length"),
        (limit("deadline", "So"), "So", "length"),
        (limit("deadline", "", "One."), "One.", "length"),
        (
            AskResult("a1", "needs_confirmation", "Shall I?", pending=(PENDING,)),
            "Shall I?\n\nThis call waits for your consent and did not run:\n"
            '- notes.delete {"id": 3, "who": "安"}',
            "stop",
        ),
    ],
    ids=lambda value: value.outcome if isinstance(value, AskResult) else None,
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


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("events", "status", "code", "repeat"),
    [((), 503, "busy.no_turn", "true"), ((STARTED,), 504, "limit.deadline", "false")],
    ids=["waiting", "running"],
)
@pytest.mark.requirement("NET-1e")
async def test_an_ask_whose_time_was_up_with_nothing_to_show_is_no_answer_that_was_cut_off(
    events: tuple[AskEvent, ...], status: int, code: str, repeat: str, body: dict[str, Any]
) -> None:
    response = await post(playing(limit("deadline"), *events), body)
    told = response.json()["error"]
    assert fits("CompletionError", response.json()) == []
    assert (response.status_code, told["type"], told["code"]) == (status, "server_error", code)
    assert response.headers["x-should-retry"] == repeat
    assert ("retry-after" in response.headers) == (status == 503)


REFUSES = ("auth", "busy", "confirmation", "request")
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
    ("busy.queue", True, 1.0, 429, "rate_limit_error", "busy.queue"),
    ("cancelled.operator", False, None, 503, "server_error", "cancelled.operator"),
    ("cancelled.caller", False, None, 409, "invalid_request_error", "cancelled.caller"),
    ("cancelled.replaced", False, None, 409, "invalid_request_error", "cancelled.replaced"),
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
    is_refused = ours.partition(".")[0] in REFUSES
    result = AskResult("a1", outcome, error=error, refused=is_refused)
    response = await post(playing(result, STARTED), body)
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


def of_asks() -> list[str]:
    """Every code that ends an ask, but for limits, which are above, and that of no model in particular."""
    seen = (name for name, code in described().items() if "ask" in code.seen)
    return [name for name in seen if not name.startswith("limit.")]


STATUSES = {
    "auth.act_for": 403,
    "busy": 503,
    "busy.budget": 429,
    "busy.queue": 429,
    "busy.rate": 429,
    "cancelled.operator": 503,
    "internal": 500,
    "internal.exposure": 500,
    "model.context_too_long": 400,
    "model.rate_limited": 429,
    "model.timeout": 504,
    "request.unknown_model": 404,
}
BY_FAMILY = {
    "busy": 503,
    "cancelled": 409,
    "confirmation": 409,
    "model": 502,
    "request": 400,
}


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize("ours", of_asks())
@pytest.mark.requirement("NET-1e")
async def test_every_error_of_an_ask_has_a_status_of_its_kind(
    ours: str, body: dict[str, Any]
) -> None:
    family, again = ours.partition(".")[0], described()[ours].again
    error = ErrorInfo(ours, "why", again, 3.0 if again else None)
    outcome: Any = "cancelled" if family == "cancelled" else "failed"
    result = AskResult("a1", outcome, error=error, refused=family in REFUSES)
    response = await post(playing(result, STARTED), body)
    passing = 503 if family == "model" and again else BY_FAMILY.get(family)
    assert response.status_code == STATUSES.get(ours, passing)
    assert response.json()["error"]["session_runtime"] == error_to_json(error)
    assert response.headers["x-should-retry"] == ("true" if again else "false")
    assert response.headers.get("retry-after") == ("3" if again else None)


async def test_what_may_have_run_is_not_to_be_sent_again_by_a_client_of_its_own_accord() -> None:
    error = ErrorInfo("model.unavailable", "gone", True, 5.0)
    response = await post(playing(AskResult("a1", "failed", error=error), STARTED, TOOL))
    assert (response.status_code, response.headers["x-should-retry"]) == (503, "false")


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
            return finish(refused(ErrorInfo(error.code, str(error))), emit)
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
    told = answers["eve"].json()["error"]
    assert (answers["eve"].status_code, told["param"]) == (403, "user")
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
