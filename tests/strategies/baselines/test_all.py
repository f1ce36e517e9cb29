import dataclasses
from typing import Any

import pytest

from ctxbench.bench import languages
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.strategies.api import Execution
from ctxbench.strategies.conformance import check
from ctxbench.strategies.registry import names, resolve
from tests.strategies.baselines.shop import Sandbox, made
from tests.strategies.icl.shop import Model, java_query, query

SPECS = [
    "base.repocoder_fn(encoder=hashed)",
    "base.rlcoder(encoder=hashed)",
    "base.rlcoder(encoder=bm25, stop_block=off)",
    "base.reacc(encoder=hashed)",
    "base.cocogen(encoder=hashed)",
    "base.cocogen(encoder=jaccard, contexts=3)",
    "base.selfcollab",
]
FAILED = Execution(finished=False, output="")
PYTHON_ONLY = ("base.cocogen", "base.selfcollab")


def test_every_baseline_is_checked() -> None:
    assert {name for name in names() if name.startswith("base.")} == {spec.partition("(")[0] for spec in SPECS}


@pytest.mark.parametrize("spec", SPECS)
def test_baselines_conform(spec: str) -> None:
    assert [one for one in check(resolve(spec)) if not one.passed] == []


@pytest.mark.parametrize("instructs", [True, False])
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("language", languages.every())
def test_unusual_samples_and_answers_raise_no_errors(spec: str, language: Language, instructs: bool) -> None:
    if language == JAVA and spec.startswith(PYTHON_ONLY):
        return
    about = query() if language == PYTHON else java_query()
    odd: list[dict[str, Any]] = [
        {"name": None, "signature": None, "docstring": None},
        {"prefix": "", "suffix": ""},
        {"prefix": about.prefix + "    ", "docstring": '"""quotes""" {braces} \ud800'},
        {"name": "no.such.name", "suffix": None},
        {"path": "elsewhere/new" + language.suffix},
    ]
    for changes in odd:
        for answer in ("", "```", "def (", "\x00", about.signature or ""):
            model, sandbox = Model(*[answer] * 9, instructs=instructs), Sandbox(FAILED)
            prompt = made(spec, dataclasses.replace(about, **changes), model=model, sandbox=sandbox)
            # Under another path, the target's file is visible like any other file.
            assert "path" in changes or "secret" not in prompt.text
