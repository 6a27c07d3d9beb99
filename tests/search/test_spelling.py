from hypothesis import given
from hypothesis import strategies as st

from session_runtime.search.spelling import Spelling, build_spelling, near_texts, one_letter_apart

_LETTERS = "abcdefgh"
_words = st.text(alphabet=_LETTERS, min_size=4, max_size=8)


def spelling_of(words: list[str]) -> Spelling:
    return build_spelling(words, None)


def one_letter_away(word: str) -> set[str]:
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    missing = {left + right[1:] for left, right in cuts if right}
    swapped = {left + right[1] + right[0] + right[2:] for left, right in cuts if len(right) > 1}
    changed = {left + letter + right[1:] for left, right in cuts if right for letter in _LETTERS}
    added = {left + letter + right for left, right in cuts for letter in _LETTERS}
    return (missing | swapped | changed | added) - {word}


def test_a_letter_changed_missing_added_or_swapped_is_found() -> None:
    spelling = spelling_of(["reminder", "message", "weather"])
    found = [
        spelling.near(word) for word in ("remidner", "mesage", "weatherr", "wxather", "wether")
    ]
    assert found == [["reminder"], ["message"], ["weather"], ["weather"], ["weather"]]


def test_short_words_and_two_letters_are_not_corrected() -> None:
    spelling = spelling_of(["end", "list", "message"])
    assert [spelling.near(word) for word in ("edn", "lits", "messgaes", "", "天气预报")] == [
        [],
        ["list"],
        [],
        [],
        [],
    ]


@given(st.lists(_words, min_size=1, max_size=20, unique=True), _words)
def test_exactly_the_words_one_letter_away_are_found(words: list[str], asked: str) -> None:
    near = one_letter_away(asked)
    assert spelling_of(words).near(asked) == sorted(word for word in words if word in near)


@given(st.lists(_words, unique=True), st.integers(0, 9), _words)
def test_words_that_come_later_are_found_as_if_they_had_been_known_at_once(
    words: list[str], first: int, asked: str
) -> None:
    grown = build_spelling(words, spelling_of(words[:first]))
    assert grown.near(asked) == spelling_of(words).near(asked)


def test_a_word_of_any_length_that_may_be_corrected_is_found_without_any_of_its_letters() -> None:
    words = ["letterboxes"[:length] + "z" * max(0, length - 11) for length in range(4, 25)]
    spelling = spelling_of(words)
    for word in words:
        shorter = {word[:cut] + word[cut + 1 :] for cut in range(len(word))}
        assert [
            cut for cut in shorter if len(cut) >= 4 and word not in (*spelling.near(cut), cut)
        ] == []


@given(
    st.lists(st.text("abé天", min_size=1, max_size=4), unique=True), st.text("abé天", max_size=4)
)
def test_the_near_ones_of_many_texts_are_all_that_are_one_letter_apart(
    texts: list[str], text: str
) -> None:
    wanted = [other for other in texts if text and one_letter_apart(text, other)]
    assert near_texts(texts).near(text) == wanted
