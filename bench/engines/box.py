"""An engine with its indexed files, in a persistent box or on a server, with time limits."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import json
import math
import ssl
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from ctxbench.bench.concurrency import TREE_LOCK
from ctxbench.bench.engines.inside import STATE
from ctxbench.bench.engines.recipe import SERVER, Recipe
from ctxbench.bench.engines.types import identity, parsed
from ctxbench.bench.masking import is_hidden, visible_target
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.types import Kind, Sample
from ctxbench.sandbox.errors import SandboxError, SandboxLost
from ctxbench.sandbox.persistent import Conversation, Flooded, Overdue, with_resident
from ctxbench.sandbox.types import MIB, Limits, Sandbox


def tree_of_file(snapshot: Snapshot, samples: Sequence[Sample]) -> dict[str, str]:
    """Return the files that no sample hides. The target file ends above the earliest cursor; masked lines are blank."""
    tree = tree_of_repository(snapshot, samples)
    target = samples[0].path
    tree[target] = view_lines(snapshot, samples)
    return dict(sorted(tree.items()))


def tree_of_repository(snapshot: Snapshot, samples: Sequence[Sample]) -> dict[str, str]:
    """Return the files that no sample hides. Target files are whole; `Engines` truncates them before each sample."""
    hidden = tuple({place for sample in samples for place in sample.hidden})
    return {path: text for path, text in snapshot.texts.items() if not is_hidden(path, hidden)}


def tree_of_base(snapshot: Snapshot, samples: Sequence[Sample]) -> dict[str, str]:
    """Return the files that no sample targets or hides. `samples` are all samples of a repository."""
    targets = {sample.path for sample in samples}
    return {path: text for path, text in sorted(tree_of_repository(snapshot, samples).items()) if path not in targets}


def view_lines(snapshot: Snapshot, samples: Sequence[Sample]) -> str:
    """Return a target file's text above the first cursor, masked lines blank; empty if it contradicts a sample."""
    shown: list[list[str]] = []
    for sample in samples:
        target = visible_target(snapshot.texts.get(sample.path), sample.query(), sample.masked)
        if not target.trusted:
            # The lines may belong to another version of the file.
            return ""
        shown.append(target.text.split("\n")[: sample.cursor.line])
    lines = [row[0] if len(set(row)) == 1 else "" for row in zip(*shown, strict=False)]
    return "".join(f"{line}\n" for line in lines)


def masked_lines(snapshot: Snapshot, samples: Sequence[Sample]) -> frozenset[str]:
    """Return the nonblank lines of a target file that any of its samples masks."""
    lines = snapshot.texts.get(samples[0].path, "").split("\n")
    spans = [lines[start:end] for sample in samples for start, end in sample.masked]
    return frozenset(line for span in spans for line in span if line.strip())


def blank_out(text: str, lines: frozenset[str]) -> str:
    """Return a text with all lines that equal one of `lines` blanked."""
    return "\n".join("" if line in lines else line for line in text.split("\n")) if lines else text


def line_counts(tree: Mapping[str, str]) -> dict[str, int]:
    """Return the number of lines in each file, by path."""
    return {path: text.count("\n") + (not text.endswith("\n") and bool(text)) for path, text in tree.items()}


LIMITS = Limits(
    memory=2048 * MIB,
    disk=1024 * MIB,
    inodes=200_000,
    file_bytes=512 * MIB,
    processes=256,
    open_files=1024,
    cpus=2.0,
    result=4 * MIB,
)
_MOST_STATE = 256 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTimeLimits:
    """Time limits of an engine, in seconds."""

    index: float = 600.0
    search: float = 30.0
    sample: float = 120.0
    """Maximum seconds of all searches for one sample together."""


PATIENCE = EngineTimeLimits()


