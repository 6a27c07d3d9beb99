"""What an edit changes of a recorded ask: its replay by it beside that by the configuration in force.

What has come to differ since the ask was recorded is not the edit's doing.
"""

from dataclasses import replace
from typing import Final

from session_runtime.replay.difference import Difference, Replayed

TAKEN_BACK: Final = "no longer: "


def by_edit(before: Replayed, after: Replayed) -> Replayed:
    """The differences that an edit brings, and those that it takes back; ``unknown`` is of both."""
    brought = tuple(each for each in after.differences if each not in before.differences)
    gone = tuple(_gone(each) for each in before.differences if each not in after.differences)
    unknown = tuple(dict.fromkeys((*before.unknown, *after.unknown)))
    return replace(after, differences=(*brought, *gone), unknown=unknown)


def _gone(difference: Difference) -> Difference:
    """A difference that is none any more: it would be as it was recorded."""
    return replace(
        difference,
        what=f"{TAKEN_BACK}{difference.what}",
        before=difference.after,
        after=difference.before,
        groups=tuple(f"{TAKEN_BACK}{each}" for each in difference.groups),
    )
