"""One client of the MCP door: which tools are listed for it now, and what its calls come to.

Every listing and every call is about the generation in force; a client keeps none. What it loaded by searches
and the long results of its calls stay until it leaves.
"""

import asyncio
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from session_runtime.ask.exposure import Exposure, Turn, open_exposure, prepare_directory
from session_runtime.ask.kept import KeptResults
from session_runtime.ask.unexposed import why_not_exposed
from session_runtime.errors import ToolError
from session_runtime.generation import Generation, Profile
from session_runtime.generation.unavailable import unavailable_to
from session_runtime.handler import HandlerContext, ProgressSink
from session_runtime.registry.invoke.consent import NOBODY, Consent
from session_runtime.registry.invoke.returned import ReturnedValue
from session_runtime.registry.names import RESULTS_READ
from session_runtime.registry.spec import ToolSpec
from session_runtime.transports.mcp.agreeing import Agreed, Person, Proposal
from session_runtime.transports.mcp.callers import MOST_ASKED, Caller, Callers
from session_runtime.transports.mcp.outcome import Outcome, Said, outcome_of, refusal
from session_runtime.transports.mcp.reading import Reading

MOST_CALLS: Final = 32
"""So many calls of one client run at once."""


@dataclass(frozen=True, slots=True)
class View:
    """What a client sees of one generation: ``exposure`` decides, ``turn`` is what is listed now."""

    generation: Generation
    mask: int
    exposure: Exposure
    turn: Turn

    @property
    def fingerprint(self) -> int:
        """Stands for all that a client could notice of the list: names and digests, in order."""
        return hash(tuple((spec.name, spec.digest) for spec in self.turn.tools))


