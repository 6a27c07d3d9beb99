"""The numbers of the audit log for a monitoring system (RTE-13)."""

from collections.abc import Iterator

from session_runtime.audit.log import AuditLog
from session_runtime.trace.metrics import Family, Sample, gauge
from session_runtime.types import nothing


def of_audit(log: AuditLog | None) -> Iterator[Family]:
    """All families, also where nothing is recorded."""
    yield gauge(
        "audit_sequence",
        "Number of the last line of the audit log.",
        0 if log is None else log.sequence,
    )
    yield gauge(
        "audit_failing",
        "1 while the audit log cannot be written, else 0.",
        log is not None and bool(log.trouble),
    )
    yield gauge(
        "audit_altered",
        "1 once the audit log was found to be other than it was written, else 0.",
        log is not None and bool(log.altered),
    )
    yield Family(
        "audit_lost_total",
        "counter",
        "Records that are not in the audit log and will not be.",
        (Sample(0 if log is None else log.lost, nothing()),),
    )
