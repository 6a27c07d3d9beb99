"""Reads asks and messages from parsed JSON; every problem is named at once, with the way out."""

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Final, cast, get_args

from session_runtime.direct import DirectCall
from session_runtime.types import (
    NOTHING,
    AskRequest,
    Content,
    Identity,
    ImagePart,
    JsonObject,
    Message,
    Role,
    TextPart,
    ToolCall,
)
from session_runtime.wire.fields import Fields, raise_if_any
from session_runtime.wire.strict import shown, to_bytes

MAX_NAME_CHARS: Final = 256
MAX_METADATA_BYTES: Final = 65_536
MAX_TOKENS: Final = 32
MAX_TOKEN_CHARS: Final = 200

_REQUEST_FIELDS: Final = (
    "text",
    "messages",
    "history",
    "instructions",
    "identity",
    "conversation",
    "model",
    "deadline_s",
    "metadata",
    "silent",
    "confirmations",
    "declined",
    "detach",
    "callback",
)
_INVOKE_FIELDS: Final = (
    "arguments",
    "identity",
    "conversation",
    "deadline_s",
    "metadata",
    "confirmations",
    "detach",
    "callback",
)
_CONFIRM_FIELDS: Final = ("text", "confirmations", "declined", "detach")
_IDENTITY_FIELDS: Final = ("user", "roles", "channel", "group")
_MESSAGE_FIELDS: Final = frozenset({"role", "content", "tool_calls", "tool_call_id", "is_error"})
_CALL_FIELDS: Final = frozenset({"id", "type", "function", "recovered"})
_ROLES: Final[tuple[str, ...]] = get_args(Role)


def request_from_json(data: object) -> AskRequest:
    """Read an ask (INT-2) from parsed JSON; raises RequestError that lists every problem."""
    problems: list[str] = []
    fields = Fields(data, "", problems)
    fields.refuse_unknown(_REQUEST_FIELDS)
    request = read_request(fields)
    raise_if_any(problems)
    return request


def read_request(fields: Fields) -> AskRequest:
    """Read the fields of an ask, which may have come in another form; problems are left in ``fields``."""
    problems = fields.problems
    request = AskRequest(
        text=fields.text("text", blank=False),
        messages=fields.items("messages", _message_reader(problems)),
        history=fields.items("history", _message_reader(problems)),
        instructions=fields.text("instructions"),
        identity=_identity(fields.data.get("identity"), problems),
        conversation=fields.text("conversation", limit=MAX_NAME_CHARS, blank=False),
        model=fields.text("model", limit=MAX_NAME_CHARS, blank=False),
        deadline_s=fields.seconds("deadline_s"),
        metadata=_metadata(fields),
        silent=fields.flag("silent"),
        confirmations=_tokens(fields, "confirmations"),
        declined=_tokens(fields, "declined"),
    )
    fields.flag("detach")  # of how it is asked, which is the door's
    if not problems:
        _check_one_question(request, fields)
    return request


def invoke_from_json(data: object, call: DirectCall) -> AskRequest:
    """Read what a tool is called with, as a request that makes ``call`` with those arguments (NET-1f).

    Raises RequestError that lists every problem.
    """
    problems: list[str] = []
    fields = Fields(data, "", problems)
    fields.refuse_unknown(_INVOKE_FIELDS)
    arguments = Fields(fields.data.get("arguments", {}), "arguments", problems).data
    request = AskRequest(
        identity=_identity(fields.data.get("identity"), problems),
        conversation=fields.text("conversation", limit=MAX_NAME_CHARS, blank=False),
        deadline_s=fields.seconds("deadline_s"),
        metadata=_metadata(fields),
        confirmations=_tokens(fields, "confirmations"),
        call=replace(call, arguments=arguments),
    )
    raise_if_any(problems)
    return request


def callback_from_json(data: object) -> str | None:
    """The name of the callback that is told of the end, if any; raises RequestError for what is none."""
    problems: list[str] = []
    fields = Fields(data, "", problems)
    name = fields.text("callback", limit=MAX_NAME_CHARS, blank=False)
    if name is not None and not fields.flag("detach") and not problems:
        fields.complain("callback", "is for asks that go on without their client; give detach too")
    raise_if_any(problems)
    return name


def detach_from_json(data: object) -> bool:
    """Whether an ask shall go on without its client; raises RequestError if that cannot be told."""
    problems: list[str] = []
    detach = Fields(data, "", problems).flag("detach")
    raise_if_any(problems)
    return detach


