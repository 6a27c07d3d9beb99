"""Puts a configuration into force: prepare the whole next one, then swap, or leave no trace (REL-1)."""

from typing import Protocol

from session_runtime.config.load import ConfigSnapshot


class Prepared(Protocol):
    """Everything the next generation needs, not in force yet; exactly one of the two is called."""

    def commit(self) -> None:
        """Put it into force; cannot fail and does not block."""

    async def abort(self) -> None:
        """Release what preparation opened."""


class Builder(Protocol):
    """Builds from a snapshot; ``prepare`` raises ConfigError and leaves nothing open when it does."""

    async def prepare(self, snapshot: ConfigSnapshot) -> Prepared:
        """Open and check everything that the snapshot asks for."""


async def put_in_force(snapshot: ConfigSnapshot, builder: Builder) -> None:
    """Prepare and commit; raises ConfigError with nothing changed."""
    prepared = await builder.prepare(snapshot)
    prepared.commit()


async def check(snapshot: ConfigSnapshot, builder: Builder) -> None:
    """The same preparation without the commit: one validator for starting and for checking."""
    prepared = await builder.prepare(snapshot)
    await prepared.abort()
