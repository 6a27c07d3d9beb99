"""Replays a call that stood instead of a question: whether the tool is there, and may run (NET-1f)."""

from typing import Final

from session_runtime.generation import Generation
from session_runtime.registry.invoke.consent import NEEDS_CONFIRMATION_CODE
from session_runtime.replay.caller import Caller
from session_runtime.replay.calls import INVALID, RAN, known_arguments
from session_runtime.replay.difference import Findings
from session_runtime.replay.opening import mask_of
from session_runtime.replay.tools import Blindness, Reasons, Withdrawn
from session_runtime.trace.record import AskRecord, CallRecord

UNKNOWN_TOOL: Final = "request.unknown_tool"
_STOPPED: Final = frozenset({NEEDS_CONFIRMATION_CODE, INVALID, "tool.declined"})


def replay_direct(
    generation: Generation, record: AskRecord, caller: Caller, findings: Findings
) -> None:
    """Tell whether the call fares otherwise now."""
    wanted = record.invoked.name if record.invoked is not None else ""
    if record.request is not None and record.request.tool is not None:
        wanted = record.request.tool
    was = _recorded(record)
    if was is None:
        findings.unknown("the call ended before its tool was looked for")
        return
    view = generation.index.view(mask_of(generation, record, caller))
    found = [view.name(position) for position in view.resolve(wanted)]
    blind = Blindness(generation)
    if len(found) != 1 and blind.hides(wanted):
        findings.unknown(blind.reason)
        return
    if len(found) != 1:
        why = Reasons(generation, caller, frozenset(), Withdrawn(record)).forbidden(wanted)
        _compare(wanted, was, UNKNOWN_TOOL, f" ({why})", findings)
        return
    if was == UNKNOWN_TOOL:
        findings.unknown(f"whether {wanted} may be called by its name was not recorded")
        return
    _compare(wanted, was, _fate(generation, found[0], record.invoked, findings), "", findings)


def _recorded(record: AskRecord) -> str | None:
    """What became of the call; None if something else ended it before."""
    code = None if record.error is None else record.error.code
    if record.invoked is None:
        return code if code == UNKNOWN_TOOL else None
    return code if code in _STOPPED else RAN


def _fate(generation: Generation, name: str, call: CallRecord | None, findings: Findings) -> str:
    code = None if call is None else call.error_code
    arguments = None if call is None else known_arguments(call.arguments)
    if code == "tool.declined":
        return code
    if arguments is None and code == INVALID:
        return INVALID
    if arguments is not None and generation.catalog.checks[name].problems(arguments):
        return INVALID
    asks = generation.settings.access.destructive == "confirm"
    if not (asks and generation.catalog.destructive(name)):
        return RAN
    if code != NEEDS_CONFIRMATION_CODE:
        findings.unknown(f"whether a person agreed to the call of {name} was not recorded")
        return RAN
    return NEEDS_CONFIRMATION_CODE


def _compare(name: str, was: str, now: str, why: str, findings: Findings) -> None:
    if was != now:
        findings.differ("call", 0, f"call of {name}: {was} -> {now}{why}", was, now)