def confirm_from_json(data: object) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Read what a person said about calls that wait: the text, and the tokens of a yes and of a no.

    Raises RequestError that lists every problem.
    """
    problems: list[str] = []
    fields = Fields(data, "", problems)
    fields.refuse_unknown(_CONFIRM_FIELDS)
    text = fields.text("text", blank=False)
    confirmed, declined = _tokens(fields, "confirmations"), _tokens(fields, "declined")
    if not (confirmed or declined or problems):
        fields.complain("", "nothing is decided; give a token under confirmations or declined")
    raise_if_any(problems)
    return text or _said(confirmed, declined), confirmed, declined


def _said(confirmed: tuple[str, ...], declined: tuple[str, ...]) -> str:
    if confirmed and declined:
        return "Yes to some of it, no to the rest."
    return "Yes." if confirmed else "No."


def message_from_json(data: object) -> Message:
    """Read one message in the form that chat APIs use; unknown fields are kept in ``extra``.

    Raises RequestError that lists every problem.
    """
    problems: list[str] = []
    message = _message(Fields(data, "message", problems))
    raise_if_any(problems)
    return message


def _identity(data: object, problems: list[str]) -> Identity:
    if data is None:
        return Identity()
    fields = Fields(data, "identity", problems)
    fields.refuse_unknown(_IDENTITY_FIELDS)
    roles = fields.items("roles", lambda role, path: _role(role, path, problems))
    return Identity(
        user=fields.text("user", limit=MAX_NAME_CHARS, blank=False),
        roles=None if fields.data.get("roles") is None else frozenset(roles),
        channel=fields.text("channel", limit=MAX_NAME_CHARS, blank=False),
        group=fields.text("group", limit=MAX_NAME_CHARS, blank=False),
    )


def _role(value: object, path: str, problems: list[str]) -> str:
    if isinstance(value, str) and value.strip() and len(value) <= MAX_NAME_CHARS:
        return value
    problems.append(
        f"{path}: must be a name of at most {MAX_NAME_CHARS} characters, not {shown(value)}"
    )
    return ""


def _tokens(fields: Fields, name: str) -> tuple[str, ...]:
    """Tokens of calls that wait for consent; none of them is repeated in a problem."""
    tokens = fields.items(name, lambda token, path: _token(token, path, fields.problems))
    if len(tokens) > MAX_TOKENS:
        fields.complain(name, f"has {len(tokens)} tokens, at most {MAX_TOKENS} are allowed")
    return tokens


def _token(value: object, path: str, problems: list[str]) -> str:
    if isinstance(value, str) and value and len(value) <= MAX_TOKEN_CHARS:
        return value
    problems.append(f"{path}: must be a token of at most {MAX_TOKEN_CHARS} characters")
    return ""


def _metadata(fields: Fields) -> JsonObject:
    value = fields.data.get("metadata")
    if value is None:
        return NOTHING
    metadata = Fields(value, "metadata", fields.problems).data
    if len(to_bytes(metadata)) > MAX_METADATA_BYTES:
        fields.complain("metadata", f"is larger than {MAX_METADATA_BYTES} bytes as JSON")
    return MappingProxyType(dict(metadata))


def _check_one_question(request: AskRequest, fields: Fields) -> None:
    if request.text is None and not request.messages:
        fields.complain(
            "", "nothing is asked; give 'text', or 'messages' with at least one message"
        )
    if request.text is not None and fields.data.get("messages") is not None:
        fields.complain("", "'text' and 'messages' are both given; give one of them")


def _message_reader(problems: list[str]) -> Callable[[object, str], Message]:
    return lambda data, path: _message(Fields(data, path, problems))


def _message(fields: Fields) -> Message:
    role = fields.text("role")
    if role not in _ROLES:
        fields.complain("role", f"must be one of {', '.join(_ROLES)}, not {shown(role)}")
    calls = fields.items(
        "tool_calls", lambda data, path: _call(Fields(data, path, fields.problems))
    )
    if calls and role != "assistant":
        fields.complain("tool_calls", "only a message of role assistant may have them")
    call_id = fields.text("tool_call_id")
    if call_id is not None and role != "tool":
        fields.complain("tool_call_id", "only a message of role tool may have it")
    is_error = fields.flag("is_error")
    if is_error and role != "tool":
        fields.complain("is_error", "only a message of role tool may have it")
    return Message(
        role=cast(Role, role),
        content=_content(fields),
        tool_calls=calls,
        tool_call_id=call_id,
        extra=fields.unknown(_MESSAGE_FIELDS),
        is_error=is_error,
    )


def _content(fields: Fields) -> Content | None:
    if isinstance(fields.data.get("content"), list):
        return fields.items(
            "content", lambda data, path: _part(Fields(data, path, fields.problems))
        )
    return fields.text("content")


def _part(fields: Fields) -> TextPart | ImagePart:
    kind = fields.text("type")
    if kind == "text":
        fields.refuse_unknown(("type", "text"))
        return TextPart(_required(fields, "text"))
    if kind == "image_url":
        fields.refuse_unknown(("type", "image_url"))
        image = Fields(fields.data.get("image_url"), f"{fields.path}.image_url", fields.problems)
        image.refuse_unknown(("url", "detail"))
        return ImagePart(_image_url(image), image.text("detail", limit=MAX_NAME_CHARS))
    fields.complain("type", f"must be text or image_url, not {shown(kind)}")
    return TextPart("")


def _image_url(fields: Fields) -> str:
    url = _required(fields, "url")
    if url and not url.lower().startswith(("https:", "data:")):
        fields.complain("url", f"must begin with https: or data:, not {shown(url)}")
    return url


def _call(fields: Fields) -> ToolCall:
    kind = fields.text("type")
    if kind not in (None, "function"):
        fields.complain("type", f"must be function, not {shown(kind)}")
    function = Fields(fields.data.get("function"), f"{fields.path}.function", fields.problems)
    function.refuse_unknown(("name", "arguments"))
    return ToolCall(
        id=_required(fields, "id"),
        name=_required(function, "name"),
        arguments=function.text("arguments") or "",
        recovered=fields.flag("recovered"),
        extra=fields.unknown(_CALL_FIELDS),
    )


def _required(fields: Fields, name: str) -> str:
    value = fields.text(name)
    if fields.data.get(name) is None:
        fields.complain(name, "is missing")
    return value or ""
