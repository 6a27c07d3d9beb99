"""Text without blanks: which characters are words of their own, and which are but parts of others."""

import pytest

from session_runtime.registry.names import build_wire_names
from session_runtime.search import FieldWeights, build_index
from session_runtime.search.spoken import parts_of_words, telling_pieces
from tests.search.catalogues import ranked, tool, view_of

KNOWN = frozenset("周 年 歌 票 雨 钱 酒 书 灯 门 画 买 写 酒店 机票 查询 歌手 绘画".split())
TOOLS = (
    tool("report.weekly", "the report of this week"),
    tool("report.yearly", "the report of this year"),
    tool("money.transfer", "sends money"),
    tool("wine.list", "lists wines"),
    tool("rain.alert", "warns of rain"),
    tool("song.play", "plays a song"),
    tool("light.switch", "turns on a light"),
    tool("ticket.order", "a ticket to a show"),
    tool("hotel.reserve", "a hotel for the night"),
    tool("image.paint", "with a brush"),
)


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("周杰伦", []),
        ("周星驰的电影", []),
        ("给周杰伦写信", []),
        ("钱学森是谁", []),
        ("歌手李雨", []),
        ("年糕怎么做", []),
        ("动画大全", []),
        ("播放周杰伦的歌", ["song.play"]),
        ("订酒店", ["hotel.reserve"]),
        ("酒店", ["hotel.reserve"]),
    ],
)
def test_a_name_or_a_word_is_not_cut_into_characters_that_mean_something_else(
    query: str, names: list[str]
) -> None:
    assert ranked(view_of(*TOOLS), query) == names


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("周", "report.weekly"),
        ("下周的安排", "report.weekly"),
        ("周杰伦这周来吗", "report.weekly"),
        ("去年", "report.yearly"),
        ("年底总结", "report.yearly"),
        ("转钱", "money.transfer"),
        ("放首歌", "song.play"),
        ("唱歌", "song.play"),
        ("开灯", "light.switch"),
        ("灯关了吗", "light.switch"),
        ("买张票", "ticket.order"),
        ("机票", "ticket.order"),
        ("画猫", "image.paint"),
        ("明天会下雨吗", "rain.alert"),
    ],
)
def test_a_character_that_is_a_word_of_its_own_finds_its_translation(query: str, name: str) -> None:
    assert ranked(view_of(*TOOLS), query)[0] == name


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("周杰伦", {"周"}),
        ("酒店", {"酒"}),
        ("机票", set()),
        ("绘画", {"画"}),
        ("画查询", set()),
        ("查询画", set()),
        ("歌手王雨", {"歌", "雨"}),
        ("王家卫的雨", set()),
        ("雨伞和雨", set()),
        ("雨伞", {"雨"}),
        ("唱歌", set()),
        ("没有", set()),
    ],
)
def test_a_thing_ends_its_word_and_a_deed_begins_it(text: str, inside: set[str]) -> None:
    assert parts_of_words(telling_pieces(text), KNOWN, 2) == inside


@pytest.mark.requirement("TS-8")
def test_a_character_of_an_operator_is_a_word_by_the_same_rule() -> None:
    specs = (tool("a.tool", "of an okapi"),)
    index = build_index(
        specs, build_wire_names(["a.tool"], "__"), FieldWeights(), synonyms=("鹿 okapi",)
    )
    assert [name for name, _ in index.rank("找鹿", 5)] == ["a.tool"]
    assert index.rank("鹿晗", 5) == []
