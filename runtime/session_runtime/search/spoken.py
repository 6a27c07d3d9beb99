"""What of spoken Chinese says nothing about a tool: forms of request, particles, pronouns.

Text without blanks is searched by characters and pairs, so such words are cut out before it is cut
up: no pair may hold half of one. Words that merely hold such a character (目的, 不要) stay whole.
"""

import re
from collections.abc import Container, Iterable
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from session_runtime.search.terms import STOP_WORDS, analyse

FILLERS = """
请问 请你 请您 请帮 麻烦 劳驾 拜托 帮我 帮忙 帮个忙 帮他 帮她 替我 给我 让我 告诉我 谢谢 多谢 感谢 您好 你好
我想知道 我想要 我想 我要 我需要 我希望 我打算 我准备 想知道 想要 不知道 知道
我们 我的 我 你们 你的 你 您的 您 他们 她们 它们 他的 她的 它的 他 她 它 咱们 咱 自己的
能不能 你能 您能 能否 可不可以 可以 可否 会不会 要不要 是不是 有没有 好不好 行不行
怎么样 怎么 怎样 如何 为什么 为啥 什么时候 什么样 什么 哪些 哪个 哪种 哪位 哪儿 谁 多少 几个 是什么
这个 这些 这种 这样 这里 这儿 那个 那些 那种 那样 那里 某个 某些
一个 一些 一下子 一下 一份 一张 一首 一条 一篇 一段 一次 一位 一种 一点
看看 看一看 看一下 查一下 查查 找一下 找找
然后 接着 并且 以及 而且 另外 的话 的时候
从来 一直 总是 经常 已经 马上 立刻 赶紧 赶快 非常 特别 十分 到底 究竟
的 了 吗 呢 吧 呀 啊 哦 嘛 呗 啦 都 在 把 被 将 从
"""
KEPT = """
目的 的士 标的 了解 了结 为了 除了 罢了 酒吧 网吧 贴吧 吧台 首都 都市 成都 都江堰
在线 存在 正在 现在 所在 在职 把握 把关 被动 将来 即将 服从 从业
十分钟 二十分 三十分 四十分 五十分 十分制 吉他 其他 他人 麻将 将军 被子 把手 被告 自我 我国 从事
在售 在读 在建 在途 内在 外在 一次性 百度知道
"""


DEEDS = frozenset("画买卖算写租借踢")
"""Single characters that are deeds; any other that has a translation is a thing."""

BESIDE = frozenset(
    "一二三四五六七八九十两几半多少每本上下这那去今明前后里外中内初末底日天"
    "个张首部条只杯瓶份次名号价费店的了吗是有在和与或到给帮把我你他要想能会再先就不别来请"
    "开关放查看听唱读点播发送做找订退换加"
)
"""Single characters that are mostly words of their own, so that others end or begin beside them."""

SURNAMES = frozenset(
    "李王张刘陈杨赵吴徐孙朱胡郭林罗郑梁谢宋唐许邓韩冯曹彭曾肖董袁潘蒋蔡杜叶苏魏吕丁沈姚卢姜崔钟谭陆汪范廖"
)
LONGEST_NAME = 3


def telling_pieces(run: str) -> list[str]:
    """What the fillers leave of Han text."""
    return _pattern().sub(lambda found: found.group(1) or " ", run).split()


def telling_terms(run: str, pieces: Iterable[str] | None = None) -> tuple[str, ...]:
    """The characters and pairs of Han text that may tell something, each once; all if none does."""
    pieces = telling_pieces(run) if pieces is None else pieces
    terms = chain.from_iterable(analyse(piece).parts for piece in pieces)
    telling = (term for term in terms if term not in STOP_WORDS)
    return tuple(dict.fromkeys(telling)) or analyse(run).parts


def parts_of_words(pieces: Iterable[str], known: Container[str], longest: int) -> set[str]:
    """The known characters that are but parts of longer words: 周 of 周杰伦, 酒 of 酒店.

    ``known`` are all words that have others of the same meaning, of ``longest`` characters at most. A
    thing ends its word (情歌, 机票), a deed begins it (写信); a name that begins with a surname has none.
    """
    inside: set[str] = set()
    alone: set[str] = set()
    for piece in pieces:
        for at, char in enumerate(piece):
            if char in known:
                word = _Place(piece, at, known, longest)
                (alone if len(piece) == 1 or word.alone() else inside).add(char)
    return inside - alone


class _Place(NamedTuple):
    """A known character at its place in a piece of Han text."""

    piece: str
    at: int
    known: Container[str]
    longest: int

    def alone(self) -> bool:
        """Whether it is a word of its own, or what another word is about."""
        at, deed = self.at, self.piece[self.at] in DEEDS
        if at == (0 if deed else len(self.piece) - 1):
            return deed or not self._ends_a_name()
        if held_by := self._words_over(at):
            return all(start == at if deed else end == at + 1 for start, end in held_by)
        if deed:
            return self._is_beside(at - 1)
        return self._is_beside(at + 1) and not self._ends_a_name()

    def _is_beside(self, at: int) -> bool:
        """Whether the character at a place next to it belongs to another word."""
        char = self.piece[at]
        return char in BESIDE or char in self.known or bool(self._words_over(at))

    def _ends_a_name(self) -> bool:
        """Whether a surname begins what it ends, as in 李雨: a piece, or what is behind a known word."""
        return any(
            self.piece[start] in SURNAMES and (start == 0 or self._words_over(start - 1))
            for start in range(max(0, self.at - LONGEST_NAME + 1), self.at)
        )

    def _words_over(self, at: int) -> list[tuple[int, int]]:
        """Where the known words of two characters and more are that hold a place."""
        piece, known = self.piece, self.known
        return [
            (start, start + size)
            for size in range(2, min(self.longest, len(piece)) + 1)
            for start in range(max(0, at - size + 1), min(at, len(piece) - size) + 1)
            if piece[start : start + size] in known
        ]


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    """Words to keep, as a group, or to leave out; made once there is a Chinese query."""
    return re.compile(f"({_any_of(KEPT)})|{_any_of(FILLERS)}")


def _any_of(words: str) -> str:
    return "|".join(sorted(words.split(), key=lambda word: (-len(word), word)))
