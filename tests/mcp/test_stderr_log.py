"""What servers say beside the protocol: kept in a bounded file, printable, without secrets."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from session_runtime.mcp import stderr_log
from session_runtime.mcp.stderr_log import MAX_LINE_CHARS, Shown, StderrLog

AT = datetime(2026, 7, 28, 12, 0, tzinfo=UTC)
STAMP = "2026-07-28T12:00:00.000+00:00 "


@asynccontextmanager
async def logging_to(
    path: Path, secrets: Sequence[str] = (), max_bytes: int = 1_000_000
) -> AsyncIterator[StderrLog]:
    log = StderrLog(path, Shown(secrets), max_bytes=max_bytes, now=lambda: AT)
    try:
        yield log
    finally:
        await log.aclose()


async def logged(folder: Path, *written: bytes, secrets: Sequence[str] = ()) -> list[str]:
    path = folder / "mcp" / "x.log"
    async with logging_to(path, secrets) as log:
        for data in written:
            log.write(data)
    return [line.removeprefix(STAMP) for line in text_of(path).splitlines()]


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.mark.requirement("RTE-6")
async def test_lines_are_kept_with_their_time(tmp_path: Path) -> None:
    path = tmp_path / "mcp" / "x.log"
    async with logging_to(path) as log:
        log.write(b"one\ntw")
        log.write(b"o\n\nthree")
    assert text_of(path) == f"{STAMP}one\n{STAMP}two\n{STAMP}three\n"


async def test_a_line_that_is_not_over_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    async with logging_to(path) as log:
        log.write(b"first\nsec")
        while not path.exists():  # noqa: ASYNC110 - a thread makes it
            await asyncio.sleep(0.005)
        assert text_of(path) == f"{STAMP}first\n"
        log.write(b"ond\n")
    assert text_of(path) == f"{STAMP}first\n{STAMP}second\n"


async def test_what_steers_a_terminal_and_what_is_no_utf_8_is_shown_harmless(
    tmp_path: Path,
) -> None:
    assert await logged(tmp_path, b"\x1b[31mred\x07 \xff\r\n") == ["\\x1b[31mred\\x07 \ufffd"]


async def test_secrets_are_masked_also_where_they_come_in_two_pieces(tmp_path: Path) -> None:
    lines = await logged(
        tmp_path,
        b"key hunt",
        b"er22 used\n-----BEGIN\nsecond-line\nAuthorization: Bearer abcdefgh12345678\n",
        secrets=["hunter22", "first-line\nsecond-line", "on"],
    )
    assert lines == ["key *** used", "-----BEGIN", "***", "Authorization: ***"]


async def test_a_long_line_is_cut_and_its_rest_is_no_line(tmp_path: Path) -> None:
    lines = await logged(tmp_path, b"x" * 100_000, b"y" * 100_000 + b"\nnext\n")
    assert lines == ["x" * MAX_LINE_CHARS + "…", "next"]


async def test_the_file_is_bounded_and_so_is_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    for number in range(30):
        async with logging_to(path, max_bytes=1_000) as log:
            log.write(f"{number} {'x' * 100}\n".encode())
    kept = sorted(os.listdir(tmp_path))  # noqa: PTH208
    assert kept == ["x.log", "x.log.1"]
    assert all((tmp_path / name).stat().st_size <= 1_000 for name in kept)
    assert "29 xxx" in text_of(path)


async def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    await logged(tmp_path, b"x\n")
    assert (tmp_path / "mcp" / "x.log").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "mcp").stat().st_mode & 0o777 == 0o700


async def test_what_comes_too_fast_is_left_out_and_that_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    async with logging_to(path, secrets=["hunter22"]) as log:
        assert log.write(b"begin\n" + b"x" * 260_000 + b"hunt")
        assert not log.write(b"er22\n" * 10_000)
        assert not log.write(b"more\n")
    lines = [line.removeprefix(STAMP) for line in text_of(path).splitlines()]
    assert lines == [
        "begin",
        "x" * MAX_LINE_CHARS + "…",
        "[50005 bytes are left out: they came too fast]",
    ]


def test_half_a_line_after_what_is_left_out_is_no_line(tmp_path: Path) -> None:
    writer = stderr_log._Writer(tmp_path / "x.log", Shown(["hunter22"]), 1_000)
    writer.write(b"begin\n", 7, AT, end=False)
    writer.write(b"er22\nnext\n", 0, AT, end=False)
    lines = [line.removeprefix(STAMP) for line in text_of(tmp_path / "x.log").splitlines()]
    assert lines == ["begin", "[7 bytes are left out: they came too fast]", "next"]


async def test_a_link_in_place_of_the_file_is_not_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "x.log").symlink_to(tmp_path / "victim")
    async with logging_to(tmp_path / "mcp" / "x.log") as log:
        log.write(b"x\n")
    assert not (tmp_path / "victim").exists()
    assert "cannot be written to" in caplog.text


async def test_a_file_that_cannot_be_written_is_told_once_and_delays_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "mcp").write_text("in the way", encoding="utf-8")
    path = tmp_path / "mcp" / "x.log"
    async with logging_to(path) as log:
        log.write(b"one\n")
        await log.aclose()
        log.write(b"two\n")
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_a_disk_that_hangs_delays_neither_the_loop_nor_the_close_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, hangs = threading.Event(), threading.Event()
    real = os.open

    def hanging(*args: object, **more: object) -> int:
        hangs.set()
        free.wait()
        return real(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(stderr_log.os, "open", hanging)
    monkeypatch.setattr(stderr_log, "_CLOSE_S", 0.05)
    log = StderrLog(tmp_path / "x.log", Shown())
    log.write(b"x\n")
    await asyncio.to_thread(hangs.wait)
    await log.aclose()
    free.set()


async def test_the_last_line_that_fits_no_file_is_cut_to_it(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    async with logging_to(path, max_bytes=100) as log:
        log.write(b"y" * 500 + b"\n")
    assert path.stat().st_size == 100


def test_short_values_are_no_secrets_and_long_ones_go_first() -> None:
    shown = Shown(["abc", "abcd", "abcdefgh"])
    assert shown("abc abcdefgh abcd") == "abc *** ***"
