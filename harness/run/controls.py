"""Controls: completions built from the reference, to check the metrics. Boards never rank them.

Without a model, ``gold`` completes with the reference and ``blank`` with nothing. ``oracle-context`` and
``oracle-stored`` ask the model with context that was retrieved with the reference; see `oracle_prompt` and
`stored_prompt`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ctxbench.bench.apis import units
from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval.units import Hit, Unit
from ctxbench.bench.types import Query, Reference, Sample, Use
from ctxbench.harness.diagnostics import original_names
from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.metrics.published import identifiers
from ctxbench.harness.run.sample import FINAL, AnsweredSample, Asker, completion, unasked_answer
from ctxbench.harness.run.scoring import target_after_cursor
from ctxbench.harness.store.store import Store
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.infercom import Apis, api_blocks
from ctxbench.strategies.layout import (
    HALF,
    WHOLE,
    as_found,
    draft_query,
    first_shown_line,
    infile_prompt,
    similar_prompt,
)
from ctxbench.strategies.stored import crosscodeeval_prompt

GOLD, BLANK, ORACLE, STORED = "gold", "blank", "oracle-context", "oracle-stored"
WINDOW = 20
RETRIEVED = 20
MOST_APIS = 8


class Controls:
    """Completes samples for controls; thread-safe."""

    def __init__(self, asker: Asker, store: Store, references: Mapping[str, Reference]) -> None:
        self._asker, self._store, self._references = asker, store, references

    def make(self, name: str, sample: Sample, sampling: Sampling, n: int) -> AnsweredSample:
        """Return prompt and completions of one sample, for the control `name`.

        Raises:
            MachineFault: if the model was lost.
        """
        query, reference = sample.query(seed=sampling.seed), self._references[sample.id]
        if name == ORACLE:
            prompt = oracle_prompt(query, self._asker.view(sample, query), sample, reference)
            return self._asker.complete(sample, prompt, sampling, n)
        if name == STORED:
            return self._asker.complete(sample, stored_prompt(query, sample), sampling, n)
        prompt = infile_prompt(query, WHOLE)
        answer = unasked_answer(self._store, name, prompt, reference.target if name == GOLD else "")
        return AnsweredSample(
            sample=sample,
            prompt=prompt,
            calls=((FINAL, answer),),
            completions=(completion(sample, answer),) * n,
            strategy_seconds=0.0,
        )


def oracle_prompt(query: Query, repo: Repository, sample: Sample, reference: Reference) -> Prompt:
    """Return a prompt whose context was retrieved with the reference.

    It contains the windows that `lc.repocoder` finds with the reference as draft, the signatures of project functions
    and classes that the reference uses, and the file up to the cursor. The repository is shown as to a strategy, so the
    reference itself is not in it.
    """
    target = target_after_cursor(sample, reference)
    before = first_shown_line(query, HALF)
    perfect_draft = draft_query(query, target, WINDOW)
    hits = repo.similar_windows(perfect_draft, top=RETRIEVED, size=WINDOW, stride=WINDOW // 2, before=before)
    prompt = similar_prompt(query, as_found(hits))
    named = frozenset(identifiers(str(sample.language), target))
    originals = original_names(f"{reference.original_import or ''}\n{sample.prefix}", sample.language)
    uses = [replace(use, name=originals.get(use.name, use.name)) for use in sample.uses]
    signatures = tuple(dict.fromkeys(hit for use in uses for hit in _apis(use, named, repo)))[:MOST_APIS]
    if not signatures:
        return prompt
    *blocks, infile = prompt.blocks
    return replace(prompt, blocks=(*blocks, *api_blocks(repo.name, Apis(usage=signatures)), infile))


def stored_prompt(query: Query, sample: Sample) -> Prompt:
    """Return the prompt of `lc.crosscodeeval` with stored context that was retrieved with the reference.

    Without such context, the prompt shows only the file and has the flag `NOTHING_STORED`.
    """
    return crosscodeeval_prompt(query, next((context for context in sample.stored if context.oracle), None))


def _apis(use: Use, named: frozenset[str], repo: Repository) -> Iterator[Hit]:
    last = use.name.rpartition(".")[2]
    for path in repo.language.defining_files(use.module, repo.files()):
        for unit in units(path, repo.read(path), repo.language, by="usage", constructors=True):
            owner, _, name = unit.name.rpartition(".")
            if _is_used(owner.rpartition(".")[2], name, use, last, named):
                yield _hit(unit)


def _is_used(owner: str, name: str, use: Use, last: str, named: frozenset[str]) -> bool:
    if use.kind == "class":
        return owner == last and (name in ("__init__", last) or name in named)
    if use.kind == "module":
        return not owner and name in named
    return name == last


def _hit(unit: Unit) -> Hit:
    return Hit(place=unit.place, text=unit.text, score=1.0, name=unit.name)
