"""What a caller says of the trace that it is part of, and a call passes on; read in ``trace``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Where somebody stands in a trace over several programs: headers of W3C Trace Context, checked."""

    traceparent: str
    tracestate: str = ""
