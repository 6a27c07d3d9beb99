"""Small words (*on*, *before*) count where they are what tells two tools apart."""

import pytest

from session_runtime.search import index_tools
from session_runtime.search.terms import SMALL_WORDS, STOP_WORDS
from tests.search.catalogues import ranked, tool, view_of

PAIRS = [
    ("light.turn_on", "light.turn_off", "turn on the lights", "turn the lights off"),
    ("TurnOn", "TurnOff", "turn on the kitchen lamp", "please turn the lamp off"),
    ("sign_in", "sign_out", "sign in to the shop", "sign me out"),
    ("account.log_in", "account.log_out", "log in to my account", "log out of my account"),
    ("account.login", "account.logout", "log me in", "log out of my account"),
    ("account.log_in", "account.log_out", "login to my account", "logout of my account"),
    ("check_in", "check_out", "check in at the hotel", "check the guest out"),
    ("scale_up", "scale_down", "scale up the service", "scale the service down"),
    ("volumeUp", "volumeDown", "turn the volume up", "turn the volume down"),
    ("clock_in", "clock_out", "clock me in", "clock out"),
    ("list_after", "list_before", "list messages after noon", "list messages before noon"),
    ("alarm.above", "alarm.below", "alarm above 30 degrees", "alarm below 5 degrees"),
    ("convert_to", "convert_from", "convert to json", "convert from json"),
    ("export_with_images", "export_without_images", "export with images", "export without images"),
    ("delete_all_messages", "delete_message", "delete all my messages", "delete a message"),
    ("user.active", "user.not_active", "active users", "users that are not active"),
    ("list_mail", "list_only_unread_mail", "list the mail", "list only the unread mail"),
]


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize(("one", "other", "for_one", "for_other"), PAIRS)
def test_a_request_finds_the_one_of_two_tools_that_a_small_word_tells_apart(
    one: str, other: str, for_one: str, for_other: str, described: bool
) -> None:
    text = "Does it for a person who is at home" if described else ""
    index = index_tools({"name": name, "description": text} for name in (one, other, "a.other"))
    for request, wanted in ((for_one, one), (for_other, other)):
        (first, best), *rest = index.rank(request, 3)
        assert first == wanted
        assert all(score < best for _, score in rest)


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ("帮我把灯打开一下", "灯.打开"),
        ("開燈", "灯.打开"),
        ("关掉灯好吗", "灯.关闭"),
        ("我想退群", "退群"),
        ("能不能让我入群", "入群"),
        ("房间里降温吧", "房间.降温"),
        ("房间升温", "房间.升温"),
    ],
)
def test_a_chinese_request_finds_the_one_of_two_tools_that_a_character_tells_apart(
    request_: str, name: str
) -> None:
    names = ("灯.打开", "灯.关闭", "入群", "退群", "房间.升温", "房间.降温")
    texts = {"灯.打开": "开灯", "灯.关闭": "关灯"}
    view = view_of(*(tool(each, texts.get(each, "")) for each in names))
    assert ranked(view, request_)[0] == name


@pytest.mark.requirement("TS-8")
def test_a_small_word_counts_for_the_sentence_that_it_stands_in() -> None:
    rooms = ("kitchen", "garden")
    view = view_of(*(tool(f"{room}.lights_{way}") for room in rooms for way in ("on", "off")))
    request = "Kitchen on, please. Then the garden off."
    assert set(ranked(view, request)[:2]) == {"kitchen.lights_on", "garden.lights_off"}


@pytest.mark.requirement("TS-8")
def test_a_small_word_finds_nothing_by_itself_beside_other_words() -> None:
    view = view_of(tool("sign_in", "opens a session"), tool("weather.forecast"))
    assert ranked(view, "the weather in Lyon") == ["weather.forecast"]


@pytest.mark.requirement("TS-8")
def test_small_words_are_no_reason_to_find_less() -> None:
    view = view_of(tool("user.search"), tool("user.search_in_group"))
    assert ranked(view, "search users before noon") == ["user.search", "user.search_in_group"]


@pytest.mark.requirement("TS-8")
def test_two_words_are_not_read_as_one_that_says_nothing() -> None:
    view = view_of(tool("a.note", "goes into a book"), tool("z.log", "a log"))
    assert ranked(view, "log in to") == ["z.log"]


def test_small_words_are_stop_words() -> None:
    assert SMALL_WORDS <= STOP_WORDS


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ("sign in", "auth.log_in"),
        ("signin", "auth.log_in"),
        ("登录", "auth.log_in"),
        ("sign out", "auth.log_out"),
        ("log off", "auth.log_out"),
        ("登出", "auth.log_out"),
        ("打开灯", "lamp.turn_on"),
        ("把灯打开", "lamp.turn_on"),
        ("switch on the lamp", "lamp.turn_on"),
        ("关闭灯", "lamp.turn_off"),
        ("把灯关掉", "lamp.turn_off"),
        ("switch the lamp off", "lamp.turn_off"),
    ],
)
def test_a_verb_and_its_small_word_have_synonyms_and_translations(request_: str, name: str) -> None:
    view = view_of(
        tool("auth.log_in", "Opens a session"),
        tool("auth.log_out", "Closes a session"),
        tool("lamp.turn_off", "A lamp"),
        tool("lamp.turn_on", "A lamp"),
    )
    assert ranked(view, request_)[0] == name
