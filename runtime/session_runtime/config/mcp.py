"""The section [mcp]: servers whose tools join the catalogue (RTE-1).

How a server is spoken to is decided in ``mcp``; who may use its tools is configured in ``tools``.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from session_runtime.config.additions import HeaderName, HeaderValue
from session_runtime.config.addresses import http_address
from session_runtime.config.handlers import Text
from session_runtime.config.section import (
    Count,
    Name,
    Seconds,
    Section,
    Whole,
    key,
    read_only,
    table,
)

Naming = Literal["prefix", "bare", "auto"]
Protocol = Literal["auto", "handshake", "stateless"]

_SERVER: Final = re.compile(r"[A-Za-z0-9_-]{1,48}")
_VARIABLE: Final = re.compile(r"[^=\0]+")


def _can_name_a_server(name: str) -> str:
    if not _SERVER.fullmatch(name):
        raise ValueError("cannot name a server: use up to 48 letters, digits, _ and -")
    return name


def _can_name_a_variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError("cannot name a variable: it must not be empty or hold =")
    return name


def _has_no_nul(value: SecretStr) -> SecretStr:
    if "\0" in value.get_secret_value():
        raise ValueError("must not hold a NUL character")
    return value


ServerName = Annotated[str, AfterValidator(_can_name_a_server)]
Variable = Annotated[str, AfterValidator(_can_name_a_variable)]
VariableValue = Annotated[SecretStr, AfterValidator(_has_no_nul)]
Environment = Annotated[Mapping[Variable, VariableValue], AfterValidator(read_only)]
Headers = Annotated[Mapping[HeaderName, HeaderValue], AfterValidator(read_only)]


class McpTool(Section):
    """What an operator says about one tool of a server; what is not set is as the server says."""

    enabled: bool = key(True, "Whether the tool is there at all.")
    description: Text | None = key(None, "What the tool does, instead of the server's words.")
    aliases: tuple[Name, ...] = key((), "Other names that the tool is found by.")
    search_hints: tuple[Name, ...] = key((), "Words that the tool is found by.")
    examples: tuple[Name, ...] = key((), "Typical requests that the tool is for.")
    requires: tuple[Name, ...] = key((), "Roles, all of which a caller must have.")
    feature: Name | None = key(None, "The switch of [features] that must be on.")
    destructive: bool | None = key(
        None,
        "Whether the tool changes things for good. Unset: it does if the server says so, or it did before."
        " false takes back what was said before, but not what the server says now.",
    )
    read_only: bool = key(
        False, "Whether a call changes nothing, so that a lost one may be made again."
    )
    idempotent: bool = key(
        False,
        "Whether the same call twice is as good as once, so that a lost one may be made again.",
    )
    idempotency_key: Name | None = key(
        None,
        "The argument by which the server recognises a call that it had before; the runtime fills it"
        " in, and may then make a lost call again.",
    )
    idle_timeout_s: Seconds | None = key(
        None, "The longest silence of a call, in seconds; unset: as for the server."
    )
    hard_timeout_s: Seconds | None = key(
        None, "The longest a call may take, in seconds; unset: as for the server."
    )
    max_result_chars: Count | None = key(
        None, "The longest result shown to the model; unset: as for all tools."
    )
    deprecated: str | None = key(None, "Why the tool should no longer be used; unset: it may be.")
    replacement: Name | None = key(None, "The tool to use instead of a deprecated one.")


class McpCredential(Section):
    """Some callers, and what a session of their own has instead of the server's (RTE-2)."""

    roles: tuple[Name, ...] = key((), "Roles, one of which a caller must have.")
    users: tuple[Name, ...] = key((), "Patterns of users.")
    channels: tuple[Name, ...] = key((), "Patterns of channels.")
    env: Environment = table(
        'Variables of the command, over those of the server; best as "env:NAME" or "file:/path".'
    )
    headers: Headers = table(
        'Headers of each request, over those of the server; best as "env:NAME" or "file:/path".'
    )

    @model_validator(mode="after")
    def _is_about_somebody(self) -> "McpCredential":
        if not (self.roles or self.users or self.channels):
            raise ValueError("the credential needs roles, users or channels: whom it is for")
        return self


