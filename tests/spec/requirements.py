"""Every rule of the contract as data, in the order of the contract page.

How a rule reads is decided in the ``rules_*`` modules; that tests prove what is marked as met, in
``test_requirements``.
"""

from types import MappingProxyType

from tests.spec.requirement import Requirement
from tests.spec.rules_ask import ASK
from tests.spec.rules_configuration import CONFIGURATION, RELOAD
from tests.spec.rules_interfaces import INTERFACES, NUMBERS
from tests.spec.rules_remote import DOORS, INSIGHT, REMOTE_TOOLS, SAFETY
from tests.spec.rules_tools import PREFETCH, REGISTRY, TOOL_SEARCH

FAMILIES = MappingProxyType(
    {
        "Configuration": CONFIGURATION,
        "Live reload": RELOAD,
        "Handlers": REGISTRY,
        "Tool search": TOOL_SEARCH,
        "Prefetch": PREFETCH,
        "The loop": ASK,
        "Remote tools": REMOTE_TOOLS,
        "Doors": DOORS,
        "Safety": SAFETY,
        "Insight": INSIGHT,
        "Interfaces": INTERFACES,
        "Numbers": NUMBERS,
    }
)

REQUIREMENTS: tuple[Requirement, ...] = tuple(
    rule for family in FAMILIES.values() for rule in family
)
