"""Which profile is asked for a turn and how often: the one place that tries again or falls back."""

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.ask.calling import Candidate, DeadlineReached, ModelCall, Pauses
from session_runtime.config.models import ModelProfile
from session_runtime.errors import PermanentError, TransientError
from session_runtime.generation import Profile
from session_runtime.models.base import ModelReply, ModelRequest, OnText
from session_runtime.registry.names import build_wire_names
from session_runtime.types import Message, ToolCall

NAMES = build_wire_names([], "__")
REQUEST = ModelRequest((Message("user", "hi"),), (), NAMES)
HELLO = ModelReply("hello")


class Playing:
    """A model that replies, or raises, what it was given, and remembers what it was asked."""

    def __init__(self, *replies: ModelReply | BaseException) -> None:
        self.replies = list(replies)
        self.asked: list[ModelRequest] = []

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        self.asked.append(request)
        match self.replies.pop(0):
            case BaseException() as error:
                raise error
            case reply:
                on_text(reply.text)
                return reply

    async def aclose(self) -> None:
        raise NotImplementedError


class Waits(list[float]):
    """Stands in for the clock: remembers how long was slept."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def busy(retry_after_s: float | None = None) -> TransientError:
    return TransientError("busy", code="model.rate_limited", retry_after_s=retry_after_s)


def denied(code: str = "model.unauthorized") -> PermanentError:
    return PermanentError("no", code=code)


def candidate(
    model: Playing, name: str = "main", *, obstacle: str | None = None, **settings: Any
) -> Candidate:
    profile = Profile(name, ModelProfile(wire="offline", **settings), model, NAMES, ())
    return Candidate(profile, REQUEST, obstacle)


class Asking:
    """One model call, with what it told about its attempts, replies and pauses."""

    def __init__(self) -> None:
        self.attempts: list[tuple[int, str]] = []
        self.replies: list[ModelReply] = []
        self.waits = Waits()

    async def __call__(self, *candidates: Candidate, limit_s: float = 100.0) -> tuple[str, str]:
        """The profile that answered, and its text."""
        deadline = asyncio.get_running_loop().time() + limit_s
        pauses = Pauses(self.waits, jitter=lambda: 1.0)
        call = ModelCall(deadline, self._on_attempt, self.replies.append, pauses)
        answered, reply = await call.answer(candidates)
        return answered.profile.name, reply.text

    def _on_attempt(self, attempt: int, model: str) -> OnText:
        self.attempts.append((attempt, model))
        return lambda text: None


@pytest.fixture
def asking() -> Asking:
    return Asking()


@pytest.mark.requirement("ASK-9")
async def test_a_transient_failure_is_retried_with_the_same_messages_and_growing_waits(
    asking: Asking,
) -> None:
    model = Playing(busy(), busy(), HELLO)
    assert await asking(candidate(model)) == ("main", "hello")
    assert model.asked == [REQUEST] * 3
    assert asking.waits == [0.5, 1.0]


class Breaking(Playing):
    """Tells two pieces of text, then does with it what it was given."""

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        for piece in ("Half of ", "it"):
            on_text(piece)
        return await super().reply(request, on_text)


@pytest.mark.requirement("ASK-9")
async def test_what_was_told_of_a_reply_that_broke_off_is_counted_as_a_reply(
    asking: Asking,
) -> None:
    assert await asking(candidate(Breaking(busy(), busy(), HELLO))) == ("main", "hello")
    assert asking.replies == [ModelReply("Half of it"), ModelReply("Half of it"), HELLO]


async def test_an_attempt_that_failed_before_any_text_is_not_counted(asking: Asking) -> None:
    assert await asking(candidate(Playing(busy(), HELLO))) == ("main", "hello")
    assert asking.replies == [HELLO]


async def test_a_model_is_told_when_the_ask_ends(asking: Asking) -> None:
    model = Playing(HELLO)
    before = asyncio.get_running_loop().time()
    await asking(candidate(model), limit_s=50.0)
    until = model.asked[0].until
    assert until is not None
    assert before + 50.0 <= until <= asyncio.get_running_loop().time() + 50.0


@pytest.mark.requirement("ASK-9")
async def test_the_wait_that_the_provider_asks_for_is_kept(asking: Asking) -> None:
    await asking(candidate(Playing(busy(retry_after_s=7.0), HELLO)))
    assert asking.waits == [7.0]


@pytest.mark.requirement("ASK-9")
async def test_a_wait_beyond_the_deadline_fails_at_once_with_the_providers_error(
    asking: Asking,
) -> None:
    with pytest.raises(TransientError, match=r"^busy$"):
        await asking(candidate(Playing(busy(retry_after_s=3600.0), HELLO)))
    assert asking.waits == []


@pytest.mark.requirement("ASK-9")
async def test_a_permanent_failure_is_never_retried(asking: Asking) -> None:
    with pytest.raises(PermanentError, match=r"^no$"):
        await asking(candidate(Playing(denied(), HELLO)))
    assert asking.attempts == [(1, "main")]


@pytest.mark.requirement("ASK-9")
async def test_patience_ends_with_the_last_error(asking: Asking) -> None:
    model = Playing(busy(), TransientError("the second", code="model.down"), HELLO)
    with pytest.raises(TransientError, match="the second"):
        await asking(candidate(model, max_retries=1))


@pytest.mark.requirement("ASK-7")
async def test_a_blank_answer_is_asked_again_and_then_a_typed_failure(asking: Asking) -> None:
    blank = ModelReply("  \n\u200b")
    assert await asking(candidate(Playing(blank, HELLO))) == ("main", "hello")
    assert asking.replies == [blank, HELLO]
    with pytest.raises(TransientError) as caught:
        await asking(candidate(Playing(*[blank] * 3)))
    assert caught.value.code == "model.empty_answer"


@pytest.mark.requirement("ASK-7")
async def test_a_blank_answer_that_a_filter_made_is_not_asked_for_again(asking: Asking) -> None:
    kept_back = ModelReply(finish_reason="content_filter")
    with pytest.raises(PermanentError, match=r"content_filter") as caught:
        await asking(candidate(Playing(kept_back, HELLO)))
    assert (caught.value.code, asking.replies) == ("model.filtered", [kept_back])


@pytest.mark.requirement("ASK-9")
async def test_a_fallback_takes_over_where_a_filter_kept_an_answer_back(asking: Asking) -> None:
    kept_back = Playing(ModelReply(finish_reason="content_filter"))
    other = candidate(Playing(HELLO), "other")
    assert await asking(candidate(kept_back), other) == ("other", "hello")


@pytest.mark.requirement("ASK-7")
@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (None, r"neither text nor a tool call$"),
        ("stop", r"neither text nor a tool call$"),
        ("incomplete", r"tool call: the service broke it off \(finish_reason 'incomplete'\)$"),
        ("length", r"\(finish_reason 'length'\); raise the profile's max_output_tokens"),
    ],
)
async def test_a_blank_answer_tells_why_it_is_blank(
    reason: str | None, told: str, asking: Asking
) -> None:
    blank = ModelReply(finish_reason=reason)
    with pytest.raises(TransientError, match=told) as caught:
        await asking(candidate(Playing(*[blank] * 3)))
    assert caught.value.code == "model.empty_answer"


@pytest.mark.requirement("ASK-7")
async def test_calls_without_text_are_not_blank(asking: Asking) -> None:
    reply = ModelReply("", (ToolCall("1", "end", ""),))
    await asking(candidate(Playing(reply)))
    assert asking.replies == [reply]


class Hanging(Playing):
    """A model that never answers; ``started`` once it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.started = asyncio.Event()

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        self.started.set()
        await asyncio.Event().wait()
        raise NotImplementedError


