import pytest

from session_runtime.errors import ConfigError
from tests.config.conftest import Reader


@pytest.mark.requirement("TS-8")
def test_groups_of_synonyms_are_read_without_case(read: Reader) -> None:
    settings = read('[search]\nsynonyms = ["Ticket issue 工单", "mr merge"]').settings
    assert settings.search.synonyms == ("ticket issue 工单", "mr merge")


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("group", "fault"),
    [
        ("ticket", "needs 2 to 20 words, with blanks between them"),
        ("", "needs 2 to 20 words, with blanks between them"),
        ("a " * 21, "needs 2 to 20 words, with blanks between them"),
        (
            "pull-request merge",
            "holds 'pull-request', which is no single word of letters and digits",
        ),
        ("天气预报 weather", "holds '天气预报': Chinese words have one or two characters there"),
    ],
)
def test_a_group_that_could_find_nothing_is_refused(read: Reader, group: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(f'[search]\nsynonyms = ["{group}"]')
    assert f"search.synonyms: item 1 {fault}" in str(caught.value)
