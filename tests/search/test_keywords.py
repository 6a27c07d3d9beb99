"""What outranks what for keywords."""

from dataclasses import fields, replace

import pytest

from session_runtime.registry.names import build_wire_names
from session_runtime.search import FieldWeights, build_index, index_tools
from tests.search.catalogues import CHAT_BOT_ZH, MUSIC, ranked, tool, view_of


@pytest.mark.requirement("TS-8")
def test_a_compound_word_that_matches_a_name_does_not_find_mere_mentions() -> None:
    assert ranked(view_of(*MUSIC), "search_songs") == ["music.search_songs"]
    assert ranked(view_of(*MUSIC), "searchSongs") == ["music.search_songs"]


@pytest.mark.requirement("TS-8")
def test_a_compound_word_that_matches_no_name_finds_what_mentions_it() -> None:
    view = view_of(tool("a.fetch", "wraps do_the_job"), tool("b.other", "nothing of it"))
    assert ranked(view, "do_the_job") == ["a.fetch"]


@pytest.mark.requirement("TS-8")
def test_plain_words_beside_a_compound_one_still_find_descriptions() -> None:
    assert ranked(view_of(*MUSIC), "search_songs lyrics") == [
        "music.search_songs",
        "music.get_lyrics",
    ]


@pytest.mark.requirement("TS-8")
def test_a_required_word_must_occur_in_name_parameters_or_descriptions() -> None:
    view = view_of(
        tool("a.member", "of a group"),
        tool("b.member", "of a team", {"who": "the user"}),
        tool("c.member_of_user", ""),
        tool("d.member", "", {"user_id": ""}),
        tool("e.member", "users of a group"),
    )
    assert sorted(ranked(view, "member +user")) == [
        "b.member",
        "c.member_of_user",
        "d.member",
        "e.member",
    ]
    assert ranked(view, "member +usher") == []


@pytest.mark.requirement("TS-8")
def test_a_required_word_is_not_met_by_a_value_that_a_parameter_allows() -> None:
    mode = {"type": "object", "properties": {"mode": {"enum": ["eager", "lazy"]}}}
    index = index_tools([{"name": "load", "parameters": mode}])
    assert index.rank("eager", 5) != index.rank("+eager", 5) == []


@pytest.mark.requirement("TS-8")
def test_a_required_word_is_not_met_by_the_hints_of_an_operator() -> None:
    view = view_of(
        tool("a.play", "plays a song", search_hints=("concert",), examples=("a concert, please",)),
        tool("b.visit", "of a concert"),
        tool("c.visit", "", aliases=("concert",)),
    )
    assert "a.play" in ranked(view, "concert visit")
    assert sorted(ranked(view, "+concert")) == ["b.visit", "c.visit"]


@pytest.mark.requirement("TS-8")
def test_a_required_word_is_met_by_its_stem_but_not_by_a_synonym_or_a_correction() -> None:
    view = view_of(tool("file.remove", "removes files"), tool("file.reminder", "reminds"))
    assert ranked(view, "file +removing") == ["file.remove"]
    assert ranked(view, "file +delete") == []
    assert ranked(view, "file +remindre") == []


@pytest.mark.requirement("TS-8")
def test_a_required_compound_needs_all_its_parts() -> None:
    view = view_of(tool("a.member_info"), tool("b.member"), tool("c.memberInfo"), tool("d.info"))
    assert sorted(ranked(view, "+member_info")) == ["a.member_info", "c.memberInfo"]


@pytest.mark.requirement("TS-8")
def test_a_name_with_every_word_comes_before_a_description_stuffed_with_them() -> None:
    stuffed = tool("z.universal", "search songs " * 200, {"songs": "search songs " * 50})
    view = view_of(*MUSIC, stuffed, tool("a.other", "search for songs and search songs"))
    assert ranked(view, "songs search")[0] == "music.search_songs"


@pytest.mark.requirement("TS-8")
def test_repeating_a_word_in_the_description_does_not_lift_a_tool_above_a_name() -> None:
    honest = tool("weather.forecast", "Says how it will be outside")
    stuffed = tool("z.tool", "weather " * 300)
    assert ranked(view_of(honest, stuffed, *MUSIC), "weather tomorrow")[0] == "weather.forecast"


@pytest.mark.requirement("TS-8")
def test_a_short_word_matches_whole_words_only() -> None:
    view = view_of(tool("post.comment", "some thing"), tool("user.me", "the account"))
    assert ranked(view, "me account") == ["user.me"]


