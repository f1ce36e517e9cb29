"""Our own shape: a line a completion, as `ctxbench results export` writes it and `ctxbench exec` reads it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from bench.errors import InputFault
from bench.formats.checking import Odd, Strict, checked, explained
from bench.formats.types import Row
from bench.testing.types import FLAGS, Verdict
from bench.types import Kind
from harness.imported.types import Answer, Recorded

SHAPE = (
    'one object a line: {"sample": "…", "text": "…"}, and if wanted index (a whole number), strategy, generator, '
    "verdict (PASSED, FAILED, TIMED_OUT, NO_TESTS), reason and flags"
)
KIND: Kind | None = None
TASKS = None
_CURE = f"write {SHAPE}"


class _Completion(Strict):
    sample: Annotated[str, Field(min_length=1)]
    text: str
    index: Annotated[int, Field(ge=0)] | None = None
    strategy: str = ""
    generator: str = ""
    verdict: Verdict | None = Field(default=None, strict=False)
    reason: str = ""
    flags: Annotated[tuple[str, ...], Field(strict=False)] = ()


def read(rows: Iterable[Row]) -> list[Recorded]:
    """Read all records; those of one sample, strategy and generator become one, by their index."""
    wheres: dict[tuple[str, str, str], str] = {}
    grouped: dict[tuple[str, str, str], dict[int, Answer]] = defaultdict(dict)
    for where, record in rows:
        one = checked(_Completion, record, where=where, cure=_CURE)
        key = (one.sample, one.strategy, one.generator)
        mine = grouped[key]
        index = len(mine) if one.index is None else one.index
        with explained(where, _CURE):
            if index in mine:
                raise Odd("index", f"{index} of {one.sample!r} stands in the file twice")
            if one.verdict is Verdict.BROKEN:
                raise Odd("verdict", "BROKEN says that the machine failed: leave it out")
            for flag in one.flags:
                if flag not in FLAGS:
                    raise Odd("flags", f"{flag!r} is none of {', '.join(FLAGS)}")
        mine[index] = Answer(text=one.text, verdict=one.verdict, reason=" ".join(one.reason.split()), reached=one.flags)
        wheres.setdefault(key, where)
    found = []
    for key, mine in grouped.items():
        task, strategy, generator = key
        answers = tuple(answer for _, answer in sorted(mine.items()))
        if sorted(mine) != list(range(len(mine))):
            raise InputFault(
                f"field index: those of {task!r} are {', '.join(map(str, sorted(mine)))}",
                where=wheres[key],
                cure="number the completions of a sample from 0 on, or leave index out",
            )
        one_sample = Recorded(where=wheres[key], task=task, answers=answers, strategy=strategy, generator=generator)
        found.append(one_sample)
    return found
