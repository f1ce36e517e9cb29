"""The cost of a verdict: processor time to judge the references and the empty bodies of function sets in boxes.

`python -m benchmarks.judging HOME SET...`. `SAMPLES=20` uses the first 20 samples of each set, `SANDBOX=docker` another
back end. A reference is judged like a completion, with a comment after it, because a sample's own answer is known. To
measure a change of the judge, run the benchmark before and after it.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.bench.judging.judge import Judge
from ctxbench.bench.judging.suites import suite_of
from ctxbench.bench.judging.types import Judgement
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Kind, Sample
from ctxbench.sandbox.registry import open_sandbox
from ctxbench.sandbox.types import Environment, Job, Limits, Outcome, Pool, Report, Sandbox

COMMENTS = {PYTHON: "# again", JAVA: "// again"}


class MeteredSandbox:
    """A sandbox that sums the cost of its jobs."""

    def __init__(self, inner: Sandbox) -> None:
        self.name, self.converse, self._inner = inner.name, inner.converse, inner
        self.seconds, self.jobs = 0.0, 0

    def prepare(self, environment: Environment, report: Report) -> str:
        """Build the missing environment, without measuring."""
        return self._inner.prepare(environment, report)

    def open(self, environment: Environment, *, limits: Limits, **options: int) -> AbstractContextManager[Pool]:
        """Open a pool with measured jobs."""

        @contextmanager
        def opened() -> Iterator[Pool]:
            with self._inner.open(environment, limits=limits, **options) as pool:
                yield _MeteredPool(pool, self)

        return opened()

    def add(self, outcome: Outcome) -> Outcome:
        """Add the cost of one job."""
        self.seconds += outcome.cpu_seconds
        self.jobs += 1
        return outcome


class _MeteredPool:
    def __init__(self, inner: Pool, meter: MeteredSandbox) -> None:
        self._inner, self._meter, self.image = inner, meter, inner.image

    def run(self, job: Job) -> Outcome:
        return self._meter.add(self._inner.run(job))


def main() -> None:
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    home = Home(Path(sys.argv[1]))
    print(f"{'set':18} {'what':10} {'passed':>11} {'flagged':>7} {'jobs':>5} {'ms each':>8}")
    for name in sys.argv[2:]:
        _measure(home, name)


def _measure(home: Home, name: str) -> None:
    sample_set = sets.load(home, name)
    samples = [sample for sample in sample_set.samples if sample.kind is Kind.FUNCTION][
        : int(os.environ.get("SAMPLES", "9999"))
    ]
    meter = MeteredSandbox(open_sandbox(os.environ.get("SANDBOX", "bubblewrap"), home.root / "cache" / "sandbox"))
    suites = {repo: suite_of(home, sample_set, repo, meter) for repo in {sample.repo for sample in samples}}
    answers: dict[str, Callable[[Sample], str]] = {
        "references": lambda sample: (
            f"{sample_set.references[sample.id].target.rstrip()}\n{COMMENTS[sample.language]}\n"
        ),
        "blanks": lambda sample: suites[sample.repo].blank(sample),
    }
    for what, answer in answers.items():
        judgements: dict[str, Judgement] = {}
        with Judge(home, sample_set, meter, width=1) as judge:
            meter.seconds, meter.jobs = 0.0, 0
            judgements = {sample.id: judge.judge(sample, answer(sample)) for sample in samples}
        verdicts = Counter(str(judgement.verdict) for judgement in judgements.values())
        flagged = sum(bool(getattr(judgement, "flags", ())) for judgement in judgements.values())
        print(
            f"{name:18} {what:10} {verdicts['PASSED']:5}/{len(samples):5} {flagged:7} {meter.jobs:5} "
            f"{meter.seconds * 1000 / len(samples):8.1f}",
            flush=True,
        )
        for id_, judgement in judgements.items():
            if (str(judgement.verdict) == "PASSED") != (what == "references"):
                print(f"  {id_}: {judgement.verdict} {judgement.reason}", flush=True)


if __name__ == "__main__":
    main()
