"""Who can confirm what, once, and for how long."""

import itertools
from dataclasses import dataclass, replace

import pytest

from session_runtime.errors import RequestError
from session_runtime.registry import confirmations as module
from session_runtime.registry.confirmations import Answered, Asker, Confirmations, WaitingCall
from session_runtime.types import Identity, ToolCall

ANN = Asker("bot", Identity("ann", frozenset({"staff"}), "web", "g1"), "talk")
OTHERS = [
    replace(ANN, principal="desk"),
    replace(ANN, conversation="other"),
    replace(ANN, conversation=None),
    replace(ANN, identity=replace(ANN.identity, user="eve")),
    replace(ANN, identity=replace(ANN.identity, user=None)),
    replace(ANN, identity=replace(ANN.identity, roles=frozenset({"staff", "admin"}))),
    replace(ANN, identity=replace(ANN.identity, roles=frozenset())),
    replace(ANN, identity=replace(ANN.identity, roles=None)),
    replace(ANN, identity=replace(ANN.identity, channel="mail")),
    replace(ANN, identity=replace(ANN.identity, group=None)),
]


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Confirmations:
    return Confirmations(clock, today=lambda: 1_000.0)


def waiting(call_id: str = "c1", chars: int = 10) -> WaitingCall:
    return WaitingCall("ask_1", ToolCall(call_id, "wipe", "{}"), "form", b"digest", chars)


def keep(store: Confirmations, asker: Asker = ANN, call_id: str = "c1", chars: int = 10) -> str:
    token, _ = store.keep(asker, waiting(call_id, chars), 600)
    return token


def refused(store: Confirmations, asker: Asker, *tokens: str) -> str:
    with pytest.raises(RequestError) as caught:
        store.claim(asker, tokens)
    assert caught.value.code == "confirmation.invalid"
    return str(caught.value)


@pytest.mark.requirement("RTE-9b")
def test_a_token_gives_its_call_once(store: Confirmations) -> None:
    token, expires_at = store.keep(ANN, waiting(), 600)
    assert expires_at == 1_600.0
    assert store.claim(ANN, [token]) == (Answered(waiting(), True, 600.0),)
    assert "confirmations[0] was used before" in refused(store, ANN, token)


@pytest.mark.requirement("RTE-9b")
@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_in_the_hands_of_others_a_token_is_as_unknown_as_one_that_never_was(
    store: Confirmations, other: Asker
) -> None:
    token = keep(store)
    never = token[:-1] + ("A" if token[-1] != "A" else "B")
    told = refused(store, other, token)
    assert told == refused(store, other, never) == refused(store, other, "nonsense")
    assert told == refused(store, ANN, never)
    assert [each.agreed for each in store.claim(ANN, [token])] == [True]


@pytest.mark.requirement("RTE-9b")
def test_nobody_else_learns_that_a_token_was_used_or_expired(
    store: Confirmations, clock: Clock
) -> None:
    used, old = keep(store), keep(store)
    store.claim(ANN, [used])
    clock.now = 600
    assert "confirmations[0] was used" in (told := refused(store, ANN, used, old))
    assert "confirmations[1] has expired" in told
    assert refused(store, OTHERS[0], used) == refused(store, OTHERS[0], "nonsense")


@pytest.mark.requirement("RTE-9b")
def test_a_token_holds_until_its_time_is_up(store: Confirmations, clock: Clock) -> None:
    tokens = [keep(store), keep(store)]
    clock.now = 599.9
    [answered] = store.claim(ANN, tokens[:1])
    assert store.holds(answered)
    clock.now = 600
    assert not store.holds(answered)
    assert "has expired" in refused(store, ANN, tokens[1])
    clock.now = 600 + module.REMEMBERED_S
    assert "is not known" in refused(store, ANN, tokens[1])
    assert len(store) == 0


@pytest.mark.requirement("RTE-9b")
def test_a_request_with_one_bad_token_uses_up_none(store: Confirmations) -> None:
    good, wanted = keep(store), keep(store, call_id="c2")
    with pytest.raises(RequestError, match=r"confirmations\[1\] is not known.*") as caught:
        store.claim(ANN, [good, "bad"], [wanted])
    assert "declined[0]" not in str(caught.value)
    [first, second] = store.claim(ANN, [good], [wanted])
    assert (first.agreed, second.agreed) == (True, False)


def test_a_call_cannot_be_both_confirmed_and_declined(store: Confirmations) -> None:
    token = keep(store)
    with pytest.raises(RequestError, match=r"declined\[0\] is given under confirmations too"):
        store.claim(ANN, [token], [token])
    assert len(store.claim(ANN, [token, token])) == 1


def test_calls_come_in_the_order_in_which_they_were_asked_about(store: Confirmations) -> None:
    tokens = [keep(store, call_id=f"c{number}") for number in range(4)]
    answered = store.claim(ANN, [tokens[3], tokens[1]], [tokens[2], tokens[0]])
    assert [(each.waiting.call.id, each.agreed) for each in answered] == [
        ("c0", False),
        ("c1", True),
        ("c2", False),
        ("c3", True),
    ]


def test_tokens_are_neither_kept_nor_alike(store: Confirmations) -> None:
    tokens = [keep(store) for _ in range(50)]
    secrets = [token.split("_", 2)[2] for token in tokens]
    assert len(set(secrets)) == 50
    assert all(len(secret) >= 43 for secret in secrets)
    assert not any(secret in repr(vars(store)) for secret in secrets)


def test_text_that_is_no_token_is_unknown(store: Confirmations) -> None:
    token = keep(store)
    for text in ("", "_", "confirm_", "\ud800", f"{token}\ud800", f"x{token}", f"{token} "):
        assert "is not known" in refused(store, ANN, text)


@pytest.mark.requirement("RTE-9b")
def test_of_too_many_calls_of_one_owner_the_oldest_goes(
    store: Confirmations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_OF_ONE", 3)
    others = keep(store, OTHERS[0])
    tokens = [keep(store) for _ in range(4)]
    assert "is not known" in refused(store, ANN, tokens[0])
    assert len(store.claim(ANN, tokens[1:])) == 3
    assert len(store.claim(OTHERS[0], [others])) == 1


def test_of_too_large_calls_of_one_owner_the_oldest_goes(
    store: Confirmations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_CHARS_OF_ONE", 100)
    tokens = [keep(store, chars=40) for _ in range(3)]
    assert "is not known" in refused(store, ANN, tokens[0])
    assert len(store.claim(ANN, tokens[1:])) == 2


@pytest.mark.parametrize(("bound", "most", "chars"), [("MOST", 4, 1), ("MOST_CHARS", 40, 10)])
def test_whoever_has_the_most_makes_room_for_who_has_none(
    store: Confirmations, monkeypatch: pytest.MonkeyPatch, bound: str, most: int, chars: int
) -> None:
    monkeypatch.setattr(module, bound, most)
    quiet = Asker("quiet", Identity("q"))
    first = keep(store, quiet, chars=chars)
    numbers = itertools.count()
    flood = [Asker("loud", Identity(f"u{next(numbers)}")) for _ in range(9)]
    tokens = [keep(store, asker, chars=chars) for asker in flood]
    assert len(store) == 4
    assert "is not known" in refused(store, flood[0], tokens[0])
    assert len(store.claim(quiet, [first])) == 1
    assert len(store.claim(flood[-1], [tokens[-1]])) == 1
