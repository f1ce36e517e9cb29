"""Measures published models: ``python -m scripts.model_results [HOME LABEL [KIND]]``.

Builds the standard set in HOME, runs the missing rows of the plan LABEL in `PLANS`, and writes complete rows into the
shipped file. Without arguments: writes the tables of docs/results.md from the files.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench import samples as sets
from ctxbench.bench.files import sha256
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind, Sample
from ctxbench.harness.cli.terminal import progress, say
from ctxbench.harness.imported import reference
from ctxbench.harness.imported.reference import ReferenceResults, ReferenceRun
from ctxbench.harness.leaderboard.stats import estimate, trimmed_mean
from ctxbench.harness.metrics import COPY_MODEL, gain_of
from ctxbench.harness.run import runner
from ctxbench.harness.run.spec import RunOptions, planned_samples
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import CONTEXT
from ctxbench.strategies.registry import is_control, resolve
from scripts import findings, write_section
from scripts.reference_results import LANGUAGES, PAGE, interval_text, published_samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The rows to measure with a model, for one shipped file of results."""

    model: str
    kind: Kind = Kind.LINE
    limits: tuple[int, ...]
    """Numbers of samples, chosen from the repositories in turn. A larger selection contains the smaller ones."""
    strategies: tuple[str, ...]
    """Strategies, the most informative first, because a measurement may be stopped early."""

    @staticmethod
    def set_of(kind: Kind) -> str:
        """Return the name of the standard set for plans of a kind."""
        return LITE if kind is Kind.LINE else WHOLE

    @property
    def generator(self) -> str:
        """The spec of the generator."""
        if self.model == COPY_MODEL:
            return self.model
        # llama.cpp writes long answers faster, but reads the long prompt of a line more slowly.
        return f"hf:{self.model}" if self.kind is Kind.LINE else f"serve:{self.model}(chat=on)"


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
_ONLY_IN_TABLES = (
    "lc.infercom(encoder=bm25)",
    "lc.repocoder(empty_header=true)",
    "aim(lc.infile, encoder=bm25)",
    "lc.repofuse(encoder=bm25, unmasked=true)",
    "aim(lc.repocoder(empty_header=true), encoder=bm25)",
    "lc.infercom(encoder=bm25, uer=false)",
    "aim(lc.repofuse(encoder=bm25, unmasked=true), encoder=bm25)",
)
_FUNCTIONS = (
    "gold",
    "blank",
    "icl.direct",
    "icl.rag(encoder=bm25)",
    "icl.rag_s(encoder=bm25)",
    "lc.infile",
    "icl.infile(encoder=bm25)",
    "icl.filerag(encoder=bm25)",
    "icl.infile_filerag(encoder=bm25)",
    "icl.infile_rag(encoder=bm25)",
    "icl.infile_rag_s(encoder=bm25)",
    "lc.repocoder",
)
BEGIN, END = "<!-- models: python -m scripts.model_results -->\n", "<!-- end of the models -->"
LITE, WHOLE = "ctxbench-2-lite", "ctxbench-2"


def canonical(strategy: str) -> str:
    """Return the spec under which results store a strategy or a control."""
    return strategy if is_control(strategy) else resolve(strategy).spec


PLANS = {
    ("incontext", Kind.LINE): Plan(model=COPY_MODEL, limits=(144,), strategies=_ALL),
    ("qwen2.5-coder-0.5b", Kind.LINE): Plan(model="qwen2.5-coder-0.5b", limits=(36, 72, 108, 144), strategies=_ALL),
    ("qwen2.5-coder-0.5b-papers", Kind.LINE): Plan(
        model="qwen2.5-coder-0.5b", limits=(36,), strategies=_ONLY_IN_TABLES
    ),
    ("qwen2.5-coder-1.5b", Kind.LINE): Plan(model="qwen2.5-coder-1.5b", limits=(36, 72), strategies=_SIX),
    ("smollm2-135m", Kind.LINE): Plan(model="smollm2-135m", limits=(36, 72, 144), strategies=_SIX),
    ("qwen2.5-coder-1.5b", Kind.FUNCTION): Plan(
        model="qwen2.5-coder-1.5b", kind=Kind.FUNCTION, limits=(32, 96), strategies=_FUNCTIONS
    ),
}
"""(name of the shipped file, kind of its samples) -> its plan."""
FOUND_WITH = {Kind.LINE: "qwen2.5-coder-0.5b", Kind.FUNCTION: "qwen2.5-coder-1.5b"}
"""Kind -> model that checks the papers' findings."""


def make(home: Home, label: str, kind: Kind) -> None:
    """Run the rows that the files of a plan's model lack, and write them.

    A file with more samples replaces the shipped file once it has at least as many rows.

    Raises:
        InputFault: if the set is not the published one.
        MachineFault: if the machine lost samples.
    """
    plan = PLANS[label, kind]
    sample_set = published_samples(home, plan.set_of(kind), kind)
    shipped = reference.models(plan.set_of(kind), kind)
    held = findings.held(file for file in shipped.values() if file.model == plan.model and not reference.changed(file))
    done = shipped.get(label)
    written = len(done.runs) if done else 0
    for most in plan.limits:
        if done and most < len(done.samples):
            continue
        rows: list[ReferenceRun] = []
        for strategy in plan.strategies:
            spec = canonical(strategy)
            rows.append(_row(home, sample_set, plan, spec, most, held.get(spec, {})))
            if len(rows) >= written:
                path = reference.write(plan.set_of(kind), sample_set, rows, label=label, limit=most)
                say(f"{path}: {len(rows)} of {len(plan.strategies)} rows over {most} samples")
        written = len(rows)


