"""Keeps a model from searching in circles (TS-12); what a search finds is decided in ``session``."""

import json
from dataclasses import dataclass
from typing import Any

from session_runtime.errors import ToolError
from session_runtime.search.session import SearchResult, ToolSearchSession

MISSES_IN_A_ROW = 3
EXHAUSTED_CODE = "tool_search.exhausted"
FULL_CODE = "tool_search.full"


@dataclass(frozen=True, slots=True)
class SearchReply:
    """The answer to one call of ``tool_search``.

    ``content`` is the text for the model, ``loaded`` what it loaded just now. With ``refused`` nothing
    was searched and ``error_code`` says why: the query was empty, no further tool can be loaded, or
    searching is over for this ask.
    """

    content: str
    loaded: tuple[str, ...] = ()
    refused: bool = False
    error_code: str | None = None


_GO_ON = (
    "tool_search does not search any more. Go on with the tools you have now, or say what you cannot "
    "do without another tool."
)


class SearchGovernor:
    """Answers all searches of one ask: repeated ones from memory, at most ``max_calls`` in all."""

    def __init__(self, session: ToolSearchSession, max_calls: int) -> None:
        self._session = session
        self._max_calls = max_calls
        self._calls = 0
        self._misses = 0
        self._answers: dict[tuple[str, int, frozenset[str]], SearchResult] = {}

    def answer(self, query: str, max_results: int | None = None) -> SearchReply:
        """Search, or say why not; raises nothing."""
        if reason := self.ended:
            code = EXHAUSTED_CODE if self._exhausted() else FULL_CODE
            return SearchReply(f"{reason}; {_GO_ON}", refused=True, error_code=code)
        self._calls += 1
        try:
            result = self._result(query, max_results)
        except ToolError as error:
            return SearchReply(str(error), refused=True, error_code=error.code)
        if now := self._session.callable_now():
            result["hint"] = f"{result.get('hint', '')} {now}".lstrip()
        found = bool(result["loaded"] or result["already_loaded"])
        self._misses = 0 if found else self._misses + 1
        return SearchReply(_compact_json(result), tuple(result["loaded"]))

    @property
    def ended(self) -> str | None:
        """Why no further tool can be loaded by a search, in words for the model; None if one can."""
        return self._exhausted() or (self._full() if self._session.full else None)

    def _result(self, query: str, max_results: int | None) -> SearchResult:
        key = (query.strip(), self._session.cap(max_results), self._session.withdrawn)
        if key in self._answers:
            return _again(self._answers[key])
        result = self._session.search(query, max_results)
        self._answers[key] = result.copy()
        return result

    def _exhausted(self) -> str | None:
        if self._misses >= MISSES_IN_A_ROW:
            return f"The last {MISSES_IN_A_ROW} searches found nothing"
        if self._calls >= self._max_calls:
            return f"All {self._max_calls} searches of this request have been made"
        return None

    def _full(self) -> str:
        return f"You can have {self._session.max_exposed} tools at most, and that many are loaded"


def _again(result: SearchResult) -> SearchResult:
    """A remembered answer as it is true now: what it loaded is loaded."""
    again = result.copy()
    again["already_loaded"] = [*result["loaded"], *result["already_loaded"]]
    again["loaded"] = []
    return again


def _compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
