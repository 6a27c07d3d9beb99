"""Every text of the corpus: a call where it is one and nothing more, else the text as it came."""

import pytest

from tests.models.recovery.corpus import CALLS, TEXTS, Sample
from tests.models.recovery.playing import called, played


def pieces_of(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.requirement("ASK-6")
@pytest.mark.parametrize("size", [1, 7, 1_000_000], ids=["by_one", "by_seven", "whole"])
@pytest.mark.parametrize("sample", CALLS, ids=lambda sample: sample.title)
async def test_a_text_that_is_calls_and_nothing_more_becomes_calls_and_is_not_told(
    sample: Sample, size: int
) -> None:
    reply, told = await played(pieces_of(sample.text, size))
    assert (called(reply), reply.text) == (sample.calls, "")
    assert all(call.recovered for call in reply.calls)
    assert [call.id for call in reply.calls] == [f"call_{n}" for n in range(len(reply.calls))]
    told_text = "".join(told)
    assert not any(mark in told_text for mark in ("{", "<", "[", "`")), told_text


@pytest.mark.requirement("ASK-6")
@pytest.mark.parametrize("size", [1, 7, 1_000_000], ids=["by_one", "by_seven", "whole"])
@pytest.mark.parametrize("sample", TEXTS, ids=lambda sample: sample.title)
async def test_a_text_that_merely_looks_alike_stays_text_and_is_told_whole(
    sample: Sample, size: int
) -> None:
    reply, told = await played(pieces_of(sample.text, size))
    answer = sample.text.rpartition("?</think>\n")[2]
    assert (reply.calls, reply.text, "".join(told)) == ((), answer, answer)


def test_the_corpus_has_more_texts_that_must_stay_text_than_calls() -> None:
    assert len(CALLS) + len(TEXTS) >= 150
    assert len(TEXTS) >= len(CALLS)
    assert len({sample.text for sample in (*CALLS, *TEXTS)}) == len(CALLS) + len(TEXTS)
