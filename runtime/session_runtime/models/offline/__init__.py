"""A stand-in for a language model that needs no network and no key: it matches words and fills forms.

It is not a language model. It understands nothing, writes fixed sentences, and exists so that a fresh
installation can be tried, demonstrated and tested with any tools at all.
"""

from session_runtime.models.offline.model import OfflineModel

__all__ = ["OfflineModel"]
