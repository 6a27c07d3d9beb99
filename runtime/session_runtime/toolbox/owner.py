"""Whose notes and folders: what is kept for one owner is out of reach for every other (NET-2c)."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Owner:
    """The principal that was let in, and the user it speaks for; None is nobody's name."""

    principal: str
    user: str | None

    @property
    def key(self) -> tuple[str, str]:
        """Principal and user as the file of notes has them; no two owners share one."""
        return self.principal, json.dumps(self.user)
