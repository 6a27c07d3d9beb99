"""The trace record of an ask that ended (OPS-1); what is kept of a single call is decided in ``trace``."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from session_runtime.ask.exposure import Exposure
from session_runtime.ask.run import AskRun
from session_runtime.ask.sticky import called_in
from session_runtime.generation import instructions_of
from session_runtime.search import PROMPT_RULE
from session_runtime.trace.record import (
    MOST_EARLIER,
    AskRecord,
    RequestRecord,
    ToolSearchRecord,
)
from session_runtime.types import AskResult

CHARS_PER_TOKEN = 4
NOT_REACHED: Final = "not_reached"


def build_record(run: AskRun, result: AskResult, duration_s: float) -> AskRecord:
    """Everything about one ask that an operator may want to know later; ``duration_s`` is all of it."""
    turns = tuple(run.progress.turns)
    invoked = run.totals.invoked
    before_s = run.prefetch_s + run.progress.confirmed_s
    before_s += invoked.latency_s if invoked is not None else 0.0
    elsewhere_s = before_s + sum(turn.model_s + turn.tools_s for turn in turns)
    search = tool_search_record(run.exposure)
    directories = search.directory_tokens * len(turns)
    record = AskRecord(
        ask_id=run.ask_id,
        started_at=(datetime.now(UTC) - timedelta(seconds=duration_s)).isoformat(),
        generation=run.generation.number,
        config_digest=run.generation.digest,
        model=run.profile.name if run.profile is not None else "",
        principal=run.request.principal,
        identity=run.request.identity,
        tool_search=search,
        prefetch=tuple(run.totals.prefetch),
        confirmed=tuple(run.progress.confirmed),
        turns=turns,
        outcome=result.outcome,
        error=result.error,
        usage=result.usage,
        duration_s=duration_s,
        daemon_s=max(0.0, duration_s - elsewhere_s),
        tokens_full_list=(run.exposure.full_list_tokens if run.exposure else 0) * len(turns),
        agents=tuple(run.totals.agents),
        tokens_exposed=sum(turn.exposed_tokens for turn in turns) + directories,
        invoked=invoked,
        request=_request(run),
        trace=run.trace,
        max_result_chars=run.generation.settings.ask.max_result_chars,
    )
    return replace(record, instructions=instructions_of(run.generation, record))


def tool_search_record(exposure: Exposure | None) -> ToolSearchRecord:
    """What tool search did for an ask; None: it ended before that was decided."""
    if exposure is None:
        return ToolSearchRecord(False, NOT_REACHED)
    session = exposure.session
    if session is None:
        return ToolSearchRecord(False, exposure.rule)
    return ToolSearchRecord(
        True,
        exposure.rule,
        session.total_deferred,
        (len(PROMPT_RULE) + len(session.directory)) // CHARS_PER_TOKEN,
    )


def _request(run: AskRun) -> RequestRecord:
    """What a replay has to know of a request; nothing of one that is no proper request."""
    request = run.request
    if not run.well_formed:
        return RequestRecord()
    bound = request.principal.identity
    return RequestRecord(
        model=request.model,
        key=bound is not None and run.generation.keys.named(request.principal.name) is not None,
        bound=bound,
        earlier=called_in(request.history, MOST_EARLIER),
        revoked=run.revoked,
        tool=None if request.call is None else request.call.tool,
    )
