"""What is secret in the arguments of a command, as far as their words tell (CFG-4).

Every user of a machine can read the arguments of a process: secrets are better given as its variables.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from session_runtime.config.keys import sounds_secret
from session_runtime.config.origin import MASK
from session_runtime.config.secrets import masked_address

_ADDRESS: Final = re.compile(r"""([A-Za-z][A-Za-z0-9+.-]*://)(?:[^\s/?#"']*(@))?([^\s"'#]*)""")
_NAMED: Final = re.compile(r"""([^\s=:,;&?/"'{}]+)["']?\s*[=:]\s*|\b([Bb]earer)\s+""")
_PLAIN: Final = re.compile(r"\d{1,5}|true|false|yes|no|on|off|auto|none", re.IGNORECASE)


def are_secret(args: Sequence[object]) -> tuple[bool, ...]:
    """Tell of each argument whether it is secret as a whole, as it follows a flag that sounds so."""
    after_flag = (False, *map(_names_next, args))
    return tuple(
        follows and not _names_next(each) for follows, each in zip(after_flag, args, strict=False)
    )


def masked_argument(text: str) -> str:
    """Give an argument without what it holds beside a name that sounds secret, or in an address.

    That is all that follows ``--x-token=`` or ``Authorization:``, and of an address its user with the
    password, and what ``masked_address`` masks. What is masked already stays as it is.
    """
    shown, at = "", 0
    for address in _ADDRESS.finditer(text):
        before = text[at : address.start()]
        if (name := _name_of_the_rest(before)) is not None:
            return f"{shown}{name}{MASK}"
        scheme, user, rest = address.groups()
        address_shown = masked_address(f"{scheme}{rest}").removeprefix(scheme)
        shown += f"{before}{scheme}{f'{MASK}@' if user else ''}{address_shown}"
        at = address.end()
    name = _name_of_the_rest(text[at:])
    if name is None or name == text[at:]:
        return f"{shown}{text[at:]}"
    return f"{shown}{name}{MASK}"


def secrets_in(args: Sequence[str]) -> Iterator[str]:
    """Give what is masked in them, but for what is in addresses; some are short or empty."""
    for each, whole in zip(args, are_secret(args), strict=True):
        if whole:
            yield each
        elif (name := _name_of_the_rest(each)) is not None:
            yield each[len(name) :]


def secret_positions(args: Sequence[str]) -> tuple[int, ...]:
    """List the arguments, from 1 on, that hold what is masked and is neither a number nor a switch."""
    return tuple(
        number
        for number, (each, whole) in enumerate(zip(args, are_secret(args), strict=True), 1)
        if (whole or masked_argument(each) != each) and not _PLAIN.fullmatch(_value(each))
    )


def _names_next(argument: object) -> bool:
    """Whether an argument is a flag whose value follows, and is secret."""
    return (
        isinstance(argument, str)
        and argument.startswith("-")
        and not re.search(r"[=:\s]", argument)
        and sounds_secret(argument)
    )


def _name_of_the_rest(text: str) -> str | None:
    """What stands before the first secret, with its name; None if nothing sounds like one."""
    for found in _NAMED.finditer(text):
        if sounds_secret(found[1] or found[2]):
            return text[: found.end()]
    return None


def _value(argument: str) -> str:
    name, equals, value = argument.partition("=")
    return value if equals else name
