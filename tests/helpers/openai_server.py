"""A server with OpenAI's protocol, whose n-th request gets the n-th planned fault.

Replies have the fields of vLLM, llama.cpp and OpenAI.
"""

import contextlib
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ctxbench.bench import code_tokens
from ctxbench.strategies.chat import Message

Body = dict[str, Any]
VLLM, VLLM_OLD, OPENAI, LLAMA_CPP = "vllm", "vllm-old", "openai", "llama.cpp"


@dataclass(frozen=True)
class Fault:
    """What the server does with a request instead of answering."""

    status: int = 0
    """Send this status with `text`."""
    text: str = '{"error": {"message": "as planned", "type": "server_error", "param": null, "code": null}}'
    headers: tuple[tuple[str, str], ...] = ()
    stall: float = 0.0
    """Seconds to wait before anything is sent."""
    drip: float = 0.0
    """Seconds between blanks, if only blanks are sent."""
    cut: bool = False
    """Close the connection in the middle of the answer."""
    drop: bool = False
    """Close the connection without an answer."""
    change: Callable[[Body], object] | None = None
    """Change the answer before it is sent."""


def rate_limited(seconds: float | str) -> Fault:
    return Fault(status=429, headers=(("Retry-After", str(seconds)),))


def raw(text: str) -> Fault:
    return Fault(status=200, text=text)


