"""The section [handlers]: where tools come from, and what may be said about each of them.

Which tools there are follows in ``local``; who may use them is configured in ``tools``.
"""

import keyword
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from session_runtime.config.json_value import JsonValue
from session_runtime.config.section import (
    Count,
    Name,
    Seconds,
    Section,
    Table,
    key,
    table,
)

MAX_TEXT: Final = 8192


def import_fault(text: str) -> str | None:
    """Say why ``text`` names no function as ``package.module:function`` does; None if it does."""
    module, _, function = text.partition(":")
    if all(map(_is_identifier, (*module.split("."), *function.split(".")))):
        return None
    return 'must name a function as "package.module:function"'


def _is_identifier(part: str) -> bool:
    return part.isidentifier() and not keyword.iskeyword(part)


def _is_given(value: object) -> object:
    if value is None:
        raise ValueError('is missing: name the function as "package.module:function"')
    return value


def _is_import(text: str) -> str:
    fault = import_fault(text)
    if fault is not None:
        raise ValueError(fault)
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


Text = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(_not_blank)]
Import = Annotated[str, BeforeValidator(_is_given), AfterValidator(_is_import)]


class Deprecation(Section):
    """Given for a tool that should no longer be used."""

    reason: str = key("", "Why.")
    replacement: Name | None = key(None, "The name of the tool to use instead.")

    @property
    def is_stated(self) -> bool:
        """Whether the tool is deprecated at all."""
        return bool(self.reason or self.replacement)


class ToolOptions(Section):
    """What the model is not told: who may call the tool, how long it may take, how it is found."""

    requires: tuple[Text, ...] = key((), "Roles that a caller must have, all of them.")
    feature: Text | None = key(
        None, "The tool is there only while this switch of [features] is on."
    )
    destructive: bool = key(False, "Whether the tool changes things for good.")
    read_only: bool = key(False, "Whether the tool changes nothing.")
    idempotent: bool = key(False, "Whether the same call twice does no more than once.")
    timeout_s: Seconds | None = key(
        None, "The longest a call may take, in seconds; unset means handlers.timeout_s."
    )
    max_result_chars: Count | None = key(
        None, "The longest result, in characters; unset means ask.max_result_chars."
    )
    aliases: tuple[Text, ...] = key((), "Other names by which search finds the tool.")
    search_hints: tuple[Text, ...] = key(
        (), "Words that people use and the description lacks; for search."
    )
    examples: tuple[Text, ...] = key((), "Requests that the tool answers; for search.")
    deprecated: Deprecation = Field(default_factory=Deprecation)

    @model_validator(mode="after")
    def _destroys_or_reads(self) -> "ToolOptions":
        if self.destructive and self.read_only:
            raise ValueError("a tool cannot be both destructive and read_only")
        return self


class HandlerEntry(Section):
    """What the model sees stands in a file (schema), or right here (description, parameters)."""

    import_: Import = key(
        None,
        'The function, as "package.module:function"; the module is imported at the first call.',
        alias="import",
    )
    schema_: Path | None = key(
        None, "A file of the same form as a handler's config.json.", alias="schema"
    )
    description: Text | None = key(
        None, "What the model reads about the tool, if there is no schema."
    )
    parameters: Table[JsonValue] = table(
        "A JSON Schema of type object, beside description; empty means that the tool takes nothing."
    )
    runtime: ToolOptions = Field(default_factory=ToolOptions)

    @model_validator(mode="after")
    def _described_once(self) -> "HandlerEntry":
        if self.schema_ is None:
            if self.description is None:
                raise ValueError("needs either schema (a file) or description")
        elif self.description is not None or self.parameters or self.runtime != ToolOptions():
            raise ValueError(
                "has a schema, whose file says everything: remove it, or remove description,"
                " parameters and runtime"
            )
        return self


class HandlersSettings(Section):
    """Where tools come from and which of them are used."""

    paths: tuple[Path, ...] = key(
        (), "Folders of tools; a tool here replaces a bundled one of the same name."
    )
    entries: Table[HandlerEntry] = table(
        "Tools that are functions of modules, each under the tool's name."
    )
    plugins: tuple[Name, ...] = key(
        (), "Installed packages whose tools are used, by the names that pip lists."
    )
    bundled: bool = key(True, "Whether the tools that come with the package are there.")
    enabled: tuple[str, ...] = key(
        (), 'Patterns of tool names to use, such as "group.*"; empty means all.'
    )
    disabled: tuple[str, ...] = key((), "Patterns of tool names not to use; these win.")
    timeout_s: Seconds = key(
        120.0,
        "The longest a tool call may take, in seconds, unless the tool says otherwise.",
        network=True,
    )
