"""Every error code is on the page of errors, and no other one is."""

import pytest

from session_runtime.errors import RequestError
from session_runtime.transports.http.answers import refusal
from tests.spec.emitted_codes import emitted, retryable
from tests.spec.errors_page import DATA, PAGE, described, families, read_code, render


def test_the_page_of_errors_is_what_the_data_says() -> None:
    assert PAGE.read_text("utf-8") == render(), "run make docs"


def test_every_code_that_can_be_given_is_described() -> None:
    missing = [
        f"{code} ({at})" for code, at in sorted(emitted().items()) if code not in described()
    ]
    assert not missing, f"add to {DATA.name}: {', '.join(missing)}"


def test_every_code_that_is_described_can_be_given() -> None:
    gone = sorted(described().keys() - emitted().keys())
    assert not gone, f"nobody gives these any more; remove from {DATA.name}: {', '.join(gone)}"


def test_the_page_promises_to_try_again_where_errors_do() -> None:
    wrong = [
        f"{code} ({at})"
        for code, again, at in retryable()
        if code in described() and described()[code].again is not again
    ]
    assert not wrong


def test_every_code_that_has_a_status_of_its_own_over_http_is_seen_there() -> None:
    lost = [
        name
        for name, code in described().items()
        if refusal(RequestError("", code=name)).status_code != 400 and "http" not in code.seen
    ]
    assert not lost


def test_the_page_has_the_statuses_that_the_daemon_answers_with() -> None:
    page = PAGE.read_text("utf-8")
    assert "| `config.if_match` | HTTP 428 |" in page
    assert "| `config.not_over_network` | HTTP 403 |" in page
    assert "| `config.unknown_key` | exit 64, HTTP 400 |" in page
    assert "| `busy.stopping` | HTTP 503 |" in page
    assert "| `revocations.not_kept` | HTTP 500 |" in page


def test_every_code_says_what_happened_and_what_to_do_in_sentences() -> None:
    texts = [text for code in described().values() for text in (code.happened, code.remedy)]
    texts += [family.about for family in families()]
    assert not [text for text in texts if not text.endswith((".", ")")) or "|" in text]


@pytest.mark.parametrize("entry", [[], ["ask", True, "A.", "B."], ["nowhere", "yes", "A.", "B."]])
def test_an_entry_that_cannot_be_understood_is_named(entry: object) -> None:
    with pytest.raises(ValueError, match=r"busy\.new is not described by"):
        read_code("busy.new", entry)
