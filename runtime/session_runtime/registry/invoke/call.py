"""One call on its way through the pipeline, and what its caller is told in the end."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from session_runtime.handler import HandlerContext
from session_runtime.registry.catalog import Catalog
from session_runtime.registry.invoke.audited import CallAudit
from session_runtime.registry.invoke.consent import Consent
from session_runtime.registry.invoke.results import Place
from session_runtime.registry.spec import ToolSource, ToolSpec
from session_runtime.types import Identity, Principal, ToolStatus


class Effect:
    """Whether a call may have had any effect by now; told by the pipeline alone, attempt by attempt."""

    __slots__ = ("_before", "possible")

    def __init__(self) -> None:
        self.possible = False
        self._before = False

    def begin(self) -> None:
        """An attempt begins, which may have an effect from now on."""
        self._before, self.possible = self.possible, True

    def take_back(self) -> None:
        """The attempt that began last did not reach the tool."""
        self.possible = self._before


@dataclass(frozen=True, slots=True)
class Call:
    """A tool, its arguments, and who calls it: ``principal`` for the identity of ``context``.

    ``caller`` is whom the tool's source takes for the caller (RTE-2). ``place`` is where a result that is
    longer than ``max_result_chars`` may be kept as a whole. ``consent`` is that of a person (RTE-9),
    ``audit`` what is recorded of the call (RTE-13), ``effect`` whether it may have done anything so far.
    """

    catalog: Catalog
    spec: ToolSpec
    arguments: Mapping[str, Any]
    context: HandlerContext
    max_result_chars: int
    place: Place | None
    principal: Principal
    caller: Identity
    consent: Consent
    audit: CallAudit
    effect: Effect = field(default_factory=Effect)

    @property
    def source(self) -> ToolSource:
        """Where the tool comes from."""
        return self.catalog.sources[self.spec.source_id]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model is told; ``code`` is None if the call went well.

    ``whole_chars`` is the length of the whole result if the model is not shown all of it. ``attempts``
    counts how often the tool was begun; 0: it was not.
    """

    content: str
    code: str | None = None
    refused: bool = False
    whole_chars: int | None = None
    attempts: int = 0

    def after(self, attempts: int) -> "Answer":
        """The same answer after so many attempts."""
        return Answer(self.content, self.code, self.refused, self.whole_chars, attempts)

    @property
    def status(self) -> ToolStatus:
        """What became of the call, in one word."""
        if self.code is None:
            return "ok"
        return "refused" if self.refused else "error"
