"""Changes the text of a configuration file and leaves all else in it as it is: comments, order, layout.

Whether the outcome is a good configuration, and whether it is written, is decided in ``edit``.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final

from session_runtime.config.keys import KeyPath, dotted
from session_runtime.config.shape import (
    SHAPE,
    Branch,
    Leaf,
    Names,
    Node,
    child,
    entries_on,
    node_at,
)
from session_runtime.config.toml_lines import Statement, statements
from session_runtime.config.written import REMOVED, alike, same, value_at, with_value
from session_runtime.errors import PermanentError

_BYTE_ORDER_MARK: Final = "\ufeff"
_COMMENTED_HEADER: Final = re.compile(r"\s*#\s*\[")
_MOST_SPLICED: Final = 1_000  # splicing looks at every item for every item


def rewritten(text: str, changes: Mapping[KeyPath, object]) -> str:
    """Give ``text``, valid TOML, with each key of ``changes`` at its new value, or REMOVED.

    A value for a table replaces all that is in it. Values that are the same already stay as they are
    written. Raises PermanentError if that cannot be done without touching other keys.
    """
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    body = text.removeprefix(mark)
    windows = 0 < body.count("\n") == body.count("\r\n")
    lines = body.replace("\r\n", "\n") if windows else body
    wanted: Mapping[str, object] = tomllib.loads(lines)
    for path, value in changes.items():
        for key, new in _by_key(wanted, path, value):
            lines = _changed(lines, key, new)
            wanted = with_value(wanted, key, new)
    if not _says(lines, wanted):
        raise PermanentError(
            f"{', '.join(map(dotted, changes))}: cannot be changed without touching other keys;"
            " edit the file by hand",
            code="config.by_hand",
        )
    return mark + (lines.replace("\n", "\r\n") if windows else lines)


def edits(old: Mapping[str, object], new: Mapping[str, object]) -> Mapping[KeyPath, object]:
    """Find the changes for ``rewritten`` that turn a file that says ``old`` into one that says ``new``.

    Names whose order matters are removed and given again where the order differs.
    """
    return dict(_edits(old, new, SHAPE, ()))


def _edits(
    old: Mapping[str, object], new: Mapping[str, object], node: Node | None, path: KeyPath
) -> Iterator[tuple[KeyPath, object]]:
    kept = _in_place(old, new, node)
    for name in old:
        if name not in kept:
            yield (*path, name), REMOVED
    for name, value in new.items():
        inner, before = _child(node, name), old[name] if name in kept else REMOVED
        if isinstance(inner, Branch | Names) and isinstance(value, dict):
            entry = isinstance(node, Names)
            yield from _table_edits(before, value, inner, (*path, name), entry=entry)
        elif before is REMOVED or not same(before, value):
            yield (*path, name), value


def _table_edits(
    old: object, new: Mapping[str, object], node: Node, path: KeyPath, *, entry: bool
) -> Iterator[tuple[KeyPath, object]]:
    """Find the changes of a table; one without keys is written only if it is an entry of another."""
    known = old if isinstance(old, dict) else {}
    if not new and entry and old is not known:
        yield path, {}
        return
    if old is not known and old is not REMOVED:
        yield path, REMOVED
    yield from _edits(known, new, node, path)


def _in_place(
    old: Mapping[str, object], new: Mapping[str, object], node: Node | None
) -> Sequence[str]:
    """List the names that both have and that can stay where they are."""
    if not isinstance(node, Names) or isinstance(node.item, Leaf):
        return [name for name in old if name in new]
    kept: list[str] = []
    wanted = list(new)
    for name in old:
        if len(kept) < len(wanted) and name == wanted[len(kept)]:
            kept.append(name)
    return kept


def _child(node: Node | None, name: str) -> Node | None:
    return None if node is None else child(node, name)


def _by_key(
    data: Mapping[str, object], path: KeyPath, value: object
) -> Iterator[tuple[KeyPath, object]]:
    """Split a change of a table into those of its keys; leave out what is as it should be."""
    now, node = value_at(data, path), node_at(path)
    if value is REMOVED:
        if now is not REMOVED:
            yield path, REMOVED
    elif isinstance(node, Branch | Names) and isinstance(value, dict):
        entry = isinstance(node_at(path[:-1]), Names)
        yield from _table_edits(now, value, node, path, entry=entry)
    elif now is REMOVED or not same(now, value):
        yield path, value


def _says(text: str, wanted: Mapping[str, object]) -> bool:
    try:
        return alike(tomllib.loads(text), wanted)
    except ValueError:
        return False


def _changed(text: str, path: KeyPath, value: object) -> str:
    text = text if text.endswith("\n") or not text else f"{text}\n"
    found = list(statements(text))
    for each in found:
        if each.kind == "pair" and each.path == path[: len(each.path)]:
            if value is REMOVED and each.path == path:
                return _without(text, path)
            return _within(text, each, path, value)
    text = _without(text, path)
    if value is REMOVED:
        return text
    if value == {} and not isinstance(node_at(path), Leaf):
        return _with_section(text, path, "")
    return _with_key(text, path, value)


def _rows(text: str) -> list[str]:
    return [f"{row}\n" for row in text.split("\n")[:-1]]


def _without(text: str, path: KeyPath) -> str:
    """Leave out the key, or all that belongs to the table."""
    rows, found = _rows(text), list(statements(text))
    inside = [each for each in found if each.path[: len(path)] == path]
    gone: set[int] = set()
    for each in inside:
        last = each.last if each.kind == "pair" else _end(each, found, rows)
        gone.update(range(each.first, last + 1))
    kept: list[str] = []
    for number, row in enumerate(rows, 1):
        if inside and number == inside[0].first:
            kept += _entry_still(
                inside[0], path, [r for n, r in enumerate(rows, 1) if n not in gone]
            )
        after_a_gap = number - 1 in gone and (not kept or not kept[-1].strip())
        if number not in gone and not (after_a_gap and not row.strip()):
            kept.append(row)
    at_the_end = inside and inside[0].kind != "pair" and len(rows) in gone
    if at_the_end and kept and not kept[-1].strip():
        kept.pop()  # the gap in front of a section that was the last
    return "".join(kept)


def _entry_still(first: Statement, path: KeyPath, rows: Sequence[str]) -> Sequence[str]:
    """Give what to write instead of ``first`` if an entry would be gone together with its last key."""
    data = tomllib.loads("".join(rows))
    for entry in entries_on(path[:-1]):
        if value_at(data, entry) is REMOVED:
            header = f"[{dotted(entry)}]\n"
            return [header if first.kind != "pair" else _assigned(entry[len(first.table) :], {})]
    return []


def _end(header: Statement, found: Sequence[Statement], rows: Sequence[str]) -> int:
    """Find the last line that belongs to a header; comments right above the next one are that one's."""
    at = found.index(header)
    following = next(
        (n for n, each in enumerate(found) if n > at and each.kind != "pair"), len(found)
    )
    last = found[following - 1].last
    limit = found[following].first - 1 if following < len(found) else len(rows)
    end = last
    while end < limit and rows[end].strip():
        end += 1
    return last if end == limit < len(rows) else end


