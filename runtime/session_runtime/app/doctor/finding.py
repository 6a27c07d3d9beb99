"""What one look of the doctor came to."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is, what was found, and what to do where it is not ``ok``.

    ``fail``: a daemon does not start, or cannot do what is configured.
    """

    check: str
    verdict: Verdict
    found: str
    do: str = ""

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON."""
        return asdict(self)
