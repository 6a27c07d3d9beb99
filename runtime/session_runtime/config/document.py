"""The configuration page, written from the models; run as a module it is printed (CFG-6)."""

import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeGuard, get_args, get_origin

from pydantic import BaseModel

from session_runtime.config.settings import Settings
from session_runtime.config.shape import OLD_NOTICES
from session_runtime.config.tools import EasterEggSettings

_HEAD = """\
# Configuration

The daemon is configured by one TOML file, `config.toml` in the working directory unless
`--config FILE` or the variable `SESSION_RUNTIME_CONFIG` names another, and by environment variables.
Without a file in the default place, defaults and variables apply; a file that was named must exist.
Every key is listed below. This page is written from the code by `make docs`; do not edit it.

```toml config
[models.main]
base_url = "http://127.0.0.1:8000/v1"
model = "my-model"
api_key = "env:MAIN_API_KEY"

[skills]
tool_search_enabled = true
```

The file is UTF-8. Keys are spelled exactly as here; an unknown key, a value of another type (`"yes"`
where `true` is meant) or a value out of bounds is an error. All errors are reported at once, each with
file, line, key, what was given and the nearest key there is. `session-runtime config check` reports
them without starting anything. A name of your own that has a dot is written in quotes:
`[models."gpt-4.1"]`. An empty file is an error too, so that a half-written one never counts
as the wish for defaults.

## Where a value comes from

The first of these that gives a key wins; `session-runtime config explain KEY` shows which one it was
and what it hides, and for a section what each of its keys is - with `--daemon` for the running daemon,
otherwise for a start from this shell.

1. the command line, or the embedding program;
2. `SESSION_RUNTIME__SECTION__KEY`, for instance `SESSION_RUNTIME__ASK__MAX_STEPS=8`;
3. the short variable that some keys have, for instance `TOOL_SEARCH_ENABLED`;
4. the file that one of these variables with `_FILE` at its end points to, for instance
   `TOOL_SEARCH_ENABLED_FILE=/etc/switch`;
5. a `.env` file with all the names above, if `--env-file FILE`, the variable
   `SESSION_RUNTIME_ENV_FILE` or the embedding program names one;
6. `config.toml`;
7. the default.

A variable that is set but empty counts as not set. Lists are separated by commas or given as JSON:
`TOOL_SEARCH_ALWAYS_LOADED=send_message,end`. A whole section or table may be given as a JSON object,
and variables for single keys then add to it: `SESSION_RUNTIME__MODELS='{"main": {"model": "m"}}'`.

In the name of a variable, every character of a key that is not a letter or digit is `_`:
`SESSION_RUNTIME__MODELS__MY_GPT__MODEL` means the `model` of `[models.my-gpt]` if the file has that
table, and of a new `[models.my_gpt]` if not. Two names in a table that would share a variable are an
error. Case does not matter. A variable that begins with `SESSION_RUNTIME__`, `TOOL_SEARCH_` or
`PREFETCH_` and means no key is ignored with a warning that names the nearest one.

Relative paths that are values count from the folder of `config.toml`, wherever they are given; the
paths that name `config.toml` and the `.env` file count from the working directory.

## Secrets

Write a secret as `"env:NAME"` (a variable) or `"file:/path"` (a file that holds only the secret), or
give its key by variable or `_FILE`. `runtime.secret_sources` says which variables and folders may be
read. A secret written out in the file works and earns a warning (one for a header only if its name
sounds secret, as `X-Api-Key` does). No message, log or page ever shows one, and text of the file is
never expanded otherwise. In an address, the values of parameters such as `key` or `sig` are masked
wherever the configuration or a failure of the model is shown; others, such as `api-version`, are not. So are
texts in `extra_body` under names that sound secret, such as `user_token`, and, of the `args` of a server,
what follows such a name (`--api-key X`, `--token=X`, `Authorization: X`) or is the user of an address.
Those earn a warning, as every user of the machine can read the arguments of a process: give secrets in
`env`.

## When an edit acts

Each key says when an edit takes effect: `now`, from the `next ask` on (asks that are running keep what
they began with), or after a `restart`. A running daemon notices that the file was saved; see
[operations](operations.md#reloading). Keys with *Over HTTP* - limits, lists, search and prompts - can also be
changed [with a request](operations.md#changing-keys-over-http), all others in the file only.
"""
_NETWORK: Final = "*Over HTTP.*"
_RULE: Final = re.compile(r" \([A-Z]+-\d+[a-z]?\)")
_ROWS = """
| key | value | default | acts | meaning |
| --- | --- | --- | --- | --- |
"""