def _with_key(text: str, path: KeyPath, value: object) -> str:
    rows, found = _rows(text), list(statements(text))
    around = path[:-1]
    for each in reversed(found):
        dotted_below = each.path[: len(around)] == around and len(each.table) < len(around)
        if each.kind == "pair" and dotted_below:
            indent = _indent(rows[each.first - 1])
            return _with_row(rows, each.last, indent, path, each.table, value)
    home = [each for each in found if each.kind == "header" and each.path == around]
    if not home:
        return _with_section(text, around, _assigned(path[-1:], value))
    [header] = home
    last = _commented(header, found, rows, path[-1]) or _end(header, found, rows)
    inside = [each for each in found if each.kind == "pair" and each.table == header.path]
    indent = _indent(rows[(inside or home)[-1].first - 1])
    return _with_row(rows, last, indent, path, header.path, value)


def _with_row(
    rows: Sequence[str], last: int, indent: str, path: KeyPath, table: KeyPath, value: object
) -> str:
    row = indent + _assigned(path[len(table) :], value)
    return "".join((*rows[:last], row, *rows[last:]))


def _indent(row: str) -> str:
    return row[: len(row) - len(row.lstrip(" \t"))]


def _commented(
    header: Statement, found: Sequence[Statement], rows: Sequence[str], name: str
) -> int | None:
    """Find the line below a header where the key is commented out, as defaults are."""
    key = re.compile(rf"\s*#\s*{re.escape(dotted((name,)))}\s*=")
    inside = {
        row for each in found if each.kind == "pair" for row in range(each.first, each.last + 1)
    }
    headers = (each.first for each in found if each.kind != "pair" and each.first > header.first)
    for number in range(header.last + 1, next(headers, len(rows) + 1)):
        if number in inside:
            continue
        if _COMMENTED_HEADER.match(rows[number - 1]):
            return None
        if key.match(rows[number - 1]):
            return number
    return None


