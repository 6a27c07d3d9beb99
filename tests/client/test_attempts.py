"""What became of each attempt at one request, as both clients tell it (NET-1, NET-6)."""

from session_runtime.client.attempts import Attempts


def test_an_attempt_may_run_from_when_it_leaves_until_it_is_refused() -> None:
    attempts = Attempts()
    attempts.begin()
    told = [attempts.may_have_run]
    attempts.leave()
    told.append(attempts.may_have_run)
    attempts.refuse(1)
    told.append(attempts.may_have_run)
    assert told == [False, True, False]


def test_a_refusal_of_one_attempt_says_nothing_of_an_earlier_one() -> None:
    attempts = Attempts()
    for _ in range(3):
        attempts.begin()
        attempts.leave()
    attempts.refuse(2)
    assert (attempts.number, attempts.earlier, attempts.unsure) == (3, 1, True)
    attempts.refuse(1)
    assert (attempts.earlier, attempts.unsure, attempts.may_have_run) == (0, False, True)


def test_an_attempt_that_nobody_got_counts_as_not_made() -> None:
    attempts = Attempts()
    attempts.begin()
    attempts.leave()
    attempts.take_back()
    assert (attempts.number, attempts.may_have_run, attempts.unsure) == (0, False, False)
