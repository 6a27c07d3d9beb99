"""What is told of a tool to whoever may use it, and of the configuration to operators."""

from collections.abc import Collection
from typing import Any

from session_runtime.config.live import LiveConfig
from session_runtime.registry.deprecation import replacement_of
from session_runtime.registry.spec import ToolSpec


def tool_to_json(spec: ToolSpec, *, schemas: bool) -> dict[str, Any]:
    """What anybody may know who may use the tool."""
    parameters = {"parameters": spec.parameters} if schemas else {}
    return {
        "name": spec.name,
        "description": spec.description,
        **parameters,
        "source": spec.source_id,
        "origin": spec.origin,
        "aliases": list(spec.aliases),
        "requires": sorted(spec.requires),
        "feature": spec.feature,
        "destructive": spec.annotations.destructive,
        "read_only": spec.annotations.read_only,
        "idempotent": spec.annotations.idempotent,
        "deprecated": spec.deprecated is not None,
    }


def deprecation_to_json(spec: ToolSpec, usable: Collection[str]) -> dict[str, Any]:
    """Why a tool should no longer be used, and what to use instead, as far as that may be known."""
    old = spec.deprecated
    if old is None:
        return {}
    return {"deprecation": {"reason": old.reason, "replacement": replacement_of(spec, usable)}}


def config_status_to_json(live: LiveConfig) -> dict[str, Any]:
    """Whether what the sources say is in force, since when it is not, what is, and what came last."""
    last, applied = live.receipts.last, live.receipts.applied
    return {
        "in_force": live.rejected_since is None,
        "entry": None if applied is None else applied.entry,
        "rejected_since": live.rejected_since,
        "restart_needed": [change.key for change in live.waiting],
        "last_receipt": None if last is None else last.to_json(),
    }
