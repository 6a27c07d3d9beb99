"""Looks at everything that a daemon needs and says what to do where something is missing (NET-7)."""

from session_runtime.app.doctor.examine import examine
from session_runtime.app.doctor.finding import Finding, Verdict

__all__ = ["Finding", "Verdict", "examine"]