def _row(home: Home, sample_set: SampleSet, plan: Plan, strategy: str, most: int, held: findings.Held) -> ReferenceRun:
    """Return a strategy's row. Run only samples that `held` lacks, and a few others for comparison."""
    planned = planned_samples(sample_set.samples, most)
    known = [sample for sample in planned if sample.id in held]
    if len(known) == len(planned):
        return reference.gathered(held[planned[-1].id][0], [held[sample.id] for sample in planned])
    if known:
        again = {sample.id for sample in (known[0], known[-1])}
        part = [sample for sample in planned if sample.id in again or sample.id not in held]
        run = _run(home, _part(home, sample_set, part), plan, strategy)
        new: findings.Held = {sample.id: (run, place) for place, sample in enumerate(part)}
        if all(_shown(held[id_]) == _shown(new[id_]) for id_ in again):
            found = {**held, **new}
            return reference.gathered(run, [found[sample.id] for sample in planned])
        say(f"{strategy} now has other prompts or another model version, so all its samples are run again")
    return _run(home, sample_set, plan, strategy, most)


def _shown(place: tuple[ReferenceRun, int]) -> tuple[int, str]:
    run, at = place
    return run.context_tokens[at], run.generator_version


def _part(home: Home, sample_set: SampleSet, part: Sequence[Sample]) -> SampleSet:
    name = f"{sample_set.name}-{sha256(chr(0).join(sample.id for sample in part))[:12]}"
    return sets.save(home, name, part, [sample_set.references[sample.id] for sample in part], sample_set.manifest)


def _run(home: Home, sample_set: SampleSet, plan: Plan, strategy: str, limit: int | None = None) -> ReferenceRun:
    limit = None if limit is None or limit >= len(sample_set.samples) else limit
    with open_store(home.database) as store:
        summaries = runner.run(
            home,
            store,
            sample_set,
            strategies=(strategy,),
            generator=plan.generator,
            choices=RunOptions(limit=limit),
            progress=progress,
        )
    if (fault := runner.fault_of(summaries)) is not None:
        raise fault
    (summary,) = summaries
    with open_store(home.database) as store:
        return reference.read(store, summary.run, sample_set, limit)


def table(results: ReferenceResults, language: str) -> str:
    """Return a Markdown table of a model's results in a language, one row per strategy."""
    here = [place for place, sample in enumerate(results.samples) if sample.language == language]
    repos = [results.samples[place].repo for place in here]
    lines = [f"| strategy | {' | '.join(_HEADINGS)} |", f"|---|{'---:|' * len(_HEADINGS)}"]
    for run in results.runs:
        scores = [(run.scores[profile], name) for profile, name in _MEANS]
        means = [statistics.fmean(of[name][place] or 0.0 for place in here) for of, name in scores]
        cells = [f"{100 * mean:.0f}" for mean in means[:-1]] + [f"{means[-1]:.1f}"]
        gains = [run.scores[CONTEXT][gain_of(run.coder)][place] or 0.0 for place in here]
        cells += [interval_text(estimate(gains, repos)), f"{statistics.median(gains):.1f}"]
        cells.append(f"{trimmed_mean(gains):.1f}")
        lines.append(f"| `{run.strategy.replace('(name=', '(')}` | {' | '.join(cells)} |")
    return "\n".join(lines)


_MEANS = (("ctxbench", "em"), ("ctxbench", "es"), ("ctxbench", "id_em"), ("ctxbench", "id_f1"), (CONTEXT, "bits"))
_HEADINGS = ("EM", "ES", "ID-EM", "ID-F1", "bits", "gain, bits", "median", "trimmed")


def page() -> str:
    """Return the tables of all models: lines in both languages, then functions."""
    parts = []
    # The copy model comes after the language models.
    of_lines = sorted(reference.models(LITE).items(), key=lambda item: item[1].model == COPY_MODEL)
    for label, results in of_lines:
        parts += [f"### `{label}`", _measured(label, results)]
        for language, name in LANGUAGES.items():
            lines = sum(sample.language == language for sample in results.samples)
            parts += [f"{name}, {lines} lines:", table(results, language)]
    for label, results in reference.models(WHOLE, Kind.FUNCTION).items():
        parts += [f"### `{label}`, functions", _measured(label, results), functions_table(results)]
    return "\n\n".join(parts) + "\n"


def findings_page() -> str:
    """Return the list of `scripts.findings`, checked with the results of the models in `FOUND_WITH`."""
    of_model = {kind: reference.models(Plan.set_of(kind), kind).values() for kind in FOUND_WITH}
    return findings.sentences(
        {kind: [file for file in files if file.model == FOUND_WITH[kind]] for kind, files in of_model.items()}
    )


def _measured(label: str, results: ReferenceResults) -> str:
    planned, made = len(PLANS[label, results.kind].strategies), len(results.runs)
    rows = "all rows" if made == planned else f"{made} of {planned} rows"
    generator = results.runs[-1].generator
    return f"`{generator}`: {rows} over {len(results.samples)} {results.kind}s of `{results.name}`."


def functions_table(results: ReferenceResults) -> str:
    """Return a Markdown table of passing functions by language, mean ES and tokens shown, one row per strategy."""
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


def main(home: str = "", label: str = "", kind: str = Kind.LINE) -> None:
    """Measure one plan, or write the tables and findings into docs/results.md."""
    if home:
        make(Home(Path(home).absolute()), label, Kind(kind))
    else:
        write_section(PAGE, BEGIN, END, page())
        write_section(PAGE, findings.BEGIN, findings.END, findings_page())


if __name__ == "__main__":
    main(*sys.argv[1:])
