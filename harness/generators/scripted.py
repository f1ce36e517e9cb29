"""Generators without a model, for tests and examples: `none` does not answer, `scripted` answers from a script."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from ctxbench.bench.checking import Own, checked
from ctxbench.bench.code_tokens import count, tokenize
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import read_jsonl, sha256, sha256_file
from ctxbench.bench.parameters import AtLeast
from ctxbench.harness.generators.base import Capabilities, Generator, Request, Response, generator

_FORM = 'write {"contains": "…", "text": "…"}; prompt_digest, contains and index are optional'


class Scripted(Generator):
    """A generator for tests that answers with a function of the request.

    Each call of `generate` takes `delay` seconds. Calls whose number, from 1, is in `faults` raise `MachineFault`.
    Additional arguments replace fields of the class's capabilities.
    """

    capabilities = Capabilities(batch_size=16, instructs=True)

    def __init__(
        self,
        answer: Callable[[Request], str],
        *,
        version: str = "",
        delay: float = 0.0,
        faults: Collection[int] = (),
        **capabilities: Any,
    ) -> None:
        self.version, self.capabilities = version, replace(self.capabilities, **capabilities)
        self._answer, self._delay, self._faults = answer, delay, frozenset(faults)
        self._lock = threading.Lock()
        self.batches: list[int] = []
        self.closed = False

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        """Answer every request, in order.

        Raises:
            MachineFault: if `faults` contains the number of this call.
        """
        with self._lock:
            self.batches.append(len(requests))
            number = len(self.batches)
        if self._delay:
            time.sleep(self._delay)
        if number in self._faults:
            raise MachineFault(f"call {number} failed as planned", where="scripted", cure="run the same command again")
        return [self._respond(request) for request in requests]

    def _respond(self, request: Request) -> Response:
        tokens = tokenize(self._answer(request))
        answer_tokens = tokens[: request.sampling.max_tokens]
        return Response(
            text="".join(answer_tokens),
            finish="length" if len(answer_tokens) < len(tokens) else "stop",
            tokens_in=count(request.prompt.text),
            tokens_out=len(answer_tokens),
            seconds=self._delay,
        )

    def close(self) -> None:
        """Record in `closed` that the generator was closed."""
        self.closed = True


class _Line(Own):
    text: str
    prompt_digest: str | None = None
    contains: str | None = None
    index: int | None = None

    def fits(self, request: Request) -> bool:
        return (
            self.prompt_digest in (None, request.prompt.digest)
            and (self.contains is None or self.contains in request.prompt.text)
            and self.index in (None, request.index)
        )


@generator("scripted")
def scripted(
    *,
    answers: str = "",
    text: str = "",
    mode: Literal["fixed", "echo"] = "fixed",
    delay: Annotated[float, AtLeast(0)] = 0.0,
) -> Scripted:
    """Answer from a file (answers=FILE), with one text (text=…), or with the prompt's last line (mode=echo).

    Args:
        answers: JSON Lines file of ``text`` with optional conditions ``prompt_digest``, ``contains`` and ``index``;
            the first record whose conditions hold is the answer.
        text: the answer to every request, without a file.
        mode: ``fixed``, or ``echo`` to answer with the last line of the prompt that is not blank.
        delay: seconds that each call takes.
    """
    if answers and (text or mode == "echo"):
        raise InputFault("answers cannot be combined with text or mode=echo", where="scripted", cure="use one of them")
    if mode == "echo":
        return Scripted(_last_line, version="1", delay=delay)
    if not answers:
        return Scripted(lambda _: text, version="1", delay=delay)
    path = Path(answers)
    lines = [checked(_Line, record, where=f"{path}:{number}", cure=_FORM) for number, record in read_jsonl(path)]
    return Scripted(lambda request: _find(lines, path, request), version=f"1-{sha256_file(path)[:12]}", delay=delay)


class Silent(Generator):
    """A generator that never answers, for runs that store only prompts."""

    version = "1"
    capabilities = Capabilities(writes=False)

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        """Refuse to answer.

        Raises:
            InputFault: always, because the run has no model.
        """
        raise InputFault(
            "the strategy asks a model",
            where="--generator none",
            cure="name a model, or a strategy that asks none, such as lc.repocoder(iterations=1)",
        )


@generator("none")
def none() -> Silent:
    """Store each prompt and a list of the code that it shows, without asking a model for a completion."""
    return Silent()


def _last_line(request: Request) -> str:
    return next((line for line in reversed(request.prompt.text.split("\n")) if line.strip()), "")


def _find(lines: Sequence[_Line], path: Path, request: Request) -> str:
    for line in lines:
        if line.fits(request):
            return line.text
    raise InputFault(
        f"no record fits the prompt {sha256(request.prompt.text)[:12]}",
        where=str(path),
        cure='add a last record without conditions: {"text": ""}',
    )