@pytest.mark.requirement("TS-8")
def test_a_list_of_keywords_that_no_tool_meets_by_half_finds_nothing() -> None:
    specs = (
        tool("workflow.run", "run a workflow"),
        tool("cloud.shell", "opens a terminal"),
        tool("voice.command", "speech"),
        tool("zip.code", "postal areas"),
        tool("zoo.python", "a snake"),
    )
    assert ranked(view_of(*specs), "run shell command code python") == []
    fitting = tool("sandbox.run_python", "run code in a shell")
    assert ranked(view_of(*specs, fitting), "run shell command code python")[0] == fitting.name


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("remidner", "reminder.create"),
        ("wether forcast", "weather.forecast"),
        ("translatee", "translate.text"),
        ("sendprivate", "messages.send_private"),
        ("reminders", "reminder.create"),
        ("ｗｅａｔｈｅｒ", "weather.forecast"),
        ("delete a member", "group.kick_member"),
    ],
)
def test_typing_errors_glued_words_and_plurals_are_understood(query: str, name: str) -> None:
    assert name in ranked(view_of(*CHAT_BOT_ZH), query)


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("群成员列表", "group.get_member_list"),
        ("成员 资料", "group.get_member_info"),
        ("资料成员", "group.get_member_info"),
        ("帮我看看明天的天气怎么样", "weather.forecast"),
        ("执行Python代码", "code.run_python"),
        ("把这句话翻译成英语", "translate.text"),
        ("我想听歌", "music.play"),
        ("画图", "media.generate_image"),
        ("提醒我八点开会", "reminder.create"),
        ("撤回消息", "messages.recall"),
        ("美元换人民币汇率", "finance.exchange_rate"),
        ("语音 文字", "media.text_to_speech"),
    ],
)
def test_chinese_requests_find_their_tool(query: str, name: str) -> None:
    assert name in ranked(view_of(*CHAT_BOT_ZH), query)


@pytest.mark.requirement("TS-8")
def test_a_chinese_request_finds_a_tool_that_is_described_in_english() -> None:
    assert ranked(view_of(*MUSIC, tool("weather.forecast", "Weather of a city")), "天气预报") == [
        "weather.forecast"
    ]


@pytest.mark.requirement("TS-8")
def test_a_match_by_chance_beside_a_good_one_is_none() -> None:
    good = tool("weather.forecast", "天气预报查询")
    aside = tool("music.player", "plays songs", {"query": "what to search"})
    assert ranked(view_of(good, aside), "查询天气预报") == ["weather.forecast"]
    assert ranked(view_of(aside), "查询天气预报") == ["music.player"]


@pytest.mark.requirement("TS-8")
def test_equal_scores_are_ordered_by_name() -> None:
    view = view_of(*(tool(name, "the same text") for name in ("b", "C", "a", "B")))
    assert ranked(view, "same text") == ["B", "C", "a", "b"]


@pytest.mark.requirement("INT-5")
def test_the_parts_of_an_explanation_add_up_to_the_score() -> None:
    view = view_of(*MUSIC)
    explained = view.explain("search songs by +title", 5)
    assert [(item["name"], item["score"]) for item in explained] == view.rank(
        "search songs by +title", 5
    )
    for item in explained:
        parts = item["parts"]
        assert isinstance(parts, list)
        assert sum(part["score"] for part in parts) == pytest.approx(item["score"])


@pytest.mark.requirement("INT-5")
def test_an_explanation_tells_which_word_brought_what_in_which_field() -> None:
    view = view_of(tool("a.songs", "finds songs"), tool("b.end", "ends"))
    (only,) = view.explain("song", 5)
    fields = [(part["word"], part["field"]) for part in only["parts"]]  # type: ignore[attr-defined]
    assert fields == [("song", "layer"), ("song", "name"), ("song", "description")]


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize("weight", [0.0, 1e-308, 1e308])
@pytest.mark.parametrize("key", [field.name for field in fields(FieldWeights)])
def test_scores_are_numbers_in_their_layer_whatever_the_weights(key: str, weight: float) -> None:
    names = build_wire_names([spec.name for spec in MUSIC], "__")
    index = build_index(MUSIC, names, replace(FieldWeights(), **{key: weight}))
    hidden_last = index.view(index.full_mask >> 1)
    for query in ("find songs", "member profile", "search", "end the conversation"):
        scores = [score for _, score in hidden_last.rank(query, 9)]
        assert all(0 < score < 3 or score == 3 for score in scores)
        assert scores == sorted(scores, reverse=True)


@pytest.mark.requirement("TS-8")
def test_a_required_word_is_required_in_quotes_too() -> None:
    view = view_of(tool("a.member", "of a group"), tool("b.member", "a user of a group"))
    for query in ("member +user", "member '+user'", '"+user member"', "member “+user”"):
        assert ranked(view, query) == ["b.member"]


@pytest.mark.requirement("TS-8")
def test_one_character_in_common_is_no_match_unless_it_is_of_the_name() -> None:
    view = view_of(tool("a.poem", "写一首诗"), tool("灯", "照明"), tool("c.poke", "戳一戳好友"))
    assert ranked(view, "戳一戳") == ["c.poke"]
    assert ranked(view, "首饰清单") == []
    assert ranked(view, "开灯吧") == ["灯"]
    for query in ("你好", "他是谁", "谢谢你"):
        assert ranked(view, query) == []


@pytest.mark.requirement("TS-8")
def test_one_character_that_a_tool_has_a_translation_of_is_enough_however_long_the_query() -> None:
    view = view_of(
        tool("calculator", "does sums and calculates"),
        tool("days.until", "还有三天七小时"),
        tool("memo", "记一下"),
    )
    for query in ("算一下", "算一下三乘以七", "帮我算三加五", "再算算三乘以七等于多少"):
        assert ranked(view, query)[0] == "calculator"