class EngineBox:
    """An engine with its indexed files, in a persistent box or on a server. Samples use the engine one at a time."""

    def __init__(
        self,
        recipe: Recipe,
        tree: dict[str, str],
        sandbox: Sandbox | None,
        limits: Limits = LIMITS,
        *,
        whole: bool = True,
        state: bytes = b"",
    ) -> None:
        """Start the engine and let it index the files. A remote server needs no sandbox.

        Args:
            whole: whether `tree` is complete. If not, `fill` must complete it.
            state: saved state of a box with the same files; empty for none.
        """
        self._recipe, self.patience = recipe, PATIENCE
        self.tree, self.lines = tree, line_counts(tree)
        self.asked: list[Sample] = []
        self.cut = self.cut_path = ""
        """In a repository's box: the id of the sample whose target file is truncated now, and that file's path."""
        self.version, self.size, self.memory = "", 0, 0
        self._open = contextlib.ExitStack()
        began = time.monotonic()
        try:
            self._talk = self._server(limits) if recipe.remote else self._program(sandbox, limits, state)
            answer = self.ask({"call": "index" if whole else "base"}, self.patience.index)
            self.based = not whole and isinstance(answer, dict) and answer.get("told") is not None
            """Whether the engine has indexed a base, so that `fill` only updates the index."""
            if whole:
                self.version, self.size, self.memory = identity(answer)
        except BaseException:
            self.end()
            raise
        self.index_seconds = time.monotonic() - began

    def _program(self, sandbox: Sandbox | None, limits: Limits, state: bytes) -> Conversation:
        assert sandbox
        tree = {path: text.encode("utf-8", "replace") for path, text in self.tree.items()}
        environment = replace(with_resident(self._recipe.environment), tree={STATE: state} if state else tree)
        talk: Conversation = self._open.enter_context(sandbox.converse(environment, limits=limits))
        talk.begin(f"{SERVER}:serve", {"entry": self._recipe.entry, "arguments": dict(self._recipe.arguments)})
        return talk

    def state(self) -> bytes:
        """Return the engine's saved state, for other boxes to start from; empty if the engine saves none.

        Raises:
            SandboxError: if the box was lost, or did not answer in time.
            Raised: if the engine raised an exception.
            ValueError: if the answer is invalid or too large.
        """
        state = b""
        while part := base64.b64decode(str(self.ask({"call": "save", "offset": len(state)}, self.patience.index))):
            state += part
            if len(state) > _MOST_STATE:
                raise ValueError(f"the engine's saved state is larger than {_MOST_STATE // MIB} MiB")
        return state

    def fill(self, tree: dict[str, str]) -> None:
        """Add the files of `tree` that the box lacks, and let the engine index them. Raises what `ask` raises."""
        texts = {path: text for path, text in tree.items() if path not in self.tree}
        self.tree, self.lines = tree, line_counts(tree)
        self.version, self.size, self.memory = identity(
            self.ask({"call": "index", "texts": texts}, self.patience.index)
        )

    def _server(self, limits: Limits) -> RemoteTalk:
        return self._open.enter_context(contextlib.closing(RemoteTalk(self._recipe.remote, self.tree, limits.result)))

    def ask(self, question: Mapping[str, Any], seconds: float) -> Any:
        """Return the engine's answer to a question, as JSON data.

        Raises:
            SandboxError: if the box or server was lost, or did not answer in time.
            Raised: if the engine raised an exception.
            ValueError: if the answer is invalid.
        """
        return parsed(self._talk.ask(json.dumps(question).encode(), seconds))

    def update(self, texts: Mapping[str, str | None]) -> None:
        """Replace files and let the engine index the new ones. None in place of a text removes the file."""
        self.ask({"call": "update", "texts": dict(texts)}, self.patience.index)
        for path, text in texts.items():
            self.lines.pop(path, None)
            if text is not None:
                self.lines |= line_counts({path: text})

    def search(self, text: str, sample: Sample, top: int, seconds: float = math.inf) -> Any:
        """Return the engine's answer to a query, within `seconds` and within the time limit of a search."""
        question = {"call": "search", "text": text, "path": sample.path, "line": sample.cursor.line, "top": top}
        return self.ask(question, min(seconds, self.patience.search))

    def may_know(self, sample: Sample) -> bool:
        """Return whether the engine may have learned this sample's hidden code from earlier queries."""
        if not self.asked or self.asked[-1].id == sample.id:
            return False
        last = self.asked[-1]
        if last.path != sample.path:
            return True  # a group covers the whole repository if another engine is shared
        before = (sample.cursor.line, sample.cursor.column) < (last.cursor.line, last.cursor.column)
        masked = _masked(sample)
        seen = any(masked - _masked(earlier) for earlier in self.asked if earlier.id != sample.id)
        return before or seen or last.kind is Kind.FUNCTION

    def end(self) -> None:
        """End the box, or the conversation with the server."""
        with contextlib.suppress(SandboxError):
            self._open.close()


