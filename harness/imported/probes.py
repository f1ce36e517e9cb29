"""Probes: fixed texts whose scores reveal whether a metric or diagnostic has changed since results were written."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

from ctxbench.bench.files import sha256
from ctxbench.bench.languages.base import Language
from ctxbench.bench.types import Cursor, Kind, Place, Sample, Use
from ctxbench.harness import diagnostics, metrics
from ctxbench.harness.generators.answers import extract
from ctxbench.harness.store.runs import CONTEXT
from ctxbench.strategies.api import Block, BlockKind, Dropped, Prompt, text_block

_PREDICTED = (
    ("shop = ", "Shop(corner, owner=1) ; other\nprint(shop)", "Shop(corner, owner=root)"),
    ("    ", "return total(names) - 1", "return self.total(names);"),
)
_SIMILAR = Block(kind=BlockKind.SIMILAR, text="# cost = price(names, root)\n# return cost\n")
_API = Block(kind=BlockKind.API, text="# total(names)\n")
_PLACES = (Place(path="shop", start=0, end=2),)
_SHOWN = (
    Prompt(blocks=(_SIMILAR, _API, text_block("root = 1\n"))),
    Prompt(
        blocks=(_API,),
        dropped=(
            Dropped(kind=BlockKind.SIMILAR, places=_PLACES, score=None, reason="budget"),
            Dropped(kind=BlockKind.API, places=_PLACES, score=None, reason="limit"),
            Dropped(kind=BlockKind.API, places=_PLACES, score=None, reason="limit", tokens=7),
        ),
    ),
)
_TASKS = (
    (
        'class Shop:\n    def total(self, names):\n        """Add."""\n',
        (
            "        return sum(names)\n\nprint(1)\n",
            "Here:\n```\ndef total(self, names):\n    return sum(names)\n```\nDone.",
            "[CODE]\nreturn sum(names)\n[/CODE]",
        ),
    ),
    (
        "class Shop {\n    int total(int[] names) {\n",
        (
            "        return names[0];\n    }\n}\n",
            "Here:\n```\nint total(int[] names) {\n    return names[0];\n}\n```\nDone.",
            "[CODE]\nreturn names[0];\n[/CODE]",
        ),
    ),
)
"""Functions without their bodies, and models' answers that contain the bodies."""


def probes_of(languages: Sequence[Language]) -> dict[str, dict[str, list[Any]]]:
    """Return the probes' results for metric profiles, diagnostics and extraction, by name and then by language."""
    every: dict[str, Callable[[Language], list[Any]]] = {
        **{profile: functools.partial(_scores, profile) for profile in sorted(metrics.PROFILES)},
        CONTEXT: _diagnoses,
        "extraction": _extractions,
    }
    return {name: {str(language): of(language) for language in languages} for name, of in every.items()}


def _scores(profile: str, language: Language) -> list[dict[str, float | None]]:
    return [
        dict(metrics.score(profile, language, prompt=prompt, prediction=text, ground_truth=truth))
        for prompt, text, truth in _PREDICTED
    ]


def _diagnoses(language: Language) -> list[list[float | None]]:
    uses = (Use(name="price", module="shop", kind="function"), Use(name="shop.total", module="shop", kind="function"))
    return [
        [
            diagnostics.api_recall(uses, prompt, {}),
            diagnostics.context_waste(prompt, "price(names)", language, lambda _: ("a = 1", "b = total(a)")),
        ]
        for prompt in _SHOWN
    ]


def _extractions(language: Language) -> list[str]:
    return [extract(_task(language, head), answer).text for head, answers in _TASKS for answer in answers]


def _task(language: Language, head: str) -> Sample:
    return Sample(
        id="shop",
        benchmark="ctxbench",
        language=language,
        kind=Kind.FUNCTION,
        subkind="",
        repo="shop",
        path="shop",
        cursor=Cursor(line=head.count("\n"), column=0),
        prefix=head,
        name="total",
    )


def metrics_digest(languages: Sequence[str]) -> str:
    """Return a digest of the results of `probes_of`. It changes if one of these results changes."""
    return sha256(json.dumps(probes_of([Language(name) for name in languages]), sort_keys=True))
