import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import RequestError
from session_runtime.transports.http.accept import Form, choose_form


@pytest.mark.requirement("NET-1a")
@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "json"),
        ("*/*", "json"),
        ("application/json", "json"),
        ("text/event-stream", "events"),
        ("TEXT/Event-Stream; charset=utf-8", "events"),
        ("application/json, text/event-stream", "json"),
        ("application/json;q=0.5, text/event-stream", "events"),
        ("application/json, text/event-stream;q=0.9", "json"),
        ("text/event-stream, */*;q=0.1", "events"),
        ("text/event-stream;q=0, */*", "json"),
        ("application/json; q=0, */*", "events"),
        ("text/*", "events"),
        ("text/html, application/*;q=0.8", "json"),
        ("text/event-stream;q=nonsense, application/json;q=0.1", "json"),
    ],
)
def test_the_preferred_form_is_chosen(accept: str, form: Form) -> None:
    assert choose_form(accept) == form


@pytest.mark.parametrize("accept", ["text/html", "image/*, text/html;q=0.9", "*/*;q=0", ","])
def test_a_client_that_wants_neither_is_told_what_there_is(accept: str) -> None:
    with pytest.raises(RequestError, match=r"accept application/json or text/event-stream"):
        choose_form(accept)


@given(st.text("aq/*=;, .05", max_size=40))
def test_any_header_is_answered(accept: str) -> None:
    try:
        assert choose_form(accept) in ("json", "events")
    except RequestError as error:
        assert error.code == "request.not_acceptable"  # noqa: PT017
