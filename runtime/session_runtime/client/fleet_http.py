"""Asks replicas for their status over HTTP, each at its own address (NET-6)."""

import asyncio
from collections.abc import Sequence
from typing import Final

import httpx2

from session_runtime.errors import RequestError
from session_runtime.wire import parse_json
from session_runtime.wire.presence import Presence, presence_from_page, unknown

TIMEOUT_S: Final = 5.0
_MOST_BYTES: Final = 4_194_304
_AT_ONCE: Final = 32
_REFUSED: Final = {
    401: "it wants the key of an admin, which fleet.admin_from is to name",
    403: "it refuses the key that fleet.admin_from names, which is not that of an admin",
}


async def presences(
    urls: Sequence[str],
    key: str | None,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> tuple[Presence, ...]:
    """What the daemon at each address says of itself; ``key`` is that of a principal with the role admin.

    Never raises: of one that does not answer, it is told why. Redirects are not followed.
    """
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    turns = asyncio.Semaphore(_AT_ONCE)
    async with httpx2.AsyncClient(
        headers=headers, timeout=TIMEOUT_S, trust_env=False, transport=transport
    ) as client:

        async def ask(url: str) -> Presence:
            async with turns:
                return await _ask(client, url)

        return tuple(await asyncio.gather(*(ask(url) for url in dict.fromkeys(urls))))


async def _ask(client: httpx2.AsyncClient, url: str) -> Presence:
    try:
        async with (
            asyncio.timeout(2 * TIMEOUT_S),
            client.stream("GET", f"{url.rstrip('/')}/v1/status") as response,
        ):
            if response.status_code != httpx2.codes.OK:
                return unknown(url, url, _refused(response.status_code))
            body = await _body(response)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        return unknown(url, url, f"no answer ({str(error) or type(error).__name__})")
    if body is None:
        return unknown(url, url, f"its answer has more than {_MOST_BYTES} bytes")
    try:
        return presence_from_page(parse_json(body), url)
    except RequestError:
        return unknown(url, url, "its answer is not JSON")


def _refused(status: int) -> str:
    return _REFUSED.get(status, f"it answered with status {status}")


async def _body(response: httpx2.Response) -> bytes | None:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _MOST_BYTES:
            return None
    return bytes(body)
