"""The section [otel] says where spans go; its secrets are secrets."""

import importlib.util

import pytest
from pydantic import ValidationError

from session_runtime.config.otel import OtelSettings
from tests.config.conftest import Reader

pytestmark = pytest.mark.requirement("OPS-1b")


def test_a_collector_is_an_address_without_a_password() -> None:
    for endpoint in ("collector:4318", "ftp://x/y", "http://user:pw@host/v1/traces", "http://"):
        with pytest.raises(ValidationError) as caught:
            OtelSettings(endpoint=endpoint)
        assert "pw" not in str(caught.value)
    for sample in (-0.1, 1.1):
        with pytest.raises(ValidationError):
            OtelSettings(sample=sample)


def test_without_the_library_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ValidationError, match=r"pip install '.\[otel\]'"):
        OtelSettings(enabled=True)
    assert OtelSettings().enabled is False


def test_headers_are_given_by_reference_and_never_shown(read: Reader) -> None:
    text = '[otel]\nheaders.Authorization = "env:COLLECTOR_TOKEN"\n'
    settings = read(text, env={"COLLECTOR_TOKEN": "Bearer t0ken"}).settings.otel
    assert settings.headers["Authorization"].get_secret_value() == "Bearer t0ken"
    assert "t0ken" not in repr(settings)
