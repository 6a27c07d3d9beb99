"""Where clients of OpenAI's interface ask and nothing is, and the way out that is told them (NET-1e).

What is there, and the form of errors, is ``completions`` and ``completions_errors``.
"""

import re
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from session_runtime.transports.http.answers import error_answer, on_http_exception
from session_runtime.types import ErrorInfo

_KINDS: Final = (
    "assistants|audio|batches|chat|completions|containers|conversations|embeddings|evals|files"
    "|fine_tuning|images|moderations|realtime|responses|threads|uploads|vector_stores|videos"
)
_MISPLACED: Final = re.compile(
    r"(?:/v1/v1|/v1/chat/completions)?/(?:chat/completions|models(?:/.*)?)", re.DOTALL
)
_NOT_THERE: Final = re.compile(
    rf"(?!/v1/chat/completions\Z)(?:/v1)?/(?:{_KINDS})(?:/.*)?", re.DOTALL
)
"""Neither may fit a path of ours: what they fit is answered to every principal."""


def way_out(path: str) -> str | None:
    """What such a client is to do instead of asking there; None for all other paths."""
    if _MISPLACED.fullmatch(path):
        return "let the client's base_url end with the port and /v1, as in http://127.0.0.1:8040/v1"
    if _NOT_THERE.fullmatch(path):
        return "of OpenAI's interface there are POST /v1/chat/completions and GET /v1/models alone"
    return None


async def on_lost(request: Request, error: Exception) -> Response:
    """Answer the router's own refusals; 404 tells clients of OpenAI's interface the way out."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    told = way_out(path)
    if error.status_code != 404 or told is None:
        return await on_http_exception(request, error)
    return error_answer(
        ErrorInfo("request.not_found", f"nothing is at {path[:100]!r}: {told}"), 404
    )
