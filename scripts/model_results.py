"""Measure published models: ``python -m scripts.model_results [HOME MODEL [KIND]]``.

With HOME and MODEL, a name of `ctxbench model list`: build the standard set there, run the rows that the study of the
ruler asks for (docs/results.md), one after the other, and write those that are complete into the file that ships.
Stopped, it goes on where it was; what the file holds is not run again. Without arguments: write the tables of
docs/results.md from the files.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind
from ctxbench.harness.cli.terminal import progress, say
from ctxbench.harness.imported import reference
from ctxbench.harness.imported.reference import ReferenceResults, ReferenceRun
from ctxbench.harness.leaderboard.stats import estimate
from ctxbench.harness.run import runner
from ctxbench.harness.run.spec import RunOptions
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import CONTEXT
from ctxbench.strategies.registry import is_control, resolve
from scripts.pages import write_section
from scripts.reference_results import GAIN, LANGUAGES, PAGE, interval_text, published_samples


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of a model."""

    name: str
    """The standard set."""
    limits: tuple[int, ...]
    """Samples, from the repositories in turn: first few, then more, of which the few are a part."""
    strategies: tuple[str, ...]
    """What tells most first: a sitting may end before the last."""


_SIX = (
    "lc.infile",
    "lc.repocoder(iterations=1)",
    "oracle-context",
    "lc.random_windows",
    "engine(ripgrep)",
    "lc.infercom(encoder=bm25, fsr=false)",
)
_ALL = (
    *_SIX,
    "lc.repofuse(encoder=bm25)",
    "lc.repocoder",
    "lc.infercom(encoder=bm25, uer=false, fsr=false)",
    "engine(tantivy)",
    "aim(lc.infile, encoder=bm25, fsr=false)",
)
_FUNCTIONS = (
    "gold",
    "blank",
    "icl.direct",
    "icl.rag(encoder=bm25)",
    "icl.rag_s(encoder=bm25)",
    "lc.infile",
    "icl.infile",
    "icl.filerag(encoder=bm25)",
    "icl.infile_rag(encoder=bm25)",
    "icl.infile_rag_s(encoder=bm25)",
    "lc.repocoder",
    "icl.infile_filerag(encoder=bm25)",
)
BEGIN, END = "<!-- models: python -m scripts.model_results -->\n", "<!-- end of the models -->"
LITE, WHOLE = "ctxbench-2-lite", "ctxbench-2"
PLANS = {
    ("incontext", Kind.LINE): Plan(LITE, (144,), _ALL),
    ("qwen2.5-coder-0.5b", Kind.LINE): Plan(LITE, (36, 144), _ALL),
    ("qwen2.5-coder-1.5b", Kind.LINE): Plan(LITE, (36, 72), _SIX),
    ("smollm2-135m", Kind.LINE): Plan(LITE, (36, 144), _SIX),
    ("qwen2.5-coder-1.5b", Kind.FUNCTION): Plan(WHOLE, (32, 96), _FUNCTIONS),
}


def make(home: Home, model: str, kind: Kind) -> None:
    """Run what the shipped file lacks of a plan, and write its rows.

    They are over more samples only once as many rows have them.

    Raises:
        InputFault: if the set is not the published one.
        MachineFault: if the machine lost samples.
    """
    plan, written = PLANS[model, kind], 0
    sample_set = published_samples(home, plan.name, kind)
    shipped = _shipped(plan.name, model, kind)
    for most in plan.limits:
        if shipped is not None and most < len(shipped.samples):
            continue
        limit = most if most < len(sample_set.samples) else None
        held = shipped.runs if shipped is not None and most == len(shipped.samples) else ()
        rows = {run.strategy: run for run in held}
        for strategy in plan.strategies:
            spec = strategy if is_control(strategy) else resolve(strategy).spec
            if spec in rows:
                continue
            rows[spec] = _row(home, sample_set, strategy, _generator(model, kind), limit)
            if len(rows) >= written:
                path = reference.write(plan.name, sample_set, tuple(rows.values()), model=model, limit=limit)
                say(f"{path}: {len(rows)} of {len(plan.strategies)} rows over {most} samples")
        written = len(rows)


def _shipped(name: str, model: str, kind: Kind) -> ReferenceResults | None:
    """Return what the file holds already; None if there is none, or its metrics are of before."""
    for results in reference.models(name, kind):
        if results.model == model and not reference.changed_profiles(results):
            return results
    return None


