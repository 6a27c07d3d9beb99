"""The whole configuration as one frozen value, and which model profiles it offers.

Where the values come from is decided in ``load``.
"""

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from pydantic import Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from session_runtime.config.agents import AgentLimits
from session_runtime.config.audit import AuditSettings
from session_runtime.config.callbacks import Callback
from session_runtime.config.files import FilesSettings
from session_runtime.config.fleet import FleetSettings
from session_runtime.config.handlers import HandlersSettings
from session_runtime.config.http import HttpSettings
from session_runtime.config.limits import LimitsSettings
from session_runtime.config.mcp import McpSettings
from session_runtime.config.models import ModelProfile
from session_runtime.config.mqtt import MqttSettings
from session_runtime.config.notes import NotesSettings
from session_runtime.config.otel import OtelSettings
from session_runtime.config.runtime import (
    AskSettings,
    LogSettings,
    MetricsSettings,
    RuntimeSettings,
    TraceSettings,
)
from session_runtime.config.section import Table, table
from session_runtime.config.tools import (
    AccessSettings,
    NoticesSettings,
    SearchSettings,
    SkillsSettings,
)
from session_runtime.config.web import WebSettings
from session_runtime.errors import ConfigError, Problem
from session_runtime.spelling import hint

OFFLINE = "offline"


class Settings(BaseSettings):
    """Every value in force; attributes are named like sections and keys (CFG-1).

    Nothing in it can be changed: lists are tuples, tables are read-only mappings, and paths are
    absolute when ``load`` made it.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        validate_default=True,
        hide_input_in_errors=True,
        case_sensitive=True,
    )

    runtime: RuntimeSettings = Field(default_factory=RuntimeSettings)
    limits: LimitsSettings = Field(default_factory=LimitsSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    ask: AskSettings = Field(default_factory=AskSettings)
    models: Table[ModelProfile] = table("Profiles, each under a name of your choice.")
    handlers: HandlersSettings = Field(default_factory=HandlersSettings)
    agents: AgentLimits = Field(default_factory=AgentLimits)
    mcp: McpSettings = Field(default_factory=McpSettings)
    skills: SkillsSettings = Field(default_factory=SkillsSettings)
    search: SearchSettings = Field(default_factory=SearchSettings)
    access: AccessSettings = Field(default_factory=AccessSettings)
    features: Table[bool] = table(
        "Switches that tools may require, each under its name; a switch that is not named is off."
    )
    notices: NoticesSettings = Field(default_factory=NoticesSettings)
    files: FilesSettings = Field(default_factory=FilesSettings)
    notes: NotesSettings = Field(default_factory=NotesSettings)
    web: WebSettings = Field(default_factory=WebSettings)
    http: HttpSettings = Field(default_factory=HttpSettings)
    mqtt: MqttSettings = Field(default_factory=MqttSettings)
    callbacks: Table[Callback] = table(
        "Addresses that results are sent to, each under the name by which a request gives it."
    )
    fleet: FleetSettings = Field(default_factory=FleetSettings)
    otel: OtelSettings = Field(default_factory=OtelSettings)
    trace: TraceSettings = Field(default_factory=TraceSettings)
    metrics: MetricsSettings = Field(default_factory=MetricsSettings)
    audit: AuditSettings = Field(default_factory=AuditSettings)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take only what ``load`` hands in: it has merged all sources and knows each value's origin."""
        return (init_settings,)


def profiles(settings: Settings) -> Mapping[str, ModelProfile]:
    """List the model profiles in the file's order; without [models], the built-in ``offline`` alone."""
    if settings.models:
        return settings.models
    return MappingProxyType({OFFLINE: ModelProfile(wire="offline")})


def default_profile(settings: Settings) -> str:
    """Choose the profile of asks that name none; ConfigError if ``ask.default_model`` names no profile."""
    names = tuple(profiles(settings))
    if settings.ask.default_model is None:
        return names[0]
    fault = unknown_profile(settings.ask.default_model, names)
    if fault is not None:
        raise ConfigError([Problem(fault, key="ask.default_model")])
    return settings.ask.default_model


def unknown_profile(name: str, names: Collection[str]) -> str | None:
    """Say why ``name`` is no profile, with the way out; None if it is one."""
    if name in names:
        return None
    way_out = hint(name, names) or f"there is {', '.join(names)}"
    return f'no profile of [models] has this name (given: "{name}"); {way_out}'


def fallback_faults(
    fallbacks: Mapping[str, str], names: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Find fallbacks that cannot be followed: pairs of a profile and what is wrong with its key.

    ``fallbacks`` maps a profile to the one that takes over for it, ``names`` are all profiles. A circle
    is told once, at the first of its profiles.
    """
    circles: set[str] = set()
    for name, wanted in fallbacks.items():
        fault = unknown_profile(wanted, names)
        if fault is not None:
            yield name, fault
            continue
        path = _followed(name, fallbacks)
        if fallbacks.get(path[-1]) == name and not circles.intersection(path):
            circles.update(path)
            way = " -> ".join((*path, name))
            yield name, f"leads back to the profile itself ({way}); leave one of these out"


def _followed(name: str, fallbacks: Mapping[str, str]) -> tuple[str, ...]:
    """The profiles from ``name`` on, each once: the last has no fallback or leads back into them."""
    path = [name]
    while (following := fallbacks.get(path[-1])) is not None and following not in path:
        path.append(following)
    return tuple(path)
