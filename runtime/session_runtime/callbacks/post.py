"""One attempt to send a message over HTTP; imported when the first one is sent."""

import asyncio
from collections.abc import Mapping
from typing import Final

import httpx2

from session_runtime.callbacks.sending import Answer, NoAnswerError

_MOST_CONNECTIONS: Final = 64


class HttpPost:
    """Posts to any address; follows no redirect, heeds no proxy variable, reads no body of an answer."""

    def __init__(self) -> None:
        limits = httpx2.Limits(max_connections=_MOST_CONNECTIONS, max_keepalive_connections=0)
        self._client = httpx2.AsyncClient(trust_env=False, limits=limits, follow_redirects=False)

    async def __call__(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float
    ) -> Answer:
        """See ``Post``; an error never holds the address, whose query may be a secret."""
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._client.stream(
                    "POST", url, content=body, headers=dict(headers), timeout=None
                ) as got,
            ):
                return Answer(got.status_code, got.headers.get("retry-after", ""))
        except TimeoutError:
            raise NoAnswerError(f"no answer came within {timeout_s:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise NoAnswerError(f"it cannot be reached ({type(error).__name__})") from None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def open_post() -> HttpPost:
    """A way to send messages, made when there is one to be sent."""
    return HttpPost()
