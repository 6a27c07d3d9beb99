"""What a daemon answers, as a test says it: one answer after the other, without a connection."""

import json
from typing import Any

import httpx2

from session_runtime.client.http import HttpClient
from session_runtime.client.pauses import Pauses


class Wire:
    """Gives these answers in turn, after that one that names the ask; None cuts the connection."""

    def __init__(self, *answers: httpx2.Response | None) -> None:
        self.sent: list[str] = []
        self.waited: list[float] = []
        self._answers = list(answers)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(f"{request.method} {request.url.path}")
        named = httpx2.Response(200, headers={"location": "/v1/asks/a1"}, json={"cancelled": True})
        answer = self._answers.pop(0) if self._answers else named
        if answer is None:
            raise httpx2.ReadError("cut")
        return answer

    def client(self, timeout_s: float = 300.0) -> HttpClient:
        pauses = Pauses(self._pause, lambda: 1.0)
        transport = httpx2.MockTransport(self)
        return HttpClient("http://x", transport=transport, pauses=pauses, timeout_s=timeout_s)

    async def _pause(self, seconds: float) -> None:
        self.waited.append(seconds)


def streamed(*events: Any) -> httpx2.Response:
    """The events of the ask ``a1``, each as JSON, or as the bytes that stand for it."""
    told = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in events]
    content = b"".join(b"data: %s\n\n" % each for each in told)
    headers = {"content-type": "text/event-stream", "location": "/v1/asks/a1"}
    return httpx2.Response(200, headers=headers, content=content)


def finished(**more: Any) -> dict[str, Any]:
    """The last event of the ask ``a1``, with more in its result, or other values."""
    result = {"ask_id": "a1", "outcome": "answered", "text": "hello", **more}
    return {"type": "ask.finished", "ask_id": "a1", "seq": 1, "result": result}
