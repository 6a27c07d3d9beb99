"""What of spoken Chinese says nothing about a tool: forms of request, particles, pronouns.

Text without blanks is searched by characters and pairs, so such words are cut out before it is cut
up: no pair may hold half of one. Words that merely hold such a character (目的, 不要) stay whole.
"""

import re
from functools import lru_cache
from itertools import chain

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


def telling_terms(run: str) -> tuple[str, ...]:
    """The characters and pairs of Han text that may tell something, each once; all if none does."""
    pieces = _pattern().sub(lambda found: found.group(1) or " ", run).split()
    terms = chain.from_iterable(analyse(piece).parts for piece in pieces)
    telling = (term for term in terms if term not in STOP_WORDS)
    return tuple(dict.fromkeys(telling)) or analyse(run).parts


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    """Words to keep, as a group, or to leave out; made once there is a Chinese query."""
    return re.compile(f"({_any_of(KEPT)})|{_any_of(FILLERS)}")


def _any_of(words: str) -> str:
    return "|".join(sorted(words.split(), key=lambda word: (-len(word), word)))
