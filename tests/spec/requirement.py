"""What one rule of the contract is; the rules themselves stand in the ``rules_*`` modules."""

from dataclasses import dataclass
from typing import Literal

State = Literal["met", "deferred"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One rule: its ``id``, what it asks for in complete sentences, and whether it is met.

    A rule of which only a part is met is split: ``ASK-3`` becomes ``ASK-3a``, ``ASK-3b`` and so on.
    In a marker and in a docstring the plain id then stands for part ``a``.
    """

    id: str
    behaviour: str
    state: State


def met(rule: str, behaviour: str) -> Requirement:
    """A rule that the code keeps; at least one test must name it."""
    return Requirement(rule, behaviour, "met")


def deferred(rule: str, behaviour: str) -> Requirement:
    """A rule for a later step; no test may name it yet."""
    return Requirement(rule, behaviour, "deferred")