def _masked(sample: Sample) -> set[int]:
    return {line for start, end in sample.masked for line in range(start, end)}


_SERVER_CURE = "check the engine's server and its address, then run the same command again"
_END_SECONDS = 5.0


class RemoteTalk:
    """A conversation with a server about given files, like `sandbox.persistent.Conversation`. Answers are untrusted."""

    def __init__(self, url: str, tree: Mapping[str, str], most: int) -> None:
        """Store the tree, without sending it.

        Args:
            url: address that receives all questions.
            tree: path -> text; sent with the first question.
            most: maximum number of bytes in an answer.
        """
        self._url, self._most, self._id = url, most, uuid.uuid4().hex
        self._files: Mapping[str, str] | None = tree

    def ask(self, message: bytes, seconds: float) -> bytes:
        """Return the server's answer to a question. Both are JSON objects.

        Raises:
            Overdue: if the answer does not arrive in time.
            Flooded: if the answer is longer than the limit.
            SandboxLost: if the server does not answer, or answers with an HTTP error.
        """
        question: dict[str, Any] = {**json.loads(message), "tree": self._id}
        if self._files is not None:
            question["files"], self._files = dict(self._files), None
        with TREE_LOCK:  # anyio parses its own source on import
            import httpx  # noqa: PLC0415
        answer = functools.partial(self._answer, json.dumps(question).encode(), seconds)
        try:
            # Use another thread: in a notebook, this one already runs an event loop.
            with ThreadPoolExecutor(1) as loop:
                return loop.submit(lambda: asyncio.run(answer())).result()
        except TimeoutError:
            raise Overdue(f"the server did not answer within {seconds:g} seconds", cure=_SERVER_CURE) from None
        except httpx.HTTPStatusError as error:
            what = f"the server {urlsplit(self._url).netloc} answered HTTP {error.response.status_code}"
            raise SandboxLost(what, cure=_SERVER_CURE) from None
        except (OSError, ValueError, ImportError, httpx.HTTPError, httpx.InvalidURL) as error:
            what = f"the server {urlsplit(self._url).netloc} did not answer ({error})"
            raise SandboxLost(what, cure=_SERVER_CURE) from None

    async def _answer(self, question: bytes, seconds: float) -> bytes:
        import httpx  # noqa: PLC0415

        heard = bytearray()
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        async with (
            asyncio.timeout(seconds),
            httpx.AsyncClient(timeout=None, verify=_certificates()) as client,  # noqa: S113 - the whole call is timed
            client.stream("POST", self._url, content=question, headers=headers) as reply,
        ):
            # A redirect is an error too: the tree goes only to the address that the user gave.
            reply.raise_for_status()
            async for part in reply.aiter_raw():
                heard += part
                if len(heard) > self._most:
                    what = f"the server sent more than {self._most} bytes at once"
                    raise Flooded(what, cure="shorten the server's answers")
        return bytes(heard)

    def close(self) -> None:
        """Tell the server that it can forget the files."""
        if self._files is None:
            with contextlib.suppress(SandboxLost):
                self.ask(json.dumps({"call": "end"}).encode(), _END_SECONDS)


@functools.cache
def _certificates() -> ssl.SSLContext:
    return ssl.create_default_context()
