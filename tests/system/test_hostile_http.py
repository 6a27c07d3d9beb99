"""Hostile bytes on the port: each gets its right answer, and a client beside them never notices."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from session_runtime.transports.http.openapi import OPENAPI
from tests.system.hostile_requests import CHUNKED, MAX_BODY, ROWS, UNFINISHED, Row, ask, get
from tests.system.test_daemon import daemon

CONFIG = f"""
[http]
max_body_bytes = {MAX_BODY}
[skills]
prefetch_tools = []
[models.main]
wire = "scripted"
script = "script.json"
"""


@dataclass(frozen=True)
class Connection:
    """A connection that bytes are sent over."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def status(self) -> int:
        """The status of the next answer, which is whole and JSON; notes in between are passed over."""
        status, head = 100, [""]
        while status < 200:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
            status = int(head[0].split()[1])
        fields = dict(line.split(": ", 1) for line in head[1:] if line)
        body = json.loads(await self.reader.readexactly(int(fields["content-length"])))
        assert fields["content-type"] == "application/json"
        assert ("error" in body) == (status >= 400)
        return status


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.transport.abort()


async def answered(port: int, row: Row) -> Row:
    """What came for a row; a connection that goes on answers the next request, and that one alone."""
    async with asyncio.timeout(60), connected(port) as connection:
        connection.writer.write(row.sent)
        statuses = tuple([await connection.status() for _ in row.statuses])
        if not row.closed:
            connection.writer.write(
                get(b"/healthz").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
            )
            assert await connection.status() == 200
        try:
            rest = await connection.reader.read()
        except ConnectionError:
            rest = b""  # what we sent and nobody read makes an end a reset
        assert rest == b"", rest
    return Row(row.sent, statuses, row.closed)


async def ask_until(over: asyncio.Event, url: str) -> list[str]:
    """What an honest client is answered meanwhile."""
    told = []
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as client:
        while not over.is_set():
            told.append((await client.post(f"{url}/v1/ask", json={"text": "hi"})).json()["text"])
    return told


def is_described(row: Row) -> bool:
    """Whether the statuses stand in the description, as far as it tells of the target."""
    method, _, rest = row.sent.decode("latin-1").partition(" ")
    operation = OPENAPI["paths"].get(rest.partition(" ")[0], {}).get(method.lower())
    return operation is None or {*map(str, row.statuses)} <= {*operation["responses"]}


def test_the_description_names_every_status() -> None:
    assert [name for name, row in ROWS.items() if not is_described(row)] == []


@pytest.mark.requirement("NET-5a")
@pytest.mark.requirement("NET-2a")
async def test_hostile_requests_are_answered_and_an_honest_client_beside_them_is_too(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(CONFIG, encoding="utf-8")
    (tmp_path / "script.json").write_text('{"replies": [{"text": "hello"}]}', encoding="utf-8")
    over = asyncio.Event()
    async with daemon(config) as running, AsyncExitStack() as held:
        assert running.process.stderr is not None
        logging = asyncio.create_task(running.process.stderr.read())
        port = int(running.url.rpartition(":")[2])
        for part in UNFINISHED * 10:
            (await held.enter_async_context(connected(port))).writer.write(part)
        honest = asyncio.create_task(ask_until(over, running.url))
        came = await asyncio.gather(
            *(answered(port, row) for row in ROWS.values()), return_exceptions=True
        )
        over.set()
        told = await honest
        running.process.send_signal(signal.SIGTERM)
        log = (await logging).decode()
    wrong = {name: each for name, each in zip(ROWS, came, strict=True) if each != ROWS[name]}
    assert wrong == {}
    assert set(told) == {"hello"}
    assert "Traceback" not in log


async def trickled(port: int, sent: bytes, more: bytes) -> int:
    """The status that ends a request of which a little more comes all the time, but never its end."""
    async with asyncio.timeout(120), connected(port) as connection:
        connection.writer.write(sent)
        answering = asyncio.create_task(connection.status())
        while not answering.done():
            connection.writer.write(more)
            await asyncio.wait([answering], timeout=0.2)
        return answering.result()


@pytest.mark.soak
@pytest.mark.requirement("NET-5a")
async def test_what_comes_a_byte_at_a_time_is_not_waited_for_without_end(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(CONFIG, encoding="utf-8")
    (tmp_path / "script.json").write_text('{"replies": [{"text": "hello"}]}', encoding="utf-8")
    slow = (
        (b"GET /healthz HTTP/1.1\r\nX-A: ", b"a"),
        (b"GET /healthz HTTP/1.1\r\n", b"X-A: b\r\n"),
        (ask(b"Content-Length: 60000\r\n", body=b""), b" "),
        (ask(CHUNKED, body=b""), b"1\r\n \r\n"),
    )
    async with daemon(config) as running:
        port = int(running.url.rpartition(":")[2])
        ends = await asyncio.gather(*(trickled(port, *each) for each in slow for _ in range(10)))
    assert ends == [408] * len(ends)
