from session_runtime.lru import Lru


def test_a_value_is_made_once_and_the_one_used_longest_ago_is_forgotten() -> None:
    made: list[str] = []
    kept: Lru[str, int] = Lru(2)

    def make(key: str) -> int:
        made.append(key)
        return len(made)

    values = [kept.get_or_make(key, make) for key in ("a", "b", "a", "c", "a", "b")]
    assert values == [1, 2, 1, 3, 1, 4]
    assert made == ["a", "b", "c", "b"]
    assert len(kept) == 2


def test_what_is_kept_is_bounded_by_its_size_and_what_is_too_large_is_not_kept() -> None:
    kept: Lru[str, str] = Lru(10, lambda key, value: len(key) + len(value))
    for key in ("a", "b", "c"):
        assert kept.get_or_make(key, lambda made: made * 3) == key * 3
    assert (len(kept), kept.taken) == (2, 8)
    assert kept.get_or_make("d", lambda key: key * 50) == "d" * 50
    assert (len(kept), kept.taken) == (2, 8)


def test_who_makes_the_same_value_meanwhile_takes_no_room_twice() -> None:
    kept: Lru[str, str] = Lru(10, lambda key, value: len(value))

    def make_twice(key: str) -> str:
        kept.get_or_make(key, lambda key: "first")
        return "again"

    assert kept.get_or_make("a", make_twice) == "again"
    assert (len(kept), kept.taken) == (1, 5)
