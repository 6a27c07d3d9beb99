"""Numbers over all asks that ended since the process began, made of the records that traces are made of.

So what a monitoring system reads, the console shows, a trace says and a result tells are the same. No label
holds what a caller, a model or a tool says: of a code only its family, and that only if it is one of ours.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, get_args

from session_runtime.trace.metrics import Family, Sample, gauge
from session_runtime.trace.record import AskRecord, CallRecord, SearchRecord
from session_runtime.types import Outcome, ToolStatus, Usage, nothing
from session_runtime.wire import usage_to_json

OTHER: Final = "other"
FAMILIES: Final = (
    *("agent", "auth", "busy", "cancelled", "confirmation", "files", "internal", "limit", "mcp"),
    *("model", "notes", "request", "results", "tool", "tool_search", "web", OTHER),
)
"""What stands before the dot of an error code; ``other`` are those that tools made up."""
MOST_CODES: Final = 100
"""So many different codes are told apart in the sums; tools may make up any number of them."""
SEARCHES: Final = ("found", "had", "missed", "refused")
"""A search that loaded tools, that named loaded ones alone, that found none, that was not carried out."""
_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_TOOL_SECONDS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30, 120)
_OWN_SECONDS: Final = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.1, 0.5)
_TOKENS: Final = (100, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 500_000)


class Histogram:
    """How many values there were up to each of ``bounds``, and their sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    @property
    def sum(self) -> float:
        """Of all values so far."""
        return self._sum

    def add(self, value: float, times: int = 1) -> None:
        """Count a value so many times."""
        self._counts[bisect_left(self._bounds, value)] += times
        self._sum += value * times

    def family(self, name: str, meaning: str) -> Family:
        """All of it as the text format wants it."""
        samples, below = [], 0
        for bound, count in zip((*self._bounds, "+Inf"), self._counts, strict=True):
            below += count
            samples.append(Sample(below, {"le": str(bound)}, "_bucket"))
        samples += [Sample(self._sum, nothing(), "_sum"), Sample(below, nothing(), "_count")]
        return Family(name, "histogram", meaning, tuple(samples))


class AskMeasures:
    """Counts each record that it is given; cheap enough for the event loop."""

    def __init__(self) -> None:
        self._asks: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._codes: Counter[str] = Counter()
        self._usage = Usage()
        self._turns: Counter[str] = Counter()
        self._calls: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._searches: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._duration = Histogram(_SECONDS)
        self._own = Histogram(_OWN_SECONDS)
        self._model = Histogram(_SECONDS)
        self._tool = Histogram(_TOOL_SECONDS)
        self._input = Histogram(_TOKENS)
        self._output = Histogram(_TOKENS)

    def add(self, record: AskRecord) -> None:
        """Count an ask that ended."""
        self._asks[record.outcome] += 1
        if record.error is not None:
            code = record.error.code
            self._errors[family_of(code)] += 1
            is_told = code in self._codes or len(self._codes) < MOST_CODES
            self._codes[code if is_told else OTHER] += 1
        self._turns["ask"] += len(record.turns)
        self._turns["agent"] += sum(len(agent.turns) for agent in record.agents)
        for turn in record.all_turns:
            self._model.add(turn.model_s)
        for call in record.all_calls:
            self._add_call(call)
        self._duration.add(record.duration_s)
        turns = max(1, len(record.turns))
        self._own.add(record.daemon_s / turns, turns)
        self._add_tokens(record)

    def _add_call(self, call: CallRecord) -> None:
        if call.search is not None:
            self._searches[_found(call, call.search)] += 1
            return
        self._calls[call.status] += 1
        if call.error_code is not None:
            self._faults[family_of(call.error_code)] += 1
        if call.status in ("ok", "error"):
            self._tool.add(call.latency_s)

    def _add_tokens(self, record: AskRecord) -> None:
        usage = record.usage
        self._usage += usage
        self._input.add(usage.input_tokens)
        self._output.add(usage.output_tokens)
        self._tokens["cached"] += usage.cached_tokens
        self._tokens["reasoning"] += usage.reasoning_tokens
        self._tokens["full_list"] += record.tokens_full_list
        self._tokens["offered"] += record.tokens_exposed

    def families(self) -> Iterator[Family]:
        """All numbers, with the same names and labels at any time."""
        yield _of("asks_total", "Asks that ended.", "outcome", self._asks, get_args(Outcome))
        yield _of("ask_errors_total", "Errors of asks.", "family", self._errors, FAMILIES)
        turns = ("ask", "agent")
        yield _of("turns_total", "Model turns of asks and sub-agents.", "of", self._turns, turns)
        statuses = get_args(ToolStatus)
        yield _of("calls_total", "Tool calls but searches.", "status", self._calls, statuses)
        failed = "Calls that failed or were refused, by the family of their code."
        yield _of("call_errors_total", failed, "family", self._faults, FAMILIES)
        yield _of("searches_total", "Tool searches.", "result", self._searches, SEARCHES)
        yield self._duration.family("ask_seconds", "How long asks took.")
        yield self._own.family(
            "daemon_turn_seconds",
            "The daemon's own time for a turn: an ask's, spread over its turns.",
        )
        yield self._model.family("model_seconds", "How long a turn waited for its model.")
        yield self._tool.family("tool_seconds", "How long calls that ran took.")
        yield from self._of_tokens()

    def totals(self) -> dict[str, Any]:
        """Sums over all asks since the start; ``daemon_s`` is what was spent in neither model nor tools.

        Of outcomes, errors by their code, turns, calls and searches, those that there were.
        """
        return {
            "asks": self._asks.total(),
            "outcomes": dict(self._asks),
            "errors": dict(self._codes),
            "turns": dict(+self._turns),
            "calls": dict(self._calls),
            "searches": dict(self._searches),
            "usage": usage_to_json(self._usage),
            "tokens_saved": self._tokens["full_list"] - self._tokens["offered"],
            "duration_s": round(self._duration.sum, 6),
            "daemon_s": round(self._own.sum, 6),
        }

    def _of_tokens(self) -> Iterator[Family]:
        yield self._input.family("ask_input_tokens", "Tokens that an ask sent to models.")
        yield self._output.family("ask_output_tokens", "Tokens that models wrote for an ask.")
        parts = ("cached", "reasoning")
        yield _of("tokens_total", "Parts of the tokens in and out.", "kind", self._tokens, parts)
        schemas = "Tokens of tool schemas: of all permitted ones, and of those offered."
        yield _of("tool_tokens_total", schemas, "of", self._tokens, ("full_list", "offered"))
        yield gauge(
            "tokens_saved",
            "Tokens that tool search saved; goes down where it costs more than it saves.",
            self._tokens["full_list"] - self._tokens["offered"],
        )


def family_of(code: str) -> str:
    """What stands before the dot of an error code, if it is one of ours."""
    family = code.partition(".")[0]
    return family if family in FAMILIES else OTHER


def _found(call: CallRecord, search: SearchRecord) -> str:
    if call.status != "ok":
        return "refused"
    if search.loaded:
        return "found"
    return "had" if search.already_loaded else "missed"


def _of(
    name: str, meaning: str, label: str, counts: Mapping[str, float], values: Iterable[str]
) -> Family:
    samples = tuple(Sample(counts[value], {label: value}) for value in values)
    return Family(name, "counter", meaning, samples)
