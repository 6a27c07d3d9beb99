"""Names of tools within a text: what counts as one, and what is but a word."""

import pytest

from tests.search.catalogues import MUSIC, ranked, session_of, tool, view_of


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("music.search_songs搜索歌曲", ["music.search_songs"]),
        ("调用group__get_member_info工具", ["group.get_member_info"]),
        ("加载music.search_songs和music.get_lyrics", ["music.search_songs", "music.get_lyrics"]),
        ("select:music.search_songs和music.get_lyrics", ["music.search_songs", "music.get_lyrics"]),
        ("用get_member_info查一下", ["group.get_member_info"]),
        ("用getMemberInfo查一下", ["group.get_member_info"]),
        ("ｍｕｓｉｃ．ｐｌａｙ一首歌", ["music.play"]),
        ("music.playを使って", ["music.play"]),
        ("use 天气.查询 now", ["天气.查询"]),
        ("请 天气_查询 一下", ["天气.查询"]),
        ("use 發送Message now", ["发送Message"]),
        ('使用"weather.The Next Days"查询', ["weather.The Next Days"]),
    ],
)
def test_a_name_beside_text_without_blanks_or_made_of_it_comes_first(
    query: str, names: list[str]
) -> None:
    others = map(tool, ("天气.查询", "发送Message", "weather.The Next Days", "music.play"))
    decoys = (tool("songs.music", "搜索歌曲 search songs"), tool("天气", "查询天气 the next days"))
    view = view_of(*MUSIC, *others, *decoys)
    assert sorted(ranked(view, query, len(names))) == sorted(names)


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("use getUrl now", ["page.getURL"]),
        ("execute_sql, getURL", ["db.execute_sql", "page.getURL"]),
        ("ExecuteSQL please, then GetURL", ["db.execute_sql", "page.getURL"]),
        ("['execute_sql', 'getURL']", ["db.execute_sql", "page.getURL"]),
        ('{"name": "getURL"}', ["page.getURL"]),
    ],
)
def test_camel_case_in_a_sentence_or_list_is_a_form_of_a_name(query: str, names: list[str]) -> None:
    view = view_of(
        tool("page.getURL"),
        tool("db.execute_sql"),
        tool("web.other", "get url get url name", aliases=("url.get", "sql.getter")),
        tool("sql.run", "execute sql, then get the url"),
    )
    found = view.rank(query, 5)
    assert sorted(name for name, score in found if score >= 2) == sorted(names)


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize("brand", ["GitHub", "SharePoint", "iCloud", "eBay"])
def test_what_a_sentence_is_about_is_no_name_though_it_is_written_in_camel_case(brand: str) -> None:
    view = view_of(tool(f"graph.{brand}", "retrieves things"), tool("repo.create", f"on {brand}"))
    assert ranked(view, f"create a repo on {brand}")[0] == "repo.create"
    assert view.rank(f"{brand}, please", 1)[0][1] > 2


