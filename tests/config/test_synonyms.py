import pytest

from session_runtime.errors import ConfigError
from tests.config.conftest import Reader


@pytest.mark.requirement("TS-8")
def test_groups_of_synonyms_are_read_without_case(read: Reader) -> None:
    settings = read('[search]\nsynonyms = ["Ticket issue 工单", "mr merge"]').settings
    assert settings.search.synonyms == ("ticket issue 工单", "mr merge")


@pytest.mark.requirement("TS-8")
def test_words_of_any_script_and_two_words_for_one_are_read(read: Reader) -> None:
    settings = read('[search]\nsynonyms = ["ＶＭ virtual_machine ｻｰﾊﾞｰ 서버 虛擬機 mp3"]').settings
    assert settings.search.synonyms == ("vm virtual_machine サーバー 서버 虛擬機 mp3",)


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("group", "fault"),
    [
        ("ticket", "needs 2 to 20 words, with blanks between them"),
        ("", "needs 2 to 20 words, with blanks between them"),
        ("a " * 21, "needs 2 to 20 words, with blanks between them"),
        (
            "pull-request merge",
            "holds 'pull-request', which is neither one word of letters and digits (64 at most)"
            " nor two of the letters a to z with _ between them",
        ),
        ("a_b_c merge", "holds 'a_b_c', which is neither one word"),
        ("vm_2 merge", "holds 'vm_2', which is neither one word"),
        ("ＶＭ vm", "holds 'vm' twice"),
        (f"{'x' * 65} merge", f"holds '{'x' * 65}', which is neither one word"),
        ("T恤 shirt", "holds 't恤', which mixes scripts: a query has these as two words"),
        (
            f"{'天气' * 7} weather",
            f"holds '{'天气' * 7}': words of Chinese, Japanese or Korean have 12 characters at most",
        ),
    ],
)
def test_a_group_that_could_find_nothing_is_refused(read: Reader, group: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(f'[search]\nsynonyms = ["{group}"]')
    assert f"search.synonyms: item 1 {fault}" in str(caught.value)
