"""What became of an ask is told to people, without a daemon."""

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from session_runtime.cli import exits, trace
from session_runtime.cli.trace_story import MAX_CHARS, MAX_LINES, story, summary
from session_runtime.trace.record import record_call, record_to_json
from session_runtime.trace.traceparent import AskTrace
from session_runtime.types import Identity, Principal, ToolResult
from tests.cli.conftest import Run, start
from tests.trace.traced import NESTED, RECORD, TURN, line, named, write

pytestmark = [pytest.mark.requirement("OPS-1a"), pytest.mark.requirement("NET-7d")]

FILE = ".session-runtime/trace.jsonl"


def test_the_story_of_an_ask_tells_all_that_happened_in_order() -> None:
    told = [*story(replace(RECORD, prefetch=(), invoked=None))]
    digests = [call.result_digest for call in TURN.calls]
    assert told == [
        "ask_00  failed after 1.500 s  (2026-01-02 03:04:05 UTC)",
        "asked by     bot for user u1, roles a, b, channel web",
        "ran on       generation 3 (d1), model fast",
        "tool search  deferred: 40 tools withheld, their names cost 120 tokens a turn",
        "turn 1  at 0.010 s  fast: 0.500 s, 100 tokens in (60 cached), 20 out (5 thinking), tool_calls",
        "  offered 2 tools (90 tokens): tool_search, clock.now",
        f"  tool_search  ok  0.000 s, 2 characters ({digests[0]}), call c1",
        "    searched 'rain': loaded weather.now, had clock.now, did not find tide, and there was more",
        f"  weather.now  error (tool.failed)  0.250 s, 10 of 900 characters ({digests[1]}), 2 attempts,"
        " repaired: trailing comma, call c2",
        '    with {"city":"Berlin"}',
        "    sub-agent helper  answered  1 turn",
        "      turn 1  at 0.600 s  fast: 0.100 s, 100 tokens in (60 cached), 20 out (5 thinking), stop,"
        " after 2 attempts",
        "        offered 1 tool (10 tokens): a.b",
        f"        helper.sub  ok  0.300 s, 4 characters ({NESTED.result_digest}), call c2",
        "          sub-agent helper/sub  limit (limit.steps)  0 turns",
        "        1 call in 0.300 s",
        "  2 calls in 0.250 s",
        "turn 2  at 0.010 s  fast: 0.500 s, 100 tokens in (60 cached), 20 out (5 thinking), tool_calls",
        "  offered 3 tools (90 tokens), newly weather.now",
        "used         300 tokens in (180 cached), 60 out (15 thinking), 3 requests",
        "saved        3300 tokens: all tools had cost 4000, what was offered cost 700",
        "daemon       4.0 ms of its own time, 2.0 ms per turn",
        "error        model.overloaded: 503; trying again may help",
        "outcome      failed",
    ]


def test_a_sub_agent_is_told_once_although_ids_of_calls_come_again() -> None:
    turns = (TURN, replace(TURN, step=2))
    agents = (RECORD.agents[0], replace(RECORD.agents[0], outcome="limit"))
    lines = [*story(replace(RECORD, turns=turns, invoked=None, agents=agents))]
    assert [line.strip() for line in lines if "sub-agent" in line] == [
        "sub-agent helper  answered  1 turn",
        "sub-agent helper  limit  1 turn",
    ]


def test_prefetched_and_direct_calls_are_told_before_the_turns() -> None:
    lines = [*story(RECORD)]
    assert lines[4:8] == [
        "prefetched",
        f"  clock.now  ok  0.000 s, 5 characters ({RECORD.prefetch[0].result_digest}), call p",
        "    with {}",
        "called instead of a question",
    ]
    trace = AskTrace("a" * 32, None, True, True)
    assert f"part of      trace {'a' * 32}, sent as spans" in [*story(replace(RECORD, trace=trace))]
    assert "tool search  not used (off)" in [
        *story(replace(RECORD, tool_search=replace(RECORD.tool_search, active=False, rule="off")))
    ]


@pytest.mark.requirement("SEC-4a")
def test_nothing_in_a_record_can_steer_a_terminal_or_fill_it() -> None:
    evil = "\x1b[2J\n\u202e" + "x" * 10_000
    call = record_call(ToolResult(evil, evil, "ok", evil), {"a": evil}, repairs=(evil,))
    turn = replace(TURN, model=evil, exposed=(evil,) * 50, calls=(call,) * 128, finish_reason=evil)
    who = Identity(evil, frozenset({evil}), evil, evil)
    record = replace(
        RECORD, ask_id=evil, principal=Principal(evil), identity=who, turns=(turn,) * 100
    )
    lines = [*story(record), summary(record)]
    assert len(lines) == MAX_LINES + 2
    assert all(text.isprintable() and len(text) <= 2 * MAX_CHARS for text in lines)
    assert lines[-2].endswith(" lines more: see --json")


