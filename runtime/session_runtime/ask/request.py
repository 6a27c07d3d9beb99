"""What a request must be for any generation to answer it; the JSON of a request is checked in ``wire``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_args

from session_runtime.direct import DirectCall
from session_runtime.errors import RequestError
from session_runtime.types import (
    AskRequest,
    Identity,
    ImagePart,
    Message,
    Principal,
    Role,
    TextPart,
)

_ROLES: Final = frozenset(get_args(Role))


def check_request(request: AskRequest) -> None:
    """Raise RequestError that names the field and the way out (ASK-2).

    Types are checked too: an embedding program is not always type-checked.
    """
    for name in ("messages", "history"):
        _check(name, getattr(request, name), _is_sequence, "a list of Message")
    for name in ("confirmations", "declined"):
        if not _is_tokens(getattr(request, name)):  # what it is may be a secret
            raise RequestError(f"{name} is no list of strings: give the tokens of pending calls")
    _check("metadata", request.metadata, lambda value: isinstance(value, Mapping), "a mapping")
    if [request.text is not None, bool(request.messages), request.call is not None].count(
        True
    ) != 1:
        raise RequestError(
            "give either text or messages, and exactly one of them; or call, for a tool"
        )
    if request.call is not None:
        _check_call(request.call)
    for name in ("text", "instructions", "conversation", "model"):
        _check(name, getattr(request, name), _is_text_or_none, "a string")
    _check_messages("messages", request.messages)
    _check_messages("history", request.history)
    if request.text is not None and not request.text.strip():
        raise RequestError("text is empty: give the question")
    _check("deadline_s", request.deadline_s, _is_positive_or_none, "a number of seconds above 0")
    _check_identity(request.identity)
    _check(
        "principal", request.principal, lambda value: isinstance(value, Principal), "a Principal"
    )


def _check_call(call: DirectCall) -> None:
    _check("call", call, lambda value: isinstance(value, DirectCall), "a DirectCall")
    _check("call.tool", call.tool, lambda value: isinstance(value, str), "the name of a tool")
    _check("call.arguments", call.arguments, lambda v: isinstance(v, Mapping), "a mapping")


def _check_messages(name: str, messages: Sequence[object]) -> None:
    for at, message in enumerate(messages):
        if not _is_message(message):
            _check_message(f"{name}[{at}]", message)


def _is_message(message: object) -> bool:
    """The whole check of a message without the words for what is wrong: there may be very many."""
    return isinstance(message, Message) and _is_role(message.role) and _is_content(message.content)


def _check_message(name: str, message: object) -> None:
    if not isinstance(message, Message):
        raise RequestError(
            f"{name} is {type(message).__name__}: give a Message, or make one of its JSON with "
            "session_runtime.message_from_json"
        )
    _check(f"{name}.role", message.role, _is_role, "a known role")
    _check(f"{name}.content", message.content, _is_content, "text, None, or a tuple of parts")


def _check_identity(identity: Identity) -> None:
    _check("identity", identity, lambda value: isinstance(value, Identity), "an Identity")
    for name in ("user", "channel", "group"):
        _check(f"identity.{name}", getattr(identity, name), _is_text_or_none, "a string")
    _check("identity.roles", identity.roles, _is_roles_or_none, "a frozenset of strings")


def _check(name: str, value: object, is_right: Callable[[Any], bool], wanted: str) -> None:
    if not is_right(value):
        shown = repr(value)[:60] if isinstance(value, int | float | str) else type(value).__name__
        raise RequestError(f"{name} is {shown}: give {wanted}")


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_tokens(value: object) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return False
    return all(isinstance(token, str) for token in value)


def _is_role(value: object) -> bool:
    return isinstance(value, str) and value in _ROLES


def _is_content(value: object) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(part, TextPart | ImagePart) for part in value)
    return _is_text_or_none(value)


def _is_text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_positive_or_none(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _is_roles_or_none(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, frozenset | set) and all(isinstance(role, str) for role in value)
