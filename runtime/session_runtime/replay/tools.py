"""The tools as a replay knows them: which it cannot know, and why a tool is there or not."""

from dataclasses import dataclass
from functools import cached_property

from session_runtime.ask.exposure import Exposure
from session_runtime.generation import Generation
from session_runtime.registry.names import TOOL_SEARCH
from session_runtime.replay.caller import Caller


class Blindness:
    """The servers whose tools are not known, as none of them was asked and no list was given."""

    def __init__(self, generation: Generation) -> None:
        self._positions = generation.catalog.positions
        listed = [each for each in generation.servers.listed if not each.listings]
        self.servers = tuple(sorted(each.name for each in listed))
        self._bare = any(each.settings.naming == "bare" for each in listed)
        self._labels = frozenset(each.label for each in listed)

    def hides(self, name: str) -> bool:
        """Whether a tool that is not in the catalogue may be one of such a server."""
        if not self.servers or name in self._positions:
            return False
        return self._bare or name.partition(".")[0] in self._labels

    @cached_property
    def reason(self) -> str:
        """What to tell of it."""
        return (
            f"server not opened: {', '.join(self.servers)}: its tools are taken as recorded, and searches and"
            " tokens are not compared (give its list by --tools)"
        )


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why a tool is there or not, for operators to read."""

    generation: Generation
    caller: Caller
    prefetched: frozenset[str]
    revoked: frozenset[str]

    def absent(self, exposure: Exposure, name: str) -> str:
        """Why a tool is not exposed now."""
        if name == TOOL_SEARCH and exposure.session is None:
            return f"tool search is not used: {exposure.rule}"
        if exposure.permitted(name) is None:
            return self.forbidden(name)
        if name in self.prefetched and self.generation.settings.skills.prefetch_tools_hide:
            return "prefetched and hidden"
        return "held back until it is searched for"

    def forbidden(self, name: str) -> str:
        """Why the ask may not use a tool."""
        if name not in self.generation.catalog.positions:
            return self._not_there(name)
        return "revoked when it was recorded" if name in self.revoked else self._ruling(name)

    def present(self, exposure: Exposure, name: str) -> str:
        """Why a tool is exposed now."""
        if exposure.session is not None:
            return "loaded" if name in exposure.session.loaded else "loaded from the start"
        return self._ruling(name)

    def _not_there(self, name: str) -> str:
        for bad in self.generation.catalog.quarantined:
            if bad.name == name:
                return f"left out: {bad.reason}"
        return "there is no such tool"

    def _ruling(self, name: str) -> str:
        caller = self.caller
        return self.generation.policy.ruling(caller.principal, caller.identity, name)
