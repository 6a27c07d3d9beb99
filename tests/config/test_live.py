"""Attempts to change what is in force: each leaves a receipt, a bad one changes nothing."""

import asyncio
from pathlib import Path

import pytest

from session_runtime.config.receipt import KEPT
from tests.config.living import Note, living, results


@pytest.mark.requirement("REL-3")
async def test_a_good_edit_is_applied_and_its_receipt_says_what_changed(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(5))
    async with living(file) as place:
        file.write_text(results(9))
        receipt = await place.live.reload("http")
        told = receipt.to_json()
    assert (receipt.verdict, receipt.trigger, receipt.generation) == ("applied", "http", 2)
    assert told["changes"] == [
        {
            "key": "skills.tool_search_max_results",
            "old": 5,
            "new": 9,
            "acts": "next ask",
            "shadowed_by": None,
        }
    ]


@pytest.mark.requirement("REL-2")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" \n\t\n",
        b"[skills\n",
        b"[skills]\ntool_search_max_results = 0\n",
        b"[skills]\ntool_search_max_reslts = 3\n",
        b"[skills]\ntool_search_max_results = 'many'\n",
        b"[skills]\n# \xff\n",
        b"[skills]\ntool_search_max_results = ",
        None,
    ],
)
async def test_a_bad_edit_changes_nothing_and_says_why(
    content: bytes | None, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(7))
    async with living(file) as place:
        before = place.live.snapshot
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        receipt = await place.live.reload("watch")
        assert receipt.verdict == "rejected"
        assert receipt.errors
        assert place.live.snapshot is before
        assert place.live.rejected_since == receipt.at
        assert len(place.builder.committed) == 1


@pytest.mark.requirement("REL-2")
async def test_a_file_that_was_there_may_not_vanish_although_nobody_named_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "config.toml"
    file.write_text(results(7))
    async with living(file, named=False) as place:
        file.unlink()
        receipt = await place.live.reload("watch")
    assert "cannot be read" in str(receipt.errors[0])


@pytest.mark.requirement("REL-2")
async def test_the_same_content_again_is_no_reload(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(5))
    async with living(file) as place:
        file.write_text("# a remark\n" + results(5))
        receipt = await place.live.reload("watch")
        assert receipt.verdict == "unchanged"
        assert len(place.builder.committed) == len(place.builder.aborted) == 1


async def test_once_the_file_is_good_again_it_is_in_force(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(5))
    async with living(file) as place:
        file.write_text("")
        await place.live.reload("watch")
        file.write_text(results(5))
        receipt = await place.live.reload("watch")
        assert (receipt.verdict, place.live.rejected_since) == ("unchanged", None)


@pytest.mark.requirement("REL-4")
async def test_a_key_that_acts_after_a_restart_is_named_and_the_rest_is_applied(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(5))
    async with living(file) as place:
        file.write_text("[http]\nport = 9000\n" + results(6))
        receipt = await place.live.reload("watch")
        settings = place.live.snapshot.settings
        assert (receipt.verdict, settings.http.port) == ("applied-restart-needed", 8040)
        assert settings.skills.tool_search_max_results == 6
        assert [(each.key, each.old, each.new) for each in receipt.waiting] == [
            ("http.port", 8040, 9000)
        ]
        file.write_text("[http]\nport = 9000\n" + results(7))
        again = await place.live.reload("watch")
        assert (again.verdict, len(again.waiting), len(again.changes)) == ("applied", 1, 1)
        file.write_text(results(7))
        taken_back = await place.live.reload("watch")
        assert (taken_back.verdict, taken_back.waiting) == ("unchanged", ())


@pytest.mark.requirement("CFG-3b")
async def test_an_edit_that_a_variable_shadows_is_reported_as_without_effect(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(5))
    async with living(file, {"TOOL_SEARCH_MAX_RESULTS": "2"}) as place:
        file.write_text(results(9))
        receipt = await place.live.reload("watch")
    [change] = receipt.changes
    assert receipt.verdict == "unchanged"
    assert (change.old, change.new) == (5, 9)
    assert change.shadow == "no effect: shadowed by env TOOL_SEARCH_MAX_RESULTS"
    assert "shadowed by env TOOL_SEARCH_MAX_RESULTS" in receipt.summary()


