"""The section [otel]: whether asks are also sent as OpenTelemetry spans, and where to (OPS-1)."""

import importlib.util
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, Field, field_validator

from session_runtime.config.additions import HeaderName, HeaderValue
from session_runtime.config.addresses import http_address
from session_runtime.config.section import Seconds, Section, key, read_only, table

DEFAULT_ENDPOINT: Final = "http://127.0.0.1:4318/v1/traces"


class OtelSettings(Section):
    """OpenTelemetry spans of asks, sent to a collector as OTLP over HTTP."""

    enabled: bool = key(
        False,
        "Whether spans are sent; needs the extra otel. Traces do not need it.",
    )
    endpoint: str = key(
        DEFAULT_ENDPOINT,
        "The collector's address with its path; redirects are not followed.",
        in_repr=False,
    )
    headers: Annotated[Mapping[HeaderName, HeaderValue], AfterValidator(read_only)] = table(
        'Headers to be sent along; values are secrets, best as "env:NAME" or "file:/path".'
    )
    content: bool = key(
        False,
        "Whether the arguments of tool calls are sent too, with secrets blacked out; only those that"
        " trace.content lets be recorded.",
    )
    sample: Annotated[float, Field(ge=0, le=1)] = key(
        1.0,
        "The part of all asks that spans are sent of, from 0 to 1; of an ask whose caller decided that in"
        " its traceparent, the caller's decision holds.",
    )
    timeout_s: Seconds = key(
        10.0,
        "How long the collector is tried for each batch, in seconds; then the spans are dropped.",
    )

    @field_validator("enabled")
    @classmethod
    def _library_is_there(cls, enabled: bool) -> bool:
        if enabled and not _is_installed():
            raise ValueError(
                "needs opentelemetry-sdk and its OTLP exporter, which are not installed:"
                " pip install '.[otel]' in the source tree of session-runtime"
            )
        return enabled

    @field_validator("endpoint")
    @classmethod
    def _is_address(cls, endpoint: str) -> str:
        if "@" in http_address(endpoint).netloc:
            raise ValueError("must hold no user or password: give them as headers")
        return endpoint


def _is_installed() -> bool:
    try:
        return (
            importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http.trace_exporter")
            is not None
        )
    except ModuleNotFoundError:
        return False