@pytest.mark.requirement("TS-8")
def test_what_a_path_leaves_to_be_filled_in_is_no_name() -> None:
    view = view_of(tool("api./video/{videoId}", "one video"), tool("clip.download", "of a video"))
    assert all(score < 2 for _, score in view.rank("download the clip with videoId 7", 2))
    assert ranked(view, "video/{videoId}")[0] == "api./video/{videoId}"


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize(
    "query",
    ["call the tool '{}' now", "the `{}` tool", "请调用工具“{}”来办", "用「{}」工具", 'tool: "{}"'],
)
def test_a_name_of_one_word_in_quotes_counts_beside_the_word_tool(query: str) -> None:
    view = view_of(*MUSIC, tool("x.other", "end ends ending call now 用 办"))
    assert ranked(view, query.format("end"))[0] == "end"
    assert view.rank("write 'end' into the file with a tool", 1)[0][1] < 3


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize("product", ["SendGrid", "PostHog", "GitHub", "LinkedIn", "macOS"])
@pytest.mark.parametrize("name", ["old.{}", "{}", "mail.status"])
def test_a_product_in_camel_case_is_no_name_where_tools_write_it_as_one_word(
    product: str, name: str
) -> None:
    aliases = (product.lower(),) if "{" not in name else ()
    view = view_of(
        tool(name.format(product.lower()), "deprecated", aliases=aliases),
        tool("mail.write", f"writes a note on {product}"),
    )
    found = view.rank(f"write a note on {product}", 2)
    assert found[0][0] == "mail.write"
    assert all(score < 2 for _, score in found)


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("use ExtractPdf on the file", "doc.extract_pdf"),
        ("please run RenderHtml for the page", "page.renderHtml"),
        ("call ResizeImage on the photo", "image.ResizeImage"),
        ("use sumAll over the page", "sheet.sum-all"),
        ("use PageRank for the file", "graph.rank"),
        ("使用ExtractPdf处理这个文件", "doc.extract_pdf"),
        ("use SendGrid for the mail", "mail.send_grid"),
    ],
)
def test_a_word_in_camel_case_is_a_name_where_a_tool_is_cut_into_the_same_parts(
    query: str, name: str
) -> None:
    names = ("doc.extract_pdf", "page.renderHtml", "image.ResizeImage", "sheet.sum-all")
    named = (*map(tool, names), tool("mail.send_grid"), tool("graph.rank", aliases=("page_rank",)))
    view = view_of(
        *named,
        tool("file.use", "use it on the file, photo or page: 使用这个文件"),
        tool("mail.use"),
    )
    found = view.rank(query, 1)
    assert [(found_name, int(score)) for found_name, score in found] == [(name, 2)]


@pytest.mark.requirement("TS-8")
def test_in_a_sentence_a_word_in_camel_case_names_a_tool_in_full_as_it_is_spelt() -> None:
    view = view_of(
        tool("GitHub"), tool("x.note", aliases=("PostHog",)), tool("repo.make", "a repo")
    )
    assert [int(score) for _, score in view.rank("make a repo on GitHub", 2)] == [3, 0]
    assert ranked(view, "make a repo with PostHog")[0] == "x.note"


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize(
    "query",
    [
        "①music.play②web.search",
        "① music.play\n② web.search",
        "1.music.play 2.web.search",
        "1. music.play\n2. web.search",
        "(1) music.play (2) web.search",
        "（1）music.play（2）web.search",
        "1、music.play\n2、web.search",
        "1)music.play, 2)web.search",
        "- music.play\n- web.search",
        "• music.play\n• web.search",
        "一、music.play\n二、web.search",
        "❶ music.play ❷ web.search",
    ],
)
def test_the_mark_of_an_item_is_no_part_of_the_name_behind_it(query: str) -> None:
    view = view_of(*MUSIC, tool("music.play"), tool("x.music_web", "play and search 1 2"))
    for text in (query, f"select:{query}", f"please call these:\n{query}"):
        found = view.rank(text, 5)
        named = [name for name, score in found if score >= 3]
        assert sorted(named) == ["music.play", "web.search"], text
    assert session_of(*MUSIC, tool("music.play")).search(f"select:{query}")["not_found"] == []


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize("mark", ["①", "1.", "2)", "3、", "(4)"])
def test_a_form_of_a_name_behind_the_mark_of_an_item_is_one(mark: str) -> None:
    view = view_of(*MUSIC, tool("x.search", "now"), tool("step", "first"))
    for form in ("get_member_info", "getMemberInfo"):
        assert view.rank(f"{mark}{form} comes first now", 1)[0][1] > 2
    assert all(score < 2 for _, score in view.rank(f"{mark}search the web now", 5))


@pytest.mark.requirement("TS-7")
def test_a_name_that_begins_as_an_item_does_is_that_name() -> None:
    view = view_of(tool("3.weather"), tool("weather"), tool("①.play"), tool("play"))
    for name in ("3.weather", "①.play"):
        for query in (name, f"select:{name}", f"`{name}`"):
            assert ranked(view, query) == [name]
    assert ranked(view, "use 3.weather now")[0] == "3.weather"