@pytest.mark.requirement("CFG-4b")
async def test_a_rotated_secret_is_applied_and_no_receipt_shows_it(tmp_path: Path) -> None:
    file, key = tmp_path / "config.toml", tmp_path / "key"
    key.write_text("first-secret")
    model = f'[models.m]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "x"\napi_key = "file:{key}"\n'
    sources = f'[runtime]\nsecret_sources = ["file:{tmp_path}"]\n'
    file.write_text(sources + model)
    async with living(file) as place:
        key.write_text("rotated-secret")
        receipt = await place.live.reload("secret")
        in_force = place.live.snapshot.settings.models["m"].api_key
        assert in_force is not None
        assert in_force.get_secret_value() == "rotated-secret"
    assert receipt.verdict == "applied"
    assert "-secret" not in repr(receipt.to_json())


@pytest.mark.requirement("REL-5")
async def test_edits_during_a_reload_lead_to_exactly_one_more_and_the_last_wins(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(5))
    async with living(file) as place:
        place.builder.gate.clear()
        file.write_text(results(6))
        first = asyncio.create_task(place.live.reload("watch"))
        while place.builder.prepared < 2:  # noqa: ASYNC110 - it is about to
            await asyncio.sleep(0)
        later = []
        for number in (7, 8, 9):
            file.write_text(results(number))
            later.append(asyncio.create_task(place.live.reload("watch")))
            await asyncio.sleep(0)
        place.builder.gate.set()
        receipts = await asyncio.gather(first, *later)
        assert place.live.snapshot.settings.skills.tool_search_max_results == 9
    assert [receipt.id for receipt in receipts] == [2, 3, 3, 3]


async def test_whoever_gives_up_waiting_does_not_stop_the_reload(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(5))
    async with living(file) as place:
        place.builder.gate.clear()
        file.write_text(results(6))
        impatient = asyncio.create_task(place.live.reload("http"))
        while place.builder.prepared < 2:  # noqa: ASYNC110 - it is about to
            await asyncio.sleep(0)
        impatient.cancel()
        place.builder.gate.set()
        assert (await place.live.reload("http")).verdict == "unchanged"
        assert place.live.snapshot.settings.skills.tool_search_max_results == 6


async def test_validating_tells_what_would_be_and_leaves_no_trace(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(5))
    async with living(file) as place:
        good = await place.live.validate(results(8).encode())
        bad = await place.live.validate(b"[skills]\ntool_search_max_results = 0\n")
        assert (good.verdict, [change.new for change in good.changes]) == ("applied", [8])
        assert bad.verdict == "rejected"
        assert bad.errors[0].line == 2
        assert len(place.live.receipts.newest()) == 1
        assert place.live.snapshot.settings.skills.tool_search_max_results == 5
        assert place.live.rejected_since is None


async def test_a_fault_of_the_machine_is_a_rejected_attempt_too(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(5))
    async with living(file) as place:
        place.builder.refuses = "no more handles"
        file.write_text(results(6))
        assert (await place.live.reload("watch")).verdict == "rejected"
        place.builder.refuses = None
        assert (await place.live.reload("watch")).verdict == "applied"


async def test_receipts_are_kept_up_to_a_bound_and_counted_beyond_it(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(5))
    async with living(file) as place:
        for _ in range(KEPT + 5):
            await place.live.reload("signal")
        receipts = place.live.receipts
        assert [each.id for each in receipts.newest(2)] == [KEPT + 6, KEPT + 5]
        assert len(receipts.newest()) == KEPT
        assert receipts.counts()["signal", "unchanged"] == KEPT + 5
        assert receipts.last == receipts.newest()[0]


