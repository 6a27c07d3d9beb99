"""Opens what the configuration offers to handlers, and binds it to the identity of one ask."""

from dataclasses import dataclass

from session_runtime.config.settings import Settings
from session_runtime.services import Results, Services
from session_runtime.types import Identity


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What handlers of one configuration may use, apart from their arguments.

    ``idle`` are patterns of bundled tools that would have nothing to work on: they are left out.
    """

    idle: tuple[str, ...] = ()

    def services(self, identity: Identity, results: Results | None) -> Services:
        """Everything on offer, bound to whoever asks."""
        del identity
        return Services(results=results)

    async def aclose(self) -> None:
        """Close what was opened; called once, after the last ask that may use it."""


def open_toolbox(settings: Settings) -> Toolbox:
    """Open what ``settings`` offer; raises ConfigError for what cannot be opened."""
    del settings
    return Toolbox()


def toolbox_key(settings: Settings) -> str:
    """Equal for settings that one toolbox can serve."""
    del settings
    return "toolbox"
