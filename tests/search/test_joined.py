"""What a name writes as two words is found as one, and the other way round."""

import pytest

from session_runtime.registry.spec import ToolSpec
from session_runtime.search.terms import joined_neighbours, names_in
from tests.search.catalogues import ranked, tool, view_of

MENTIONED = tool("z.other", "mysql wifi keyvault email codes")


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("mysql", "x.my_sql_dump"),
        ("+mysql", "x.my_sql_dump"),
        ("mysql", "x.getMySQLDump"),
        ("wifi", "net.wi_fi_scan"),
        ("+wifi", "net.wi-fi-scan"),
        ("keyvault", "azure.key_vault_list"),
        ("+keyvault", "azure.KeyVaultList"),
        ("email", "a.send_e_mail"),
        ("mysql", "my-sql.dump"),
    ],
)
@pytest.mark.parametrize("others", [(), (MENTIONED,)])
def test_a_joined_word_finds_a_name_that_parts_it_whoever_else_writes_it(
    query: str, name: str, others: tuple[ToolSpec, ...]
) -> None:
    view = view_of(tool(name, "Does it"), *others)
    assert ranked(view, query)[0] == name


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize("query", ["my_sql", "my-sql", "MySQL", "mySql", "+my_sql", "+my-sql"])
def test_a_parted_word_finds_a_name_that_joins_it(query: str) -> None:
    assert ranked(view_of(tool("x.mysql_dump"), tool("a.sql")), query)[0] == "x.mysql_dump"
    assert ranked(view_of(tool("x.mysql_dump"), tool("a.other")), query) == ["x.mysql_dump"]


@pytest.mark.requirement("TS-8")
def test_a_joined_word_finds_a_parameter_or_an_alias_that_parts_it() -> None:
    view = view_of(
        tool("a.one", "", {"user_id": ""}), tool("b.two", aliases=("who_am", "i")), tool("c.three")
    )
    assert ranked(view, "userid") == ranked(view, "+userid") == ["a.one"]
    assert ranked(view, "whoam") == ["b.two"]
    assert ranked(view, "ami") == []


@pytest.mark.requirement("TS-8")
def test_a_name_that_parts_two_words_of_a_query_gains_nothing_by_their_joined_form() -> None:
    parted, mixed = tool("a.key_vault", "vault"), tool("b.vault_key", "vault")
    scores = dict(view_of(parted, mixed).rank("a vault and a key, key vault please", 5))
    assert scores["a.key_vault"] == scores["b.vault_key"]


@pytest.mark.requirement("TS-8")
def test_neighbours_are_joined_within_a_name_only() -> None:
    assert joined_neighbours("my_sql-dump") == ["mysql", "sqldump"]
    assert joined_neighbours("getMySQL") == ["getmy", "mysql"]
    assert [*map(joined_neighbours, names_in("git.log\nnext:one__two"))] == [[]] * 5
    assert joined_neighbours("base_64_text 天气_log") == []
