"""What tests of the audit log share: a log with numbered records, and what verifying it says."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from session_runtime.audit.store import AuditStore
from session_runtime.audit.tail import last_lines
from session_runtime.audit.verify import Fault, Report, verify


def store_in(
    state: Path, max_bytes: int = 10**9, keep: int = 0, folder: Path | None = None
) -> AuditStore:
    return AuditStore(state, folder, max_bytes, keep)


def write(state: Path, *batches: Sequence[int], **options: Any) -> None:
    """Append batches of records that hold these numbers."""
    store = store_in(state, **options)
    for batch in batches:
        store.append([{"n": number} for number in batch])


def files(state: Path) -> list[Path]:
    return sorted((state / "audit").glob("*.jsonl"))


def numbers(state: Path) -> list[int]:
    """The numbers of all records that are no remark of the log itself, in order."""
    return [record["n"] for record in last_lines(state, 1_000_000) if "n" in record]


def last_file(state: Path) -> Path:
    return files(state)[-1]


def fault(state: Path) -> Fault:
    found = verify(state).fault
    assert found is not None
    return found


def kind_of_fault(state: Path) -> str | None:
    report = verify(state)
    return None if report.fault is None else report.fault.kind


def verified(state: Path) -> Report:
    report = verify(state)
    assert report.fault is None, report.fault
    return report
