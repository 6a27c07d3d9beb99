"""Services behind TLS: a connection that breaks below HTTP is a connection that broke."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trustme

from session_runtime.errors import TransientError
from tests.models.building import failure, opened, profile

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
ALERT = b"\x15\x03\x03\x00\x02\x02\x14"
GARBAGE = b"no TLS record at all"


@asynccontextmanager
async def served(ca: trustme.CA, answer: bytes, raw: bytes) -> AsyncIterator[str]:
    """A service that answers encrypted, and then with bytes that are not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        await writer.drain()
        os.write(writer.get_extra_info("socket").fileno(), raw)
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@pytest.mark.requirement("ASK-9")
@pytest.mark.parametrize("raw", [ALERT, GARBAGE], ids=["alert", "garbage"])
@pytest.mark.parametrize("answer", [b"", HEAD, HEAD + b"data: {}\n\n"])
async def test_a_tls_connection_that_breaks_may_work_later(
    answer: bytes, raw: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca = trustme.CA()
    with ca.cert_pem.tempfile() as certificates:
        monkeypatch.setenv("SSL_CERT_FILE", certificates)
        async with served(ca, answer, raw) as base_url:
            model = opened(profile(base_url, wire="chat"))
            error = await failure(model)
            await model.aclose()
    assert (type(error), error.code) == (TransientError, "model.connection_lost")
