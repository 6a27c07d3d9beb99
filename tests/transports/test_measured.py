"""Each door measures a request when it reads it, and hands that on beside the request (NET-5)."""

from typing import Any

import pytest

from session_runtime.ask.lengths import chars_of_request
from session_runtime.types import AskRequest, AskResult
from tests.transports.completing import BODY, PATH, STREAM
from tests.transports.stub import EVENTS, TEXT, Emit, StubDoor, StubLive, calling, finish

KEY = {"idempotency-key": "k1"}
INVOKE = {"enabled": True, "allow": ("*",)}


@pytest.mark.requirement("NET-5b")
@pytest.mark.parametrize("headers", [{}, EVENTS, KEY, {**KEY, **EVENTS}])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/ask", TEXT),
        ("/v1/ask", {**TEXT, "detach": True}),
        ("/v1/tools/a.note/invoke", {"arguments": {"text": "hello"}}),
        (PATH, BODY),
        (PATH, STREAM),
    ],
)
async def test_the_service_is_told_how_long_a_request_is(
    path: str, body: dict[str, Any], headers: dict[str, str]
) -> None:
    asked: list[AskRequest] = []

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        asked.append(request)
        return finish(AskResult("a1", "answered", "hello"), emit)

    door = StubDoor(ask)
    door.live = StubLive(http={"invoke": INVOKE})
    async with calling(door) as client:
        answer = await client.post(path, json=body, headers=headers)
    assert answer.status_code in (200, 202)
    assert door.chars == [*map(chars_of_request, asked)]
    assert len(asked) == 1
    await door.kept.aclose()
