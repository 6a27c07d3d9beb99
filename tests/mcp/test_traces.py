"""A call of a remote tool passes on the trace that it is part of."""

import json

import pytest

from session_runtime.trace_context import TraceContext
from tests.mcp.peer import Peer, kept
from tests.mcp.web import Web, reached

pytestmark = pytest.mark.requirement("OPS-1b")

TRACE = TraceContext(f"00-{'a' * 32}-{'b' * 16}-01", "c=1")


@pytest.mark.parametrize("stateless", [False, True])
async def test_it_goes_along_with_the_call(stateless: bool) -> None:
    peer = Peer(stateless=stateless)
    async with kept(peer) as it:
        await it.connection.call("echo", {}, "key-7", lambda *_: None, TRACE)
        meta = (await peer.got("tools/call"))["params"]["_meta"]
    assert (meta["traceparent"], meta["tracestate"]) == (TRACE.traceparent, TRACE.tracestate)


async def test_over_http_it_stands_in_the_headers_of_its_request_alone() -> None:
    web = Web(Peer(), "none")
    async with reached(web) as it:
        await it.connection.call("echo", {}, "k", lambda *_: None, TRACE)
        assert await it.call("echo") == "done"
    traced = [request for request in web.requests if "traceparent" in request.headers]
    [headers] = [request.headers for request in traced]
    assert (headers["traceparent"], headers["tracestate"]) == (TRACE.traceparent, "c=1")
    assert json.loads(traced[0].body)["params"]["_meta"]["traceparent"] == TRACE.traceparent