async def test_what_was_touched_is_handed_on_and_after_a_rejection_everything_counts(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(5))
    async with living(file) as place:
        place.builder.gate.clear()
        first = asyncio.create_task(place.live.reload("source", frozenset({"a"})))
        while place.builder.prepared < 2:  # noqa: ASYNC110 - it is about to
            await asyncio.sleep(0)
        later = [
            asyncio.create_task(place.live.reload("source", frozenset({name}))) for name in "bc"
        ]
        await asyncio.sleep(0)
        place.builder.gate.set()
        await asyncio.gather(first, *later)
        place.builder.refuses = "no"
        await place.live.reload("source", frozenset({"d"}))
        place.builder.refuses = None
        await place.live.reload("source", frozenset({"e"}))
        await place.live.reload("source", frozenset({"f"}))
    every = [None, {"a"}, {"b", "c"}, {"d"}, None, {"f"}]
    assert place.builder.touched == every


async def test_a_fault_of_ours_leaves_a_receipt_too_and_the_edit_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(5))
    async with living(file, mode="events", recheck_s=0.05) as place:
        works = place.builder.prepare

        async def fails(*_: object) -> Note:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(place.builder, "prepare", fails)
        file.write_text(results(6))
        receipt = await place.live.until("rejected")
        monkeypatch.setattr(place.builder, "prepare", works)
        await place.live.in_force(6)
    assert "its log has the details" in str(receipt.errors[0])


@pytest.mark.requirement("NET-2b")
async def test_no_edit_takes_the_last_key_away_before_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    key = f'[http.keys.bot]\nhash = "sha256:{"a" * 64}"\n'
    file.write_text(results(5) + key)
    async with living(file) as place:
        file.write_text(results(6))
        receipt = await place.live.reload("watch")
        settings = place.live.snapshot.settings
        assert receipt.verdict == "applied-restart-needed"
        assert [(each.key, each.old, each.new) for each in receipt.waiting] == [
            ("http.keys", ["bot"], [])
        ]
        assert (list(settings.http.keys), settings.skills.tool_search_max_results) == (["bot"], 6)
        file.write_text(results(6) + key.replace("bot", "other"))
        assert (await place.live.reload("watch")).waiting == ()
        assert list(place.live.snapshot.settings.http.keys) == ["other"]


@pytest.mark.requirement("REL-2")
async def test_an_attempt_is_told_to_hurry_if_another_one_waits_behind_it(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(5))
    async with living(file) as place:
        gate, live = place.builder.gate, place.live
        gate.clear()
        attempts = [asyncio.create_task(live.reload("watch"))]
        await place.builder.begun.wait()
        attempts += [
            asyncio.create_task(work) for work in (live.reload("http"), live.refresh("servers"))
        ]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*attempts)
        await live.reload("cli")
    start_and_watch, others = place.builder.hurried[:2], place.builder.hurried[2:]
    assert (start_and_watch, others) == ([False, True], [True, False, False])


@pytest.mark.requirement("NET-3")
async def test_who_waits_for_the_attempts_under_way_hurries_all_of_them_and_begins_none(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file) as place:
        await place.live.settle()
        place.builder.patient = True
        file.write_text(results(2))
        attempts = [asyncio.create_task(place.live.reload("cli"))]
        await place.builder.begun.wait()
        attempts.append(asyncio.create_task(place.live.reload("http")))
        await asyncio.sleep(0)  # so that it waits for its turn
        async with asyncio.timeout(20):
            await place.live.settle()
        assert {(await each).verdict for each in attempts} == {"applied", "unchanged"}
        assert [each.id for each in place.live.receipts.newest(9)] == [3, 2, 1]
        assert place.live.snapshot.settings.skills.tool_search_max_results == 2


@pytest.mark.requirement("NET-3")
async def test_a_reload_of_the_file_alone_leaves_what_was_touched_for_the_next_one(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file) as place:
        file.write_text(results(0))
        await place.live.reload("cli")
        file.write_text(results(2))
        await place.live.reload_file("http")
        await place.live.reload("watch", frozenset({"a"}))
        await place.live.reload("watch", frozenset({"b"}))
        assert place.builder.touched[1:] == [frozenset(), None, frozenset({"b"})]
