"""Calls that a model wrote as text, in the envelopes of known model families (ASK-6).

``read`` decides what is an envelope, ``held`` what of a text may be told while it arrives, ``model``
makes calls of it; whether a call may run is decided in ``ask``, as for any other.
"""

from session_runtime.models.recovery.model import THINKING, Dialect, RecoveringModel

__all__ = ["THINKING", "Dialect", "RecoveringModel"]
