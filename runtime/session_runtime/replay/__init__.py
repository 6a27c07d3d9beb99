"""Recorded asks put to a configuration once more, offline: what would differ (OPS-2).

Nothing runs and nobody is asked: what the model decided is taken from the trace.
"""

from session_runtime.replay.difference import Difference, Replayed
from session_runtime.replay.edit import by_edit
from session_runtime.replay.play import replay
from session_runtime.replay.summary import Summary

__all__ = [
    "Difference",
    "Replayed",
    "Summary",
    "by_edit",
    "replay",
]
