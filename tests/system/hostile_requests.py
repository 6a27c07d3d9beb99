"""Requests that no honest client sends, as bytes, each with its right answer."""

from dataclasses import dataclass
from typing import Final

BODY: Final = b'{"text": "hi"}'
HOST: Final = b"Host: localhost\r\n"
JSON: Final = b"Content-Type: application/json\r\n"
LENGTH: Final = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"
LAST: Final = b"0\r\n\r\n"
MAX_BODY: Final = 65_536


@dataclass(frozen=True)
class Row:
    """What is sent, and the statuses of the answers; then the connection is closed, or goes on in step."""

    sent: bytes
    statuses: tuple[int, ...]
    closed: bool = False


def request(line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    return line + b"\r\n" + b"".join(headers) + b"\r\n" + body


def ask(*headers: bytes, body: bytes = BODY) -> bytes:
    return request(b"POST /v1/ask HTTP/1.1", HOST, JSON, *headers, body=body)


def get(target: bytes, *, host: bytes = HOST, version: bytes = b"HTTP/1.1") -> bytes:
    return request(b"GET " + target + b" " + version, host)


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


def served(sent: bytes, status: int = 200) -> Row:
    return Row(sent, (status,))


def cut(sent: bytes, status: int = 400) -> Row:
    return Row(sent, (status,), closed=True)


def json_row(body: bytes, status: int = 400) -> Row:
    return served(ask(b"Content-Length: %d\r\n" % len(body), body=body), status)


SMUGGLED: Final = get(b"/v1/config")
WHOLE: Final = chunk(BODY) + LAST

FRAMING: Final = {
    "length and chunks": cut(ask(LENGTH, CHUNKED, body=LAST + SMUGGLED)),
    "chunks and length": cut(ask(CHUNKED, LENGTH, body=LAST + SMUGGLED)),
    "two lengths": cut(ask(LENGTH, b"Content-Length: 3\r\n")),
    "the same length twice": cut(ask(LENGTH, LENGTH)),
    "a list of lengths": cut(ask(b"Content-Length: 14, 14\r\n")),
    "a length with a sign": cut(ask(b"Content-Length: +14\r\n")),
    "a negative length": cut(ask(b"Content-Length: -14\r\n")),
    "a hexadecimal length": cut(ask(b"Content-Length: 0xe\r\n")),
    "an empty length": cut(ask(b"Content-Length: \r\n")),
    "a blank before the colon of the length": cut(ask(b"Content-Length : 14\r\n")),
    "a length of 26 digits": cut(ask(b"Content-Length: " + b"9" * 26 + b"\r\n")),
    "a length of 2^63": cut(ask(b"Content-Length: 9223372036854775808\r\n"), 413),
    "a length beyond all that is read": cut(ask(b"Content-Length: 100000000\r\n"), 413),
    "another coding": cut(ask(b"Transfer-Encoding: xchunked\r\n", body=WHOLE)),
    "chunks, and then another coding": cut(
        ask(b"Transfer-Encoding: chunked, identity\r\n", body=WHOLE)
    ),
    "chunks of another coding": served(
        ask(b"Transfer-Encoding: gzip, chunked\r\n", body=WHOLE), 415
    ),
    "chunked twice": cut(ask(CHUNKED, CHUNKED, body=WHOLE)),
    "a folded coding": cut(ask(b"Transfer-Encoding:\r\n chunked\r\n", body=WHOLE)),
    "a coding after a vertical tab": cut(ask(b"Transfer-Encoding: \x0bchunked\r\n", body=WHOLE)),
    "a blank before the colon of the coding": cut(
        ask(b"Transfer-Encoding : chunked\r\n", body=WHOLE)
    ),
    "chunks": served(ask(CHUNKED, body=WHOLE)),
    "chunks with an extension": served(ask(CHUNKED, body=b"e;a=b\r\n" + BODY + b"\r\n" + LAST)),
    "an extension that ends early": cut(ask(CHUNKED, body=b"e;\n" + BODY + b"\r\n" + LAST)),
    "a chunk without a size": cut(ask(CHUNKED, body=b"zz\r\n" + BODY + b"\r\n" + LAST)),
    "a chunk of negative size": cut(ask(CHUNKED, body=b"-1\r\n" + BODY + b"\r\n" + LAST)),
    "a size with a prefix": cut(ask(CHUNKED, body=b"0xe\r\n" + BODY + b"\r\n" + LAST)),
    "a size of 17 digits": cut(ask(CHUNKED, body=b"f" * 17 + b"\r\n" + BODY)),
    "a chunk longer than it says": cut(ask(CHUNKED, body=b"5\r\n" + BODY + b"\r\n" + LAST)),
    "chunks with bare line feeds": cut(ask(CHUNKED, body=b"e\n" + BODY + b"\n0\n\n")),
    "a large body": Row(ask(b"Content-Length: 65537\r\n", body=b" " * 65_537), (413,), closed=True),
}

HEADS: Final = {
    "bare line feeds": cut(b"GET /healthz HTTP/1.1\nHost: localhost\n\n"),
    "bare carriage returns": cut(b"GET /healthz HTTP/1.1\rHost: localhost\r\r\n\r\n"),
    "empty lines before": served(b"\r\n\r\n" + get(b"/healthz")),
    "a folded header": cut(request(b"GET /healthz HTTP/1.1", HOST, b"X-A: b\r\n c\r\n")),
    "a header without a colon": cut(request(b"GET /healthz HTTP/1.1", HOST, b"nocolon\r\n")),
    "a header without a name": cut(request(b"GET /healthz HTTP/1.1", HOST, b": x\r\n")),
    "a header with NUL": cut(request(b"GET /healthz HTTP/1.1", HOST, b"X-A: a\0b\r\n")),
    "a header with a carriage return": cut(
        request(b"GET /healthz HTTP/1.1", HOST, b"X-A: a\rb\r\n")
    ),
    "a name with a control character": cut(
        request(b"GET /healthz HTTP/1.1", HOST, b"X\x01A: b\r\n")
    ),
    "a header of any bytes": served(request(b"GET /healthz HTTP/1.1", HOST, b"X-A: \xff\xfe\r\n")),
    "a header of 40,000 bytes": served(
        request(b"GET /healthz HTTP/1.1", HOST, b"X-A: " + b"a" * 40_000 + b"\r\n"), 431
    ),
    "5,000 headers": cut(
        request(b"GET /healthz HTTP/1.1", HOST, *(b"X-%d: a\r\n" % each for each in range(5_000))),
        431,
    ),
    "a URL of 40,000 bytes": served(get(b"/" + b"a" * 40_000), 431),
    "HTTP/1.0": cut(get(b"/healthz", version=b"HTTP/1.0"), 200),
    "HTTP/1.0 without a host": cut(get(b"/healthz", version=b"HTTP/1.0", host=b""), 403),
    "HTTP/0.9": cut(b"GET /healthz\r\n\r\n"),
    "HTTP/2.0": cut(get(b"/healthz", version=b"HTTP/2.0")),
    "HTTP/9.9": cut(get(b"/healthz", version=b"HTTP/9.9")),
    "the preface of HTTP/2": cut(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "an unknown method": cut(request(b"FROB /healthz HTTP/1.1", HOST)),
    "a method in small letters": cut(request(b"get /healthz HTTP/1.1", HOST)),
    "CONNECT": cut(request(b"CONNECT 127.0.0.1:22 HTTP/1.1", HOST)),
    "TRACE": served(request(b"TRACE /healthz HTTP/1.1", HOST), 405),
    "OPTIONS for all": served(request(b"OPTIONS * HTTP/1.1", HOST), 404),
    "an upgrade to a web socket": served(
        request(b"GET /healthz HTTP/1.1", HOST, b"Connection: Upgrade\r\nUpgrade: websocket\r\n")
    ),
    "an upgrade to HTTP/2": served(
        request(b"GET /healthz HTTP/1.1", HOST, b"Connection: Upgrade\r\nUpgrade: h2c\r\n")
    ),
    "three at once": Row(get(b"/healthz") * 2 + get(b"/readyz"), (200, 200, 200)),
    "a request and garbage at once": Row(get(b"/healthz") + b"garbage\r\n\r\n", (), closed=True),
    "an expectation, and the body at once": Row(ask(LENGTH, b"Expect: 100-continue\r\n"), (200,)),
    "another expectation": served(ask(LENGTH, b"Expect: 200-ok\r\n")),
    "consent to a large body": cut(
        ask(b"Content-Length: 65537\r\nExpect: 100-continue\r\n", body=b""), 413
    ),
}

PLACES: Final = {
    "no host": served(get(b"/healthz", host=b""), 403),
    "another host": served(get(b"/v1/status", host=b"Host: evil.example\r\n"), 403),
    "two hosts": served(get(b"/v1/status", host=HOST + b"Host: evil.example\r\n"), 403),
    "the same host twice": served(get(b"/v1/status", host=HOST + HOST), 403),
    "a host after a user": served(
        get(b"/v1/status", host=b"Host: localhost@evil.example\r\n"), 403
    ),
    "a host with a path": served(get(b"/v1/status", host=b"Host: localhost/evil\r\n"), 403),
    "a list of hosts": served(get(b"/v1/status", host=b"Host: localhost, evil.example\r\n"), 403),
    "an empty host": served(get(b"/v1/status", host=b"Host:\r\n"), 403),
    "a host with a dot at its end": served(get(b"/v1/status", host=b"Host: localhost.\r\n"), 403),
    "a host that only begins well": served(
        get(b"/v1/status", host=b"Host: 127.0.0.1.example\r\n"), 403
    ),
    "a host as one number": served(get(b"/v1/status", host=b"Host: 2130706433\r\n"), 403),
    "a host cut short": served(get(b"/v1/status", host=b"Host: 127.1\r\n"), 403),
    "a host with two ports": served(get(b"/v1/status", host=b"Host: localhost:80:80\r\n"), 403),
    "a host in capitals": served(get(b"/v1/status", host=b"Host: LOCALHOST\r\n")),
    "an absolute target": served(get(b"http://127.0.0.1:80/v1/status")),
    "an absolute target elsewhere": served(get(b"http://evil.example/v1/status"), 403),
    "a target here for a host elsewhere": served(
        get(b"http://127.0.0.1/v1/status", host=b"Host: evil.example\r\n")
    ),
    "a target after a user": served(get(b"http://localhost@evil.example/v1/status"), 403),
    "a target that is a host": cut(get(b"127.0.0.1:80")),
    "a target without a slash": cut(get(b"healthz")),
    "an escaped slash": served(get(b"/v1%2fstatus"), 404),
    "an escaped slash in an id": served(get(b"/v1/asks/a%2Fevents"), 404),
    "an escaped way up": served(get(b"/%2e%2e/v1/status"), 404),
    "a way up": served(get(b"/healthz/../v1/status"), 404),
    "a dot on the way": served(get(b"/v1/./status"), 404),
    "two slashes first": served(get(b"//v1/status"), 404),
    "two slashes within": served(get(b"/v1//status"), 404),
    "a slash at the end": served(get(b"/v1/status/"), 404),
    "a dot at the end": served(get(b"/v1/status."), 404),
    "a path in capitals": served(get(b"/V1/STATUS"), 404),
    "a parameter of a path": served(get(b"/v1/status;a=b"), 404),
    "a backslash": served(get(b"/v1\\status"), 404),
    "NUL": served(get(b"/v1/status%00"), 404),
    "bare NUL": cut(get(b"/v1/stat\0us")),
    "half an escape": served(get(b"/v1/%zz"), 404),
    "a path that is not UTF-8": served(get(b"/v1/%ff%fe"), 404),
    "bare bytes in a path": cut(get(b"/v1/\xff")),
    "a blank in a path": cut(get(b"/v1/st atus")),
    "an overlong slash": served(get(b"/v1/%c0%afstatus"), 404),
    "lines in a path": served(get(b"/v1/%0d%0aX-A:%20b"), 404),
    "an escaped letter": served(get(b"/v1/%73tatus")),
    "a query that is not UTF-8": served(get(b"/v1/tools?user=%ff"), 400),
}

BODIES: Final = {
    "no type": served(request(b"POST /v1/ask HTTP/1.1", HOST, LENGTH, body=BODY), 415),
    "two types": served(ask(LENGTH, b"Content-Type: text/plain\r\n"), 415),
    "a form": served(
        request(
            *(b"POST /v1/ask HTTP/1.1", HOST, LENGTH),
            b"Content-Type: multipart/form-data; boundary=x\r\n",
            body=BODY,
        ),
        415,
    ),
    "another charset": served(
        request(
            *(b"POST /v1/ask HTTP/1.1", HOST, LENGTH),
            b"Content-Type: application/json; charset=utf-16\r\n",
            body=BODY,
        ),
        415,
    ),
    "packed": served(ask(LENGTH, b"Content-Encoding: gzip\r\n"), 415),
    "not UTF-8": json_row(b'{"text": "\xff"}'),
    "UTF-16": json_row('{"text": "hi"}'.encode("utf-16")),
    "a byte order mark": json_row(b'\xef\xbb\xbf{"text": "hi"}', 200),
    "deep lists": json_row(b'{"metadata": {"a": ' + b"[" * 9_000 + b"]" * 9_000 + b"}}"),
    "deep objects": json_row(b'{"metadata": ' + b'{"a":' * 3_000 + b"1" + b"}" * 3_000 + b"}"),
    "the same key twice": json_row(b'{"text": "a", "text": "b"}'),
    "the same key twice within": json_row(b'{"text": "a", "metadata": {"a": 1, "a": 2}}'),
    "6,000 digits": json_row(b'{"text": "a", "metadata": {"a": ' + b"9" * 6_000 + b"}}"),
    "a number too large": json_row(b'{"text": "a", "deadline_s": 1e999}'),
    "NaN": json_row(b'{"text": "a", "deadline_s": NaN}'),
    "Infinity": json_row(b'{"text": "a", "metadata": {"a": -Infinity}}'),
    "half a character": json_row(b'{"text": "\\ud800"}'),
    "a bare control character": json_row(b'{"text": "a\x01b"}'),
    "more after the end": json_row(b'{"text": "a"}{"text": "b"}'),
    "nothing": json_row(b""),
    "null": json_row(b"null"),
    "no object": json_row(b"[]"),
    "a comment": json_row(b'{"text": "a"/* b */}'),
    "a wrong type": json_row(b'{"text": true}'),
    "an unknown field": json_row(b'{"text": "a", "__proto__": {"x": 1}}'),
}

ROWS: Final = {**FRAMING, **HEADS, **PLACES, **BODIES}

UNFINISHED: Final = (
    b"",
    b"P",
    b"POST /v1/ask HTTP/1.1\r\nHost: loc",
    ask(b"Content-Length: 1000\r\n", body=b'{"te'),
    ask(CHUNKED, body=b"e\r\n{"),
)
"""What a client sends that then sends no more, for as long as it may."""
