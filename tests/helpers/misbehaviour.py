"""Misbehaviour of servers, as bytes on a connection, and the required outcome of a request."""

import base64
import gzip
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

KEY = "sk-5Zq8-secret-of-the-user-7Wd2"
"""Key that is sent with requests and must never appear in an output."""
CHUNKED = ("Transfer-Encoding: chunked",)
Body = dict[str, Any]


class Outcome(Enum):
    """The outcome of a request if every try meets the misbehaviour."""

    ANSWER = "answered"
    AGAIN = "a machine's fault, after further tries"
    ONCE = "a machine's fault at once"
    TOO_LONG = "a fault of this prompt alone"
    SETTING = "a wrong setting, unless the service has answered before: then a machine's fault"


class Connection:
    def __init__(self, handle: socket.socket, gone: threading.Event) -> None:
        self._handle, self._gone = handle, gone

    def send(self, data: bytes) -> None:
        self._handle.sendall(data)

    def hang(self) -> None:
        self._gone.wait(60)

    def repeat(self, data: bytes, pause: float = 0.0) -> None:
        """Send data repeatedly until the client has disconnected."""
        until = time.monotonic() + 60
        while time.monotonic() < until and not self._gone.wait(pause):
            self._handle.sendall(data)

    def reset(self) -> None:
        self._handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Whole(bytes):
    """A valid reply after which the connection stays open."""


Play = bytes | Callable[[Connection], object]


@dataclass(frozen=True)
class Misbehaviour:
    name: str
    play: Play
    """Bytes that the server sends, or its actions. It closes the connection after anything but a `Whole` reply."""
    outcome: Outcome
    words: str = ""
    slow: bool = False
    """Whether only the time limit ends the request."""


