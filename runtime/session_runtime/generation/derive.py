"""What follows from settings and tools alone, without opening anything; may run in any thread."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from session_runtime.config.places import OWN
from session_runtime.config.settings import Settings, default_profile, profiles
from session_runtime.config.snapshot import ConfigSnapshot, digest_of
from session_runtime.generation.instructions import digest_of_text, model_digests
from session_runtime.generation.state import Digests, Generation
from session_runtime.generation.warnings import crowded_profiles, unreachable_names
from session_runtime.registry.catalog import Catalog
from session_runtime.registry.deprecation import described, unusable_replacements
from session_runtime.registry.names import WireNames, build_wire_names, meets_tool_search
from session_runtime.registry.policy import Policy, compile_policy
from session_runtime.registry.revocations import Revocations
from session_runtime.registry.spec import ToolSpec
from session_runtime.search import FieldWeights, SearchIndex, build_index, tool_search_spec

TOOL_FRAME_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class Derived:
    """Parts of a generation; ``names`` and ``clashes`` are by separator of wire names.

    ``clashes`` are tools that would be taken for the loader (TS-10), ``tokens`` what each tool's schema
    costs in a request.
    """

    names: Mapping[str, WireNames]
    clashes: Mapping[str, tuple[str, ...]]
    policy: Policy
    index: SearchIndex
    loader: ToolSpec
    tokens: Mapping[str, int]
    digests: Digests
    warnings: tuple[str, ...]


def derive(
    snapshot: ConfigSnapshot,
    catalog: Catalog,
    revocations: Revocations,
    before: Generation | None,
) -> Derived:
    """Compute everything; what ``before`` has of unchanged tools is not computed again."""
    settings = snapshot.settings
    tools = [spec.name for spec in catalog.specs]
    configured = profiles(settings)
    separators = {profile.name_separator for profile in configured.values()}
    names = {separator: build_wire_names(tools, separator) for separator in separators}
    main = names[configured[default_profile(settings)].name_separator]
    loader = tool_search_spec(settings.skills.tool_search_max_results)
    index = _index(settings, catalog, main, before)
    return Derived(
        names=MappingProxyType(names),
        clashes=MappingProxyType({each: _clashes(tools, each) for each in separators}),
        policy=compile_policy(
            settings.access, settings.features, catalog.specs, catalog.sources.values()
        ).under(revocations),
        index=index,
        loader=loader,
        tokens=MappingProxyType(_tokens((*catalog.specs, loader), before)),
        digests=_digests(snapshot, catalog),
        warnings=(
            *unreachable_names(settings, index),
            *crowded_profiles(settings, index),
            *unusable_replacements(catalog.specs),
        ),
    )


def _index(
    settings: Settings, catalog: Catalog, names: WireNames, before: Generation | None
) -> SearchIndex:
    """The index of ``before`` if it is about the same tools, else one that takes from it what it can."""
    weights, synonyms = field_weights(settings), settings.search.synonyms
    if before is None:
        return build_index(catalog.specs, names, weights, synonyms=synonyms)
    same_tools = catalog.specs == before.catalog.specs  # equal only if they are the same objects
    main = before.profiles[before.default_profile]
    if (
        same_tools
        and main.names.separator == names.separator
        and field_weights(before.settings) == weights
        and before.settings.search.synonyms == synonyms
    ):
        return before.index
    return build_index(catalog.specs, names, weights, before.index, synonyms)


def _clashes(tools: Iterable[str], separator: str) -> tuple[str, ...]:
    return tuple(tool for tool in tools if meets_tool_search(tool, separator))


def field_weights(settings: Settings) -> FieldWeights:
    """How much a match in each field counts, as configured."""
    weights = settings.search
    return FieldWeights(
        name=weights.name,
        namespace=weights.namespace,
        aliases=weights.aliases,
        hints=weights.hints,
        description=weights.description,
        parameters=weights.parameters,
        parameter_descriptions=weights.parameter_descriptions,
        enums=weights.enums,
        synonym_share=weights.synonym_share,
        translation_share=weights.translation_share,
        saturation=weights.saturation,
        rarity=weights.rarity,
    )


def _tokens(specs: Iterable[ToolSpec], before: Generation | None) -> dict[str, int]:
    known = {} if before is None else {spec.name: spec for spec in before.catalog.specs}
    counted = {} if before is None else before.schema_tokens
    return {
        spec.name: counted[spec.name] if known.get(spec.name) is spec else schema_tokens(spec)
        for spec in specs
    }


def schema_tokens(spec: ToolSpec) -> int:
    """Characters over four of what a request carries for a tool."""
    parameters = json.dumps(spec.parameters, ensure_ascii=False, separators=(",", ":"))
    description = described(spec, None if spec.deprecated is None else spec.deprecated.replacement)
    return (len(spec.name) + len(description) + len(parameters) + TOOL_FRAME_CHARS) // 4


def _digests(snapshot: ConfigSnapshot, catalog: Catalog) -> Digests:
    return Digests(
        whole=_digest(snapshot.digest, catalog),
        shared=digest_of(snapshot.settings, snapshot.provenance, snapshot.system_prompt, OWN),
        tools=_digest("", catalog),
        prompt=digest_of_text(snapshot.system_prompt),
        models=MappingProxyType(model_digests(snapshot)),
    )


def _digest(configuration: str, catalog: Catalog) -> str:
    """Covers the configuration, by its digest, and every tool (REL-1)."""
    hasher = hashlib.blake2b(configuration.encode(), digest_size=16)
    for spec in catalog.specs:
        hasher.update(f"\0{spec.name}\0{spec.digest}".encode())
    return hasher.hexdigest()
