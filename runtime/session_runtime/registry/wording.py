"""How faults of schemas and of arguments are told: the place, the rule, what was given (REG-7).

The words are for a model, which has to do better at its next call. Which faults there are is found in
``schema``; these two alone know the validating engine.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from jsonschema_rs import ValidationError
from jsonschema_rs import ValidationErrorKind as Kind

from session_runtime.config.keys import nearest
from session_runtime.registry.bounds import Schema, pointed_at
from session_runtime.types import NOTHING

_MAX_VALUE: Final = 60
_MAX_SCHEMA: Final = 200
_MAX_LISTED: Final = 12
_MAX_FORMS: Final = 3
_MAX_COMPARED: Final = 500

_LIMITS: Final = MappingProxyType(
    {
        "minimum": "must be at least",
        "maximum": "must be at most",
        "exclusiveMinimum": "must be more than",
        "exclusiveMaximum": "must be less than",
        "multipleOf": "must be a multiple of",
    }
)
_SIZES: Final = MappingProxyType(
    {
        "minLength": ("at least", "character"),
        "maxLength": ("at most", "character"),
        "minItems": ("at least", "item"),
        "maxItems": ("at most", "item"),
        "additionalItems": ("at most", "item"),
        "minProperties": ("at least", "key"),
        "maxProperties": ("at most", "key"),
    }
)
_ARTICLES: Final = MappingProxyType(
    {"array": "an array", "integer": "an integer", "object": "an object", "null": "null"}
)

Place = Sequence[str | int]
Fault = tuple[Place, str]
Forms = Sequence[Sequence[ValidationError]]


def problems_of(error: ValidationError, schema: Schema) -> Iterator[str]:
    """Tell one complaint of the engine, ``schema`` being the whole one that it is about."""
    for place, text in _faults(error, schema):
        yield f"{_path(place)}: {text}"


def schema_problem(error: ValidationError) -> str:
    """Say what is wrong with a schema itself, from the engine's complaint about it."""
    place = _path(error.instance_path)
    match error.kind:
        case Kind.Referencing():
            return f"a $ref leads nowhere: {_cut(error.message)}"
        case Kind.Format(format="regex"):
            return (
                f"{place}: the pattern {shown(error.instance)} has no linear-time match: write it "
                "without look-around, back-references and huge repeats"
            )
        case _ if place.rpartition(".")[2] in ("exclusiveMinimum", "exclusiveMaximum"):
            return f"{place}: must be a number; true and false are the style of draft-04"
        case _:
            return "; ".join(problems_of(error, {}))


def shown(value: object, most: int = _MAX_VALUE) -> str:
    """Write a value as JSON, in at most ``most`` characters."""
    return _cut(json.dumps(value, ensure_ascii=False), most)


def _faults(error: ValidationError, schema: Schema) -> Iterator[Fault]:
    """Split a complaint into faults: most are one; the engine gathers keys that are not known."""
    here, owner = error.instance_path, _owner(error, schema)
    match error.kind:
        case Kind.Required(property=name):
            yield [*here, name], f"is required and missing{_cause(error, name, owner)}"
        case Kind.AdditionalProperties(unexpected=names):
            yield from (([*here, name], _unknown(name, owner, complete=True)) for name in names)
        case Kind.UnevaluatedProperties(unexpected=names):
            yield from (([*here, name], _unevaluated(error, name, owner)) for name in names)
        case Kind.AnyOf(context=forms) | Kind.OneOfNotValid(context=forms):
            yield _no_form_fits(error, forms, schema)
        case Kind.PropertyNames(error=inner):
            for _, text in islice(_faults(inner, schema), 1):
                yield here, f"the name {shown(inner.instance)} is not allowed: {text}"
        case _:
            yield here, _of_items(error, owner) or _of_value(error, owner)


def _owner(error: ValidationError, schema: Schema) -> Mapping[str, Any]:
    """Find the subschema whose keyword was broken; empty if it is not part of ``schema``."""
    return pointed_at(error.schema_path[:-1], schema) or NOTHING


