"""What callers get wrong: each wrong request is answered in JSON, and the daemon goes on."""

import asyncio
import signal
from pathlib import Path

import httpx2
import pytest

from tests.system.test_daemon import Daemon, daemon

JSON = {"content-type": "application/json"}
MEBIBYTE = 1024 * 1024

# what is sent, the status, the error's code
REQUESTS: dict[str, tuple[bytes, dict[str, str], int, str]] = {
    "too large": (b'{"text": "%b"}' % (b"x" * MEBIBYTE), JSON, 413, "request.too_large"),
    "another type": (b"text=hi", {"content-type": "text/plain"}, 415, "request.media_type"),
    "no type": (b'{"text": "hi"}', {}, 415, "request.media_type"),
    "nested 10,000 deep": (b'{"text": ' + b"[" * 10_000, JSON, 400, "request.json"),
    "deep and whole": (
        b'{"metadata": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        *(JSON, 400, "request.json"),
    ),
    "not UTF-8": (b'{"text": "\xff"}', JSON, 400, "request.json"),
    "cut off": (b'{"text": "hi', JSON, 400, "request.json"),
    "no object": (b'"hi"', JSON, 400, "request.invalid"),
    "an unknown key": (b'{"txt": "hi"}', JSON, 400, "request.invalid"),
    "a wrong type": (b'{"text": 7}', JSON, 400, "request.invalid"),
    "an unknown model": (b'{"text": "hi", "model": "x"}', JSON, 400, "request.unknown_model"),
}


async def told(client: httpx2.AsyncClient, running: Daemon, name: str) -> tuple[int, str]:
    body, headers, _, _ = REQUESTS[name]
    answer = await client.post(f"{running.url}/v1/ask", content=body, headers=headers)
    error = answer.json()["error"]
    assert error["message"], name
    return answer.status_code, error["code"]


@pytest.mark.requirement("NET-5")
async def test_no_wrong_request_is_without_an_answer_or_in_the_way_of_the_next(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f"[http]\nmax_body_bytes = {MEBIBYTE}\n", encoding="utf-8")
    async with (
        daemon(config) as running,
        httpx2.AsyncClient(trust_env=False, timeout=30) as client,
    ):
        answers = {name: await told(client, running, name) for name in REQUESTS}
        good = await client.post(f"{running.url}/v1/ask", json={"text": "What is 15% of 2480?"})
        status = (await client.get(f"{running.url}/v1/status")).json()
        running.process.send_signal(signal.SIGTERM)
        assert running.process.stderr is not None
        log = (await running.process.stderr.read()).decode()
    assert answers == {name: (status, code) for name, (_, _, status, code) in REQUESTS.items()}
    assert good.json()["text"] == "372"
    assert status["asks"] == 0
    assert "Traceback" not in log


@pytest.mark.parametrize(
    "garbage",
    [b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"POST /v1/ask HTTP/1.1\r\nhost: x\r\n", b""],
    ids=["TLS", "half a line", "half a head", "nothing"],
)
async def test_what_is_no_request_harms_nobody(tmp_path: Path, garbage: bytes) -> None:
    config = tmp_path / "config.toml"
    config.write_text("# defaults\n", encoding="utf-8")
    async with daemon(config) as running, asyncio.timeout(30):
        host, _, port = running.url.removeprefix("http://").partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(garbage)
        await writer.drain()
        writer.close()
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as client:
            answer = await client.post(f"{running.url}/v1/ask", json={"text": "hello"})
    assert answer.json()["outcome"] == "answered"
