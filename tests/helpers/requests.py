"""Requests to generators for tests, with default fields, and their responses."""

from dataclasses import fields
from typing import Any

from ctxbench.bench.languages.python import PYTHON
from ctxbench.harness.generators.base import Generator, Request, Response, Sampling
from ctxbench.strategies.api import Block, BlockKind, Prompt

_FIELDS = {field.name for field in fields(Request)}


def make_prompt(text: str, kind: BlockKind = BlockKind.INFILE) -> Prompt:
    return Prompt(blocks=(Block(kind=kind, text=text),))


def make_request(text: str = "total = ", *, block: BlockKind = BlockKind.INFILE, **changes: Any) -> Request:
    """Return a request to continue a text. `changes` are fields of the request or of its sampling."""
    own = {name: value for name, value in changes.items() if name in _FIELDS}
    sampling = Sampling(**{name: value for name, value in changes.items() if name not in _FIELDS})
    return Request(**{"prompt": make_prompt(text, block), "language": PYTHON, "sampling": sampling, **own})


def answers(made: Generator, *requests: Request) -> list[Response]:
    found = [one for one in made.generate(requests) if isinstance(one, Response)]
    assert len(found) == len(requests)
    return found