def _given(error: ValidationError) -> Any:
    """The value that broke the keyword, of whatever type the keyword is about."""
    return error.instance


def _cause(error: ValidationError, name: str, owner: Mapping[str, Any]) -> str:
    """Say which key that was given needs the missing one, if it is not needed in any case."""
    needs, given = owner.get(str(error.schema_path[-1])), _given(error)
    for key, names in needs.items() if isinstance(needs, dict) else ():
        if key in given and isinstance(names, list) and name in names:
            return f", because {_cut(key)} is given"
    return ""


def _unknown(name: str, owner: Mapping[str, Any], *, complete: bool) -> str:
    """Say that a key is not known, and which ones are if ``owner`` alone decides about it."""
    named = owner.get("properties")
    known = list(named) if isinstance(named, dict) else []
    near = nearest(name, known)
    if near is not None:
        return f"is not known; did you mean {near}?"
    if not complete:
        return "is not known"
    patterns = [f"names that match {shown(each)}" for each in owner.get("patternProperties", ())]
    if known or patterns:
        listed = [
            ", ".join(_some([_cut(each) for each in known], _MAX_LISTED)),
            *patterns[:_MAX_FORMS],
        ]
        return f"is not known; known are {' and '.join(filter(None, listed))}"
    return "is not known; nothing is allowed here" if named == {} else "is not known"


def _unevaluated(error: ValidationError, name: str, owner: Mapping[str, Any]) -> str:
    wanted = owner.get("unevaluatedProperties")
    if isinstance(wanted, dict):
        return f"must fit {shown(wanted, _MAX_SCHEMA)}, got {shown(_given(error)[name])}"
    return _unknown(name, owner, complete=False)


def _no_form_fits(error: ValidationError, forms: Forms, schema: Schema) -> Fault:
    """Tell all values and types that would do; else the fault of the form that is closest."""
    allowed = _allowed(error, forms)
    closest = _closest(error)
    if allowed or closest is error:
        words = " or ".join(allowed or _named([name for form in forms for name in _types(form)]))
        return error.instance_path, f"must be {words}, got {shown(error.instance)}"
    place, text = next(_faults(closest, schema))
    return place, f"{text} (closest of {len(forms)} allowed forms)"


def _allowed(error: ValidationError, forms: Forms) -> list[str]:
    """List in words what the forms allow, if each is a matter of types or listed values; else nothing."""
    options: list[Any] = []
    types: list[str] = []
    for form in forms:
        here = [each for each in form if each.instance_path == error.instance_path]
        values, kinds = _options(here), _types(here)
        if not values and not kinds:
            return []
        options += values
        types += [] if values else kinds
    return [*([_one_of(options)] if options else []), *_named(types)]


def _options(errors: Iterable[ValidationError]) -> list[Any]:
    options: list[Any] = []
    for error in errors:
        match error.kind:
            case Kind.Enum(options=listed):
                options += listed
            case Kind.Constant(expected_value=value):
                options.append(value)
    return options


def _types(errors: Iterable[ValidationError]) -> list[str]:
    kinds = (error.kind for error in errors)
    return [name for kind in kinds if isinstance(kind, Kind.Type) for name in kind.types]


def _closest(error: ValidationError) -> ValidationError:
    """Descend into the alternative with the fewest faults, past those of another type."""
    match error.kind:
        case Kind.AnyOf(context=forms) | Kind.OneOfNotValid(context=forms):
            alike = [form for form in forms if not _is_other_type(form[0], error)]
            return _closest(min(alike, key=len)[0]) if alike else error
        case _:
            return error


def _is_other_type(inner: ValidationError, outer: ValidationError) -> bool:
    return isinstance(inner.kind, Kind.Type) and inner.instance_path == outer.instance_path


