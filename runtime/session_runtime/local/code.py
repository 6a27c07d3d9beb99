"""Where the code of a tool is; how it becomes a function is decided in ``loader``."""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StoredCode:
    """The Python files of a folder as they were read: names to bytes (REL-7)."""

    folder: Path
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class ImportPath:
    """A function of a module that Python finds by itself: ``package.module`` and ``function``."""

    module: str
    function: str

    @classmethod
    def parse(cls, text: str) -> "ImportPath":
        """Split what ``config.handlers.import_fault`` finds no fault with."""
        module, _, function = text.partition(":")
        return cls(module, function)

    def homes(self) -> tuple[Path, ...]:
        """Where the outermost package of the module is, or its file if that is all; () if nowhere.

        To find an outermost name, Python imports nothing; for an inner one it imports what is around it.
        """
        try:
            spec = importlib.util.find_spec(self.module.partition(".")[0])
        except ValueError:  # a module that came from nowhere, such as __main__
            return ()
        if spec is None:
            return ()
        files = [spec.origin] if spec.has_location and spec.origin else []
        return tuple(Path(each) for each in spec.submodule_search_locations or files)

    def __str__(self) -> str:
        return f"{self.module}:{self.function}"


Code = StoredCode | ImportPath
