"""The section [files]: the folders that file tools may use. How they are kept inside: ``toolbox``."""

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, field_validator

from session_runtime.config.section import Count, Section, key, read_only, table

_MIB = 1024 * 1024
_ROOT_NAME = re.compile(r"\w[\w-]{0,63}")


def _begins_a_path(name: str) -> str:
    if not _ROOT_NAME.fullmatch(name) or not unicodedata.is_normalized("NFC", name):
        raise ValueError("cannot begin a path: use up to 64 letters, digits, _ and -")
    return name


RootName = Annotated[str, AfterValidator(_begins_a_path)]


class FileRoot(Section):
    """A folder, under the name by which tools know it; tools reach nothing outside of it.

    It may not overlap with handlers, configuration, secrets, state or another root (SEC-1).
    """

    path: Path = key(None, "The folder; it has to exist.")
    writable: bool = key(False, "Whether tools may create, replace and edit files.")
    per_user: bool = key(
        False,
        "Whether each user works in an own folder below, which others do not see; callers who state"
        " no user are refused.",
    )

    @field_validator("path", mode="before")
    @classmethod
    def _is_given(cls, path: object) -> object:
        if path is None:
            raise ValueError("is missing: name the folder")
        return path


class FilesSettings(Section):
    """What file tools may touch, and how much at a time; without a root there are no file tools."""

    max_read_bytes: Count = key(_MIB, "The largest file that is read, in bytes.", network=True)
    max_write_bytes: Count = key(_MIB, "The largest file that is written, in bytes.", network=True)
    max_entries: Count = key(
        10_000,
        "The most files and folders of one folder that are looked at; others are left out.",
        network=True,
    )
    roots: Annotated[Mapping[RootName, FileRoot], AfterValidator(read_only)] = table(
        "Folders, each under a name of your choice."
    )
