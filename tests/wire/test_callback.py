"""The signature of results that are sent to a callback: what a receiver takes, and what not (SEC-3)."""

import base64
import hashlib
import hmac

import pytest

from session_runtime.errors import RequestError
from session_runtime.wire.callback import secret_bytes, signed_headers, verify

KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
HEADERS = signed_headers(KEY, "ask_1", 1_000, b"{}")


@pytest.mark.requirement("SEC-3b")
def test_the_signature_is_that_of_the_id_the_time_and_the_body() -> None:
    signed = hmac.new(KEY, b"ask_1.1000.{}", hashlib.sha256).digest()
    assert HEADERS == {
        "webhook-id": "ask_1",
        "webhook-timestamp": "1000",
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }
    assert verify(SECRET, HEADERS, b"{}", 1_300.0) == "ask_1"
    several = {**HEADERS, "webhook-signature": f"v1,xxx {HEADERS['webhook-signature']}"}
    assert verify(SECRET, several, b"{}", 700.0) == "ask_1"


@pytest.mark.requirement("SEC-3b")
@pytest.mark.parametrize(
    ("changes", "body", "now"),
    [
        ({"webhook-id": "ask_2"}, b"{}", 1_000.0),
        ({"webhook-timestamp": "1001"}, b"{}", 1_000.0),
        ({"webhook-timestamp": ""}, b"{}", 1_000.0),
        ({"webhook-timestamp": "９"}, b"{}", 9.0),
        ({"webhook-signature": ""}, b"{}", 1_000.0),
        ({"webhook-signature": "v1,é"}, b"{}", 1_000.0),
        ({}, b"{ }", 1_000.0),
        ({}, b"{}", 1_301.0),
        ({}, b"{}", 699.0),
    ],
)
def test_anything_else_is_refused(changes: dict[str, str], body: bytes, now: float) -> None:
    with pytest.raises(RequestError) as refused:
        verify(SECRET, {**HEADERS, **changes}, body, now)
    assert refused.value.code == "auth.signature"


@pytest.mark.parametrize("secret", ["", "abc", SECRET[6:], "whsec_", "whsec_QUJD", "whsec_é" * 9])
def test_a_short_or_odd_secret_is_none(secret: str) -> None:
    assert secret_bytes(secret) is None
    with pytest.raises(RequestError, match="whsec_"):
        verify(secret, HEADERS, b"{}", 1_000.0)
