"""Through every door an ask becomes part of the trace that its caller names."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from session_runtime.trace_context import TraceContext
from session_runtime.types import AskRequest, AskResult
from tests.support import write_handler
from tests.transports.invoking import tools
from tests.transports.mqtt.memory import StubDoor as MqttDoor
from tests.transports.mqtt.memory import asking, served
from tests.transports.stub import Emit, StubDoor, finish, serving

pytestmark = pytest.mark.requirement("OPS-1b")

GIVEN = TraceContext(f"00-{'a' * 32}-{'b' * 16}-01", "c=1")
HEADERS = {"traceparent": GIVEN.traceparent, "tracestate": GIVEN.tracestate}
BODIES: Mapping[str, dict[str, object]] = {
    "/v1/ask": {"text": "hi"},
    "/v1/chat/completions": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
}


TELLS = "def execute(args, context):\n    return context.trace.traceparent\n"


class Remembering:
    """An ask that keeps what it was asked."""

    def __init__(self) -> None:
        self.seen: list[TraceContext | None] = []

    async def __call__(self, request: AskRequest, emit: Emit) -> AskResult:
        self.seen.append(request.trace)
        return finish(AskResult("a1", "answered"), emit)


@pytest.mark.parametrize("path", BODIES)
async def test_headers_over_http_name_the_trace(path: str) -> None:
    ask = Remembering()
    async with serving(StubDoor(ask)) as door:
        for headers in (HEADERS, {}, {"traceparent": "nonsense"}):
            response = await door.client.post(path, json=BODIES[path], headers=headers)
            assert response.status_code == 200
    assert ask.seen == [GIVEN, None, None]


async def test_a_tool_that_is_called_by_its_name_is_told_the_trace(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "a.tell", code=TELLS)
    async with tools(tmp_path) as at:
        answer = await at.invoke("a.tell", {}, **HEADERS)
        assert answer.json()["result"] == GIVEN.traceparent


async def test_user_properties_over_mqtt_name_the_trace() -> None:
    ask = Remembering()
    async with served(MqttDoor(ask)) as door:
        await door.send(asking(properties=HEADERS))
        await door.send(asking(correlation=b"2", properties={"traceparent": "nonsense"}))
    assert ask.seen == [GIVEN, None]
