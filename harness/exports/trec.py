"""A run as retrieval: which files define what a target uses, and which files the prompt showed, in TREC's two formats.

A query is a sample, a document a file of its repository. Relevant are the files that define the names of
`Sample.uses`; retrieved are those of the blocks that the prompt kept, each at the place of its first block. The target
file is neither: it is shown anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

from ctxbench.bench.errors import InputFault
from ctxbench.harness.diagnostics.relevance import modules_of, relevant_files
from ctxbench.harness.exports.stored import ExportedRun
from ctxbench.harness.store.details import Detail


def trec(run: ExportedRun) -> Iterator[tuple[str, str]]:
    """Yield ``qrels.txt`` and ``run.txt``.

    Raises:
        InputFault: if the samples, or their uses, are not here.
    """
    if run.sample_set is None:
        raise InputFault("its sample set is not here", where=f"run {run.id}", cure="give it with --samples")
    samples = {sample.id: sample for sample in run.sample_set.samples}
    modules = {repo: modules_of(snapshot.texts) for repo, snapshot in run.snapshots.items()}
    judged: list[str] = []
    retrieved: list[str] = []
    tag = _word(run.work.choices.strategy)
    for detail in run.details():
        sample = samples[detail.sample]
        relevant = relevant_files(sample, modules.get(sample.repo, {}))
        if not relevant:
            continue
        judged += [f"{_word(sample.id)} 0 {_word(path)} 1\n" for path in relevant]
        shown = shown_files(detail)
        # A document's score decides its place for the tools that sort by it.
        retrieved += [
            f"{_word(sample.id)} Q0 {_word(path)} {rank} {len(shown) - rank + 1} {tag}\n"
            for rank, path in enumerate(shown, 1)
        ]
    if not judged:
        raise InputFault(
            "no sample says which files of the repository its target uses",
            where=f"run {run.id}",
            cure="take a run over samples that `ctxbench samples build` made, with its repositories fetched",
        )
    yield "qrels.txt", "".join(judged)
    yield "run.txt", "".join(retrieved)


def shown_files(detail: Detail) -> tuple[str, ...]:
    """Return the files of the blocks that the prompt kept, whole or cut, in its order, without the target's own."""
    places = (place for piece in detail.pieces if piece.state != "dropped" for place in piece.places)
    return tuple(dict.fromkeys(place.path for place in places if place.path != detail.path))


def _word(text: str) -> str:
    """Return a text as one word: the formats separate by blanks."""
    return quote(text, safe="/:@()=,.+*'!~$&;-_[]") if re.search(r"[\s%]", text) or not text.isascii() else text
