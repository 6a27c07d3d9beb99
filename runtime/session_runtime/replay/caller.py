"""For whom a recorded ask would be answered now, and by which profile; rights are decided in ``policy``."""

from dataclasses import dataclass
from typing import Final

from session_runtime.ask.run import choose_profile
from session_runtime.errors import RequestError
from session_runtime.generation import Generation, Profile
from session_runtime.registry.patterns import Patterns
from session_runtime.registry.policy import acting_for
from session_runtime.trace.record import AskRecord
from session_runtime.types import LOCAL, Identity, Principal

REFUSED_AT_THE_DOOR: Final = frozenset({"auth.act_for", "auth.unknown", "request.unknown_model"})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, for whom."""

    principal: Principal
    identity: Identity


def caller_of(generation: Generation, record: AskRecord) -> Caller:
    """Let the caller in as the configuration does; raises RequestError if it would not be."""
    principal = _principal(generation, record)
    return Caller(principal, acting_for(principal, record.identity))


def profile_of(generation: Generation, record: AskRecord) -> Profile:
    """The profile that the ask would begin with; raises RequestError if there is none.

    Traces of earlier versions do not tell whether a request named it: then it is taken to have done so.
    """
    named = record.model if record.request is None else record.request.model
    return choose_profile(generation, named or None)


def _principal(generation: Generation, record: AskRecord) -> Principal:
    """A key counts with what the configuration says of it; without keys there is nobody but LOCAL (NET-2)."""
    name, request = record.principal.name, record.request
    by_key = request.key if request is not None else name != LOCAL.name
    if not by_key:
        bound = None if request is None else request.bound
        return LOCAL if bound is None else Principal(name, bound, Patterns(["*"]))
    if not generation.keys:
        return LOCAL
    found = generation.keys.named(name)
    if found is None:
        raise RequestError(f"there is no key {name!r} in [http.keys]", code="auth.unknown")
    return found