@pytest.mark.requirement("ASK-8")
@pytest.mark.requirement("ASK-9b")
async def test_the_deadline_ends_a_call_that_hangs_and_nobody_takes_over(asking: Asking) -> None:
    backup = Playing(HELLO)
    for limit_s in (0.0, 0.01):
        with pytest.raises(DeadlineReached):
            await asking(candidate(Hanging()), candidate(backup, "backup"), limit_s=limit_s)
    assert backup.asked == []


@pytest.mark.requirement("ASK-9b")
async def test_nobody_takes_over_from_a_call_that_is_cancelled(asking: Asking) -> None:
    main, backup = Hanging(), Playing(HELLO)
    task = asyncio.create_task(asking(candidate(main), candidate(backup, "backup")))
    await main.started.wait()
    task.cancel()
    await asyncio.wait([task])
    assert (task.cancelled(), backup.asked) == (True, [])


@pytest.mark.requirement("ASK-9")
async def test_a_timeout_inside_the_model_is_not_taken_for_the_deadline(asking: Asking) -> None:
    with pytest.raises(TimeoutError):
        await asking(candidate(Playing(TimeoutError())), candidate(Playing(HELLO), "backup"))


@pytest.mark.requirement("ASK-9b")
@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (busy(), 2),
        (TransientError("cut", code="model.broken_reply"), 2),
        (denied("model.unauthorized"), 1),
        (denied("model.quota_exhausted"), 1),
        (denied("model.refused"), 1),
        (denied("model.reply_too_large"), 1),
    ],
)
async def test_a_fallback_takes_over_once_patience_with_the_first_profile_ends(
    asking: Asking,
    error: TransientError | PermanentError,
    attempts: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    main = candidate(Playing(*[error] * attempts), max_retries=1)
    assert await asking(main, candidate(Playing(HELLO), "backup")) == ("backup", "hello")
    names = ["main"] * attempts + ["backup"]
    assert asking.attempts == list(enumerate(names, 1))
    assert [(record.levelno, record.message) for record in caplog.records] == [
        (
            logging.WARNING,
            f"model profile 'main' failed ({error.code}): 'backup' takes over for the rest of the ask",
        )
    ]


@pytest.mark.requirement("ASK-9b")
async def test_a_fallback_takes_over_for_a_model_that_stays_blank_or_is_busy_for_too_long(
    asking: Asking,
) -> None:
    blank = candidate(Playing(ModelReply(" ")), "blank", max_retries=0)
    for_an_hour = candidate(Playing(busy(3600.0)), "busy")
    assert await asking(blank, for_an_hour, candidate(Playing(HELLO), "last")) == ("last", "hello")
    assert asking.waits == []


@pytest.mark.requirement("ASK-9b")
async def test_a_fallback_has_patience_of_its_own(asking: Asking) -> None:
    main = candidate(Playing(busy()), max_retries=0)
    backup = candidate(Playing(busy(), HELLO), "backup", max_retries=1)
    assert await asking(main, backup) == ("backup", "hello")
    assert asking.waits == [0.5]


@pytest.mark.requirement("ASK-9b")
async def test_a_fallback_that_cannot_do_what_the_ask_needs_is_passed_over(asking: Asking) -> None:
    backup = Playing(HELLO)
    unfit = candidate(backup, "small", obstacle="it takes at most 2 tools")
    last = candidate(Playing(HELLO), "last")
    assert await asking(candidate(Playing(denied())), unfit, last) == ("last", "hello")
    with pytest.raises(PermanentError) as caught:
        await asking(candidate(Playing(denied())), unfit)
    assert (caught.value.code, str(caught.value)) == (
        "model.unauthorized",
        "model profile 'main' failed: no (model.unauthorized); "
        "its fallback 'small' cannot take over: it takes at most 2 tools",
    )
    assert backup.asked == []


@pytest.mark.requirement("ASK-9b")
@pytest.mark.parametrize(
    ("had", "has", "takes_over"),
    [(8_000, 32_000, True), (8_000, 8_000, False), (8_000, None, False), (None, 32_000, False)],
)
async def test_a_conversation_that_is_too_long_goes_only_to_a_larger_context(
    asking: Asking, had: int | None, has: int | None, takes_over: bool
) -> None:
    main = candidate(Playing(denied("model.context_too_long")), context_window=had)
    backup = candidate(Playing(HELLO), "backup", context_window=has)
    if takes_over:
        assert await asking(main, backup) == ("backup", "hello")
        return
    with pytest.raises(PermanentError, match="its context_window is not known to be larger"):
        await asking(main, backup)


@pytest.mark.requirement("ASK-9b")
async def test_when_all_fail_the_caller_learns_of_each_and_whether_to_come_back(
    asking: Asking,
) -> None:
    with pytest.raises(TransientError) as passing:
        await asking(
            candidate(Playing(denied())), candidate(Playing(busy(90.0)), "b", max_retries=0)
        )
    assert (passing.value.code, passing.value.retry_after_s, str(passing.value)) == (
        "model.rate_limited",
        90.0,
        "model profile 'main' failed: no (model.unauthorized); "
        "its fallback 'b' failed: busy (model.rate_limited)",
    )
    with pytest.raises(PermanentError) as lasting:
        await asking(candidate(Playing(denied())), candidate(Playing(denied("model.bad_url")), "b"))
    assert lasting.value.code == "model.unauthorized"


OUTCOMES = st.sampled_from(["answer", "busy", "denied"])


@pytest.mark.requirement("ASK-9b")
@given(st.lists(st.tuples(st.lists(OUTCOMES, min_size=3, max_size=3), st.booleans()), min_size=1))
async def test_profiles_are_asked_in_order_until_one_answers_and_never_again_after_they_failed(
    plan: list[tuple[list[str], bool]],
) -> None:
    made: dict[str, ModelReply | BaseException] = {
        "answer": HELLO,
        "busy": busy(),
        "denied": denied(),
    }
    models = [Playing(*(made[outcome] for outcome in outcomes)) for outcomes, _ in plan]
    candidates = [
        candidate(model, str(at), obstacle="unfit" if unfit else None)
        for at, (model, (_, unfit)) in enumerate(zip(models, plan, strict=True))
    ]
    expected: list[str] = []
    answered = None
    for at, (outcomes, unfit) in enumerate(plan):
        if answered is not None or (unfit and at):
            continue
        for outcome in outcomes:
            expected.append(str(at))
            if outcome != "busy":
                break
        answered = str(at) if outcome == "answer" else None
    asking = Asking()
    try:
        name, _ = await asking(*candidates)
    except (TransientError, PermanentError):
        name = None
    assert name == answered
    assert asking.attempts == list(enumerate(expected, 1))
