"""What kind of deed a name or a request is about: to look, to make, to change or to remove."""

from collections.abc import Iterable
from functools import lru_cache

from session_runtime.search.terms import analyse, runs

WORDS_BY_DEED = (
    """
    get list show read retrieve fetch view find search query check display describe lookup browse count
    获取 查询 查看 查找 搜索 检索 列出 显示 读取
    """,
    """
    create add new insert generate make register upload import publish post send build append start
    invite book reserve 创建 新建 添加 新增 建立 生成 发送 预订 预定 预约
    """,
    """
    update modify edit set change rename replace move configure 修改 更新 编辑 更改 设置 变更
    """,
    """
    delete remove clear drop destroy cancel erase 删除 移除 清除 取消
    """,
)
_DEEDS = {word: deed for deed, words in enumerate(WORDS_BY_DEED, 1) for word in words.split()}
NO_DEED, DEEDS = 0, len(WORDS_BY_DEED)
TEXTS_KEPT, LONGEST_KEPT = 4_096, 64


def deed_of(texts: Iterable[str]) -> int:
    """The deed of the first word that tells one: 1 to 4, or ``NO_DEED``."""
    deeds = (_kept(text) if len(text) <= LONGEST_KEPT else _deed_in(text) for text in texts)
    return next(filter(None, deeds), NO_DEED)


@lru_cache(maxsize=TEXTS_KEPT)
def _kept(text: str) -> int:
    return _deed_in(text)


def _deed_in(text: str) -> int:
    words = (word for run in runs(text) for word in analyse(run).parts)
    return next((_DEEDS[word] for word in words if word in _DEEDS), NO_DEED)
