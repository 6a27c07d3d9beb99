"""Spans by the libraries of OpenTelemetry: encoded as OTLP and sent over HTTP.

Imported late, as they take long to import (see ``export``).
"""

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import requests
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from session_runtime.trace import conventions as name
from session_runtime.trace.export import Target
from session_runtime.trace.spans import Span

_KINDS: Final[Mapping[str, SpanKind]] = MappingProxyType(
    {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT, "server": SpanKind.SERVER}
)


class OtlpExporter:
    """Sends spans to one collector; redirects are not followed, proxies of the environment not used."""

    def __init__(self, target: Target) -> None:
        session = requests.Session()
        session.trust_env = False
        session.max_redirects = 0
        self._exporter = OTLPSpanExporter(
            endpoint=target.endpoint,
            headers=dict(target.headers),
            timeout=target.timeout_s,
            compression=Compression.Gzip,
            session=session,
        )
        self._resource = Resource(
            {name.SERVICE_NAME: target.service, name.SERVICE_VERSION: target.version}
        )
        self._scope = InstrumentationScope(name.OURSELVES, target.version)
        # it logs every failure, with what the collector says; ``export`` tells the first one
        for logger in ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "urllib3"):
            logging.getLogger(logger).setLevel(logging.CRITICAL)

    def send(self, spans: Sequence[Span]) -> bool:
        """Send them; see ``Exporter``."""
        encoded = [self._span(span) for span in spans]
        return self._exporter.export(encoded) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Let go of the connection."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _span(self, span: Span) -> ReadableSpan:
        return ReadableSpan(
            span.title,
            context=_context(span, span.span_id),
            parent=None if span.parent_id is None else _context(span, span.parent_id),
            resource=self._resource,
            attributes=dict(span.attributes),
            kind=_KINDS[span.kind],
            status=Status(StatusCode.UNSET if span.error is None else StatusCode.ERROR),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=self._scope,
        )


def _context(span: Span, span_id: str) -> SpanContext:
    return SpanContext(
        trace_id=int(span.trace_id, 16),
        span_id=int(span_id, 16),
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
        trace_state=TraceState.from_header([span.state] if span.state else []),
    )
