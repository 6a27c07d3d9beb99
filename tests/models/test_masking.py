"""Secrets of a profile in the words of a service: whole or in part, in whatever form they come back."""

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from session_runtime.models.masking import masked, secrets_of
from session_runtime.testing.replies import reply_bytes, reply_error
from session_runtime.types import JsonObject
from tests.models.building import chat, failure, profile

SECRET = """p4&"s's<w>/\\d+ %41=?#"""
LIMIT = 2_000


def json_text(text: str) -> str:
    return json.dumps(text)[1:-1]


def every_char(form: str) -> Callable[[str], str]:
    return lambda text: "".join(form.format(ord(char)) for char in text)


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in JSON": json_text,
    "in JSON without escapes of letters": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "in JSON in JSON": lambda text: json_text(json_text(text)),
    "in JSON with slashes escaped": lambda text: json_text(text).replace("/", "\\/"),
    "in JSON, all escaped": every_char("\\u{:04X}"),
    "in HTML": html.escape,
    "in HTML, by decimal numbers": every_char("&#{};"),
    "in HTML, by hexadecimal numbers": every_char("&#x{:x};"),
    "in JSON in HTML": lambda text: html.escape(json_text(text)),
    "in HTML in JSON": lambda text: json_text(html.escape(text)),
    "in a path": quote,
    "in a query": lambda text: quote(text, safe=""),
    "in a form": quote_plus,
    "in a query, all escaped": every_char("%{:02x}"),
    "in a query in a query": lambda text: quote(quote(text, safe=""), safe=""),
    "in Python": lambda text: repr(text)[1:-1],
    "with what cannot be seen": "\u200b".join,
}


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_masked_in_every_form(form: str) -> None:
    said = f"no {FORMS[form](SECRET)}, nor {FORMS[form](SECRET)}"
    assert masked(said, (SECRET,), LIMIT) == "no ***, nor ***"


@pytest.mark.parametrize(
    "text", ["50% off", "a\\", "&amp", "&nosuch;", "%4", "\\u12", "&#99999999;"]
)
def test_what_is_no_secret_stays_as_it_was_sent(text: str) -> None:
    assert masked(text, (SECRET,), LIMIT) == text


PRINTABLE = st.characters(min_codepoint=32, max_codepoint=126)
AROUND = st.text("abc 123.:", max_size=9)


@given(AROUND, st.text(PRINTABLE, min_size=4, max_size=12), AROUND, st.sampled_from(sorted(FORMS)))
def test_no_secret_is_told_whatever_it_looks_like(
    before: str, secret: str, after: str, form: str
) -> None:
    told = masked(f"{before}{FORMS[form](secret)}{after}", (secret,), LIMIT)
    assert FORMS[form](secret) not in told or FORMS[form](secret) in f"{before}***{after}"


def test_a_secret_at_the_limit_is_masked_whole_and_what_follows_is_cut() -> None:
    assert masked(f"{'x' * 96}{SECRET}more", (SECRET,), 100) == "x" * 96 + "***"
    assert masked("x" * 5_000_000, (SECRET,), 100) == "x" * 100
    assert masked(f"{SECRET}, then {SECRET}", (SECRET,), len(SECRET) + 3) == "***, t"
    assert masked(f"{'x' * 100}y{SECRET}", (SECRET,), 100) == "x" * 100


def test_secrets_that_overlap_are_masked_together() -> None:
    assert masked("abcdefgh!", ("abcdef", "efgh", "cd"), LIMIT) == "***!"