@pytest.mark.requirement("TS-7")
def test_letters_of_full_width_are_letters() -> None:
    view = view_of(*MUSIC, tool("ｓｅｌｅｃｔ"), tool("selected", "use select now"))
    assert ranked(view, "ｓｅｌｅｃｔ：ｗｅｂ．ｓｅａｒｃｈ，ｅｎｄ") == ["web.search", "end"]
    assert ranked(view, "Ｓｅｌｅｃｔ:end") == ["end"]
    assert ranked(view, "ｓｅｌｅｃｔ") == ["ｓｅｌｅｃｔ"]
    assert ranked(view, "select") == ["ｓｅｌｅｃｔ"]
    assert view.rank("use ｓｅｌｅｃｔ now", 1)[0][1] >= 3
    assert ranked(view, "请用ｗｅｂ．ｓｅａｒｃｈ查一下")[0] == "web.search"


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("请用天气.查询帮我看看", ["天气.查询"]),
        ("请用天氣.查詢幫我看看", ["天气.查询"]),
        ("用天气.查询和新闻.列表给我看", ["天气.查询", "新闻.列表"]),
        ("请用地图.路线.规划帮我走", ["地图.路线.规划"]),
        ("调用weather.查询看看", ["weather.查询"]),
        ("调用天气.query看看", ["天气.query"]),
        ("请用新闻/头条看看", ["新闻/头条"]),
        ("我用天气.查看帮我", ["天气.查询"]),
    ],
)
def test_a_name_glued_into_text_without_blanks_comes_first(query: str, names: list[str]) -> None:
    called = ("天气.查询", "新闻.列表", "地图.路线.规划", "weather.查询", "天气.query", "新闻/头条")
    decoys = (tool("路线.规划"), tool("看看", "请用天气查询帮我看看新闻列表"), tool("新闻.列"))
    aliased = tool("天气.预报", "天", aliases=("天气.查看",))
    view = view_of(*map(tool, called), *decoys, *((aliased,) if "查看" in query else ()))
    wanted = ["天气.预报"] if "查看" in query else names
    assert sorted(n for n, score in view.rank(query, 9) if score >= 3) == sorted(wanted)
    hidden = view.without(wanted)
    assert not set(wanted) & set(ranked(hidden, query))


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("select:Report(1),Report(2)", ["Report(1)", "Report(2)"]),
        ("select:x.task①,x.task②", ["x.task①", "x.task②"]),
        ("select:Delete Feed (1), Report", ["Delete Feed (1)", "Report"]),
        ("1. end", ["end"]),
        ("- end", ["end"]),
        ("①end", ["end"]),
        ("select:① end ② Report", ["end", "Report"]),
    ],
)
def test_what_looks_like_the_mark_of_an_item_may_be_a_part_of_a_name(
    query: str, names: list[str]
) -> None:
    called = ("Report", "Report(1)", "Report(2)", "x.task", "x.task①", "x.task②", "Delete Feed")
    view = view_of(*map(tool, (*called, "Delete Feed (1)", "end", "agent.end")))
    assert (
        session_of(*map(tool, (*called, "Delete Feed (1)", "end", "agent.end"))).search(query)[
            "loaded"
        ]
        == names
    )
    assert set(names) <= set(ranked(view, query))


@pytest.mark.requirement("TS-8")
def test_no_description_makes_a_product_of_a_method_in_camel_case() -> None:
    stuffed = tool("evil.user", "GetUser get user id GetUser for id")
    assert ranked(view_of(tool("iam.GetUser"), stuffed), "GetUser for id 5")[0] == "iam.GetUser"


@pytest.mark.requirement("TS-8")
def test_many_tools_with_the_same_form_of_a_name_are_looked_at_once() -> None:
    view = view_of(*(tool(f"s{number}.GitHub", "GitHub") for number in range(200)))
    assert len(ranked(view, "please show GitHub for me", 500)) == 200
