"""The emergency brake for tools: revokes by pattern, and tells what that takes away now (REL-9)."""

from functools import partial

from session_runtime.generation import Generations
from session_runtime.registry.revocation_file import Revocation
from session_runtime.registry.revocations import Revocations
from session_runtime.registry.revoked import Matching
from session_runtime.threads import aside


class ToolBrake:
    """What is revoked, beside the tools of the generation in force."""

    def __init__(self, revocations: Revocations, generations: Generations) -> None:
        self._revocations = revocations
        self._generations = generations

    def list(self) -> tuple[Revocation, ...]:
        """Give all that is revoked, oldest first."""
        return self._revocations.list()

    async def matching(self, pattern: str) -> Matching:
        """Give the tools in force that a pattern matches, sorted by name; or else a near name."""
        generation = self._generations.current
        if tools := generation.policy.revoked.matching(pattern):
            return Matching(tools)
        everything = generation.index.view(generation.index.full_mask)
        near = await aside("looking for a near name", partial(everything.nearest, pattern))
        return Matching((), next(iter(near), None))

    async def revoke(self, pattern: str, reason: str = "", by: str = "") -> Revocation:
        """Take tools away at once; see ``Revocations.revoke``."""
        return await self._revocations.revoke(pattern, reason, by)

    async def lift(self, which: int | str) -> Revocation:
        """Give them back; see ``Revocations.lift``."""
        return await self._revocations.lift(which)
