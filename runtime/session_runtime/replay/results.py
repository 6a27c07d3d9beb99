"""Which results of a replayed ask a model is given by reference, which loads ``results.read`` (ASK-8b)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from session_runtime.ask.exposure import Exposure
from session_runtime.ask.unexposed import NOT_LOADED
from session_runtime.generation import Generation
from session_runtime.registry.invoke.results import MOST_KEPT_CHARS
from session_runtime.registry.invoke.summary import LEAST_CHARS
from session_runtime.registry.names import RESULTS_READ, TOOL_SEARCH
from session_runtime.replay.difference import Findings
from session_runtime.trace.record import AskRecord, CallRecord

AROUND_CHARS: Final = 500
"""How much may stand around a result that was shown whole: marks of what is from outside, a warning."""


class Results:
    """The results of one ask, call by call; where a limit is as it was, they are given as they were."""

    def __init__(
        self, generation: Generation, record: AskRecord, exposure: Exposure, findings: Findings
    ) -> None:
        self._generation = generation
        self._record = record
        self._exposure = exposure
        self._findings = findings
        self._used = False

    def prefetched(self, names: Iterable[str]) -> None:
        """Look at the prefetch calls of these tools."""
        if self._exposure.profile.settings.max_tools is None:
            self.ran([call for call in self._record.prefetch if call.name in names])

    def ran(self, calls: Sequence[CallRecord]) -> None:
        """Look at calls that run now, and load what reads results once one is given by reference."""
        if self._exposure.reads_results:
            kept = [call for call in calls if self._is_kept(call)]
            self._used = self._used or bool(kept)
        if self._used:
            self._exposure.load_results_read()

    def before(self, number: int) -> None:
        """What was kept because a conversation became too long is taken as recorded, before a turn."""
        if not self._used and self._was_shortened(number):
            self._findings.unknown(
                "how long a conversation may be: results.read is loaded as it was"
            )
            self._used = True
            self._exposure.load_results_read()

    def _is_kept(self, call: CallRecord) -> bool:
        """Whether the whole is kept; a result that is no text is, however short it is."""
        if call.status != "ok" or call.name == RESULTS_READ:
            return False
        limit, before = self._limits(call.name)
        if limit < LEAST_CHARS:
            return False
        whole = call.whole_chars
        if before is None:
            self._doubt(call, limit)
            return whole is not None
        if whole is None:
            return limit < before and self._is_longer(call, limit)
        return whole <= MOST_KEPT_CHARS and (whole > limit or whole <= before)

    def _limits(self, name: str) -> tuple[int, int | None]:
        """How much of a result is shown now, and how much was; None if nobody knows."""
        catalog = self._generation.catalog
        own = catalog.lookup(name).max_result_chars if name in catalog.positions else None
        limit = self._generation.settings.ask.max_result_chars
        return own or limit, own or self._record.max_result_chars

    def _is_longer(self, call: CallRecord, limit: int) -> bool:
        if limit < call.result_chars <= limit + AROUND_CHARS:
            what = f"whether the result of {call.name} is too long without what stands around it"
            self._findings.unknown(what)
        return call.result_chars > limit

    def _doubt(self, call: CallRecord, limit: int) -> None:
        was_long = call.whole_chars is not None
        if ((call.whole_chars or call.result_chars) > limit) != was_long:
            self._findings.unknown("how much of a result was shown was not recorded")

    def _was_shortened(self, number: int) -> bool:
        """Whether results.read came with a turn for no other reason."""
        turns = self._record.turns
        here = _was_loaded(turns[number - 1].exposed)
        if not here or (number > 1 and RESULTS_READ in turns[number - 2].exposed):
            return False
        earlier = () if self._record.request is None else self._record.request.earlier
        called_before = any(RESULTS_READ in names for names in earlier)
        return not called_before and not any(map(_explains, self._made_before(number)))

    def _made_before(self, number: int) -> Iterator[CallRecord]:
        yield from (*self._record.prefetch, *self._record.confirmed)
        for turn in self._record.turns[: number - 1]:
            yield from turn.calls


def _was_loaded(exposed: Sequence[str]) -> bool:
    """Whether results.read was loaded, and not there from the start; what is loaded comes behind the rest."""
    if TOOL_SEARCH not in exposed:
        return False
    return RESULTS_READ in exposed[exposed.index(TOOL_SEARCH) :]


def _explains(call: CallRecord) -> bool:
    """Whether a call loaded results.read: by a long result, by a search, by coming too early."""
    searched = call.search is not None and RESULTS_READ in call.search.loaded
    early = call.name == RESULTS_READ and call.error_code == NOT_LOADED
    return searched or early or call.whole_chars is not None
