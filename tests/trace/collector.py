"""A collector of OpenTelemetry on the loopback interface: takes OTLP over HTTP and keeps what it got."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class Received:
    """One span as it came over the wire."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start: int
    end: int
    attributes: dict[str, Any]
    failed: bool
    state: str
    service: str


@dataclass
class Collector:
    """Answers with ``status``, once ``gate`` is set; what it took is in ``spans``."""

    url: str = ""
    status: int = 200
    spans: list[Received] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)

    def named(self, name: str) -> Received:
        [found] = [span for span in self.spans if span.name == name]
        return found

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.paths.append(path)
        self.headers.append(headers)
        data = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        self.raw.append(data)
        request = ExportTraceServiceRequest.FromString(data)
        for resource in request.resource_spans:
            [service] = [
                each.value.string_value
                for each in resource.resource.attributes
                if each.key == "service.name"
            ]
            spans = [span for scope in resource.scope_spans for span in scope.spans]
            self.spans += [received(span, service) for span in spans]


def received(span: Any, service: str) -> Received:
    return Received(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        {each.key: value_of(each.value) for each in span.attributes},
        span.status.code == 2,
        span.trace_state,
        service,
    )


def value_of(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(each) for each in value.array_value.values]
    return getattr(value, kind)


@contextmanager
def collecting(*, open_gate: bool = True) -> Iterator[Collector]:
    """A collector that runs meanwhile."""
    collector = Collector()
    if open_gate:
        collector.gate.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.asked.set()
            collector.gate.wait()
            if collector.status == 200:
                headers = {name.lower(): value for name, value in self.headers.items()}
                collector.take(self.path, headers, body)
            self.send_response(collector.status)
            self.send_header("content-length", "0")
            if collector.status // 100 == 3:
                self.send_header("location", collector.url)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Be silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield collector
    finally:
        collector.gate.set()
        server.shutdown()
        thread.join()
        server.server_close()
