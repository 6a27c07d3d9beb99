"""How an ask or a call ended, as a backend reads it that asked over HTTP."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """How an ask ended: ``result`` as over all doors (INT-2), and how often it was sent.

    ``may_have_run_twice``: it was sent again, and nobody could tell that the daemon knew it already.
    """

    result: Mapping[str, Any]
    attempt: int = 1
    may_have_run_twice: bool = False

    @property
    def ask_id(self) -> str:
        """The id of the ask."""
        return str(self.result["ask_id"])

    @property
    def outcome(self) -> str:
        """How it ended."""
        return str(self.result["outcome"])

    @property
    def text(self) -> str:
        """What was answered."""
        return str(self.result["text"])

    @property
    def pending(self) -> Sequence[Mapping[str, Any]]:
        """The calls that wait for a person."""
        return tuple(self.result.get("pending", ()))

    @property
    def error(self) -> Mapping[str, Any] | None:
        """Why it did not end well, None if it did."""
        error: Mapping[str, Any] | None = self.result.get("error")
        return error


@dataclass(frozen=True, slots=True)
class InvokeAnswer:
    """What came of a tool: ``ok`` with ``text`` and perhaps ``structured``, or ``error``."""

    answer: HttpAnswer

    @property
    def call(self) -> Mapping[str, Any]:
        """All that is told of the call; empty if it did not begin."""
        call: Mapping[str, Any] = self.answer.result.get("call", {})
        return call

    @property
    def ok(self) -> bool:
        """Whether the tool gave a result."""
        return self.call.get("ok") is True

    @property
    def text(self) -> str:
        """The result as text; empty if there is none."""
        return str(self.call.get("result", ""))

    @property
    def structured(self) -> Mapping[str, Any] | None:
        """The result as an object, if it is one."""
        data: Mapping[str, Any] | None = self.call.get("structured")
        return data

    @property
    def error(self) -> Mapping[str, Any] | None:
        """Why there is no result."""
        return self.answer.error

    @property
    def pending(self) -> Sequence[Mapping[str, Any]]:
        """The call, if it waits for a person: give its token under ``confirmations``."""
        return self.answer.pending
