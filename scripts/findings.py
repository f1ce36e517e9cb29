"""Lists whether ten findings of the InferCom and ICL-strategies papers hold with published models."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ctxbench.bench.types import Kind, Sample
from ctxbench.harness import paper_tables
from ctxbench.harness.imported.reference import ReferenceResults, ReferenceRun
from ctxbench.harness.leaderboard.stats import Estimate, estimate
from ctxbench.harness.metrics import GAIN
from ctxbench.harness.papers.reproduce import specs_of
from ctxbench.harness.store.runs import CONTEXT
from ctxbench.strategies import registry
from scripts.reference_results import LANGUAGES, interval_text

BEGIN, END = "<!-- findings: python -m scripts.model_results -->\n", "<!-- end of the findings -->"
ENCODER = "bm25"
_MEASURED = {
    Kind.LINE: (("EM", "ctxbench", "em", 100.0), ("ES", "ctxbench", "es", 100.0), ("gain in bits", CONTEXT, GAIN, 1.0)),
    Kind.FUNCTION: (("pass@1", "ctxbench", "pass", 100.0), ("ES", "ctxbench", "es", 100.0)),
}
Held: TypeAlias = Mapping[str, tuple[ReferenceRun, int]]
"""Sample -> a strategy's run with the sample, and the sample's index in the run's columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A paper's claim that one strategy is better than another."""

    title: str
    kind: Kind
    tables: tuple[str, ...]
    """Names of the paper's tables that print both strategies."""
    better: str
    worse: str


_BASE = "lc.infercom(encoder=bm25, fsr=false, uer=false)"
_INFERCOM = "lc.infercom(encoder=bm25)"
_REPOCODER = "lc.repocoder(empty_header=true)"
_INFILE = "icl.infile(encoder=bm25)"


def _lines(title: str, table: int, better: str, worse: str) -> Finding:
    return Finding(title=title, kind=Kind.LINE, tables=(f"infercom-table{table}",), better=better, worse=worse)


def _functions(title: str, better: str, worse: str) -> Finding:
    tables = ("icl-table1", "icl-table3")
    return Finding(title=title, kind=Kind.FUNCTION, tables=tables, better=better, worse=worse)


FINDINGS = (
    _lines("InferCom over the file alone", 3, _INFERCOM, "lc.infile"),
    _lines("InferCom over RepoFuse", 3, _INFERCOM, "lc.repofuse(encoder=bm25, unmasked=true)"),
    _lines("InferCom over RepoCoder", 3, _INFERCOM, _REPOCODER),
    _lines("InferCom's usage examples", 4, "lc.infercom(encoder=bm25, fsr=false)", _BASE),
    _lines("Inferred APIs beside the file alone", 5, "aim(encoder=bm25, inner=lc.infile)", "lc.infile"),
    _lines("Inferred APIs beside RepoCoder", 5, f"aim(encoder=bm25, inner={_REPOCODER})", _REPOCODER),
    _functions("The functions of the file over none", _INFILE, "icl.direct"),
    _functions("One similar function over none", "icl.rag(encoder=bm25)", "icl.direct"),
    _functions("The functions of the file over one similar function", _INFILE, "icl.rag(encoder=bm25)"),
    _functions("A similar file beside the functions of the file", "icl.infile_filerag(encoder=bm25)", _INFILE),
)


def held(files: Iterable[ReferenceResults]) -> Mapping[str, Held]:
    """Return strategy -> sample id -> (run, index of the sample in the run's columns), from files of one model."""
    found: dict[str, dict[str, tuple[ReferenceRun, int]]] = defaultdict(dict)
    for results in files:
        for run in results.runs:
            found[run.strategy] |= {sample.id: (run, place) for place, sample in enumerate(results.samples)}
    return found


def sentences(files: Mapping[Kind, Sequence[ReferenceResults]]) -> str:
    """Return a Markdown list with an item per finding. `files` maps each kind of sample to one model's result files."""
    rows = {kind: held(of_kind) for kind, of_kind in files.items()}
    samples = {
        kind: {sample.id: sample for file in of_kind for sample in file.samples} for kind, of_kind in files.items()
    }
    return "\n".join(f"- {_sentence(of, rows[of.kind], samples[of.kind])}" for of in FINDINGS) + "\n"


def _sentence(finding: Finding, rows: Mapping[str, Held], samples: Mapping[str, Sample]) -> str:
    theirs = ", ".join(f"{printed(finding, language):+.1f} ({name})" for language, name in LANGUAGES.items())
    metric = "EM" if finding.kind is Kind.LINE else "pass@1"
    parts = []
    for language, name in LANGUAGES.items():
        here = [sample for sample in samples.values() if sample.language == language]
        shared = [s for s in here if s.id in rows.get(finding.better, {}) and s.id in rows.get(finding.worse, {})]
        if not shared:
            continue
        em, *others = [
            (heading, difference(finding, rows, shared, profile, column, scale))
            for heading, profile, column, scale in _MEASURED[finding.kind]
        ]
        also = "".join(f", {heading} {interval_text(own)}" for heading, own in others)
        parts.append(f"{name}, {len(shared)} {finding.kind}s: {em[0]} {interval_text(em[1])}{also}; {_verdict(em[1])}")
    ours = ". ".join(parts) if parts else "not measured yet"
    return f"**{finding.title}.** The paper: {metric} {theirs}. Ours: {ours}."


def difference(
    finding: Finding, rows: Mapping[str, Held], samples: Sequence[Sample], profile: str, metric: str, scale: float
) -> Estimate:
    """Return the mean lead of the finding's better strategy in a metric over the samples, with its interval."""

    def value(strategy: str, sample: Sample) -> float:
        run, place = rows[strategy][sample.id]
        return run.scores[profile][metric][place] or 0.0

    differences = [scale * (value(finding.better, s) - value(finding.worse, s)) for s in samples]
    return estimate(differences, [sample.repo for sample in samples])


def _verdict(own: Estimate) -> str:
    if own.low is not None and own.low > 0:
        return "it holds"
    return "the opposite holds" if own.high is not None and own.high < 0 else "not significant"


def printed(finding: Finding, language: str) -> float:
    """Return the mean lead of the better strategy that the paper prints, over its models and benchmarks."""
    column = "em" if finding.kind is Kind.LINE else "avg"
    values: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for table in map(paper_tables.table, finding.tables):
        specs = specs_of(table, ENCODER)
        for row in table.rows:
            number = row.printed.get(language, {}).get(column)
            if number is not None and row.preset in specs:
                spec = registry.resolve(specs[row.preset]).spec
                values[spec].setdefault((row.benchmark, row.model), number)
    both = values[finding.better].keys() & values[finding.worse].keys()
    return statistics.fmean(values[finding.better][key] - values[finding.worse][key] for key in both)
