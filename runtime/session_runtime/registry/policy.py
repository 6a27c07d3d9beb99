"""Who may act for whom, and see and call which tools (NET-2); ``ask`` only applies it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from session_runtime.config.tools import AccessRule, AccessSettings
from session_runtime.errors import RequestError
from session_runtime.registry.masks import bits, matching
from session_runtime.registry.patterns import Patterns
from session_runtime.registry.revocations import Revocations
from session_runtime.registry.revoked import RevokedTools
from session_runtime.registry.spec import Audience, ToolSource, ToolSpec
from session_runtime.types import LOCAL, Identity, Principal

_NOBODY = Identity()


def acting_for(principal: Principal, stated: Identity) -> Identity:
    """Whom a principal acts for: the identity that a request states, or itself if it states none.

    An identity without a user counts as one of the empty name, which only ``*`` fits. Raises
    RequestError (``auth.act_for``) that does not tell for whom it might act.
    """
    if principal.identity is None:
        return stated
    if stated == _NOBODY:
        return principal.identity
    if (stated.user or "") not in principal.act_for:
        whom = "others" if stated.user is None else f"the user {stated.user[:100]!r}"
        raise RequestError(
            f"{principal.name!r} may not act for {whom}: leave identity out, or let an operator add "
            f"to act_for in [http.keys]",
            code="auth.act_for",
        )
    return stated


def routed_as(principal: Principal, identity: Identity) -> Identity:
    """Whom a source with sessions of their own for some callers takes for the caller (RTE-2).

    ``identity`` with what of its roles and channel ``principal`` has too: to state them gains nothing
    (NET-2). Its user is kept: the operator says by ``act_for`` for whom a principal may ask.
    """
    own = principal.identity
    if own is None:
        return identity
    roles = None if identity.roles is None else identity.roles & (own.roles or frozenset())
    channel = identity.channel if identity.channel == own.channel else None
    return replace(identity, roles=roles, channel=channel)


@dataclass(frozen=True, slots=True)
class AgentTools:
    """What a sub-agent may use if who asks may: its ``own`` tools and ``shared`` ones, one bit each."""

    own: int
    shared: int


@dataclass(frozen=True, slots=True)
class Policy:
    """What an operator's rules mean for the tools of one catalogue; bit i stands for ``specs[i]``.

    A denial wins over everything; then comes what a rule allows, then the default. A tool is off
    while its feature is, if it is destructive and such tools are denied, and for an identity that
    lacks one of the roles it requires; a ``revoked`` one is off for everybody (REL-9). What a source
    does not offer to somebody is not there for them (RTE-2). The ``private`` tools of sub-agents are
    there for those alone; ``agents`` are those themselves, and the ``inner`` ones only other agents may
    call (ASK-11).
    """

    positions: Mapping[str, int]
    specs: Sequence[ToolSpec]
    rules: tuple["_Rule", ...]
    default: int
    switched_off: int
    destructive: int
    by_role: tuple[tuple[str, int], ...]
    revoked: RevokedTools
    offers: tuple["_Offers", ...] = ()
    private: int = 0
    agents: int = 0
    inner: int = 0

    def under(self, revocations: Revocations) -> "Policy":
        """The same policy without what is revoked, now or later."""
        return replace(self, revoked=RevokedTools(revocations, self.positions))

    def permitted(self, principal: Principal, identity: Identity) -> int:
        """Compute what may be seen and called for ``identity`` by ``principal``: what both may."""
        return self._shared(principal, identity) & ~self.inner

    def permitted_alone(self, principal: Principal, identity: Identity) -> int:
        """Compute the same where no ask is that a sub-agent could be a part of (ASK-11)."""
        return self.permitted(principal, identity) & ~self.agents

    def permitted_in(self, agent: AgentTools, principal: Principal, identity: Identity) -> int:
        """Compute what a sub-agent may use for who asks: of the shared tools what they may use too.

        Its own tools are allowed with it, and denied like any other (ASK-11).
        """
        shared = self._shared(principal, identity) & agent.shared
        return shared | (agent.own & self._ruled(principal, identity, agent.own))

    def _shared(self, principal: Principal, identity: Identity) -> int:
        offered = self._offered(routed_as(principal, identity)) & ~self.private
        return offered & self._ruled(principal, identity, 0)

    def mask(self, identity: Identity) -> int:
        """Compute the tools that ``identity`` may see and call if it asks now, one bit each."""
        return self.permitted(LOCAL, identity)

    def _offered(self, caller: Identity) -> int:
        """The tools that their sources offer to whom they take for the caller."""
        offered = -1
        for each in self.offers:
            offered &= each.to(caller)
        return offered

    def _ruled(self, principal: Principal, identity: Identity, granted: int) -> int:
        """What the rules leave of all tools for both; ``granted`` needs no rule that allows it."""
        mask = self._left(identity, granted)
        own = principal.identity
        return mask if own is None else mask & self._left(own, granted)

    def _left(self, identity: Identity, granted: int) -> int:
        allowed = self.default | granted
        denied = self.switched_off | self.destructive | self.revoked.mask
        for rule in self.rules:
            concerned = rule.concerns(identity)
            if concerned:
                allowed |= rule.allow
            if concerned is not False:
                denied |= rule.deny
        roles = identity.roles or frozenset()
        for role, tools in self.by_role:
            if role not in roles:
                denied |= tools
        return allowed & ~denied

    def why(self, identity: Identity, name: str, principal: Principal = LOCAL) -> str:
        """Name what decides about one tool; for operators only, never for the model (TS-2).

        Of ``principal`` only what a source makes of it is looked at.
        """
        if name not in self.positions:
            return f"there is no tool {name!r}"
        spec, bit = self.specs[self.positions[name]], 1 << self.positions[name]
        if (revocation := self.revoked.by(name)) is not None:
            return f"revoked: number {revocation.number}, the pattern {revocation.pattern!r}"
        if off := self._off(spec, bit):
            return off
        for rule in self.rules:
            concerned = rule.concerns(identity)
            if bit & rule.deny and concerned is not False:
                unsure = "" if concerned else ", because the caller does not state whom it is about"
                return f"denied by access.rules.{rule.name}{unsure}"
        if lacking := self._lacking(spec, bit, principal, identity):
            return f"denied: {lacking}"
        for rule in self.rules:
            if bit & rule.allow and rule.concerns(identity):
                return f"allowed by access.rules.{rule.name}"
        return f"{'allowed' if bit & self.default else 'denied'} by access.default"

    def ruling(self, principal: Principal, identity: Identity, name: str) -> str:
        """What decides where ``principal`` acts for ``identity``; said of it where it may do less itself."""
        said = self.why(identity, name, principal)
        if principal.identity is None or not said.startswith("allowed"):
            return said
        of_itself = self.why(principal.identity, name, principal)
        if of_itself.startswith("allowed"):
            return said
        return f"{of_itself}, for the caller {principal.name!r}"

    def _off(self, spec: ToolSpec, bit: int) -> str | None:
        """What keeps a tool from everybody."""
        if spec.owner:
            return f"for the sub-agent {spec.owner!r} alone"
        if spec.inner:
            return "for other sub-agents alone: callers in its agent.toml does not name main"
        if bit & self.switched_off:
            return f"off: its feature {spec.feature!r} is not on in [features]"
        if bit & self.destructive:
            return "denied by access.destructive, because it is destructive"
        return None

    def _lacking(
        self, spec: ToolSpec, bit: int, principal: Principal, identity: Identity
    ) -> str | None:
        """What keeps a caller from a tool whatever the rules say."""
        missing = sorted(spec.requires - (identity.roles or frozenset()))
        if missing:
            return f"it requires the role {missing[0]!r}"
        if not bit & self._offered(routed_as(principal, identity)):
            return f"{spec.source_id} has no session for this caller that lists it"
        return None


@dataclass(frozen=True, slots=True)
class _Offers:
    """What one source offers to each kind of callers; ``others`` are the tools of all other sources."""

    audience: Audience
    others: int
    by_kind: Mapping[str, int]

    def to(self, caller: Identity) -> int:
        """All tools but those of this source that it does not offer to ``caller``."""
        offered = self.others
        for kind in self.audience.kinds_of(caller):
            offered |= self.by_kind.get(kind, 0)
        return offered


@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule of the operator; a condition that is None always holds."""

    name: str
    roles: frozenset[str]
    users: Patterns | None
    channels: Patterns | None
    allow: int
    deny: int

    def concerns(self, identity: Identity) -> bool | None:
        """Whether the rule is about ``identity``; None if an attribute it needs is not stated."""
        answers = (
            self._has_role(identity.roles),
            _holds(self.users, identity.user),
            _holds(self.channels, identity.channel),
        )
        if False in answers:
            return False
        return None if None in answers else True

    def _has_role(self, roles: frozenset[str] | None) -> bool | None:
        if not self.roles:
            return True
        return None if roles is None else not self.roles.isdisjoint(roles)