class McpServer(Section):
    """One server: a command that is started, or an address."""

    enabled: bool = key(True, "Whether the server is used.")
    command: Name | None = key(
        None,
        "The program to start, found by PATH; it is spoken to by its standard input and output.",
    )
    args: tuple[str, ...] = key((), "Arguments of the command.")
    env: Environment = table(
        "Variables of the command, which gets none but these and PATH, HOME and LANG; values are"
        ' secrets, best as "env:NAME" or "file:/path".'
    )
    cwd: Path | None = key(None, "The folder that the command runs in; unset: that of the file.")
    url: Name | None = key(
        None,
        "Address of a server that speaks streamable HTTP, instead of a command.",
        in_repr=False,
    )
    headers: Headers = table(
        'Headers of each request; values are secrets, best as "env:NAME" or "file:/path".'
    )
    credentials: Annotated[Mapping[ServerName, McpCredential], AfterValidator(read_only)] = table(
        "Callers with a session of their own, each under a name of your choice; the first that"
        " is about a caller counts."
    )
    credentials_only: bool = key(
        False, "Whether callers that no credential is about do without the server's tools."
    )
    protocol: Protocol = key(
        "auto",
        "The generation of the protocol: handshake (revisions up to 2025-11-25), stateless"
        " (2026-07-28) or auto, which finds out.",
    )
    connect_timeout_s: Seconds = key(10.0, "The longest a connection may take, in seconds.")
    list_timeout_s: Seconds = key(10.0, "The longest that listing all tools may take, in seconds.")
    idle_timeout_s: Seconds = key(
        60.0, "The longest silence of a call, in seconds; progress begins it anew.", network=True
    )
    hard_timeout_s: Seconds = key(
        600.0, "The longest a call may take, in seconds, whatever it tells.", network=True
    )
    heartbeat_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = key(
        30.0,
        "How often a silent server is asked whether it lives, in seconds; 0: never.",
        network=True,
    )
    refresh_ttl_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = key(
        300.0,
        "How old the list of tools may become where the server does not tell of changes, in seconds;"
        " 0: any age.",
        network=True,
    )
    max_concurrency: Whole = key(
        16,
        "How many calls may run at once, others wait their turn; 0 means any number.",
        network=True,
    )
    rate_per_minute: Whole = key(
        0, "How many calls may begin in a minute; 0 means any number.", network=True
    )
    naming: Naming = key(
        "prefix",
        "What its tools are called: prefix (server.tool), bare (tool; one that another source has too"
        " is left out) or auto (tool, or server.tool where another source has it too).",
    )
    group: ServerName | None = key(
        None,
        "The group of equal servers it belongs to: their tools of one name are one tool, under the"
        " group's name instead of the server's.",
    )
    priority: int = key(
        0,
        "Within a group, the highest is called first, the next ones when it cannot be.",
        network=True,
    )
    tools: Annotated[Mapping[Name, McpTool], AfterValidator(read_only)] = table(
        "What you say about single tools, each under the server's name for it."
    )

    @field_validator("command", mode="before")
    @classmethod
    def _is_program(cls, command: object) -> object:
        if isinstance(command, list | tuple):
            raise ValueError("must be the program alone, as text; what follows it goes into args")
        return command

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        if "@" in url.partition("//")[2].partition("/")[0]:
            raise ValueError("must hold no user or password: give them as headers")
        http_address(url)
        return url

    @field_validator("url")
    @classmethod
    def _beside_no_command(cls, url: str | None, info: ValidationInfo) -> str | None:
        if url is not None and info.data.get("command") is not None:
            raise ValueError("cannot stand beside command: a server has one of the two")
        return url

    @model_validator(mode="after")
    def _fits_together(self) -> "McpServer":
        if self.command is None and self.url is None:
            raise ValueError("the server needs command or url")
        stray = _STRAY_AT_URL if self.command is None else _STRAY_AT_COMMAND
        for name in stray:
            if getattr(self, name):
                kind = "url" if self.command is None else "command"
                raise ValueError(f"the server has a {kind}, so that {name} would have no effect")
        if self.credentials_only and not self.credentials:
            raise ValueError(
                "credentials_only leaves nobody who could use the server: add credentials"
            )
        if self.idle_timeout_s > self.hard_timeout_s:
            raise ValueError("idle_timeout_s must not be longer than hard_timeout_s")
        return self


_STRAY_AT_URL: Final = ("args", "env", "cwd")
_STRAY_AT_COMMAND: Final = ("headers",)


class McpSettings(Section):
    """Servers of the Model Context Protocol."""

    wait_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = key(
        10.0,
        "How long a start or an edit waits for the tools of servers that are new, in seconds; those"
        " that need longer join later.",
    )
    servers: Annotated[Mapping[ServerName, McpServer], AfterValidator(read_only)] = table(
        "Servers, each under a name of your choice."
    )
