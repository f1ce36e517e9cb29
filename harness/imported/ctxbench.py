"""Our own shape: a line a completion, as `ctxbench results export` writes it and `ctxbench exec` reads it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256
from ctxbench.bench.formats.checking import Odd, Own, checked, explained
from ctxbench.bench.formats.types import Row
from ctxbench.bench.testing.types import FLAGS, Verdict
from ctxbench.bench.types import Kind
from ctxbench.harness.imported.types import RecordedAnswer, RecordedSample

SHAPE = (
    'one object a line: {"sample": "…", "text": "…"}, and if wanted index (a whole number), strategy, generator, '
    "verdict (PASSED, FAILED, TIMED_OUT, NO_TESTS), reason and flags"
)
KIND: Kind | None = None
TASKS = None
_CURE = f"write {SHAPE}"


class CompletionRecord(Own):
    """One line of a file of completions."""

    sample: Annotated[str, Field(min_length=1)]
    text: str
    index: Annotated[int, Field(ge=0)] | None = None
    strategy: str = ""
    generator: str = ""
    verdict: Verdict | None = Field(default=None, strict=False)
    reason: str = ""
    flags: Annotated[tuple[str, ...], Field(strict=False)] = ()


def completions(rows: Iterable[Row]) -> Iterator[tuple[str, CompletionRecord, int]]:
    """Yield (where it stands, completion, its index among those of its sample, strategy and generator).

    Raises:
        InputFault: at the first malformed record, at an index that stands there twice, and at the second of two
            equal texts without an index: that is one record twice, or two completions that must say so.
    """
    places: dict[tuple[str, str, str], dict[int, str]] = defaultdict(dict)
    texts: dict[tuple[str, str, str, str], str] = {}
    for where, record in rows:
        completion = checked(CompletionRecord, record, where=where, cure=_CURE)
        key = (completion.sample, completion.strategy, completion.generator)
        index = len(places[key]) if completion.index is None else completion.index
        with explained(where, f"{_CURE}; the same text may come twice where each has an index"):
            if index in places[key]:
                raise Odd("index", f"{index} of {completion.sample!r} stands at {places[key][index]} too")
            first = texts.setdefault((*key, sha256(completion.text)), where)
            if completion.index is None and first != where:
                raise Odd("text", f"{completion.sample!r} has the same at {first}")
        places[key][index] = where
        yield where, completion, index


def read(rows: Iterable[Row]) -> list[RecordedSample]:
    """Read all records; those of one sample, strategy and generator become one, by their index."""
    wheres: dict[tuple[str, str, str], str] = {}
    grouped: dict[tuple[str, str, str], dict[int, RecordedAnswer]] = defaultdict(dict)
    for where, completion, index in completions(rows):
        with explained(where, _CURE):
            if completion.verdict is Verdict.BROKEN:
                raise Odd("verdict", "BROKEN says that the machine failed: leave it out")
            for flag in completion.flags:
                if flag not in FLAGS:
                    raise Odd("flags", f"{flag!r} is none of {', '.join(FLAGS)}")
        key = (completion.sample, completion.strategy, completion.generator)
        grouped[key][index] = RecordedAnswer(
            text=completion.text,
            verdict=completion.verdict,
            reason=" ".join(completion.reason.split()),
            reached=completion.flags,
        )
        wheres.setdefault(key, where)
    recorded = []
    for key, by_index in grouped.items():
        task, strategy, generator = key
        answers = tuple(answer for _, answer in sorted(by_index.items()))
        if sorted(by_index) != list(range(len(by_index))):
            raise InputFault(
                f"field index: those of {task!r} are {', '.join(map(str, sorted(by_index)))}",
                where=wheres[key],
                cure="number the completions of a sample from 0 on, or leave index out",
            )
        recorded.append(
            RecordedSample(where=wheres[key], task=task, answers=answers, strategy=strategy, generator=generator)
        )
    return recorded