class CallerSession:
    """What is listed for one client and what it calls; ``id`` stands for it in contexts and logs.

    One that ``remembers`` has tool search if an ask would, and keeps long results; for another, which is a
    single request, the whole permitted list stands from the start.
    """

    def __init__(self, callers: Callers, session_id: str, *, remembers: bool) -> None:
        self.id = session_id
        self._callers = callers
        self._remembers = remembers
        self._loaded: dict[str, None] = {}
        self._view: View | None = None
        self._shown: int | None = None
        self._permitted: frozenset[str] = frozenset()
        self._numbers = itertools.count(1)
        self._running = 0
        self._results = KeptResults(room=callers.room, revoked=self._may_not_read)

    async def prepare(self, caller: Caller) -> None:
        """Work out, aside if that takes long, what the next ``view`` shows."""
        generation = self._callers.generation
        mask = generation.policy.permitted_alone(caller.principal, caller.identity)
        if self._view is None or self._view.generation is not generation or self._view.mask != mask:
            profile = _for_clients(generation.profiles[generation.default_profile], self._remembers)
            await prepare_directory(generation, profile, mask, ())

    def view(self, caller: Caller) -> View:
        """What the client may see and call now, by the rules in force."""
        generation = self._callers.generation
        mask = generation.policy.permitted_alone(caller.principal, caller.identity)
        if self._view is None or self._view.generation is not generation or self._view.mask != mask:
            self._view = self._open(generation, caller, mask)
        return self._view

    def show(self, caller: Caller) -> View:
        """The same, for a client that lists it."""
        view = self.view(caller)
        self._shown = view.fingerprint
        return view

    def outdated(self, caller: Caller) -> bool:
        """Whether the client has listed something else than it would now; lets go of older generations."""
        return self.view(caller).fingerprint != self._shown and self._shown is not None

    def forget(self) -> None:
        """Hold nothing of the generation that was seen last."""
        self._view = None

    def directory(self, caller: Caller) -> str | None:
        """The text that names the tools to be searched for; None without tool search."""
        session = self.view(caller).exposure.session
        return None if session is None else session.directory

    async def call(
        self,
        caller: Caller,
        name: str,
        arguments: Mapping[str, Any],
        on_progress: ProgressSink | None = None,
        person: Person | None = None,
    ) -> Outcome:
        """Call a tool that is listed; raises nothing but the cancellation of whoever waits.

        ``person`` is asked about destructive tools, if the rules want one to be asked (RTE-9).
        """
        if self._running >= MOST_CALLS:
            return self._callers.count(
                refusal(
                    f"{MOST_CALLS} calls of this client are running: nothing was run. Wait for their results."
                )
            )
        self._running += 1
        try:
            call = _Call(caller, name, arguments, on_progress)
            outcome = await (self._once(call) if person is None else self._if_agreed(call, person))
            return self._callers.count(outcome)
        finally:
            self._running -= 1

    def close(self) -> None:
        """Forget what was kept for the client."""
        self._results.close()
        self.forget()

    async def _if_agreed(self, call: "_Call", person: Person) -> Outcome:
        """Make a call; if a person has to agree to it, ask, and then make it by what holds by then (RTE-9).

        While the person is asked the call holds no generation and counts as no running one.
        """
        proposal = Proposal()
        outcome = await self._once(replace(call, consent=proposal))
        if proposal.proposed is None:
            return outcome
        said = await self._ask(call, person, proposal.proposed.spec)
        if isinstance(said, str):
            return refusal(f"{call.name} was not run and nothing was changed: {said}.")
        return await self._once(replace(call, caller=said, consent=Agreed(proposal.digest)))

    async def _ask(self, call: "_Call", person: Person, spec: ToolSpec) -> Caller | str:
        with self._callers.asking(call.caller) as has_room:
            if has_room:
                return await person.ask(spec, call.arguments)
        return f"a person has to agree to it, and {MOST_ASKED} calls of yours wait for one already"

    async def _once(self, call: "_Call") -> Outcome:
        """Make a call by the generation in force."""
        if reason := self._callers.obstacle(call.caller):
            return refusal(reason)
        with self._callers.generations.pin() as generation:
            return await self._call(generation, call)

    async def _call(self, generation: Generation, call: "_Call") -> Outcome:
        await self.prepare(call.caller)
        view = self.view(call.caller)
        spec = view.turn.by_name.get(call.name)
        if spec is None:
            generation.invoker.lookups.add("unknown")
            _, reason = why_not_exposed(view.exposure, view.turn, call.name)
            return refusal(f"{reason}.")
        if spec.origin == "virtual":
            await view.exposure.prepare_search()
            return self._search(view, call.arguments)
        if not isinstance(call.consent, Agreed) and (over := self._callers.over_limit(call.caller)):
            return refusal(over)  # what a person agreed to was counted when it was proposed
        running = self._invoke(generation, view, spec, call)
        outcome = await self._callers.run(call.caller, call.name, running)
        return replace(outcome, loaded=self._load_reading(view))

    async def _invoke(
        self, generation: Generation, view: View, spec: ToolSpec, call: "_Call"
    ) -> Outcome:
        returned, said = ReturnedValue(), Said()
        readable = self._remembers and view.exposure.reads_results
        result = await generation.invoker.invoke(
            returned.within(generation.catalog, spec),
            spec,
            call.arguments,
            self._context(generation, call, said),
            self._results.place(readable=readable and spec.name != RESULTS_READ, tool=spec.name),
            principal=call.caller.principal,
            consent=call.consent,
        )
        return await outcome_of(returned, result, said.all())

    def _context(self, generation: Generation, call: "_Call", said: Said) -> HandlerContext:
        settings, call_id = generation.settings, f"call_{next(self._numbers)}"
        results = Reading(self._results, settings.ask.max_result_chars)
        context = HandlerContext(
            identity=call.caller.identity,
            ask_id=self.id,
            call_id=call_id,
            idempotency_key=f"{self.id}:{call_id}",
            deadline=asyncio.get_running_loop().time() + settings.runtime.ask_timeout_s,
            resources=self._callers.resources,
            on_message=said.add,
            services=generation.toolbox.services(
                call.caller.owner, results if self._remembers else None
            ),
            principal=call.caller.principal.name,
        )
        return (
            context if call.on_progress is None else replace(context, on_progress=call.on_progress)
        )

    def _search(self, view: View, arguments: Mapping[str, Any]) -> Outcome:
        """Load what is found; it is listed and can be called from now on."""
        problems = view.generation.loader.check.problems(arguments)
        session = view.exposure.session
        if problems or session is None:
            return Outcome("error", f"tool_search was not run: {'; '.join(problems)}.")
        wanted = arguments.get("max_results")
        try:
            found = session.search(arguments["query"], None if wanted is None else int(wanted))
        except ToolError as error:
            return refusal(str(error))
        self._add(view, found["loaded"])
        text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
        return Outcome("ok", text, structured=dict(found), loaded=tuple(found["loaded"]))

    def _load_reading(self, view: View) -> tuple[str, ...]:
        """Once a result was given by reference, list what reads it (ASK-8b)."""
        if not self._results.used or not view.exposure.load_results_read():
            return ()
        self._add(view, [RESULTS_READ])
        return (RESULTS_READ,)

    def _add(self, view: View, names: list[str]) -> None:
        self._loaded.update(dict.fromkeys(names))
        if names and self._view is view:
            self._view = replace(view, turn=view.exposure.next_turn())

    def _open(self, generation: Generation, caller: Caller, mask: int) -> View:
        """What an ask to the default profile would expose, with everything that was loaded before."""
        profile = _for_clients(generation.profiles[generation.default_profile], self._remembers)
        down = unavailable_to(generation, caller.principal, caller.identity, mask)
        exposure = open_exposure(generation, profile, mask, (), down)
        if exposure.session is not None:
            for name in self._loaded:
                exposure.session.load(name)
            exposure.session.next_turn()
        self._permitted = generation.permitted.get(mask).names
        return View(generation, mask, exposure, exposure.next_turn())

    def _may_not_read(self, tool: str) -> bool:
        """Whether a result of ``tool`` is out of reach by now; asked in any thread."""
        return tool not in self._permitted or tool in self._callers.generation.policy.revoked.names


@dataclass(frozen=True, slots=True)
class _Call:
    caller: Caller
    name: str
    arguments: Mapping[str, Any]
    on_progress: ProgressSink | None
    consent: Consent = NOBODY


def _for_clients(profile: Profile, remembers: bool) -> Profile:
    """The profile that decides on tool search: how many tools its model takes does not bind a client."""
    settings = profile.settings.model_copy(
        update={
            "max_tools": None,
            "supports_tool_search": profile.settings.supports_tool_search and remembers,
        }
    )
    return replace(profile, settings=settings)
