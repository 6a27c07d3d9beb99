"""Puts a configuration into force: prepare the whole next one, then swap, or leave no trace (REL-1)."""

from typing import Protocol, TypeVar

from session_runtime.config.load import ConfigSnapshot


class Prepared(Protocol):
    """Everything the next generation needs, not in force yet; exactly one of the two is called."""

    def commit(self) -> None:
        """Put it into force; cannot fail and does not block."""

    async def abort(self) -> None:
        """Release what preparation opened."""


P = TypeVar("P", bound=Prepared, covariant=True)


class Builder(Protocol[P]):
    """Builds from a snapshot; ``prepare`` raises ConfigError and leaves nothing open when it does."""

    async def prepare(self, snapshot: ConfigSnapshot) -> P:
        """Open and check everything that the snapshot asks for."""


async def put_in_force(snapshot: ConfigSnapshot, builder: Builder[Prepared]) -> None:
    """Prepare and commit; raises ConfigError with nothing changed."""
    prepared = await builder.prepare(snapshot)
    prepared.commit()


async def check(snapshot: ConfigSnapshot, builder: Builder[P]) -> P:
    """The same preparation without the commit: one validator for starting and for checking.

    What was prepared is returned to be looked at; it holds nothing open any more.
    """
    prepared = await builder.prepare(snapshot)
    await prepared.abort()
    return prepared
