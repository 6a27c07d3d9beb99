"""The snapshot of a configuration: its digest, its prompt, the files it was read from."""

import pytest

from session_runtime.errors import Problem
from tests.config.conftest import Reader


@pytest.mark.requirement("CFG-3")
def test_the_digest_depends_on_what_is_said_and_not_on_how(read: Reader) -> None:
    plain = read("[ask]\nmax_steps = 8\n[features]\na = true\nb = false\n")
    spelled = read(
        "# other order\n[features]\nb = false\na = true\n",
        env={"SESSION_RUNTIME__ASK__MAX_STEPS": "8"},
    )
    assert plain.digest == spelled.digest
    assert read("[ask]\nmax_steps = 9\n[features]\na = true\nb = false\n").digest != plain.digest


@pytest.mark.requirement("INT-1")
def test_the_prompt_file_is_read_at_once_and_is_part_of_the_digest(read: Reader) -> None:
    text = '[ask]\nprompt_file = "prompt.md"\n'
    prompt = read.file("prompt.md", "\ufeffBe brief.\n")
    first = read(text)
    prompt.write_text("Be kind.\n")
    second = read(text)
    assert (first.system_prompt, second.system_prompt) == ("Be brief.", "Be kind.")
    assert first.digest != second.digest
    assert first.files == (prompt,)


@pytest.mark.requirement("INT-1")
@pytest.mark.parametrize(
    ("data", "fault"), [(b"", "is empty"), (b"\xff\xfe", "is not UTF-8")], ids=["empty", "bytes"]
)
def test_a_prompt_file_that_cannot_be_used_is_refused(
    read: Reader, data: bytes, fault: str
) -> None:
    prompt = read.folder / "prompt.md"
    prompt.write_bytes(data)
    assert read.problems('[ask]\nprompt_file = "prompt.md"\n') == [
        f"config.toml:2: ask.prompt_file: {prompt} {fault}"
    ]


@pytest.mark.requirement("INT-1")
def test_the_snapshot_names_its_file_as_an_absolute_path(
    read: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(read.folder)
    assert read("[log]\n").path == read.folder / "config.toml"


def test_a_fault_of_a_table_is_told_at_its_header_if_it_has_one(read: Reader) -> None:
    fault = Problem("no", key="mcp.servers.shop")
    header = read('\n[mcp.servers.shop]\nargs = ["x"]\ncommand = "x"\n')
    assert [str(each) for each in header.located([fault])] == [
        "config.toml:2: mcp.servers.shop: no"
    ]
    dots = read('[mcp]\nwait_s = 1.0\nservers.shop.command = "x"\n')
    assert [str(each) for each in dots.located([fault])] == ["config.toml:3: mcp.servers.shop: no"]