def render() -> str:
    """Write the whole page as Markdown."""
    parts = [_HEAD, *_tables(Settings, ""), *_section(OLD_NOTICES[0], EasterEggSettings)]
    return "".join(parts)


def _tables(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """Document the sections and operator-named tables that are fields of ``model``."""
    schemas = model.model_json_schema()["properties"]
    for name, field in model.model_fields.items():
        title, kind = f"{prefix}{name}", field.annotation
        if _is_model(kind):
            yield from _section(title, kind)
        elif get_origin(kind) is Mapping:
            item = get_args(kind)[1]
            if _is_model(item):
                yield from _section(f"{title}.NAME", item, f"{field.description} ")
            else:
                yield f"\n## [{title}]\n{_ROWS}{_named_row(schemas[name])}"


def _is_model(kind: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _section(title: str, model: type[BaseModel], description: str = "") -> Iterator[str]:
    yield f"\n## [{title}]\n\n{description}{_meaning(model)}\n{_ROWS}"
    for name, schema in model.model_json_schema()["properties"].items():
        if "additionalProperties" not in schema and "$ref" not in schema:
            yield _row(name, schema)
    yield from _tables(model, f"{title}.")


def _meaning(model: type[BaseModel]) -> str:
    """What a section is for, in the words of its docstring, without the rules that it implements."""
    return _RULE.sub("", inspect.cleandoc(model.__doc__ or ""))


def _row(name: str, schema: Mapping[str, Any]) -> str:
    default = "unset" if schema["default"] is None else f"`{json.dumps(schema['default'])}`"
    variable = f" Variable: `{schema['env']}`." if schema["env"] else ""
    network = f" {_NETWORK}" if schema["network"] else ""
    return _cells(name, _kind(schema), default, schema, f"{variable}{network}")


def _named_row(schema: Mapping[str, Any]) -> str:
    item = schema["additionalProperties"]
    kind = "anything that JSON can say" if item is True else _kind(item)
    return _cells("NAME", kind, "unset", schema, "")


def _cells(name: str, kind: str, default: str, schema: Mapping[str, Any], variable: str) -> str:
    meaning = schema["description"] + variable
    return f"| `{name}` | {kind} | {default} | {schema['acts']} | {meaning} |\n"


def _kind(schema: Mapping[str, Any]) -> str:
    """Say in words which values a JSON Schema allows."""
    match schema:
        case {"anyOf": list(kinds)}:
            return " or ".join(_kind(kind) for kind in kinds if kind != {"type": "null"})
        case {"enum": list(words)}:
            return "one of " + ", ".join(f"`{word}`" for word in words)
        case {"type": "array", "items": items}:
            return f"list of {_kind(items)}s"
        case {"type": "boolean"}:
            return "true or false"
        case {"type": "integer"}:
            return f"whole number{_bounds(schema)}"
        case {"type": "number"}:
            return f"number{_bounds(schema)}"
        case {"format": "path"}:
            return "path"
        case {"format": "password"}:
            return "secret"
        case {"pattern": str(pattern)}:
            return f"text that matches `{pattern}`"
        case _:
            return "text"


def _bounds(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"minimum": low, "maximum": high}:
            return f" from {low} to {high}"
        case {"minimum": low}:
            return f", at least {low}"
        case {"exclusiveMinimum": low}:
            return f", more than {low}"
        case _:
            return ""


if __name__ == "__main__":
    sys.stdout.write(render())
