"""From the bytes of a text to its characters, as browsers choose the encoding."""

import codecs
import re
from typing import Final

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED: Final = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{2,40})""", re.ASCII)
_SEARCHED_BYTES: Final = 1024

# What browsers read these as: each is a part of the other.
_WIDER: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}

# Python knows encodings that are none of a text (zip, idna) or take a time that grows with the square.
_KNOWN: Final = frozenset(
    {"utf-8", "utf-16-le", "utf-16-be", "gb18030", "big5hkscs", "cp932", "cp949", "euc_jp"}
    | {"iso2022_jp", "koi8-r", "koi8-u", "cp866", "cp874", "mac-roman"}
    | {f"cp{number}" for number in range(1250, 1259)}
    | {f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)}
)


def decoded(content: bytes, declared: str | None) -> str:
    """Decode by byte order mark, the header's ``declared``, what the text says of itself, or UTF-8.

    An encoding that is unknown counts as not declared; bytes that mean nothing become U+FFFD.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace")
    encoding = _encoding(declared or "") or _own_encoding(content) or "utf-8"
    return content.decode(encoding, "replace")


def _own_encoding(content: bytes) -> str | None:
    found = _DECLARED.search(content, 0, _SEARCHED_BYTES)
    encoding = _encoding(found[1].decode("ascii")) if found else None
    if encoding is not None and encoding.startswith("utf-16"):
        return None  # or its own statement could not have been read
    return encoding


def _encoding(label: str) -> str | None:
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return None
    name = "utf-16-le" if name == "utf-16" else _WIDER.get(name, name)
    return name if name in _KNOWN else None
