"""Takes secrets out of data before it is kept; errs on the side of masking too much.

A secret is known by the name it stands under (``api_key``, ``Authorization``) or by its own shape
(``sk-…``, a JWT, a private key), at any depth, in headers, query strings and JSON held in strings.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

MASK: Final = "***"
CUT: Final = "[cut]"

MAX_DEPTH: Final = 16
MAX_VALUES: Final = 2_000
MAX_TEXT_CHARS: Final = 4_000
MAX_TOTAL_CHARS: Final = 32_000
_KNOWN_CHARS: Final = 64
_OVERLAP_CHARS: Final = 1_000  # read beyond a cut, so that it never splits a secret unseen

_SECRET_NAME: Final = re.compile(
    r"password|passwd|passphrase|passcode|secret(?!ar)|credential|authorization|cookie|bearer|jwt"
    r"|(?:api|access|private|signing|encryption|shared|master|account|subscription|auth)key"
    r"|(?:signature|sessid|tokenvalue)$|密码|口令|密钥|令牌|验证码"
)
_SECRET_LAST_WORD: Final = frozenset({"pass", "pwd", "pw", "pin", "otp", "auth", "sig"})
_TOKEN_NAME: Final = re.compile(r"(?<!page)(?<!continuation)tokens?$")
_COUNTED: Final = re.compile(r"^(?:max|min|total|num|count|per)|tokens$")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_WORD: Final = re.compile(r"[\W_]+")

_SHAPES: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){2,4}"
    r"|(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{8,}|sr_[A-Za-z0-9_-]{40,}"
    r"|(?:sk|rk|pk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}"
    r"|gh[opsru]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[a-z]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{8,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|LTAI[A-Za-z0-9]{12,}|AKID[A-Za-z0-9]{12,}"
    r"|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}"
    r"|hf_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|(?:bot)?[0-9]{8,10}:[A-Za-z0-9_-]{35}"
    r")"
)
_SCHEME: Final = re.compile(
    r"(?i)(?<![A-Za-z0-9])(bearer|basic|digest|token|bot)(\s{1,4})([A-Za-z0-9._~+/=-]{8,})"
)
_SPOKEN_WORDS: Final = (
    *("bearer", "basic", "digest", "token", "bot"),
    *("password", "passcode", "passphrase", "api key", "secret key", "access key"),
)
"""What every text begins with that ``_SCHEME`` or ``_SPOKEN`` finds, in small letters."""

_RANDOM: Final = re.compile(r"[0-9=]|[a-z][A-Z]|.{20}")
_USERINFO: Final = re.compile(r"(://[^/\s:@]{0,256}:)[^/\s@]+@")
_CHINESE: Final = re.compile(
    r"((?:密码|口令|密钥|令牌|验证码)[^\n!-~]{0,6}[:=]?\s{0,4})([!-~]{3,})"
)
_SPOKEN: Final = re.compile(
    r"(?i)(?<![A-Za-z0-9])((?:password|passcode|passphrase|api key|secret key|access key|token)"
    r"\s{1,4}(?:is|was|=>)\s{1,4})(\S+)"
)
_NAMED: Final = re.compile(
    r"""(?<![A-Za-z0-9_.-])(?:--(?P<flag>[A-Za-z][A-Za-z0-9_-]{1,63})[\s=]{1,4}"""
    r"""|(?P<name>[A-Za-z][A-Za-z0-9_.-]{1,63})\\*["']?\s{0,4}[:=]\s{0,4})"""
)
_LINE_NAME: Final = re.compile(r"(?i)^(?:proxy-)?authorization$|^(?:set-)?cookie$")
_QUOTED: Final = re.compile(r"""(\\*["'])(?s:(?!(?<!\\)\1).)*""")
_REST_OF_LINE: Final = re.compile(r"[^\r\n]*")
_REST_OF_WRITTEN_LINE: Final = re.compile(r"""(?:(?!\\+[nr])[^\r\n"'])*""")
_BARE: Final = re.compile(r"""[^\s"'&]+""")
_ABOUT_SECRETS: Final = frozenset(
    "absent bad denied disabled empty expired false forbidden incorrect invalid malformed mandatory missing"
    " needed no none not null optional rejected required revoked true unauthorized undefined unknown unset"
    " wrong".split()
)
_PUNCTUATION: Final = ".,;:!?)]}"
_DIGITS: Final = re.compile(r"^[0-9]{1,12}$")


def redact(value: object) -> object:
    """Copy JSON-like data with every secret masked, cut to a bounded size; never fails."""
    return _Redactor().value(value, 0)


def redact_text(text: str) -> str:
    """Mask the secrets in one text and cut it to a bounded size; never fails."""
    return _Redactor().text(text, 0)


def mask_secrets(text: str) -> str:
    """Mask the secrets in all characters of a text; takes a third of a millisecond for 1,000 of them."""
    return _without_secrets(text)


def is_secret_name(name: str) -> bool:
    """Tell whether what stands under this name is a secret; numbers under ``max_tokens`` are not."""
    return _known_name(name) if len(name) <= _KNOWN_CHARS else _sounds_secret(name)


@lru_cache(maxsize=4_096)
def _known_name(name: str) -> bool:
    """The same names come again and again, as those of a tool's arguments."""
    return _sounds_secret(name)


def _sounds_secret(name: str) -> bool:
    squashed = _NOT_WORD.sub("", name.casefold())
    if _SECRET_NAME.search(squashed) or _TOKEN_NAME.search(squashed):
        return True
    words = _NOT_WORD.split(_CAMEL.sub("_", name))
    return words[-1].casefold() in _SECRET_LAST_WORD


class _Redactor:
    """One pass over one value; counts down what may still be looked at."""

    def __init__(self) -> None:
        self._values_left = MAX_VALUES
        self._chars_left = MAX_TOTAL_CHARS

    def value(self, value: object, depth: int) -> object:
        self._values_left -= 1
        if depth > MAX_DEPTH or self._values_left < 0:
            return CUT
        match value:
            case None | bool() | int() | float():
                return value
            case str():
                return self.text(value, depth)
            case Mapping():
                return self._object(value, depth)
            case list() | tuple() if _is_named_pair(value):
                return [self.value(value[0], depth + 1), _mask(str(value[0]), value[1])]
            case list() | tuple() | set() | frozenset():
                return self._list(value, depth)
            case _:
                return f"[{type(value).__name__}]"

    def text(self, text: str, depth: int) -> str:
        keep = min(MAX_TEXT_CHARS, self._chars_left)
        if keep <= 0:
            return CUT if text else text
        self._chars_left -= min(keep, len(text))
        if len(text) <= keep:
            return self._whole(text, depth)
        return _without_secrets(text[: keep + _OVERLAP_CHARS])[:keep] + CUT

    def _whole(self, text: str, depth: int) -> str:
        """Redact the data that a text holds as JSON, or else the text itself."""
        if text.lstrip()[:1] in ("{", "[", '"') and depth < MAX_DEPTH:
            try:
                data = json.loads(text)
            except (ValueError, RecursionError):
                return _without_secrets(text)
            clean = self.value(data, depth + 1)
            return text if clean == data else json.dumps(clean, ensure_ascii=False)
        return _without_secrets(text)

    def _object(self, data: Mapping[object, object], depth: int) -> dict[str, object]:
        clean: dict[str, object] = {}
        names_secret = _names_a_secret(data)
        for key, item in data.items():
            if self._values_left <= 0:
                clean[CUT] = len(data) - len(clean)
                break
            name = str(key)
            if is_secret_name(name) or (names_secret and name == "value"):
                clean[self.text(name, depth)] = _mask(name, item)
            else:
                clean[self.text(name, depth)] = self.value(item, depth + 1)
        return clean

    def _list(
        self,
        items: list[object] | tuple[object, ...] | set[object] | frozenset[object],
        depth: int,
    ) -> list[object]:
        clean: list[object] = []
        for item in items:
            if self._values_left <= 0:
                clean.append(CUT)
                break
            clean.append(self.value(item, depth + 1))
        return clean


def _names_a_secret(data: Mapping[object, object]) -> bool:
    """Tell whether this is one header or variable as an object: ``{"name": …, "value": …}``."""
    names = (data.get(key) for key in ("name", "key", "header"))
    return "value" in data and any(isinstance(n, str) and is_secret_name(n) for n in names)


def _is_named_pair(items: list[object] | tuple[object, ...]) -> bool:
    return len(items) == 2 and isinstance(items[0], str) and is_secret_name(items[0])


def _mask(name: str, value: object) -> object:
    match value:
        case None | bool() | "":
            return value
        case int() | float() if _is_count(name):
            return value
        case str() if _is_count(name) and _DIGITS.match(value):
            return value
        case _:
            return MASK


def _is_count(name: str) -> bool:
    squashed = _NOT_WORD.sub("", name.casefold())
    return bool(_TOKEN_NAME.search(squashed) and _COUNTED.search(squashed))


def _without_secrets(text: str) -> str:
    """Mask kind by kind; one whose signs are not in the text is passed over, as most are in most texts."""
    if ":" in text or "=" in text or "--" in text:
        text = _mask_named(text)
    text = _SHAPES.sub(MASK, text)
    speaks = _may_speak(text)
    if speaks:
        text = _SCHEME.sub(_mask_scheme, text)
    if "://" in text:
        text = _USERINFO.sub(rf"\1{MASK}@", text)
    if speaks:
        text = _SPOKEN.sub(_mask_spoken, text)
    return text if text.isascii() else _CHINESE.sub(_mask_spoken, text)


def _may_speak(text: str) -> bool:
    """Whether a text may hold a word before which a secret is spoken of; other alphabets are in doubt."""
    if not text.isascii():
        return True
    lower = text.lower()
    return any(word in lower for word in _SPOKEN_WORDS)


def _mask_spoken(found: re.Match[str]) -> str:
    before, value = found.groups()
    return found[0] if _is_about_a_secret(value) else f"{before}{MASK}"


def _is_about_a_secret(words: str) -> bool:
    """Whether a text says how it is with a secret, as in "the token is missing", and is none itself."""
    return words.strip().rstrip(_PUNCTUATION).casefold() in _ABOUT_SECRETS


def _mask_scheme(found: re.Match[str]) -> str:
    scheme, blank, credentials = found.groups()
    return f"{scheme}{blank}{MASK}" if _RANDOM.search(credentials) else found[0]


def _mask_named(text: str) -> str:
    """Mask what follows a secret's name: ``password=…``, ``"apiKey": "…"``, ``Cookie: …``."""
    pieces: list[str] = []
    position = 0
    while found := _NAMED.search(text, position):
        pieces.append(text[position : found.end()])
        position = found.end()
        name = found["flag"] or found["name"]
        written = name[1:]
        if _LINE_NAME.match(written) and _ends_an_escape(text, found.start("name")):
            kept, position = _bare_after(text, position, written, _REST_OF_WRITTEN_LINE)
            pieces.append(kept)
        elif is_secret_name(name):
            opening, position = _value_after(text, position, name)
            pieces.append(opening)
    return "".join([*pieces, text[position:]])


def _ends_an_escape(text: str, at: int) -> bool:
    """Whether a letter stands for a blank or the end of a line in a text that was written as a literal."""
    return at > 0 and text[at - 1] == "\\" and text[at] in "nrt"


def _value_after(text: str, start: int, name: str) -> tuple[str, int]:
    """Return what stands for the value at ``start`` and where the value ends."""
    if quoted := _QUOTED.match(text, start):
        return quoted[1] + str(_mask(name, quoted[0][len(quoted[1]) :])), quoted.end()
    if text[start : start + 1] in ("{", "["):
        return MASK, _container_end(text, start)
    return _bare_after(text, start, name, _REST_OF_LINE if _LINE_NAME.match(name) else _BARE)


def _bare_after(text: str, start: int, name: str, pattern: re.Pattern[str]) -> tuple[str, int]:
    """The same for a value without quotes."""
    bare = pattern.match(text, start)
    if not bare or not bare[0]:
        return "", start
    kept = bare[0] if _is_about_a_secret(bare[0]) else str(_mask(name, bare[0]))
    return kept, bare.end()


def _container_end(text: str, start: int) -> int:
    """Return where the JSON value at ``start`` ends; the end of the text if it is not whole."""
    try:
        _, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return len(text)
    return end
