"""What all sections share: frozen, strict models, and keys that say what they mean and when they act.

Which keys there are is decided in ``runtime``, ``tools`` and ``models``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, LiteralString, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue
from pydantic_core import PydanticCustomError

Acts = Literal["now", "next ask", "restart"]

UNSHOWN: Final = "unshown"
"""The kind of fault of a value that no message may repeat."""

_T = TypeVar("_T")


def read_only(table: Mapping[str, _T]) -> Mapping[str, _T]:
    """A copy of a table that nobody can change."""
    return MappingProxyType(dict(table))


Table = Annotated[Mapping[str, _T], AfterValidator(read_only)]
Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1)]


def unshown(message: LiteralString) -> PydanticCustomError:
    """Refuse a value that may be a secret given in the wrong place: it is not repeated."""
    return PydanticCustomError(UNSHOWN, message)


class Section(BaseModel):
    """Base of every section: frozen, strict about types, unknown keys forbidden (CFG-1)."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        validate_default=True,
        hide_input_in_errors=True,
        defer_build=True,  # most are parts of Settings and are never validated alone
    )


def key(
    default: object,
    description: str,
    *,
    acts: Acts = "next ask",
    env: str | None = None,
    alias: str | None = None,
    in_repr: bool = True,
    network: bool = False,
) -> Any:
    """One key: its default, what it means in plain words, when an edit acts (CFG-6).

    ``env`` is the short name of the environment variable that also gives it (CFG-2). ``alias`` is what
    the key is called wherever it is written, if an attribute cannot have that name. A value that may
    hold a secret without being one is left out of ``repr``. Only what is harmless may be changed over
    the ``network``: limits, lists, search and prompts (NET-3).
    """
    extra: dict[str, JsonValue] = {"acts": acts, "env": env, "network": network}
    return Field(
        default, alias=alias, description=description, json_schema_extra=extra, repr=in_repr
    )


def table(description: str, *, acts: Acts = "next ask", in_repr: bool = True) -> Any:
    """A table whose keys the operator chooses, empty by default; ``in_repr`` as for ``key``."""
    return Field(
        default_factory=dict,
        description=description,
        json_schema_extra={"acts": acts, "env": None, "network": False},
        repr=in_repr,
    )
