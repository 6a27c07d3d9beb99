"""What all sections share: frozen, strict models, and keys that say what they mean and when they act.

Which keys there are is decided in ``runtime``, ``tools`` and ``models``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

Acts = Literal["now", "next ask", "restart"]

_T = TypeVar("_T")


def read_only(table: Mapping[str, _T]) -> Mapping[str, _T]:
    """A copy of a table that nobody can change."""
    return MappingProxyType(dict(table))


Table = Annotated[Mapping[str, _T], AfterValidator(read_only)]
Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1)]


class Section(BaseModel):
    """Base of every section: frozen, strict about types, unknown keys forbidden (CFG-1)."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", validate_default=True, hide_input_in_errors=True
    )


def key(
    default: object,
    description: str,
    *,
    acts: Acts = "next ask",
    env: str | None = None,
    alias: str | None = None,
) -> Any:
    """One key: its default, what it means in plain words, when an edit acts (CFG-6).

    ``env`` is the short name of the environment variable that also gives it (CFG-2). ``alias`` is what
    the key is called wherever it is written, if an attribute cannot have that name.
    """
    extra: dict[str, JsonValue] = {"acts": acts, "env": env}
    return Field(default, alias=alias, description=description, json_schema_extra=extra)


def table(description: str, *, acts: Acts = "next ask") -> Any:
    """A table whose keys the operator chooses, empty by default."""
    return Field(
        default_factory=dict,
        description=description,
        json_schema_extra={"acts": acts, "env": None},
    )
