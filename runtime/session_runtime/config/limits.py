"""The section [limits]: how much everybody may ask (NET-5); [http.keys] has the same keys for one principal.

How many asks run and wait at once is configured in ``runtime``.
"""

from typing import Final

from session_runtime.config.section import Count, Section, key
from session_runtime.limits import Limits

_ASKS: Final = (
    "Asks of one {} per minute: so many at once, then one whenever the time for one has passed."
)
_TOKENS: Final = (
    "Tokens that the asks of one {} may take per day, in and out: so many at once, then what accrues. No ask"
    " that runs is ended by it."
)


class LimitsSettings(Section):
    """How much each principal, and each of its users, may ask; unset: no limit. Each replica counts alone."""

    asks_per_minute: Count | None = key(None, _ASKS.format("principal"), acts="now", network=True)
    tokens_per_day: Count | None = key(None, _TOKENS.format("principal"), acts="now", network=True)
    user_asks_per_minute: Count | None = key(None, _ASKS.format("user"), acts="now", network=True)
    user_tokens_per_day: Count | None = key(None, _TOKENS.format("user"), acts="now", network=True)
    user_max_concurrent_asks: Count | None = key(
        None,
        "Asks of one user that may run at the same time; further ones wait for their turn.",
        acts="now",
        network=True,
    )

    @property
    def limits(self) -> Limits:
        """The same as one value."""
        return Limits(
            self.asks_per_minute,
            self.tokens_per_day,
            self.user_asks_per_minute,
            self.user_tokens_per_day,
            self.user_max_concurrent_asks,
        )
