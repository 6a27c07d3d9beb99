"""Every word of the tables that come along can be reached; none stands there for nothing."""

from collections import Counter

import pytest

from session_runtime.search import index_tools
from session_runtime.search.spoken import FILLERS, KEPT, telling_terms
from session_runtime.search.synonyms import GROUPS
from session_runtime.search.terms import LIGHT_WORDS, STOP_WORDS, Lexicon, fillers_of, is_cjk

WORDS = tuple(dict.fromkeys(word for group in GROUPS for word in group.split()))


@pytest.mark.requirement("TS-8")
def test_every_synonym_finds_every_other_of_its_group() -> None:
    index = index_tools({"name": f"t{at}", "description": spoken(word)} for at, word in enumerate(WORDS))
    number = {word: f"t{at}" for at, word in enumerate(WORDS)}
    found = {word: {name for name, _ in index.rank(spoken(word), len(WORDS))} for word in WORDS}
    missed = [
        (word, other)
        for group in GROUPS
        for word in group.split()
        for other in group.split()
        if number[other] not in found[word]
    ]
    assert missed == []


def spoken(word: str) -> str:
    return word.replace("_", " ")


@pytest.mark.requirement("TS-8")
def test_no_group_holds_a_word_twice_and_no_group_stands_twice() -> None:
    lexicon = Lexicon()
    groups = [frozenset(map(lexicon.stem, group.split())) for group in GROUPS]
    assert [group for group in GROUPS if len(set(group.split())) < len(group.split())] == []
    assert [set(group) for group, times in Counter(groups).items() if times > 1] == []
    assert [set(group) for group in groups if any(group < other for other in groups)] == []
