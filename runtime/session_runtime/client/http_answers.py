"""How an ask or a call ended, as a backend reads it that asked over HTTP."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from session_runtime.client.answers import Answer


@dataclass(frozen=True, slots=True)
class HttpAnswer(Answer):
    """How an ask ended over HTTP, and how often it was sent.

    ``may_have_run_twice``: it was sent again, and nobody could tell that the daemon knew it already.
    """

    attempt: int = 1
    may_have_run_twice: bool = False


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
