"""Takes what did not change over from an earlier corpus: to sort it anew is what costs most."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from session_runtime.search.corpus import DOC_BITS, DOC_SHIFT, Corpus, Document

Entries = npt.NDArray[np.int64]

_MOST_FRESH = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Where the tools of the corpus ``then`` are now: ``places`` by their position in it, -1 for none.

    ``fresh`` are the positions of all others.
    """

    then: Corpus
    places: Entries
    fresh: tuple[int, ...]

    def entries(
        self, old: Entries, documents: Sequence[Document], part: Callable[[Document], Entries]
    ) -> Entries:
        """The sorted entries of all documents, from the sorted ``old`` ones; ``part`` gives those of one."""
        docs = old >> DOC_SHIFT & DOC_BITS
        places = self.places[docs]
        kept: Entries = (old + (places - docs << DOC_SHIFT))[places >= 0]
        added = [part(documents[at]) | at << DOC_SHIFT for at in self.fresh]
        if not added:
            return kept
        new = np.sort(np.concatenate(added))
        merged: Entries = np.insert(kept, np.searchsorted(kept, new), new)
        return merged


def moves_since(then: Corpus | None, documents: Sequence[Document]) -> Moves | None:
    """How tools moved; None where that does not help: most are new, or they stand in another order."""
    if then is None:
        return None
    places = np.full(len(then.documents), -1, dtype=np.int64)
    numbers = {key: at for at, key in enumerate(then.documents)}
    fresh: list[int] = []
    for at, document in enumerate(documents):
        number = numbers.get(document.key)
        if number is None:
            fresh.append(at)
        else:
            places[number] = at
    in_order = bool(np.all(np.diff(places[places >= 0]) > 0))
    few = len(fresh) <= _MOST_FRESH * len(documents)
    return Moves(then, places, tuple(fresh)) if in_order and few else None
