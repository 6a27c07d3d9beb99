"""Tools, and random rules, identities and keys about them, of so few values that they meet."""

from hypothesis import strategies as st

from session_runtime.config.http import HttpKey
from session_runtime.config.tools import AccessRule
from session_runtime.registry.keyring import hash_of, open_keyring
from session_runtime.types import Identity, Principal
from tests.registry.tools import spec

SPECS = (
    spec("admin.reset", requires=frozenset({"admin"})),
    spec("beta.try", feature="beta"),
    spec("files.delete"),
    spec("files.read"),
    spec("send_message"),
)
PATTERNS = st.lists(
    st.sampled_from(["*", "files.*", "files.read", "?end_message", "none"]), max_size=3
)
RULES = st.builds(
    lambda roles, users, channels, allow, deny: AccessRule(
        roles=tuple(roles),
        users=tuple(users),
        channels=tuple(channels),
        allow=tuple(allow),
        deny=(*deny, "nothing"),
    ),
    st.lists(st.sampled_from(["admin", "guest"]), max_size=2),
    st.lists(st.sampled_from(["al*", "eve"]), max_size=2),
    st.lists(st.sampled_from(["web", "*"]), max_size=2),
    PATTERNS,
    PATTERNS,
)
IDENTITIES = st.builds(
    Identity,
    st.sampled_from([None, "alice", "eve"]),
    st.none() | st.frozensets(st.sampled_from(["admin", "guest"])),
    st.sampled_from([None, "web", "ops"]),
    st.sampled_from([None, "family"]),
)

KEYS = st.builds(
    lambda roles, act_for, channel, group: HttpKey(
        hash=hash_of("sr_test"),
        roles=tuple(roles),
        act_for=tuple(act_for),
        channel=channel,
        group=group,
    ),
    st.lists(st.sampled_from(["admin", "guest"]), max_size=2),
    st.lists(st.sampled_from(["*", "al*", "eve"]), max_size=2),
    st.sampled_from([None, "web"]),
    st.sampled_from([None, "family"]),
)


def owner_of(name: str, key: HttpKey) -> Principal:
    """The principal of a key under ``name``."""
    [(_, principal)] = open_keyring({name: key}).owners
    return principal


PRINCIPALS = st.builds(owner_of, st.sampled_from(["bot", "eve", "alice"]), KEYS)
