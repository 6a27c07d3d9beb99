"""Makes one tool of what is registered, or says why it cannot be used (REG-4).

Which candidates there are, and which of them count, is decided in ``scan``.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, assert_never

from session_runtime.config.agents import MAIN
from session_runtime.errors import PermanentError
from session_runtime.local.agents import AgentForm, read_form
from session_runtime.local.candidate import MANIFEST, Candidate, Material, Stamp, unusable
from session_runtime.local.code import Code, ImportPath, StoredCode, code_faults, stored_faults
from session_runtime.local.manifest import Manifest, read_manifest
from session_runtime.registry.names import canonical_name
from session_runtime.registry.patterns import Patterns
from session_runtime.registry.schema import ArgumentCheck, compile_schema
from session_runtime.registry.spec import Annotations, Deprecated, ToolSpec

SOURCE_ID: Final = "handlers"


@dataclass(frozen=True, slots=True, eq=False)
class LocalTool:
    """A tool, the check of its arguments, and where its code is.

    ``stamp`` tells, if it is known, that nothing changed since it was made. ``form`` is what makes it a
    sub-agent, whose code is its text.
    """

    spec: ToolSpec
    check: ArgumentCheck
    code: Code
    stamp: Stamp | None = None
    form: AgentForm | None = None


def make_tool(candidate: Candidate, before: LocalTool | None) -> LocalTool:
    """Read a candidate; what was made of it ``before`` is given again if nothing changed.

    Code that was edited has to be Python, so that a slip does not cost the form that worked, if it ever
    did; the start leaves that to the first call (REG-2). Raises PermanentError, or OSError, if it
    cannot be used.
    """
    stamp = candidate.stamp()  # before the files are read: what is written meanwhile is noticed
    if before is not None and stamp is not None and before.stamp == stamp:
        return before
    material = candidate.read()
    digest = _digest(candidate.name, material)
    if before is not None:
        if before.spec.digest == digest:
            return replace(before, stamp=stamp)
        is_new = before.code != material.code and not candidate.is_agent
        if is_new and not never_worked(before):
            _refuse_broken(material.code)
    return _tool(candidate, material, digest, stamp)


def never_worked(tool: LocalTool) -> bool:
    """Whether the code in the tool's folder is no Python, so that no call of it can have worked."""
    return tool.form is None and _fault(tool.code) is not None


def unimportable(tool: LocalTool) -> Iterator[str]:
    """Tell why each call of a tool can only fail; as ``code_faults``, it takes as long as compiling."""
    if tool.form is not None:
        return  # a sub-agent is text
    for fault in code_faults(tool.code):
        place = tool.spec.place
        yield f"tool {tool.spec.name!r}: its code in {place} cannot be imported: {fault}"


def _fault(code: Code) -> str | None:
    return next(stored_faults(code), None) if isinstance(code, StoredCode) else None


def _refuse_broken(code: Code) -> None:
    fault = _fault(code)
    if fault is not None:
        raise unusable(f"its code cannot be imported: {fault}")


def _tool(candidate: Candidate, material: Material, digest: str, stamp: Stamp | None) -> LocalTool:
    spec = _spec(candidate, read_manifest(material.manifest, material.label), digest)
    form = read_form(material) if candidate.is_agent else None
    if form is not None:
        inner = MAIN not in Patterns(form.settings.callers)
        spec = replace(spec, timeout_s=spec.timeout_s or form.settings.timeout_s, inner=inner)
    return LocalTool(spec, compile_schema(spec.parameters), material.code, stamp, form)


def _spec(candidate: Candidate, manifest: Manifest, digest: str) -> ToolSpec:
    function, options = manifest.function, manifest.runtime
    if canonical_name(function.name) not in (candidate.name, candidate.name.rpartition(".")[2]):
        raise PermanentError(
            f"function.name is {function.name!r} but it is registered as {candidate.name!r}:"
            " rename one",
            code="tool.name_invalid",
        )
    old = options.deprecated
    return ToolSpec(
        name=candidate.name,
        description=function.description,
        parameters=function.parameters,
        origin=candidate.origin,
        source_id=SOURCE_ID,
        native_name=candidate.native_name,
        place=candidate.place,
        digest=digest,
        annotations=Annotations(options.destructive, options.read_only, options.idempotent),
        requires=frozenset(options.requires),
        feature=options.feature,
        aliases=options.aliases,
        search_hints=options.search_hints,
        examples=options.examples,
        deprecated=Deprecated(old.reason, old.replacement) if old.is_stated else None,
        timeout_s=options.timeout_s,
        max_result_chars=options.max_result_chars,
        owner=candidate.owner,
    )


def _digest(name: str, material: Material) -> str:
    hasher = hashlib.blake2b(name.encode(), digest_size=16)
    for part, content in sorted({MANIFEST: material.manifest, **_parts(material)}.items()):
        hasher.update(b"\0%b\0%d\0%b" % (os.fsencode(part), len(content), content))
    return hasher.hexdigest()


def _parts(material: Material) -> Mapping[str, bytes]:
    """What code a tool has, as far as it can be told without importing it."""
    match material.code:
        case StoredCode(files=files):
            return files
        case ImportPath() as path:
            return {"import": str(path).encode(), "version": material.version.encode()}
        case _:
            assert_never(material.code)