def _row(home: Home, sample_set: SampleSet, strategy: str, generator: str, limit: int | None) -> ReferenceRun:
    """Run a strategy; return its row."""
    with open_store(home.database) as store:
        summaries = runner.run(
            home,
            store,
            sample_set,
            strategies=(strategy,),
            generator=generator,
            choices=RunOptions(limit=limit),
            progress=progress,
        )
    if (fault := runner.fault_of(summaries)) is not None:
        raise fault
    (summary,) = summaries
    with open_store(home.database) as store:
        return reference.read(store, summary.run, sample_set, limit)


def _generator(model: str, kind: Kind) -> str:
    if model == "incontext":
        return model
    # llama.cpp writes long answers faster, and reads the long prompt of a line more slowly.
    return f"hf:{model}" if kind is Kind.LINE else f"serve:{model}(chat=on)"


def table(results: ReferenceResults, language: str) -> str:
    """Return the rows of a model in a language as a Markdown table."""
    here = [place for place, sample in enumerate(results.samples) if sample.language == language]
    repos = [results.samples[place].repo for place in here]
    lines = [f"| strategy | {' | '.join(_HEADINGS)} |", f"|---|{'---:|' * len(_HEADINGS)}"]
    for run in results.runs:
        scores = [(run.scores[profile], name) for profile, name in _MEANS]
        means = [statistics.fmean(of[name][place] or 0.0 for place in here) for of, name in scores]
        cells = [f"{100 * mean:.0f}" for mean in means[:-1]] + [f"{means[-1]:.1f}"]
        gains = [run.scores[CONTEXT][GAIN][place] or 0.0 for place in here]
        cells += [interval_text(estimate(gains, repos, seed="reference")), f"{statistics.median(gains):.1f}"]
        cells.append(f"{trimmed_mean(gains):.1f}")
        lines.append(f"| `{run.strategy.replace('(name=', '(')}` | {' | '.join(cells)} |")
    return "\n".join(lines)


_MEANS = (("ctxbench", "em"), ("ctxbench", "es"), ("ctxbench", "id_em"), ("ctxbench", "id_f1"), (CONTEXT, "bits"))
_HEADINGS = ("EM", "ES", "ID-EM", "ID-F1", "bits", "gain, bits", "median", "trimmed")


def trimmed_mean(values: Sequence[float]) -> float:
    """Return the mean without the lowest and the highest tenth."""
    cut = len(values) // 10
    return statistics.fmean(sorted(values)[cut : len(values) - cut])


def page() -> str:
    """Return the tables of all models: lines in both languages, then functions."""
    parts = []
    for results in reference.models(LITE):
        parts += [f"### `{results.runs[0].generator}`", _measured(results)]
        for language, name in LANGUAGES.items():
            lines = sum(sample.language == language for sample in results.samples)
            parts += [f"{name}, {lines} lines:", table(results, language)]
    for results in reference.models(WHOLE, Kind.FUNCTION):
        parts += [f"### `{results.runs[-1].generator}`, functions", _measured(results), functions_table(results)]
    return "\n\n".join(parts) + "\n"


def _measured(results: ReferenceResults) -> str:
    planned, made = len(PLANS[results.model, results.kind].strategies), len(results.runs)
    rows = "All rows" if made == planned else f"{made} of {planned} rows"
    return f"{rows} over {len(results.samples)} {results.kind}s of `{results.name}`."


def functions_table(results: ReferenceResults) -> str:
    """Return how many functions of each language pass their tests, a row a strategy, as a Markdown table."""
    languages = {name: [s.language == language for s in results.samples] for language, name in LANGUAGES.items()}
    heads = [f"{name}, of {sum(here)}" for name, here in languages.items()]
    lines = [f"| strategy | {' | '.join(heads)} | ES | tokens shown |", "|---|---:|---:|---:|---:|"]
    for run in results.runs:
        scores = run.scores["ctxbench"]
        passed = [
            sum(v or 0 for v, own in zip(scores["pass"], here, strict=True) if own) for here in languages.values()
        ]
        similar = statistics.fmean(value or 0.0 for value in scores["es"])
        cells = [f"{count:.0f}" for count in passed] + [f"{100 * similar:.0f}"]
        cells.append(f"{statistics.fmean(run.context_tokens):.0f}")
        lines.append(f"| `{run.strategy.replace('(name=', '(')}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(home: str = "", model: str = "", kind: str = Kind.LINE) -> None:
    """Measure one model, or write the page."""
    if home:
        make(Home(Path(home).absolute()), model, Kind(kind))
    else:
        write_section(PAGE, BEGIN, END, page())


if __name__ == "__main__":
    main(*sys.argv[1:])
