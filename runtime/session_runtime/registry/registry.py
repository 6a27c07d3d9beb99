"""What every tool did, and the guards of all routes, over all generations (REG-5, RTE-6)."""

from collections.abc import Mapping
from dataclasses import dataclass

from session_runtime.registry.catalog import Catalog
from session_runtime.registry.invoke.guard import Guard, RouteStatistics
from session_runtime.registry.lookups import Lookups
from session_runtime.registry.spec import ToolSpec
from session_runtime.trace.redact import redact_text
from session_runtime.types import JsonObject


@dataclass(frozen=True, slots=True)
class ToolStatistics:
    """What is known of one tool; durations in seconds, ``last_error`` empty if there was none.

    ``last_error`` holds no secret: its text may come from the arguments of any caller. ``imported``
    tells that the tool's code was there to be run at the end of a call.
    """

    calls: int = 0
    ok: int = 0
    failed: int = 0
    total_s: float = 0.0
    last_s: float = 0.0
    last_error: str = ""
    imported: bool = False

    def to_json(self) -> JsonObject:
        """Give the numbers as JSON, durations in milliseconds."""
        return {
            "calls": self.calls,
            "ok": self.ok,
            "failed": self.failed,
            "total_ms": round(self.total_s * 1000, 3),
            "last_ms": round(self.last_s * 1000, 3),
            "last_error": self.last_error or None,
            "imported": self.imported,
        }


_NOTHING_YET = ToolStatistics()


class Registry:
    """Statistics by tool name and digest: an edited tool starts anew, a reload changes nothing.

    Beside them the guards of all routes, by the route's id (RTE-6): they too outlive generations.
    """

    def __init__(self) -> None:
        self._statistics: dict[tuple[str, str], ToolStatistics] = {}
        self._guards: dict[str, Guard] = {}
        self._sources: dict[str, str] = {}
        self.lookups = Lookups()

    def statistics(self, spec: ToolSpec) -> ToolStatistics:
        """Give what is known of one tool; all zero before its first call."""
        return self._statistics.get((spec.name, spec.digest), _NOTHING_YET)

    def record(self, spec: ToolSpec, duration_s: float, error: str | None, imported: bool) -> None:
        """Add one finished call; ``error`` is None if it went well."""
        old = self.statistics(spec)
        self._statistics[spec.name, spec.digest] = ToolStatistics(
            calls=old.calls + 1,
            ok=old.ok + (error is None),
            failed=old.failed + (error is not None),
            total_s=old.total_s + duration_s,
            last_s=duration_s,
            last_error=old.last_error if error is None else redact_text(error),
            imported=old.imported or imported,
        )

    def guard(self, route: str, source: str) -> Guard:
        """The guard of one route, made at its first use; ``source`` is the id of what it belongs to."""
        guard = self._guards.get(route)
        if guard is None:
            guard = self._guards[route] = Guard()
            self._sources[route] = source
        return guard

    def routes(self, now: float) -> Mapping[str, RouteStatistics]:
        """How every route is that was ever used, by its id; ``now`` is event-loop time."""
        return {route: guard.statistics(now) for route, guard in sorted(self._guards.items())}

    def retain(self, catalog: Catalog) -> None:
        """Forget tools and routes that ``catalog`` does not hold, so that edits cannot fill the memory.

        A route under way is kept until the next time.
        """
        gone = [route for route, source in self._sources.items() if source not in catalog.sources]
        for route in gone:
            if self._guards[route].idle:
                del self._guards[route], self._sources[route]
        kept = {(spec.name, spec.digest) for spec in catalog.specs}
        for key in self._statistics.keys() - kept:
            del self._statistics[key]