def _of_items(error: ValidationError, owner: Mapping[str, Any]) -> str | None:
    """What is wrong with the items of a list as a whole; None if the complaint is another."""
    match error.kind:
        case Kind.Contains():
            return f"{_contained(error, owner)}, got {shown(error.instance)}"
        case Kind.UniqueItems():
            again = _repeated(_given(error))
            return f"must not hold the same item twice{again and f': {again}'}"
        case Kind.UnevaluatedItems(unexpected=items):
            wanted = owner.get("unevaluatedItems")
            fault = "are not allowed"
            if isinstance(wanted, dict):
                fault = f"do not fit {shown(wanted, _MAX_SCHEMA)}"
            listed = _some([_cut(str(each)) for each in items], _MAX_LISTED)
            return f"holds items that {fault}: {', '.join(listed)}"
        case _:
            return None


def _contained(error: ValidationError, owner: Mapping[str, Any]) -> str:
    bound = "at most" if error.schema_path[-1] == "maxContains" else "at least"
    number = owner.get("maxContains" if bound == "at most" else "minContains", 1)
    fit = "item that fits" if number == 1 else "items that fit"
    return f"must hold {bound} {number} {fit} {shown(owner.get('contains'), _MAX_SCHEMA)}"


def _repeated(items: Iterable[object]) -> str:
    """Show an item that is there again; empty if it comes late, or is written differently."""
    seen: set[str] = set()
    for item in islice(items, _MAX_COMPARED):
        written = json.dumps(item, sort_keys=True)
        if written in seen:
            return shown(item)
        seen.add(written)
    return ""


def _of_value(error: ValidationError, owner: Mapping[str, Any]) -> str:
    got = f", got {shown(error.instance)}"
    match error.kind:
        case Kind.Type(types=types):
            return f"must be {' or '.join(_named(types))}{got}"
        case Kind.Enum(options=options):
            return f"must be one of {', '.join(_some([shown(each) for each in options], _MAX_LISTED))}{got}"
        case Kind.Constant(expected_value=value):
            return f"must be {shown(value)}{got}"
        case Kind.Pattern(pattern=pattern):
            return f"must match the pattern {shown(pattern)}{got}"
        case Kind.FalseSchema():
            return "is not allowed"
        case Kind.OneOfMultipleValid(context=forms):
            return f"fits {_fitting(forms, owner)}"
        case Kind.Not(schema=unwanted):
            return f"must not fit {shown(unwanted, _MAX_SCHEMA)}{got}"
        case _:
            return _of_bounds(error, got)


def _fitting(forms: Forms, owner: Mapping[str, Any]) -> str:
    fitting = [
        each for each, errors in zip(owner.get("oneOf", ()), forms, strict=False) if not errors
    ]
    told = " and ".join(_some([shown(each, _MAX_SCHEMA) for each in fitting], _MAX_FORMS))
    return f"{len(fitting)} forms of which exactly one must fit: {told}"


def _of_bounds(error: ValidationError, got: str) -> str:
    keyword, limit = error.kind.name, error.kind.value
    if keyword in _LIMITS:
        return f"{_LIMITS[keyword]} {limit}{got}"
    if keyword in _SIZES:
        bound, unit = _SIZES[keyword]
        units = unit if limit == 1 else f"{unit}s"
        return f"must have {bound} {limit} {units}, has {len(_given(error))}"
    return _cut(error.message)


def _one_of(options: Sequence[Any]) -> str:
    listed = list(dict.fromkeys(map(shown, options)))
    if len(listed) == 1:
        return listed[0]
    return f"one of {', '.join(_some(listed, _MAX_LISTED))}"


def _named(types: Iterable[str]) -> list[str]:
    return [_ARTICLES.get(name, f"a {name}") for name in dict.fromkeys(types)]


def _some(texts: Sequence[str], most: int) -> Collection[str]:
    """The first texts; the last one says how many were left out, if any were."""
    if len(texts) <= most:
        return texts
    return [*texts[: most - 1], f"{texts[most - 1]} and {len(texts) - most} more"]


def _path(parts: Place) -> str:
    """``opts.items[2].name``; the arguments as a whole are called so."""
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{_cut(part)}"
    return path.removeprefix(".") or "the arguments"


def _cut(text: str, most: int = _MAX_VALUE) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
