"""Chinese is found in whichever characters it is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.search import index_tools
from session_runtime.search.han import simplify
from session_runtime.search.terms import normalise
from tests.search import han_variants
from tests.search.catalogues import ranked, tool, view_of

TOOLS = (
    tool("notices.list", "查询群组公告列表"),
    tool("group.avatar", "获取成员头像图片"),
    tool("scheduler.create", "创建定时任务,稍后发送提醒"),
    tool("music.lyrics", "歌词和音乐评论"),
)


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("simplified", "other"),
    [
        ("群组公告列表", "群組公告列表"),
        ("获取头像", "獲取頭像"),
        ("创建定时任务", "創建定時任務"),
        ("创建定时任务", "創建定时任務"),
        ("音乐评论", "音樂評論"),
        ("音乐评论", "音楽評論"),
        ("获取图片", "獲取図片"),
        ("稍后 提醒", "稍後　提醒"),
        ("发送", "發送"),
    ],
)
def test_traditional_mixed_and_japanese_characters_find_what_simplified_ones_find(
    simplified: str, other: str
) -> None:
    view = view_of(*TOOLS)
    assert view.rank(other, 4) == view.rank(simplified, 4) != []


@pytest.mark.requirement("TS-8")
def test_a_description_in_traditional_characters_is_found_by_simplified_ones() -> None:
    view = view_of(*TOOLS, tool("weather.query", "查詢明後天的天氣與氣溫"))
    assert ranked(view, "后天的天气")[0] == "weather.query"
    assert ranked(view, "天气 +气温") == ["weather.query"]


@pytest.mark.requirement("TS-7")
def test_a_name_is_exact_in_either_script_and_its_own_spelling_comes_first() -> None:
    index = index_tools([{"name": "天氣.查詢"}, {"name": "音樂.播放"}, {"name": "音乐.播放"}])
    assert index.rank("天气.查询", 5) == [("天氣.查詢", 3.0)]
    assert index.rank("音樂.播放", 5) == [("音樂.播放", 3.0)]
    assert index.rank("音乐.播放", 5) == [("音乐.播放", 3.0)]


@given(st.text(st.characters(min_codepoint=0x3000, max_codepoint=0xFFFF)))
def test_any_text_keeps_its_length_and_is_simplified_once_and_for_all(text: str) -> None:
    once = simplify(text)
    assert len(once) == len(text)
    assert simplify(once) == once
    assert normalise(normalise(text)) == normalise(text)


def test_the_table_is_that_of_the_library() -> None:
    assert han_variants.FILE.read_text("utf-8") == han_variants.made()