def compile_policy(
    access: AccessSettings,
    features: Mapping[str, bool],
    specs: Sequence[ToolSpec],
    sources: Iterable[ToolSource] = (),
) -> Policy:
    """Turn rules, features and offers into bit sets over ``specs``, so that a mask costs microseconds.

    Users, channels and tools are given as ``Patterns``; roles are exact.
    """
    positions = {spec.name: position for position, spec in enumerate(specs)}
    requiring: dict[str, list[int]] = {}
    for position, spec in enumerate(specs):
        for role in spec.requires:
            requiring.setdefault(role, []).append(position)
    destructive = [i for i, spec in enumerate(specs) if spec.annotations.destructive]
    off = [i for i, spec in enumerate(specs) if spec.feature and not features.get(spec.feature)]
    return Policy(
        positions,
        specs,
        tuple(_compile_rule(name, rule, positions) for name, rule in access.rules.items()),
        (1 << len(specs)) - 1 if access.default == "allow" else 0,
        bits(off),
        bits(destructive) if access.destructive == "deny" else 0,
        tuple((role, bits(tools)) for role, tools in sorted(requiring.items())),
        RevokedTools(Revocations(), positions),
        tuple(_compile_offers(specs, positions, sources)),
        bits([position for position, spec in enumerate(specs) if spec.owner]),
        bits([position for position, spec in enumerate(specs) if spec.origin == "agent"]),
        bits([position for position, spec in enumerate(specs) if spec.inner]),
    )


def _compile_offers(
    specs: Sequence[ToolSpec], positions: Mapping[str, int], sources: Iterable[ToolSource]
) -> Iterator[_Offers]:
    everything = (1 << len(specs)) - 1
    for source in sources:
        audience = source.audience
        if audience is None:
            continue
        own = bits([at for at, spec in enumerate(specs) if spec.source_id == source.id])
        by_kind = {
            kind: own & bits([positions[name] for name in names if name in positions])
            for kind, names in audience.offered().items()
        }
        yield _Offers(audience, everything & ~own, MappingProxyType(by_kind))


def _compile_rule(name: str, rule: AccessRule, positions: Mapping[str, int]) -> _Rule:
    return _Rule(
        name,
        frozenset(rule.roles),
        Patterns(rule.users) if rule.users else None,
        Patterns(rule.channels) if rule.channels else None,
        matching(rule.allow, positions),
        matching(rule.deny, positions),
    )


def _holds(condition: Patterns | None, value: str | None) -> bool | None:
    if condition is None:
        return True
    return None if value is None else value in condition
