"""Names of tools: which characters are allowed, and the reversible wire form a provider accepts."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from session_runtime.normal_form import normal

MAX_NAME_LENGTH: Final = 128
MAX_WIRE_LENGTH: Final = 64
TOOL_SEARCH: Final = "tool_search"
END: Final = "end"
RESULTS_READ: Final = "results.read"
_BREAKING = re.compile(r"[\s,'\"`<>\x00-\x1f\x7f]")
_NOT_WIRE = re.compile(r"[^A-Za-z0-9_-]")


def canonical_name(native: str) -> str:
    """Replace what breaks names (blanks, commas, quotes, controls, angle brackets) by ``_``."""
    if native.isascii() and not _BREAKING.search(native):
        return native
    composed = normal("NFC", native)
    return "".join("_" if _breaks(char) else char for char in composed)


def _breaks(char: str) -> bool:
    return bool(_BREAKING.match(char)) or unicodedata.category(char)[0] in "CZ"


def name_fault(canonical: str) -> str | None:
    """Say why no tool may have this canonical name, or None (REG-4)."""
    if not canonical.strip("._-"):
        return "it holds nothing that can be read"
    if len(canonical) > MAX_NAME_LENGTH:
        return f"it has {len(canonical)} characters, at most {MAX_NAME_LENGTH} are allowed"
    return None


@dataclass(frozen=True, slots=True)
class WireNames:
    """A reversible map between canonical names and wire names, fixed per generation (ASK-12).

    Every wire name matches ``[A-Za-z0-9_-]{1,64}``; no two tools share one. Outside ``visible`` (None:
    every tool is visible) and inside ``hidden`` a tool is treated like one that does not exist (TS-2).
    """

    to_wire: Mapping[str, str]
    to_canonical: Mapping[str, str]
    separator: str
    visible: Set[str] | None = None
    hidden: Set[str] = frozenset()

    def encode(self, canonical: str) -> str:
        """Give the wire name; a name outside the catalogue (old history) gets a legal stand-in."""
        if self.has(canonical):
            return self.to_wire[canonical]
        form = _plain(canonical, self.separator)
        if form and len(form) <= MAX_WIRE_LENGTH and not self._is_taken(form):
            return form
        return _with_digest(form, canonical)

    def _is_taken(self, form: str) -> bool:
        holder = self.to_canonical.get(form)
        return form.casefold() == TOOL_SEARCH or (holder is not None and self._shows(holder))

    def has(self, canonical: str) -> bool:
        """Whether there is a tool of that name, and it is visible."""
        return canonical in self.to_wire and self._shows(canonical)

    def begins(self, name: str) -> bool:
        """Whether the name of a visible tool, as it is or on the wire, begins like that."""
        return any(
            (wire.startswith(name) or canonical.startswith(name)) and self._shows(canonical)
            for wire, canonical in self.to_canonical.items()
        )

    def decode(self, wire: str) -> str:
        """Give the canonical name; what no tool has is returned as it came."""
        canonical = self.to_canonical.get(wire, wire)
        return canonical if self._shows(canonical) else wire

    def only(self, visible: Set[str], hidden: Set[str]) -> "WireNames":
        """The same names for one who sees ``visible`` without ``hidden``, and the loader."""
        return replace(self, visible=visible, hidden=hidden)

    def _shows(self, canonical: str) -> bool:
        if canonical == TOOL_SEARCH or self.visible is None:
            return True
        return canonical in self.visible and canonical not in self.hidden


def build_wire_names(names: Iterable[str], separator: str) -> WireNames:
    """Assign wire names to all tools of a catalogue, independent of their order.

    A name whose plain form is unique and legal keeps it; all others end in a digest of the
    canonical name, so that adding one tool never gives its wire name to another. The loader's name
    is reserved.
    """
    canonical = sorted({*names, TOOL_SEARCH})
    plain = {name: _plain(name, separator) for name in canonical}
    holders: dict[str, int] = {}
    for form in plain.values():
        holders[form.casefold()] = holders.get(form.casefold(), 0) + 1
    to_wire = {name: form for name, form in plain.items() if _keeps_plain(name, form, holders)}
    taken = {wire.casefold() for wire in to_wire.values()}
    for name in canonical:
        if name not in to_wire:
            to_wire[name] = _free_digest_form(plain[name], name, taken)
            taken.add(to_wire[name].casefold())
    return WireNames(
        MappingProxyType(to_wire),
        MappingProxyType({wire: name for name, wire in to_wire.items()}),
        separator,
    )


def meets_tool_search(name: str, separator: str) -> bool:
    """Whether a tool would be taken for the loader, by its name or on the wire (TS-10)."""
    return _plain(name, separator).casefold() == TOOL_SEARCH


def _plain(name: str, separator: str) -> str:
    return _NOT_WIRE.sub("_", name.replace(".", separator))


def _keeps_plain(name: str, form: str, holders: Mapping[str, int]) -> bool:
    if name == TOOL_SEARCH:
        return True
    if form.casefold() == TOOL_SEARCH or len(form) > MAX_WIRE_LENGTH:
        return False
    return holders[form.casefold()] == 1 and form.strip("_-") != ""


def _free_digest_form(form: str, canonical: str, taken: Set[str]) -> str:
    salt = ""
    while (wire := _with_digest(form, canonical + salt)).casefold() in taken:
        salt += "\0"
    return wire


def _with_digest(form: str, canonical: str) -> str:
    digest = hashlib.blake2b(canonical.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{form[: MAX_WIRE_LENGTH - len(digest) - 1]}_{digest}"