def good(text: str = "answer", **changes: Any) -> Body:
    choice = {"index": 0, "text": text, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    return {"id": "cmpl-1", "model": "tiny", "choices": [choice], "usage": usage, **changes}


def choice(**changes: Any) -> bytes:
    return reply(good(choices=[{**good()["choices"][0], **changes}]))


def usage(**changes: Any) -> bytes:
    return reply(good(usage={**good()["usage"], **changes}))


def reply(body: object, status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    """Return a reply with this body: bytes, or data to send as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", *headers]
    if not any(line.startswith(("Transfer-Encoding", "Content-Length")) for line in headers):
        lines.append(f"Content-Length: {len(data) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + data


def error(status: str, message: str = "as planned", *headers: str, **more: Any) -> bytes:
    return reply({"error": {"message": message, **more}}, status, *headers)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def resets(*parts: bytes) -> Callable[[Connection], None]:
    def play(connection: Connection) -> None:
        for part in parts:
            connection.send(part)
        time.sleep(0.02)
        connection.reset()

    return play


def hangs(data: bytes) -> Callable[[Connection], None]:
    def play(connection: Connection) -> None:
        connection.send(data)
        connection.hang()

    return play


def repeats(first: bytes, again: bytes, pause: float = 0.0) -> Callable[[Connection], None]:
    def play(connection: Connection) -> None:
        connection.send(first)
        connection.repeat(again, pause)

    return play


_JSON = json.dumps(good()).encode()
_WHOLE = reply(good())
_HEAD = b"HTTP/1.1 200 OK\r\n"
_BOMB = gzip.compress(b" " * (64 << 20) + _JSON)
_PLANTED = reply(good("planted"))


def _on_the_way() -> Iterator[Misbehaviour]:
    again = Outcome.AGAIN
    yield Misbehaviour("closes without a word", b"", again, "disconnected")
    yield Misbehaviour("resets without a word", resets(), again)
    yield Misbehaviour("resets in the status line", resets(b"HTTP/1.1 2"), again)
    yield Misbehaviour("resets in the headers", resets(_HEAD, b"Content-Ty"), again)
    yield Misbehaviour("resets in the body", resets(_WHOLE[:-20]), again)
    yield Misbehaviour("closes in the headers", _HEAD + b"Content-Le", again)
    yield Misbehaviour("closes before the last byte", _WHOLE[:-1], again)
    for name, play in (
        ("says nothing", hangs(b"")),
        ("half a head, then nothing", hangs(_HEAD + b"Content")),
        ("half a body, then nothing", hangs(_WHOLE[:-9])),
        ("headers that trickle", repeats(_HEAD, b"X", 0.05)),
        ("whole headers that trickle", repeats(_HEAD, b"A: b\r\n", 0.05)),
        ("a body that trickles", repeats(reply(b"", length=10**6), b" ", 0.05)),
        ("chunks that trickle", repeats(reply(b"", "200 OK", *CHUNKED), chunk(b" "), 0.05)),
        ("chunks of one byte without end", repeats(reply(b"", "200 OK", *CHUNKED), chunk(b" ") * 9999)),
        ("100 Continue without end", repeats(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 999)),
    ):
        yield Misbehaviour(name, play, again, "no answer within", slow=True)
    yield Misbehaviour("100 Continue, then an answer", b"HTTP/1.1 100 Continue\r\n\r\n" + _WHOLE, Outcome.ANSWER)
    yield Misbehaviour("103 Early Hints", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + _WHOLE, Outcome.ANSWER)
    yield Misbehaviour(
        "chunks without end", repeats(reply(b"", "200 OK", *CHUNKED), chunk(b" " * 65536)), again, "larger than 8 MiB"
    )
    yield Misbehaviour("keeps the connection open", Whole(_WHOLE), Outcome.ANSWER)
    yield Misbehaviour("a second answer that nobody asked for", _WHOLE + _PLANTED, Outcome.ANSWER)
    yield Misbehaviour(
        "a second answer behind chunks",
        reply(chunk(_JSON) + chunk(b""), "200 OK", *CHUNKED) + reply(chunk(_JSON) + chunk(b""), "200 OK", *CHUNKED),
        Outcome.ANSWER,
    )
    yield Misbehaviour("rubbish behind the answer", _WHOLE + b"rubbish", Outcome.ANSWER)
    yield Misbehaviour(
        "chunked", reply(chunk(_JSON[:9]) + chunk(_JSON[9:]) + chunk(b""), "200 OK", *CHUNKED), Outcome.ANSWER
    )


def _heads() -> Iterator[Misbehaviour]:
    again = Outcome.AGAIN
    yield Misbehaviour("HTTP/0.9", _JSON, again, "cut off")
    yield Misbehaviour("HTTP/1.0", _WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"), Outcome.ANSWER)
    yield Misbehaviour("HTTP/1.0 to the end", b"HTTP/1.0 200 OK\r\n\r\n" + _JSON, Outcome.ANSWER)
    yield Misbehaviour("HTTP/9.9", _WHOLE.replace(b"HTTP/1.1", b"HTTP/9.9"), Outcome.ANSWER)
    yield Misbehaviour("no HTTP at all", b"SSH-2.0-OpenSSH_9.6\r\n", again)
    yield Misbehaviour("status abc", _WHOLE.replace(b"200", b"abc"), again)
    yield Misbehaviour("status 2000", _WHOLE.replace(b"200", b"2000"), again)
    yield Misbehaviour("status 099", reply(good(), "099 Odd"), again)
    yield Misbehaviour("10,000 headers", reply(good(), "200 OK", *(f"X-{n}: {'y' * 20}" for n in range(10_000))), again)
    yield Misbehaviour("a header of 1 MB", reply(good(), "200 OK", f"X: {'y' * (1 << 20)}"), again)
    yield Misbehaviour("a header without end", repeats(_HEAD + b"X: ", b"y" * 65536), again)
    yield Misbehaviour("a header without a colon", reply(good(), "200 OK", "rubbish"), again)
    yield Misbehaviour("NUL in a header", reply(good(), "200 OK", "X: a\0b"), again)
    yield Misbehaviour("a header's name with a blank", reply(good(), "200 OK", "X Y: a"), again)
    yield Misbehaviour("a folded header", reply(good(), "200 OK", "X: a\r\n Content-Length: 3"), Outcome.ANSWER)
    yield Misbehaviour("two lengths", reply(good(), "200 OK", "Content-Length: 3", "Content-Length: 300"), again)
    yield Misbehaviour("a negative length", reply(good(), "200 OK", "Content-Length: -1"), again)
    yield Misbehaviour("a length in words", reply(good(), "200 OK", "Content-Length: many"), again)
    yield Misbehaviour("a length of 10^30", reply(good(), "200 OK", f"Content-Length: {10**30}"), again)
    yield Misbehaviour("a length that is too short", reply(good(), length=len(_JSON) - 9), again, "not JSON")
    yield Misbehaviour("a length that is too long", reply(good(), length=len(_JSON) + 9), again)
    yield Misbehaviour("a length of 0", reply(good(), length=0), again, "the reply is empty")
    yield Misbehaviour("chunks of no size", reply(b"zz\r\n" + _JSON, "200 OK", *CHUNKED), again)
    yield Misbehaviour("a chunk of 10^20 bytes", reply(b"f" * 20 + b"\r\n" + _JSON, "200 OK", *CHUNKED), again)
    yield Misbehaviour("an unknown transfer encoding", reply(good(), "200 OK", "Transfer-Encoding: rot13"), again)
    yield Misbehaviour("a wrong content type", reply(good(), "200 OK", "Content-Type: image/png"), Outcome.ANSWER)
    yield Misbehaviour("no content type", _WHOLE, Outcome.ANSWER)
    yield Misbehaviour("cookies", reply(good(), "200 OK", "Set-Cookie: id=planted; Path=/"), Outcome.ANSWER)
    yield Misbehaviour("another protocol", reply(b"", "101 Switching Protocols", "Upgrade: websocket"), again)


def _packed() -> Iterator[Misbehaviour]:
    again = Outcome.AGAIN
    for coding in ("gzip", "deflate", "br", "zstd", "gzip, gzip", "compress", "x" * 5000):
        sent = reply(gzip.compress(_JSON), "200 OK", f"Content-Encoding: {coding}")
        yield Misbehaviour(f"packed by {coding[:9]}", sent, again, "this was not requested")
    yield Misbehaviour("a gzip bomb", reply(_BOMB, "200 OK", "Content-Encoding: gzip"), again, "this was not requested")
    yield Misbehaviour("100 MB", repeats(reply(b"", length=100 << 20), b" " * 65536), again, "larger than 8 MiB")
    yield Misbehaviour("an answer of 5 MB", choice(text="x" * (5 << 20)), again, "5,242,880 characters")


def _bodies() -> Iterator[Misbehaviour]:
    again = Outcome.AGAIN
    for name, data in (
        ("an empty body", b""),
        ("blanks", b" \n "),
        ("HTML", b"<!doctype html><title>Login</title>"),
        ("half a JSON", _JSON[: len(_JSON) // 2]),
        ("two JSONs", _JSON + _JSON),
        ("an event stream", b"data: " + _JSON + b"\n\ndata: [DONE]\n\n"),
        ("deep JSON", b"[" * 100_000 + b"]" * 100_000),
        ("deep JSON of objects", b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
        ("a number of 5,000 digits", b'{"usage": ' + b"9" * 5000 + b"}"),
        ("UTF-16", _JSON.decode().encode("utf-16")),
        ("no UTF-8", _JSON.replace(b"answer", b"ans\xff\xfewer")),
        ("NUL behind JSON", _JSON + b"\0"),
        *((f"JSON {value}", value.encode()) for value in ("null", "true", "3", '"text"', "[]", "{}", "NaN", "[null]")),
    ):
        yield Misbehaviour(name, reply(data), again)
    yield Misbehaviour("a byte order mark", reply(b"\xef\xbb\xbf" + _JSON), Outcome.ANSWER, "answer")
    for value in (None, {}, "", "text", 3, True, [], [None], [3], [[]], ["text"], {"0": good()["choices"][0]}):
        yield Misbehaviour(f"choices {json.dumps(value)[:24]}", reply(good(choices=value)), again)
    for value in (None, 3, 1.5, True, [], {}, ["answer"]):
        yield Misbehaviour(f"text {json.dumps(value)}", choice(text=value), again, "no text")
    two = [good()["choices"][0], {**good()["choices"][0], "index": 1, "text": "planted"}]
    yield Misbehaviour("an answer too many", reply(good(choices=two)), again, "more than one request")
    yield Misbehaviour("10,000 answers", reply(good(choices=two * 5000)), again, "more than one request")
    yield Misbehaviour("another's answer", choice(index=7, text="planted"), again, "more than one request")
    yield Misbehaviour("an index in words", choice(index="first"), again)
    doubled = _JSON.replace(b'"text": "answer"', b'"text": "first", "text": "answer"')
    yield Misbehaviour("a key twice", reply(doubled), Outcome.ANSWER, "answer")
    yield Misbehaviour("half a character", choice(text="an \ud800 answer"), Outcome.ANSWER, "an ? answer")
    yield Misbehaviour("NUL in the answer", choice(text="an\0swer"), Outcome.ANSWER, "an\ufffdswer")
    yield Misbehaviour("codes of a terminal", choice(text="\x1b]0;x\x07answer"), Outcome.ANSWER, "\x1b]0;x\x07answer")
    yield Misbehaviour("an empty answer", choice(text=""), Outcome.ANSWER, "")
    yield Misbehaviour("more fields than asked for", reply(good(x={"y": [1] * 1000})), Outcome.ANSWER, "answer")
    yield Misbehaviour("another model", reply(good(model="x" * 10**6)), Outcome.ANSWER, "answer")
    yield Misbehaviour(
        "a model that is no name", reply(good(model=["x"], system_fingerprint=3)), Outcome.ANSWER, "answer"
    )


def _numbers() -> Iterator[Misbehaviour]:
    for name, value in (
        ("10^30", 10**30),
        ("2^63", 2**63),
        ("-1", -1),
        ("-10^30", -(10**30)),
        ("a float", 3.5),
        ("infinity", float("inf")),
        ("no number", float("nan")),
        ("a text", "9"),
        ("true", True),
        ("nothing", None),
        ("a list", [9]),
        ("an object", {"n": {"n": 9}}),
        ("4,000 digits", 10**3999),
    ):
        counts = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens", "prompt_cache_hit_tokens"), value)
        details = {"prompt_tokens_details": {"cached_tokens": value}, "completion_tokens_details": value}
        yield Misbehaviour(f"tokens: {name}", usage(**counts, **details), Outcome.ANSWER, "answer")
        created = reply(good(created=value, system_fingerprint=value, provider=value))
        yield Misbehaviour(f"created: {name}", created, Outcome.ANSWER, "answer")
    for value in ([], "text", 3, None):
        yield Misbehaviour(f"usage {json.dumps(value)}", reply(good(usage=value)), Outcome.ANSWER, "answer")
    yield Misbehaviour("more at hand than read", usage(prompt_cache_hit_tokens=10**7), Outcome.ANSWER, "answer")


def _ends() -> Iterator[Misbehaviour]:
    for reason in ("stop", "length", "eos", "STOP", "max_tokens"):
        yield Misbehaviour(f"ends by {reason}", choice(finish_reason=reason), Outcome.ANSWER, "answer")
    for reason in (None, "", "abort", "error"):
        yield Misbehaviour(f"ends by {reason!r}", choice(finish_reason=reason), Outcome.AGAIN, "without a valid reason")
    for reason in ("content_filter", "tool_calls", "x" * 10**5, "\x1b[2J", 3, True, [], {}, ["stop"], 10**30):
        yield Misbehaviour(
            f"ends by {str(reason)[:9]!r}", choice(finish_reason=reason), Outcome.ONCE, "ended the answer early"
        )


def _statuses() -> Iterator[Misbehaviour]:
    for number in (408, 409, 424, 425, 429, 500, 501, 502, 503, 504, 505, 507, 511, 520, 524, 529, 599, 600, 999):
        yield Misbehaviour(f"status {number}", error(f"{number} Odd"), Outcome.AGAIN, f"status {number}")
    for number in (400, 402, 406, 410, 411, 415, 418, 421, 422, 423, 426, 431, 451):
        yield Misbehaviour(f"status {number}", error(f"{number} Odd"), Outcome.ONCE, f"status {number}")
    for number in (401, 403, 404, 405):
        yield Misbehaviour(f"status {number}", error(f"{number} Odd"), Outcome.SETTING, f"status {number}")
    yield Misbehaviour("status 413", error("413 Odd"), Outcome.TOO_LONG, "too long")
    for number in (204, 205, 206):
        sent = reply(b"", f"{number} Odd")
        yield Misbehaviour(f"status {number} and nothing", sent, Outcome.AGAIN, "the reply is empty")
    yield Misbehaviour("status 206 and a part", reply(_JSON[:50], "206 Partial Content"), Outcome.AGAIN, "not JSON")
    yield Misbehaviour("status 203 and an answer", reply(good(), "203 Odd"), Outcome.ANSWER, "answer")
    for number in (300, 304, 305, 399):
        yield Misbehaviour(f"status {number}", reply(b"", f"{number} Odd"), Outcome.AGAIN, "instead of 200")
    for number in (301, 302, 303, 307, 308):
        for place in ("http://127.0.0.2:9/v1", "/v1/completions", "", "javascript:alert(1)", "x" * 9000):
            sent = reply(b"", f"{number} Moved", f"Location: {place}")
            yield Misbehaviour(f"status {number} to {place[:12]!r}", sent, Outcome.SETTING, f"status {number}")
    for wait in ("-5", "soon", "nan", "inf", "", "Wed, 21 Oct 2015 07:28:00 GMT", "1e-9", "Mon, 99 Foo 9999", "-1e400"):
        sent = error("429 Slow", "as planned", f"Retry-After: {wait}")
        yield Misbehaviour(f"Retry-After: {wait}", sent, Outcome.AGAIN, "status 429")
    for wait in ("1000000000", "1e300", "Fri, 31 Dec 9999 23:59:59 GMT", "9" * 300):
        sent = error("429 Slow", "as planned", f"Retry-After: {wait}")
        yield Misbehaviour(f"Retry-After: {wait[:30]}", sent, Outcome.ONCE, "status 429")


def _errors() -> Iterator[Misbehaviour]:
    again = Outcome.AGAIN
    yield Misbehaviour("200 with an error", reply({"error": {"message": "late"}}), again, "late")
    yield Misbehaviour("200 with an error in words", reply({"error": "late"}), again, "late")
    yield Misbehaviour("200 with an error in a list", reply({"error": ["late"]}), again)
    yield Misbehaviour("200 with an error in the answer", choice(error={"message": "late"}), again, "late")
    yield Misbehaviour("200 with code 10^30", reply({"error": {"code": 10**30, "message": "late"}}), again, "late")
    yield Misbehaviour("200 with code 418", reply({"error": {"code": 418, "message": "late"}}), Outcome.ONCE, "late")
    yield Misbehaviour("an error of 5 MB", error("500 Odd", "x" * (5 << 20)), again, "status 500")
    yield Misbehaviour(
        "a window of 10^30 digits", error("400 Odd", "maximum context length is " + "9" * 5000), Outcome.TOO_LONG
    )
    yield Misbehaviour("codes of a terminal in an error", error("500 Odd", "\x1b[2J\x1b]0;x\x07"), again, "␛[2J␛]0;x␇")
    yield Misbehaviour("half a character in an error", error("500 Odd", "\udc80\ud800"), again, "status 500")
    yield Misbehaviour("no UTF-8 in an error", reply(b"\xff\xfe\x00odd", "500 Odd"), again, "status 500")
    yield Misbehaviour("a deep error", reply(b'{"error":' * 50_000 + b"1" + b"}" * 50_000, "400 Odd"), Outcome.ONCE)


def _echoes() -> Iterator[Misbehaviour]:
    """Yield replies that contain the key that was sent."""
    coded = base64.b64encode(KEY.encode()).decode()
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    yield Misbehaviour("the key as the answer", choice(text=f"x = '{KEY}'"), Outcome.ANSWER, "x = '…'")
    yield Misbehaviour("half the key as the answer", choice(text=f"x = '{KEY[:20]}'"), Outcome.ANSWER, "x = '…'")
    yield Misbehaviour("the key, coded", choice(text=f"x = '{coded}'"), Outcome.ANSWER, "…")
    yield Misbehaviour(
        "the key, escaped", reply(_JSON.replace(b"answer", f"x = '{escaped}'".encode())), Outcome.ANSWER, "x = '…'"
    )
    named = reply(good(model=KEY, system_fingerprint=f"fp {KEY}", provider=f"by {KEY}"))
    yield Misbehaviour("the key as the model's name", named, Outcome.ANSWER, "answer")
    yield Misbehaviour("the key as the end", choice(finish_reason=KEY), Outcome.ONCE, "…")
    yield Misbehaviour(
        "the key in an error", error("500 Odd", f"Bearer {KEY} is odd"), Outcome.AGAIN, "Bearer … is odd"
    )
    long = error("500 Odd", "x" * 280 + f" {KEY}")
    yield Misbehaviour("the key where an error is cut", long, Outcome.AGAIN, "xxx")
    tagged = reply(f"<p>{KEY[:12]}<b></b>{KEY[12:]}".encode(), "500 Odd")
    yield Misbehaviour("the key between tags", tagged, Outcome.AGAIN, "status 500")
    yield Misbehaviour("the key in a late error", reply({"error": {"message": KEY}}), Outcome.AGAIN, "…")
    yield Misbehaviour("the key as a page", reply(KEY.encode()), Outcome.AGAIN, "…")
    yield Misbehaviour("the key as a status line", f"{KEY}\r\n\r\n".encode(), Outcome.AGAIN)
    yield Misbehaviour("the key as a header", reply(good(), "200 OK", f"X-Key: {KEY}"), Outcome.ANSWER, "answer")
    yield Misbehaviour("the key as a coding", reply(good(), "200 OK", f"Content-Encoding: {KEY}"), Outcome.AGAIN, "…")
    moved = reply(b"", "302 Moved", f"Location: http://127.0.0.2/?key={KEY}")
    yield Misbehaviour("the key in an address", moved, Outcome.SETTING, "?key=…")
    yield Misbehaviour("the key in a refusal", error("401 Odd", f"wrong key: {KEY}"), Outcome.SETTING, "wrong key: …")


MISBEHAVIOURS = tuple(
    one
    for group in (_on_the_way, _heads, _packed, _bodies, _numbers, _ends, _statuses, _errors, _echoes)
    for one in group()
)


@dataclass
class HostileServer:
    """Answers as `choose` decides, one connection per thread."""

    choose: Callable[[Body], Play]
    port: int = 0
    calls: list[Body] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def serve(self, server: socket.socket, gone: threading.Event) -> None:
        with suppress(OSError):
            while not gone.is_set():
                handle, _ = server.accept()
                threading.Thread(target=self._talk, args=(handle, gone), daemon=True).start()

    def _talk(self, handle: socket.socket, gone: threading.Event) -> None:
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError), handle, handle.makefile("rb") as reading:
            while not gone.is_set():
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    if not (line := reading.readline()):
                        return
                    head += line
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                if len(raw := reading.read(length)) < length:
                    return  # the client has left meanwhile
                body = json.loads(raw)
                self.calls.append(body)
                self.heads.append(head)
                play = self.choose(body)
                if not isinstance(play, bytes):
                    play(Connection(handle, gone))
                    return
                handle.sendall(play)
                if not isinstance(play, Whole):
                    # The reply may be incomplete. End it, so that the client does not wait for more.
                    handle.shutdown(socket.SHUT_WR)


@contextmanager
def hostile(choose: Callable[[Body], Play]) -> Iterator[HostileServer]:
    gone = threading.Event()
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        made = HostileServer(choose, listening.getsockname()[1])
        threading.Thread(target=made.serve, args=(listening, gone), daemon=True).start()
        try:
            yield made
        finally:
            gone.set()
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
