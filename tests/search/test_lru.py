from session_runtime.search.lru import Lru


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
