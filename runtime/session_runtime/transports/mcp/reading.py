"""The long results of one client, as ``results.read`` sees them under the configuration in force."""

from dataclasses import dataclass

from session_runtime.ask.kept import KeptResults
from session_runtime.services import Part


@dataclass(frozen=True, slots=True)
class Reading:
    """``Results`` whose longest part follows the limit in force; the rest is that of ``kept``."""

    kept: KeptResults
    max_chars: int

    def read(self, reference: str, offset: int, length: int) -> Part:
        """As ``Results``."""
        return self.kept.read(reference, offset, length)

    def find(self, reference: str, text: str, offset: int) -> int | None:
        """As ``Results``."""
        return self.kept.find(reference, text, offset)

    def tool_of(self, reference: str) -> str | None:
        """As ``Results``."""
        return self.kept.tool_of(reference)