def test_one_ask_is_shown_as_a_story_or_as_it_was_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".session-runtime").mkdir()
    write(tmp_path / FILE, 3)
    write(tmp_path / f"{FILE}.1", 1, 2)
    done = run("trace", "show", "ask_02")
    assert (done.code, done.err) == (exits.OK, "")
    assert done.out.splitlines() == [*story(named(2))]
    data = json.loads(run("trace", "show", "ask_02", "--json").out)
    assert data == record_to_json(named(2))


def test_an_unknown_id_is_told_with_those_like_it(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "t", 1)
    done = run("trace", "show", "ask_011", "--file", "t")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert "no ask 'ask_011' in t and its rotated files" in done.err
    assert "did you mean ask_01?" in done.err
    assert "see session-runtime trace tail" in run("trace", "show", "zzz", "--file", "t").err


def test_where_nothing_is_recorded_the_reason_is_told(run: Run, tmp_path: Path) -> None:
    assert "no ask was recorded yet" in run("trace", "tail").err
    (tmp_path / "config.toml").write_text("[trace]\nenabled = false\n", "utf-8")
    done = run("trace", "show", "x")
    assert done.code == exits.USAGE
    assert "set trace.enabled to true and restart the daemon" in done.err
    (tmp_path / ".session-runtime").mkdir()
    write(tmp_path / FILE, 1)
    done = run("trace", "tail")
    assert done.err == "note: trace.enabled is false; what was recorded before is read\n"
    assert done.out == f"{summary(named(1))}\n"


def test_the_last_asks_are_told_in_a_line_each(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "t.1", 1)
    (tmp_path / "t").write_bytes(b"no json\n" + line(named(2)) + line(named(3)))
    done = run("trace", "tail", "--file", "t")
    assert done.out.splitlines() == [summary(named(number)) for number in (1, 2, 3)]
    why = "it is no record of an ask: Expecting value at character 1"
    assert done.err == f"warning: t:1: {why}\n"
    assert done.out.splitlines()[0] == (
        "2026-01-02 03:04:05 UTC  ask_01  failed (model.overloaded)  1.500 s  2 turns  2 calls"
        "  360 tokens, 3300 saved  bot for user u1, roles a, b, channel web"
    )
    lines = run("trace", "tail", "-n", "1", "--file", "t", "--json").out.splitlines()
    assert [json.loads(each) for each in lines] == [record_to_json(named(3))]


def test_asks_are_followed_as_they_end(tmp_path: Path) -> None:
    write(tmp_path / "t", 1)
    following = start(tmp_path, "trace", "tail", "-f", "--file", "t")
    with following:
        assert following.stdout is not None
        assert following.stdout.readline() == f"{summary(named(1))}\n"
        (tmp_path / "t").replace(tmp_path / "t.1")
        write(tmp_path / "t", 2)
        assert following.stdout.readline() == f"{summary(named(2))}\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(10) == exits.INTERRUPTED


def test_an_ask_that_ends_during_the_first_look_is_shown_once(tmp_path: Path) -> None:
    write(tmp_path / "t", 1)
    asks = trace._asks(trace.Traces(tmp_path / "t"), 5, follow=True)
    assert next(asks).record == named(1)
    with (tmp_path / "t").open("ab") as file:
        file.write(line(named(1)) + line(named(2)))
    assert next(asks).record == named(2)
    asks.close()


def test_an_ask_of_which_no_line_is_whole_is_told_with_its_damage(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(line(named(1)) + b'{"ask_id":"ask_02"}\n' * 2)
    done = run("trace", "show", "ask_02", "--file", "t")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert (
        "ask 'ask_02' cannot be read: line 3 of t is damaged: it is no record of an ask" in done.err
    )
    assert "started_at is missing" in done.err


def test_json_of_what_callers_said_cannot_steer_a_terminal(run: Run, tmp_path: Path) -> None:
    steering = "\x9b31m \u202e\u2066 \U000e0041 \x7f"
    record = replace(RECORD, ask_id="ask_01", identity=Identity(steering))
    (tmp_path / "t").write_bytes(line(record))
    for command in (("tail",), ("show", "ask_01")):
        done = run("trace", *command, "--file", "t", "--json")
        assert done.out.replace("\n", "").isprintable()
        assert json.loads(done.out)["identity"]["user"] == steering


def test_a_trace_is_read_although_the_configuration_is_wrong(run: Run, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    write(tmp_path / "state/trace.jsonl", 1)
    text = '[ask]\nmax_steps = "many"\n[runtime]\nstate_dir = "state"\n'
    (tmp_path / "config.toml").write_text(text, "utf-8")
    done = run("trace", "tail")
    assert (done.code, done.out) == (exits.OK, f"{summary(named(1))}\n")
    assert "config.toml:2: ask.max_steps" in done.err
    assert "state/trace.jsonl is read; --file names another trace" in done.err


def test_where_not_even_the_place_of_a_trace_is_known_the_way_out_is_told(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text("not TOML", "utf-8")
    done = run("trace", "tail")
    assert (done.code, done.out) == (exits.CONFIG, "")
    assert "--file" in done.err
