"""Every word of the tables that come along can be reached; none stands there for nothing."""

import pytest

from session_runtime.registry.names import build_wire_names
from session_runtime.search import FieldWeights, build_index, index_tools
from session_runtime.search.deeds import NO_DEED, WORDS_BY_DEED, deed_of
from session_runtime.search.spoken import FILLERS, KEPT, telling_terms
from session_runtime.search.synonyms import groups
from session_runtime.search.terms import (
    LIGHT_WORDS,
    SMALL_WORDS,
    STOP_WORDS,
    Lexicon,
    analyse,
    normalise,
)
from tests.search.catalogues import CHAT_BOT_ZH, MUSIC, ranked, tool, view_of

GROUPS = groups()


def same(group: str) -> list[str]:
    return group.partition(" > ")[0].split()


def meant(group: str) -> list[str]:
    """The words of a group, those that only the others mean last."""
    return group.replace(" > ", " ").split()


WORDS = tuple(dict.fromkeys(word for group in GROUPS for word in meant(group)))


def as_said(word: str) -> str:
    return word.replace("_", " ")


@pytest.mark.requirement("TS-8")
def test_every_synonym_finds_every_other_of_its_group() -> None:
    names = {word: f"t{at}" for at, word in enumerate(WORDS)}
    index = index_tools({"name": names[word], "description": as_said(word)} for word in WORDS)
    found = {word: dict(index.rank(as_said(word), len(WORDS))) for word in WORDS}
    pairs = [
        (word, other)
        for group in GROUPS
        for word in same(group)
        for other in meant(group)
        if word != other
    ]
    assert [(word, other) for word, other in pairs if names[other] not in found[word]] == []


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("deed", "thing", "finds"),
    [
        ("下雨", "天气", True),
        ("天气", "下雨", False),
        ("打车", "taxi", True),
        ("taxi", "打车", False),
        ("炒股", "stock", True),
        ("stock", "炒股", False),
        ("画", "image", False),
        ("image", "draw", False),
        ("图片", "画一幅", False),
        ("解压", "compress", False),
        ("location", "租车", False),
        ("police", "alarm", False),
        ("redis cluster", "kubernetes", False),
    ],
)
def test_who_asks_for_a_deed_means_its_object_but_not_the_other_way_round(
    deed: str, thing: str, finds: bool
) -> None:
    view = view_of(tool("t1", f"{thing} here"), tool("t2", "nothing"), tool("t3"))
    assert ranked(view, deed) == (["t1"] if finds else [])


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    "request_text", ["画一只猫", "帮我画个房子", "draw a cat", "paint a house"]
)
def test_not_every_tool_for_images_draws(request_text: str) -> None:
    others = (tool(f"image.{deed}", f"{deed} an image") for deed in ("compress", "crop", "send"))
    view = view_of(tool("media.generate_image", "from a description"), *others, *MUSIC)
    assert ranked(view, request_text) == ["media.generate_image"]


@pytest.mark.requirement("TS-8")
def test_a_word_of_three_characters_is_found_by_its_translation_and_finds_it() -> None:
    view = view_of(tool("a.one", "打开文件夹"), tool("b.two", "opens a folder"), tool("c.three"))
    assert ranked(view, "folder") == ["b.two", "a.one"]
    assert ranked(view, "我的文件夹") == ["a.one", "b.two"]


@pytest.mark.requirement("TS-8")
def test_two_words_that_stand_for_one_find_it_together_but_neither_does_alone() -> None:
    view = view_of(tool("vm.start"), tool("washing.machine"), tool("tour.virtual"))
    assert ranked(view, "start the virtual machine")[0] == "vm.start"
    assert ranked(view, "washing machine") == ["washing.machine"]
    assert ranked(view, "virtual tour") == ["tour.virtual"]
    hosts = view_of(tool("a.start", "starts a virtual machine"), tool("b.wash", "a machine"))
    assert ranked(hosts, "vm") == ["a.start"]


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("サーバー", "okapi"),
        ("インターネット", "okapi"),
        ("인터넷", "okapi"),
        ("虛擬機器", "okapi"),
        ("forest giraffe", "okapi"),
        ("mp3", "okapi"),
        ("Ökapi", "鹿"),
    ],
)
def test_synonyms_of_an_operator_work_in_any_script(one: str, other: str) -> None:
    group = f"{one.replace(' ', '_')} {other}"
    wire = build_wire_names(["a.tool"], "__")
    for request, held in ((one, other), (other, one)):
        specs = (tool("a.tool", f"holds {held} here"),)
        with_it = build_index(specs, wire, FieldWeights(), synonyms=(group,))
        assert [name for name, _ in with_it.rank(request, 5)] == ["a.tool"]
        assert build_index(specs, wire, FieldWeights()).rank(request, 5) == []


