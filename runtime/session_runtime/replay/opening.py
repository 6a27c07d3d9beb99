"""What a recorded ask would begin with: its prefetches, and what the model may see (TS-3, PRE-1)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from session_runtime.ask.exposure import Exposure, open_exposure
from session_runtime.ask.record import tool_search_record
from session_runtime.ask.sticky import load_again
from session_runtime.generation import Generation, Profile
from session_runtime.registry.invoke.consent import NEEDS_CONFIRMATION_CODE
from session_runtime.registry.masks import bits
from session_runtime.registry.names import TOOL_SEARCH
from session_runtime.replay.caller import Caller
from session_runtime.replay.difference import Findings
from session_runtime.replay.tools import Blindness, Reasons, Withdrawn
from session_runtime.search import resolve_names
from session_runtime.trace.record import MOST_EARLIER, AskRecord, RequestRecord


@dataclass(frozen=True, slots=True)
class Opening:
    """An ask before its first turn."""

    exposure: Exposure
    reasons: Reasons


def mask_of(generation: Generation, record: AskRecord, caller: Caller) -> int:
    """What the caller may use, without what was revoked when the ask was recorded."""
    positions = generation.catalog.positions
    revoked = () if record.request is None else record.request.revoked
    taken = bits([positions[name] for name in revoked if name in positions])
    return generation.policy.permitted(caller.principal, caller.identity) & ~taken


def open_ask(
    generation: Generation,
    record: AskRecord,
    caller: Caller,
    profile: Profile,
    findings: Findings,
) -> Opening:
    """Open the view of the ask on its tools, and tell what differs from what was recorded."""
    mask = mask_of(generation, record, caller)
    prefetched = _prefetched(generation, record, mask, findings)
    withdrawn = Withdrawn(record)
    exposure = open_exposure(generation, profile, mask, prefetched, revoked=withdrawn)
    if exposure.session is not None:
        _load_again(generation, record.request, exposure, findings)
    reasons = Reasons(generation, caller, frozenset(prefetched), withdrawn)
    _compare_search(generation, record, exposure, findings)
    return Opening(exposure, reasons)


def _prefetched(
    generation: Generation, record: AskRecord, mask: int, findings: Findings
) -> tuple[str, ...]:
    """The tools that are prefetched with success; one that was not before is taken to succeed."""
    blind = Blindness(generation)
    before: Mapping[str, str] = {each.name: each.status for each in record.prefetch}
    wanted = [name for name in generation.settings.skills.prefetch_tools if name != TOOL_SEARCH]
    found, _ = resolve_names(generation.index.view(mask), wanted)
    for name in before:
        if name not in found and not blind.hides(name):
            findings.differ("prefetch", 0, f"{name} is not prefetched any more", before[name])
    codes = {each.name: each.error_code for each in record.prefetch}
    succeeded = []
    for name in found:
        if name not in before:
            findings.differ("prefetch", 0, f"{name} is prefetched now", None, "unknown")
            findings.unknown(f"the result of the prefetch of {name}: taken to succeed")
        destructive = generation.catalog.destructive(name)
        was_refused = codes.get(name) == NEEDS_CONFIRMATION_CODE
        if not destructive and (was_refused or before.get(name, "ok") == "ok"):
            succeeded.append(name)
    return tuple(succeeded)


def _load_again(
    generation: Generation,
    request: RequestRecord | None,
    exposure: Exposure,
    findings: Findings,
) -> None:
    turns = generation.settings.skills.tool_search_sticky_turns
    if not turns or exposure.session is None:
        return
    if request is None or turns > MOST_EARLIER == len(request.earlier):
        findings.unknown("which tools earlier turns of the conversation called was not recorded")
    if request is not None:
        load_again(exposure.session, request.earlier[-turns:])


def _compare_search(
    generation: Generation, record: AskRecord, exposure: Exposure, findings: Findings
) -> None:
    before, after = record.tool_search, tool_search_record(exposure)
    if (before.active, before.rule) != (after.active, after.rule):
        was, now = (f"{'on' if each.active else 'off'} ({each.rule})" for each in (before, after))
        what = f"tool search {was} -> {now}"
        findings.differ("tool_search", 0, what, asdict(before), asdict(after))
        return
    if before == after or Blindness(generation).servers:
        return
    was, now = (
        f"{each.deferred} tools in {each.directory_tokens} tokens" for each in (before, after)
    )
    group = f"directory: {before.deferred} -> {after.deferred} tools"
    if before.deferred == after.deferred:
        group = f"another directory of {after.deferred} tools"
    what = f"directory: {was} -> {now}"
    findings.differ("tool_search", 0, what, asdict(before), asdict(after), (group,))
