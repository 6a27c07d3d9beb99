"""The section [notes]; whose notes are whose is decided in ``toolbox``."""

from session_runtime.config.section import Count, Section, key


class NotesSettings(Section):
    """Notes that tools keep for whoever asks, in runtime.state_dir."""

    enabled: bool = key(True, "Whether the tools notes.* are there.")
    max_notes: Count = key(
        1000, "The most notes of one owner; further ones are refused.", network=True
    )
    max_chars: Count = key(
        4000, "The longest note, in characters; a longer one is refused.", network=True
    )
