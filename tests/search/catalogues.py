"""Small catalogues that the search tests share, and strategies that make up others."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from session_runtime.registry.names import build_wire_names
from session_runtime.registry.spec import ToolSpec
from session_runtime.search import (
    FieldWeights,
    SearchIndex,
    SearchView,
    ToolSearchSession,
    build_index,
)

builds_indexes = settings(max_examples=30, deadline=None)
"""For properties whose every example builds an index or two."""


def tool(
    name: str,
    description: str = "",
    parameters: Mapping[str, str] | None = None,
    **extra: Any,
) -> ToolSpec:
    """A tool with string parameters, given as name and description."""
    properties = {
        key: {"type": "string", "description": text} for key, text in (parameters or {}).items()
    }
    return ToolSpec(
        name=name,
        description=description,
        parameters={"type": "object", "properties": properties},
        origin="handler",
        source_id="test",
        native_name=name,
        digest=f"{name}\0{description}\0{sorted(properties)}",
        **extra,
    )


def index_of(specs: Sequence[ToolSpec], separator: str = "__") -> SearchIndex:
    return build_index(
        specs, build_wire_names([spec.name for spec in specs], separator), FieldWeights()
    )


def view_of(*specs: ToolSpec) -> SearchView:
    index = index_of(specs)
    return index.view(index.full_mask)


def session_of(
    *specs: ToolSpec, base: Sequence[str] = (), max_results: int = 5, **extra: Any
) -> ToolSearchSession:
    return ToolSearchSession(
        view_of(*specs), base=base, max_results=max_results, directory_max_tokens=8000, **extra
    )


def ranked(view: SearchView, query: str, limit: int = 5) -> list[str]:
    return [name for name, _ in view.rank(query, limit)]


def result(
    loaded: Sequence[str] = (),
    *,
    already: Sequence[str] = (),
    not_found: Sequence[str] = (),
    truncated: bool = False,
    total: int,
) -> dict[str, Any]:
    """The five fields of a search result, to be compared whole."""
    return {
        "loaded": list(loaded),
        "already_loaded": list(already),
        "not_found": list(not_found),
        "truncated": truncated,
        "total_deferred_tools": total,
    }


MUSIC = (
    tool("music.search_songs", "Find songs by title or artist", {"keyword": "title or artist"}),
    tool("music.get_lyrics", "Lyrics of a song; call search_songs first", {"song_id": "the song"}),
    tool("web.search", "Search the web", {"query": "what to look for"}),
    tool("group.get_member_info", "Profile of a member of a group", {"user_id": "the member"}),
    tool("group.getMemberAvatar", "Portrait of a member", {"user_id": "the member"}),
    tool("messages.send_message", "Send a message to a chat", {"text": "what to say"}),
    tool("end", "Ends the conversation"),
)

CHAT_BOT_ZH = (
    tool("group.get_member_list", "获取群成员列表，可按加入时间排序", {"group_id": "群号"}),
    tool("group.get_member_info", "查询某个群成员的资料", {"user_id": "成员的号码"}),
    tool("group.kick_member", "把成员移出群聊", {"user_id": "要移出的成员"}),
    tool("group.mute_member", "禁言群成员", {"duration": "禁言时长，单位分钟"}),
    tool("messages.send_private", "给好友发送私聊消息", {"text": "消息内容"}),
    tool("messages.recall", "撤回一条已发送的消息", {"message_id": "消息编号"}),
    tool("messages.search_history", "在聊天记录里查找关键词", {"keyword": "关键词"}),
    tool("media.generate_image", "根据文字描述画一张图片", {"prompt": "画面描述"}),
    tool("media.text_to_speech", "把文字转换成语音", {"voice": "音色"}),
    tool("music.play", "点歌并播放音乐", {"song": "歌名"}),
    tool("weather.forecast", "未来几天的天气预报", {"city": "城市"}),
    tool("reminder.create", "创建定时提醒", {"at": "提醒时间"}),
    tool("code.run_python", "在沙箱里执行 Python 代码", {"source": "源代码"}),
    tool("web.fetch_page", "抓取网页并返回正文", {"url": "网址"}),
    tool("translate.text", "把一段文字翻译成别的语言", {"target": "目标语言"}),
    tool("finance.exchange_rate", "查询两种货币之间的汇率", {"base": "原货币"}),
    tool("travel.train_tickets", "查询火车票余票和车次", {"date": "出发日期"}),
    tool("fun.horoscope", "今日星座运势", {"sign": "星座"}),
    tool("vote.start", "在群里发起一次投票", {"options": "选项"}),
    tool("file.upload", "上传文件到群文件", {"path": "文件路径"}),
)

_SYLLABLES = (
    "get",
    "list",
    "user",
    "Member",
    "info",
    "send",
    "web",
    "page",
    "song",
    "天气",
    "消息",
    "2",
)
words = st.sampled_from(_SYLLABLES)
names = st.lists(words, min_size=1, max_size=4).flatmap(
    lambda parts: st.sampled_from(("_", ".", "-", "")).map(lambda between: between.join(parts))
)
phrases = st.lists(words, max_size=6).map(" ".join)
_requests = st.lists(st.one_of(phrases, phrases.map('"{}"'.format)), min_size=2, max_size=3).map(
    ". ".join
)
queries = st.one_of(
    phrases,
    _requests,
    names,
    st.lists(names, min_size=1, max_size=3).map(lambda found: "select:" + ",".join(found)),
    st.text(max_size=30),
)


@st.composite
def catalogues(draw: st.DrawFn) -> tuple[ToolSpec, ...]:
    """Tools with distinct names that share words, so that their statistics depend on each other."""
    chosen = draw(st.lists(names, min_size=1, max_size=12, unique=True))
    return tuple(
        tool(
            name,
            draw(phrases),
            draw(st.dictionaries(words, phrases, max_size=2)),
            aliases=tuple(draw(st.lists(names, max_size=1))),
        )
        for name in chosen
    )


_INFLECTED = (
    *("report", "reports", "reporting", "openReport", "get", "gets", "getURL", "urls", "geturl"),
    *("need", "needs", "doing", "open", "apple", "apples", "appel", "获取", "报告"),
)
_inflected = st.sampled_from(_INFLECTED)
_sentences = st.lists(_inflected, max_size=5).map(" ".join)
_joined_names = st.lists(_inflected, min_size=1, max_size=3).flatmap(
    lambda parts: st.sampled_from(("_", ".", "__", "")).map(lambda between: between.join(parts))
)


@st.composite
def misspelt(draw: st.DrawFn) -> str:
    """A known word with one letter missing, changed, added or swapped with the next."""
    word = draw(_inflected)
    at = draw(st.integers(0, len(word) - 1))
    left, letter, right = word[:at], word[at], word[at + 1 :]
    middles = ("", "x", letter + "x", right[:1] + letter)
    middle = draw(st.sampled_from(middles))
    return left + middle + (right[1:] if middle == middles[-1] else right)


_glued = st.lists(_inflected, min_size=2, max_size=2).map(lambda pair: "".join(pair).lower())
near_queries = st.one_of(
    st.lists(st.one_of(_inflected, misspelt(), _glued), min_size=1, max_size=4).map(" ".join),
    st.one_of(_inflected, misspelt(), _glued).map("+{}".format),
    st.one_of(_joined_names, misspelt()).map("select:{}".format),
)
"""Words, misspelt and glued ones among them, of the catalogues of ``inflected_catalogues``."""


@st.composite
def inflected_catalogues(draw: st.DrawFn) -> tuple[ToolSpec, ...]:
    """A few tools whose words are forms of the same words, or a letter away from each other."""
    chosen = draw(st.lists(_joined_names, min_size=1, max_size=6, unique=True))
    return tuple(
        tool(
            name,
            draw(_sentences),
            draw(st.dictionaries(_inflected, _sentences, max_size=1)),
            aliases=tuple(draw(st.lists(_joined_names, max_size=1))),
        )
        for name in chosen
    )