def _with_section(text: str, path: KeyPath, row: str) -> str:
    """Add a header with at most one key, after those of the same section, or at the end."""
    rows, found = _rows(text), list(statements(text))
    related = [each for each in found if each.kind != "pair" and each.path[:1] == path[:1]]
    last = _end(related[-1], found, rows) if related else len(rows)
    before = "\n" if last and rows[last - 1].strip() else ""
    after = "\n" if last < len(rows) and rows[last].strip() else ""
    return "".join((*rows[:last], f"{before}[{dotted(path)}]\n{row}{after}", *rows[last:]))


def _assigned(path: KeyPath, value: object) -> str:
    return f"{dotted(path)} = {_written(value)}\n"


def _within(text: str, statement: Statement, path: KeyPath, value: object) -> str:
    """Change a value, or something in the inline table that a statement assigns."""
    rows = _rows(text)
    row = "".join(rows[statement.first - 1 : statement.last])
    keys = path[len(statement.table) :]
    wanted = with_value(tomllib.loads(row), keys, value)
    fitting = (new for new in _replacements(row, keys, value) if _is(new, wanted))
    return "".join((*rows[: statement.first - 1], next(fitting, row), *rows[statement.last :]))


def _is(text: str, wanted: Mapping[str, object]) -> bool:
    try:
        return same(tomllib.loads(text), wanted)
    except ValueError:
        return False


def _replacements(row: str, keys: KeyPath, value: object) -> Iterator[str]:
    """Yield the statement with its new value: first with what stays of a list left as it is written."""
    import tomlkit  # noqa: PLC0415 - costs 60 ms, and only editing needs it

    for stays in (True, False):
        try:
            new = _replaced(tomlkit.parse(row), keys, value, stays=stays)
        except (tomlkit.exceptions.TOMLKitError, ValueError):
            continue  # that nothing fits is told by ``rewritten``
        yield new


def _replaced(document: Any, keys: KeyPath, value: object, *, stays: bool) -> str:
    import tomlkit  # noqa: PLC0415 - see above

    table: MutableMapping[str, Any] = document
    for part in keys[:-1]:
        if not isinstance(table.get(part), MutableMapping):
            table[part] = tomlkit.inline_table()
        table = table[part]
    old = table.get(keys[-1])
    if value is REMOVED:
        del table[keys[-1]]
    elif stays and isinstance(old, list) and isinstance(value, list):
        if len(old) + len(value) > _MOST_SPLICED:
            raise ValueError("a list too long to be spliced is written anew")
        _splice(old, value)
    else:
        table[keys[-1]] = tomlkit.value(_written(value))
    return tomlkit.dumps(document)


def _splice(old: list[Any], new: Sequence[object]) -> None:
    """Take out what is not in the new list and add what is missing; comments of the others stay."""
    import tomlkit  # noqa: PLC0415 - see above

    stay: list[int] = []
    for at, item in enumerate(old):
        if len(stay) < len(new) and item == new[len(stay)]:
            stay.append(at)
    for at in reversed(range(len(old))):
        if at not in stay:
            old.pop(at)
    for item in new[len(stay) :]:
        old.append(tomlkit.value(_written(item)))


def _written(value: object) -> str:
    """Write the value as it stands on the right of ``=``, in time proportional to its length."""
    import tomlkit  # noqa: PLC0415 - see above

    match value:
        case dict():
            pairs = (f"{dotted((name,))} = {_written(inner)}" for name, inner in value.items())
            return f"{{{', '.join(pairs)}}}"
        case list() | tuple():
            return f"[{', '.join(map(_written, value))}]"
        case str() if "\n" in value and "\r" not in value:
            return tomlkit.string(value, multiline=True).as_string()
        case _:
            return tomlkit.item(value).as_string()