BASIC = base64.b64encode(b"alice:open sesame").decode()
PARTS: dict[str, tuple[dict[str, str], list[str]]] = {
    "values of cookies": ({"Cookie": "sid=s3cr3t-1; theme=dark-7"}, ["s3cr3t-1", "dark-7"]),
    "a quoted value": ({"X-Auth": 'id="s3cr3t-1", v=1'}, ["s3cr3t-1"]),
    "what is behind a scheme": ({"Authorization": "Bearer s3cr3t-1"}, ["s3cr3t-1"]),
    "behind a scheme of any name": ({"X-Api-Key": "Custom s3cr3t-1"}, ["s3cr3t-1"]),
    "behind a scheme in any header": ({"X-Forward": "bearer s3cr3t-1"}, ["s3cr3t-1"]),
    "a pair in any header": ({"X-Session": "sid=s3cr3t-1"}, ["s3cr3t-1"]),
    "user and password": (
        {"Authorization": f"Basic {BASIC}"},
        [BASIC, BASIC.rstrip("="), "alice:open sesame", "open sesame"],
    ),
    "a key in place of a user": (
        {"Authorization": "Basic " + base64.b64encode(b"s3cr3t-1:").decode()},
        ["s3cr3t-1"],
    ),
    "values of an object": ({"X-Secrets": '{"a": "s3cr3t-1", "b": "s3cr3t-2"}'}, ["s3cr3t-2"]),
    "a value with its padding": ({"X-Token": "c2VjcmV0c2VjcmV0=="}, ["c2VjcmV0c2VjcmV0=="]),
}


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize("header", PARTS)
async def test_parts_of_a_header_are_not_told(header: str) -> None:
    headers, parts = PARTS[header]
    added = {name: SecretStr(value) for name, value in headers.items()}
    for part in parts:
        said = reply_error(403, f"no access for {part} today")
        async with chat([said], headers=added, api_key=None) as (model, _):
            assert "no access for *** today" in str(await failure(model))


@pytest.mark.requirement("CFG-4")
def test_secrets_of_the_address_and_of_the_body_count_as_secrets() -> None:
    body = {"user_token": "s3cr3t-1", "seed": 7, "a": [{"password": "s3cr3t-2", "b": "shown"}]}
    address = "http://model.test/v1?api_key=s3cr3t%203&api-version=2024-10-21&x=longer"
    secrets = secrets_of(profile(address, extra_body=body, api_key=None))
    assert secrets == ("s3cr3t%203", "s3cr3t-1", "s3cr3t-2")


def test_words_of_a_header_that_holds_no_secret_may_be_told() -> None:
    headers = {"X-Title": SecretStr("my assistant"), "X-Url": SecretStr("https://a.test/?a=longer")}
    secrets = secrets_of(profile("http://model.test/v1", headers=headers))
    told = "invalid role assistant at https://model.test"
    assert masked(told, secrets, LIMIT) == told


BODIES: dict[str, Callable[[str], bytes]] = {
    "as text": str.encode,
    "as a page": lambda said: f"<html><pre>{html.escape(said)}</pre></html>".encode(),
    "as JSON that is cut": lambda said: json.dumps({"said": said})[:-1].encode(),
    "in a list": lambda said: json.dumps({"detail": [{"input": said}]}).encode(),
    "as JSON in JSON": lambda said: json.dumps({"error": json.dumps({"said": said})}).encode(),
    "in an address": lambda said: json.dumps({"error": f"GET /?key={quote(said)}"}).encode(),
}


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize("body", BODIES)
async def test_a_key_that_a_service_escapes_is_not_told(body: str) -> None:
    key = 'k3y<&>"with/all\\kinds'
    refused = reply_bytes(BODIES[body](f"bad header: {key}!"), status=400)
    async with chat([refused], api_key=SecretStr(key)) as (model, _):
        told = str(await failure(model))
    assert "***" in told
    for part in ("k3y", "with", "kinds"):
        assert part not in told


@pytest.mark.requirement("CFG-4")
async def test_an_error_object_in_a_stream_tells_no_secret() -> None:
    error: JsonObject = {"error": {"message": f"bad {json_text(SECRET)}", "code": 400}}
    said = reply_bytes(f"data: {json.dumps(error)}\n\n".encode())
    added = {"X-Key": SecretStr(SECRET)}
    async with chat([said], headers=added) as (model, _):
        assert "bad ***" in str(await failure(model))
