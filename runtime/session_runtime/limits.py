"""How much somebody may ask, as a value (NET-5); configured in ``config``, counted in ``ask``."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a principal may ask, and each user of it; None: what the configuration says of everybody.

    Once that is known, None stands for no limit (NET-5).
    """

    asks_per_minute: int | None = None
    tokens_per_day: int | None = None
    user_asks_per_minute: int | None = None
    user_tokens_per_day: int | None = None
    user_max_concurrent_asks: int | None = None

    def over(self, others: "Limits") -> "Limits":
        """These, and those of others where these say nothing."""
        return Limits(
            _first(self.asks_per_minute, others.asks_per_minute),
            _first(self.tokens_per_day, others.tokens_per_day),
            _first(self.user_asks_per_minute, others.user_asks_per_minute),
            _first(self.user_tokens_per_day, others.user_tokens_per_day),
            _first(self.user_max_concurrent_asks, others.user_max_concurrent_asks),
        )

    @property
    def bounds_principal(self) -> bool:
        """Whether there is a rate or a budget of the principal as a whole."""
        return self.asks_per_minute is not None or self.tokens_per_day is not None

    @property
    def bounds_user(self) -> bool:
        """Whether there is a rate or a budget of each user."""
        return self.user_asks_per_minute is not None or self.user_tokens_per_day is not None


def _first(one: int | None, other: int | None) -> int | None:
    return other if one is None else one


UNLIMITED: Final = Limits()