def test_the_table_is_written_as_texts_are_compared() -> None:
    assert [group for group in GROUPS if normalise(group).casefold() != group] == []
    assert [
        group for group in GROUPS if len(meant(group)) < 2 or " ".join(group.split()) != group
    ] == []


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("request_text", "name"),
    [
        ("戳一戳他", "messages.send_poke"),
        ("拍一拍小明", "messages.send_poke"),
        ("忘掉刚才说的事", "memory.delete"),
        ("画一张猫的图", "media.generate_image"),
        ("画个房子", "media.generate_image"),
        ("PPT里写了什么", "files.read_pptx"),
        ("read the xlsx", "files.read_excel"),
        ("read the docx", "files.read_doc"),
        ("jpg to png", "files.convert_jpeg"),
    ],
)
def test_a_spoken_deed_or_the_ending_of_a_file_finds_its_tool(request_text: str, name: str) -> None:
    others = (
        tool("messages.send_poke", "sends a poke to a member"),
        tool("memory.delete", "删除一条记忆"),
        tool("files.read_pptx", "extracts the text"),
        tool("files.read_excel", "extracts the cells"),
        tool("files.read_doc", "extracts the text"),
        tool("files.convert_jpeg", "converts pictures"),
        tool("files.read_pdf", "文件里的一张图"),
    )
    assert ranked(view_of(*CHAT_BOT_ZH, *others), request_text)[0] == name


def test_no_group_holds_a_word_twice_or_is_held_by_another() -> None:
    lexicon = Lexicon()
    stems = {
        group: [frozenset(map(lexicon.stem, words)) for words in (same(group), meant(group))]
        for group in GROUPS
    }
    held = [
        (group, other)
        for group, (own, all_of_own) in stems.items()
        for other, (its, all_of_its) in stems.items()
        if group != other and own <= its and all_of_own <= all_of_its
    ]
    assert [group for group in GROUPS if len(set(meant(group))) < len(meant(group))] == []
    assert held == []
    assert len(set(GROUPS)) == len(GROUPS)


def test_no_word_is_both_without_weight_and_light_or_small_without_being_a_stop_word() -> None:
    assert not LIGHT_WORDS & STOP_WORDS
    assert SMALL_WORDS <= STOP_WORDS
    assert all(analyse(word).parts == (word,) for word in LIGHT_WORDS)
    assert all(word in analyse(word).parts for word in STOP_WORDS)


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize("filler", FILLERS.split())
def test_a_filler_of_a_chinese_sentence_leaves_the_words_around_it(filler: str) -> None:
    assert telling_terms(f"天气{filler}查询") == (*telling_terms("天气"), *telling_terms("查询"))
    assert telling_terms(filler) == analyse(filler).parts


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize("word", KEPT.split())
def test_a_chinese_word_that_holds_a_filler_stays_whole(word: str) -> None:
    assert word[:2] in telling_terms(f"天气{word}查询")


def test_every_word_of_a_deed_tells_it() -> None:
    for deed, words in enumerate(WORDS_BY_DEED, 1):
        assert {word: deed_of((word,)) for word in words.split()} == dict.fromkeys(
            words.split(), deed
        )
    assert deed_of(("天气",)) == NO_DEED


@pytest.mark.parametrize(
    ("request_text", "name"),
    [
        ("忘记密码", "auth.reset_password"),
        ("十分钟后叫我", "time.countdown"),
        ("我想学吉他", "music.tabs"),
        ("其他语言", "text.translate"),
    ],
)
def test_a_word_of_politeness_inside_of_another_word_is_left_in(
    request_text: str, name: str
) -> None:
    tools = (
        tool("auth.reset_password", "重置登录密码"),
        tool("user.delete_password", "删除已保存的密码"),
        tool("time.countdown", "倒计时，单位为分钟"),
        tool("music.tabs", "搜索吉他谱"),
        tool("text.between", "其中语言"),
        tool("text.translate", "其他语言翻译"),
    )
    assert ranked(view_of(*tools), request_text)[0] == name
