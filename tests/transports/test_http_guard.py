import pytest

from session_runtime.errors import RequestError
from session_runtime.transports.http.head import check_size
from session_runtime.transports.http.keyless import check_keyless
from session_runtime.transports.http.protocol import MAX_HEAD_BYTES
from tests.transports.stub import TEXT, Header, scope_of, serving

HOST = (b"host", b"localhost:8040")


def refusal(*headers: Header, server: object = ("127.0.0.1", 8040)) -> str:
    with pytest.raises(RequestError) as caught:
        check_keyless(scope_of(*headers, server=server))
    return caught.value.code


@pytest.mark.requirement("NET-2a")
@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:1", "127.0.0.1:8040", "127.9.8.7", "[::1]", "[::1]:8040"],
)
def test_names_of_this_machine_are_hosts(host: str) -> None:
    check_keyless(scope_of((b"host", host.encode())))
    check_keyless(scope_of(HOST, (b"origin", f"http://{host}".encode())))


@pytest.mark.requirement("NET-2a")
@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.1",
        "0.0.0.0",
        "10.0.0.1",
        "::1",
        "[::]",
        "[::1",
        "[2001:db8::1]",
        "localhost:99999x",
        "user@localhost",
        "localhost/x",
        "localhost evil",
        "2130706433",
        "0x7f.1",
        "127.0.0.1\xa0",
        "１２７.0.0.1",
    ],
)
def test_other_hosts_and_origins_are_refused(host: str) -> None:
    raw = host.encode()
    assert refusal((b"host", raw)) == "request.host"
    assert refusal(HOST, (b"origin", b"http://" + raw)) == "request.origin"


@pytest.mark.parametrize(
    "origin", [b"null", b"", b"localhost", b"file://localhost", b"chrome-extension://localhost"]
)
def test_origins_that_are_no_web_page_of_this_machine_are_refused(origin: bytes) -> None:
    assert refusal(HOST, (b"origin", origin)) == "request.origin"


def test_a_request_has_one_host() -> None:
    assert refusal() == "request.host"
    assert refusal(HOST, HOST) == "request.host"


@pytest.mark.requirement("NET-2a")
@pytest.mark.parametrize(
    "name", [b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-x", b"x-real-ip"]
)
def test_forwarded_requests_are_refused(name: bytes) -> None:
    assert refusal(HOST, (name, b"for=127.0.0.1")) == "request.forwarded"


@pytest.mark.requirement("NET-2a")
@pytest.mark.parametrize(
    ("server", "accepted"),
    [
        (("127.0.0.1", 8040), True),
        (("::1", 8040, 0, 0), True),
        (("10.0.0.1", 8040), False),
        (("2001:db8::1", 8040, 0, 0), False),
        (None, False),
    ],
)
def test_a_port_that_others_reach_serves_them_nothing_without_keys(
    server: object, accepted: bool
) -> None:
    if accepted:
        check_keyless(scope_of(HOST, server=server))
    else:
        assert refusal(HOST, server=server) == "request.host"


@pytest.mark.parametrize(
    ("headers", "query"),
    [([(b"x-a", b"x" * MAX_HEAD_BYTES)], b""), ([], b"x" * MAX_HEAD_BYTES)],
)
def test_a_large_head_is_refused(headers: list[Header], query: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        check_size(scope_of(HOST, *headers, query=query))
    assert caught.value.code == "request.head_too_large"


@pytest.mark.requirement("NET-2a")
async def test_every_route_is_guarded_and_refusals_are_json() -> None:
    async with serving() as served:
        for path in ("/v1/status", "/healthz", "/nowhere"):
            response = await served.client.get(path, headers={"host": "evil.example"})
            assert response.status_code == 403
            assert response.json() == {
                "error": {
                    "code": "request.host",
                    "message": "the host 'evil.example' is not this machine: a daemon without keys"
                    " answers only to localhost, 127.0.0.0/8 and [::1]",
                    "retryable": False,
                }
            }
        forwarded = await served.client.get("/healthz", headers={"x-forwarded-for": "1.2.3.4"})
        assert (forwarded.status_code, forwarded.json()["error"]["code"]) == (
            400,
            "request.forwarded",
        )


@pytest.mark.requirement("NET-2a")
async def test_authorization_is_ignored() -> None:
    async with serving() as served:
        headers = {"authorization": "Bearer whatever", "origin": "http://localhost:3000"}
        response = await served.client.post("/v1/ask", json=TEXT, headers=headers)
    assert response.status_code == 200