@dataclass
class Server:
    answer: Callable[[str, Body], str] = lambda prompt, body: "answer"
    faults: Sequence[Fault | None] = ()
    shape: str = VLLM
    window: int = 0
    """Tokens that the model reads; 0 for no limit."""
    cuts: int = 0
    """Last tokens of a prompt that the server reads, silently dropping the others, as Ollama does; 0 for all."""
    template: int = 0
    """Tokens that are added around every prompt."""
    count: Callable[[str], int] = code_tokens.count
    split: Callable[[str], list[str]] = code_tokens.tokenize
    """The tokens of a prompt, as its log-probabilities show them."""
    delay: float = 0.0
    key: str = ""
    model: str = "tiny"
    root: str = ""
    """Folder of the weights in the list of models; empty for the model's name."""
    tools: bool = True
    """Whether a chat may have tools. Answers in the text protocol are then sent as tool calls."""
    listed_prompts: bool = True
    """Whether a prompt may be a list, which breaks llama.cpp's server."""
    finish: str | None = "stop"
    keeps_stop: bool = False
    """Whether an answer still has the stop text that ended it, as from transformers' server."""
    usage: bool = True
    cached: int = 0
    bos: str = ""
    """A token that the server adds before every prompt, and lists in its log-probabilities."""
    costs: Callable[[list[str], int], float] = lambda tokens, at: -1.0 if tokens[at] in tokens[:at] else -8.0
    port: int = 0
    calls: list[Body] = field(default_factory=list)
    answered: int = 0
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    most: int = 0
    """Maximum number of requests in flight at once."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._in_flight = 0
        self._http: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._sockets: set[socket.socket] = set()
        self._gone = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Listen: first on a free port, then always on the same port."""
        self._gone = threading.Event()
        self._http = _Http(("127.0.0.1", self.port), _handler(self))
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        http, self._http = self._http, None
        if http is None or self._thread is None:
            return
        self._gone.set()
        http.shutdown()
        http.server_close()
        with self._lock:
            open_, self._sockets = self._sockets, set()
        for one in open_:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)

    def met(self, one: socket.socket) -> None:
        with self._lock:
            self._sockets.add(one)

    def left(self, one: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(one)

    @contextlib.contextmanager
    def taken(self, body: Body, headers: dict[str, str]) -> Iterator[Fault]:
        with self._lock:
            self.calls.append(body)
            self.headers.append(headers)
            self.times.append(time.monotonic())
            number = len(self.calls)
            self._in_flight += 1
            self.most = max(self.most, self._in_flight)
        try:
            yield (self.faults[number - 1] if number <= len(self.faults) else None) or Fault()
        finally:
            with self._lock:
                self._in_flight -= 1

    def wait(self, seconds: float) -> None:
        self._gone.wait(seconds)

    def reply(self, path: str, body: Body, key: str) -> tuple[int, Body]:
        """Return status and body of the answer to a valid request."""
        if self.key and key != f"Bearer {self.key}":
            # Some servers repeat the key.
            return 401, self._error(f"Incorrect API key provided: {key}", "invalid_request_error", 401)
        if path == "/v1/models":
            root = self.root or self.model
            return 200, {"object": "list", "data": [{"id": self.model, "object": "model", "root": root}]}
        if path.partition("?")[0] not in ("/v1/completions", "/v1/chat/completions"):
            return 404, {"detail": "Not Found"}
        if body.get("model") != self.model:
            return 404, self._error(f"The model `{body.get('model')}` does not exist.", "NotFoundError", 404)
        if isinstance(body.get("prompt"), list) and not self.listed_prompts:
            return 500, self._error("'list' object has no attribute 'encode'", "internal_server_error", 500)
        chat = "chat" in path
        if "tools" in body and not self.tools:
            said = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
            return 400, self._error(said, "BadRequestError", 400)
        prompt = body["messages"][-1]["content"] if chat else body["prompt"]
        prompts = prompt if isinstance(prompt, list) else [prompt]
        read = [said["content"] for said in body["messages"]] if chat else prompts
        tokens_in, limit = sum(map(self.count, read)) + self.template, body.get("max_tokens", 16)
        if self.window and tokens_in + limit > self.window:
            return 400, self._too_long(tokens_in, limit)
        tokens_in = min(tokens_in, self.cuts or tokens_in)
        choices = [self._choice(index, one, body, chat) for index, one in enumerate(prompts)]
        made: Body = {"id": "cmpl-1", "object": "text_completion", "created": 0, "model": self.model}
        made |= {"choices": choices, "system_fingerprint": "fp_1" if self.shape == OPENAI else None}
        if self.usage:
            out = sum(max(1, len(self._pieces(one, body)[0])) for one in prompts)
            made["usage"] = {"prompt_tokens": tokens_in + bool(self.bos), "completion_tokens": out}
            made["usage"] |= {"total_tokens": tokens_in + out, "prompt_tokens_details": None}
            if self.cached:
                made["usage"]["prompt_tokens_details"] = {"cached_tokens": self.cached}
        return 200, made

    def _choice(self, index: int, prompt: str, body: Body, chat: bool) -> Body:
        kept, finish = self._pieces(prompt, body)
        text = "".join(kept)
        for stop in () if self.keeps_stop else body.get("stop", ()):
            text = text.partition(stop)[0]
        if chat:
            message: Body = {"role": "assistant", "content": text}
            if "tools" in body and (said := Message.read(text)).calls:
                finish, message["content"] = "tool_calls", said.text or None
                message["tool_calls"] = [
                    {"id": f"c{at}", "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                    for at, call in enumerate(said.calls)
                ]
            return {"index": index, "message": message, "logprobs": None, "finish_reason": finish}
        choice = {"index": index, "text": text, "logprobs": None, "finish_reason": finish, "stop_reason": None}
        if body.get("echo"):
            choice["text"] = prompt + text
        if body.get("logprobs") is not None:
            choice["logprobs"] = self._logprobs(prompt if body.get("echo") else "", kept or [""])
        return choice

    def _pieces(self, prompt: str, body: Body) -> tuple[list[str], str | None]:
        """Return the tokens up to a complete stop text, and the finish reason."""
        pieces = code_tokens.tokenize(self.answer(prompt, body))
        limit = body.get("max_tokens", body.get("max_completion_tokens", 16))
        for number in range(min(limit, len(pieces))):
            made = "".join(pieces[: number + 1])
            if any(stop in made for stop in body.get("stop", ())):
                return pieces[: number + 1], "stop"
        return pieces[:limit], "length" if limit < len(pieces) else self.finish

    def _logprobs(self, prompt: str, made: list[str]) -> Body:
        tokens = [self.bos] * bool(self.bos) + self.split(prompt) + made
        offsets, at = [], 0
        for token in tokens:
            offsets.append(at)
            at += len(token)
        costs = [self.costs(tokens, at) if at else None for at in range(len(tokens))]
        tops = [None if cost is None else {token: cost} for token, cost in zip(tokens, costs, strict=True)]
        return {"text_offset": offsets, "token_logprobs": costs, "tokens": tokens, "top_logprobs": tops}

    def _too_long(self, tokens_in: int, limit: int) -> Body:
        if self.shape == LLAMA_CPP:
            said = f"the request exceeds the available context size ({self.window} tokens), try increasing it"
            error = {"code": 400, "message": said, "type": "exceed_context_size_error", "n_ctx": self.window}
            return {"error": {**error, "n_prompt_tokens": tokens_in}}
        said = (
            f"This model's maximum context length is {self.window} tokens. However, you requested {tokens_in + limit} "
            f"tokens ({tokens_in} in the messages, {limit} in the completion). Please reduce the length."
        )
        if self.shape == VLLM:
            # vLLM counts only to the first token over the limit.
            least = self.window - limit + 1
            said = (
                f"This model's maximum context length is {self.window} tokens. However, you requested {limit} output "
                f"tokens and your prompt contains at least {least} input tokens, for a total of at least "
                f"{self.window + 1} tokens. Please reduce the length of the input prompt."
            )
        if self.shape == OPENAI:
            error = {"message": said, "type": "invalid_request_error", "param": "messages"}
            return {"error": {**error, "code": "context_length_exceeded"}}
        return self._error(said, "BadRequestError", 400)

    def _error(self, said: str, type_: str, code: int) -> Body:
        error = {"message": said, "type": type_, "param": None, "code": code}
        return {"object": "error", **error} if self.shape == VLLM_OLD else {"error": error}


def bits_of(*logprobs: float) -> float:
    return -sum(logprobs) / math.log(2)


@contextlib.contextmanager
def serving(**changes: Any) -> Iterator[Server]:
    server = Server(**changes)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """Print no error, because connections are closed on purpose."""


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            server.met(self.connection)

        def finish(self) -> None:
            server.left(self.connection)
            super().finish()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

        def do_GET(self) -> None:
            self._send(*server.reply(self.path, {}, self.headers.get("Authorization", "")))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.paths.append(self.path)
            with server.taken(body, dict(self.headers)) as fault:
                server.wait(fault.stall or server.delay)
                if self._fail(fault):
                    return
                status, made = server.reply(self.path, body, self.headers.get("Authorization", ""))
                if fault.change is not None:
                    fault.change(made)
            # The request is no longer in flight here: a client may send the next one before this thread continues.
            self._send(status, made, cut=fault.cut)
            server.answered += status == 200 and not fault.cut

        def _fail(self, fault: Fault) -> bool:
            if fault.drop:
                self.close_connection = True
                return True
            if fault.drip:
                self._head(200, 1000)
                for _ in range(1000):
                    self.wfile.write(b" ")
                    self.wfile.flush()
                    server.wait(fault.drip)
                return True
            if fault.status:
                self._head(fault.status, len(fault.text.encode()), *fault.headers)
                self.wfile.write(fault.text.encode())
            return bool(fault.status)

        def _send(self, status: int, made: Body, *, cut: bool = False) -> None:
            data = json.dumps(made).encode()
            self._head(status, len(data))
            self.wfile.write(data[: len(data) // 2] if cut else data)
            if cut:
                self.close_connection = True

        def _head(self, status: int, length: int, *headers: tuple[str, str]) -> None:
            self.send_response(status)
            for name, value in (("Content-Type", "application/json"), ("Content-Length", str(length)), *headers):
                self.send_header(name, value)
            self.end_headers()

    return Handler
