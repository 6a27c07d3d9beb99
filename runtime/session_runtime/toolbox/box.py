"""Opens what the configuration offers to handlers, and binds it to whom one ask is for."""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from session_runtime.config.settings import Settings
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.services import Results, Services, Web
from session_runtime.toolbox.files.access import FileRoots, idle_tools, open_files
from session_runtime.toolbox.files.roots import protected_places
from session_runtime.toolbox.notes import FILE as NOTES_FILE
from session_runtime.toolbox.notes import NoteStore
from session_runtime.toolbox.owner import Owner

FILE_AGENT: Final = "file_agent"
"""The bundled sub-agent, which works on files."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What handlers of one configuration may use, apart from their arguments; None is not set up."""

    notes: NoteStore | None = None
    files: FileRoots | None = None
    web: Web | None = None

    @property
    def idle(self) -> tuple[str, ...]:
        """Patterns of bundled tools that would have nothing to work on: they are left out."""
        offers = {"notes.*": self.notes, "web.*": self.web, FILE_AGENT: self.files}
        files = idle_tools(self.files)
        return (*(pattern for pattern, offer in offers.items() if offer is None), *files)

    def services(self, owner: Owner, results: Results | None) -> Services:
        """Everything on offer, bound to ``owner``."""
        return Services(
            files=self.files.of(owner) if self.files is not None else None,
            web=self.web,
            notes=self.notes.of(owner) if self.notes is not None else None,
            results=results,
        )

    async def aclose(self) -> None:
        """Close what was opened; called once, after the last ask that may use it."""


def open_toolbox(snapshot: ConfigSnapshot, bundled: Path) -> Toolbox:
    """Open what a configuration offers; raises ConfigError for what cannot be opened.

    ``bundled`` is the folder of the bundled tools.
    """
    return Toolbox(
        notes=_notes(snapshot.settings),
        files=open_files(snapshot, bundled),
        web=_web(snapshot.settings),
    )


def toolbox_key(snapshot: ConfigSnapshot, bundled: Path) -> str:
    """Equal for configurations that one toolbox can serve."""
    settings = snapshot.settings
    files = (settings.files, protected_places(snapshot, bundled))
    return repr((settings.runtime.state_dir, settings.notes, files, settings.web))


def _notes(settings: Settings) -> NoteStore | None:
    notes = settings.notes
    if not notes.enabled:
        return None
    return NoteStore(settings.runtime.state_dir / NOTES_FILE, notes.max_notes, notes.max_chars)


def _web(settings: Settings) -> Web | None:
    """Open it by what stands on the HTTP client, whose import costs more than most of the others."""
    if not settings.web.enabled:
        return None
    client = importlib.import_module("session_runtime.toolbox.web.client")
    opened: Web = client.open_web(settings.web)
    return opened
