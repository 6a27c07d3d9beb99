"""Tools from a file, to be searched and never called: one definition per line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from session_runtime.errors import RequestError
from session_runtime.evaluation.lines import read_lines, text_of, texts_of
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import JsonObject

MAX_NAME_CHARS: Final = 1_000
MAX_HINTS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tools of a file in its order; of several with one name the first counts.

    ``repeated`` are names that came again, each with the line where it did.
    """

    specs: tuple[ToolSpec, ...]
    repeated: tuple[tuple[int, str], ...]


def read_catalogue(path: Path) -> Catalogue:
    """Read ``{name, description, parameters, aliases, search_hints, examples}`` per line.

    All but ``name`` may be absent; other keys are passed over. Names are kept as they are, whatever a
    registration would make of them. Raises RequestError that names the line.
    """
    specs: dict[str, ToolSpec] = {}
    repeated: list[tuple[int, str]] = []
    for line, spec in read_lines(path, _numbered):
        if spec.name in specs:
            repeated.append((line, spec.name))
        specs.setdefault(spec.name, spec)
    if not specs:
        raise RequestError(
            f'{path} holds no tool: write one per line, as {{"name": "…", "description": "…"}}'
        )
    return Catalogue(tuple(specs.values()), tuple(repeated))


def _numbered(line: int, data: JsonObject) -> tuple[int, ToolSpec]:
    name, description = text_of(data, "name", MAX_NAME_CHARS), data.get("description")
    if not (description is None or isinstance(description, str)):
        raise ValueError("description must be a text")
    parameters = data.get("parameters")
    if not (parameters is None or isinstance(parameters, dict)):
        raise ValueError("parameters must be an object, a JSON Schema")
    aliases, hints, examples = (
        texts_of(data, key, MAX_HINTS) for key in ("aliases", "search_hints", "examples")
    )
    return line, ToolSpec(
        name=name,
        description=description or "",
        parameters=parameters or {"type": "object"},
        origin="virtual",
        source_id="",
        native_name=name,
        digest="",
        aliases=aliases,
        search_hints=hints,
        examples=examples,
    )
