"""Builds sets of function samples from repositories, and verifies sets by judging their references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.functions.candidates import hidden_for, make, ordered
from ctxbench.bench.functions.certificates import Certificates
from ctxbench.bench.functions.certify import FAILS_UNDER_LOAD, JOBS, Certified, certify
from ctxbench.bench.functions.choose import Draft
from ctxbench.bench.functions.mining import (
    Candidate,
    Level,
    Lock,
    PreparedRepository,
    Report,
    Search,
    certificates_of,
    prepare,
    provisional,
)
from ctxbench.bench.home import Home
from ctxbench.bench.judging.judge import PUBLISHED_REUSE, Judge, sandbox_explained
from ctxbench.bench.judging.suites import suite_of
from ctxbench.bench.judging.types import Judgement, Suite, Verdict
from ctxbench.bench.samples import SampleSet, account
from ctxbench.bench.types import Kind, Reference, Sample
from ctxbench.sandbox.types import Sandbox

if TYPE_CHECKING:
    from ctxbench.bench.repositories.manifest import RepoManifest


_TOTALS = ("functions", "documented", "covered", "candidates", "tried", "kept")


@dataclass(frozen=True, slots=True)
class Mined:
    """One repository's samples and references."""

    samples: tuple[Sample, ...]
    references: tuple[Reference, ...]
    entry: Mapping[str, Any]
    """The repository's counts and settings for the set's manifest."""


def build(  # noqa: PLR0913 - each is a choice of the build's
    manifests: Sequence[RepoManifest],
    home: Home,
    name: str,
    *,
    sandbox: Sandbox,
    lock: Lock,
    per_repo: int = 50,
    seed: int = 0,
    workers: int = 1,
    report: Report = lambda _: None,
    force: bool = False,
) -> SampleSet:
    """Fetch missing repositories, mine all repositories, and write the sample set ``samples/<name>/``.

    The result does not depend on the order of `manifests` or on `workers`. An interrupted build resumes.

    Args:
        manifests: repositories with unique names and ``[tests]``.
        lock: resolves test requirements.
        per_repo: maximum number of samples per repository.
        workers: number of samples to certify at the same time.
        force: whether to replace a set with the same name.

    Raises:
        InputFault: if `per_repo` is below 1, a repository is listed twice or has no tests or no usable function, or
            another set has this name.
        MachineFault: if a repository or requirement is unavailable, or the sandbox failed.
    """
    from ctxbench.bench.repositories import checkout  # noqa: PLC0415 - fetching is needed by no reader of sets

    sets.folder(home, name)
    check(manifests, per_repo)

    mined: dict[str, Mined] = {}
    for manifest in sorted(manifests, key=lambda mining: mining.name):
        fetched = checkout.fetch(manifest, home, report=report)
        repository = prepare(manifest, fetched, home, sandbox, lock, report)
        mined[manifest.name] = _mine(repository, sandbox, per_repo=per_repo, seed=seed, workers=workers, report=report)
    entries = {repo: mining.entry for repo, mining in mined.items()}
    about = account(Kind.FUNCTION, entries, _TOTALS, seed=seed, per_repo=per_repo)
    samples = [sample for mining in mined.values() for sample in mining.samples]
    references = [reference for mining in mined.values() for reference in mining.references]
    return sets.save(home, name, samples, references, about, force=force)


def check(manifests: Sequence[RepoManifest], per_repo: int) -> None:
    """Check the arguments of `build` before anything is fetched or run.

    Raises:
        InputFault: if `per_repo` is below 1, repositories have the same name, or a repository has no tests.
    """
    if per_repo < 1:
        raise InputFault(f"{per_repo} samples per repository are too few", cure="type 1 or more after --per-repo")
    if len({manifest.name for manifest in manifests}) < len(manifests):
        raise InputFault("a repository is listed twice", cure="name each repository once")
    for manifest in manifests:
        if manifest.tests is None:
            raise InputFault(
                "the manifest has no [tests], so no test can judge a function",
                where=manifest.name,
                cure="add a [tests] table (`ctxbench repo sample` prints one), or choose another repository",
            )


def _mine(
    repository: PreparedRepository,
    sandbox: Sandbox,
    *,
    per_repo: int,
    seed: int,
    workers: int,
    report: Report,
) -> Mined:
    project, entry, suite = repository.project, repository.entry, repository.suite
    name, language = project.manifest.name, project.manifest.language
    with sandbox_explained():
        search = language.miner().find(project, suite, sandbox, report)
    tried = ordered(search.candidates, repo=name, seed=seed)
    pairs = [make(project, search, candidate, language.miner().lift) for candidate in tried]
    references = {reference.id: reference for _, reference in pairs}
    report(f"{name}: {len(tried)} candidates, certifying up to {per_repo}")
    drafts = provisional(name, entry, [sample for sample, _ in pairs], references)
    with Judge(project.home, drafts, sandbox, width=max(workers, JOBS), reuse=PUBLISHED_REUSE) as judge:
        certified = certify(
            [_draft(candidate, *pair, suite) for candidate, pair in zip(tried, pairs, strict=True)],
            references,
            judge,
            Certificates(certificates_of(project.home, suite.environment.digest, sandbox.name)),
            most=per_repo,
            workers=workers,
            tick=lambda count, tried_count: (
                report(f"{name}: {count} of {tried_count} candidates certified") if tried_count % 10 == 0 else None
            ),
            report=report,
        )
    if not certified.samples:
        raise _none(name, search, certified.drops)
    report(f"{name}: {len(certified.samples)} samples of {len(tried)} candidates")
    sampled = [
        (candidate, replace(sample, hidden=hidden_for(search.hidden, references[sample.id].tests)))
        for candidate, (sample, _) in zip(tried, pairs, strict=True)
        if sample.id in certified.samples
    ]
    counts = _counts(search, tried, [candidate for candidate, _ in sampled], certified)
    samples = tuple(sample for _, sample in sampled)
    answers = tuple(references[sample.id] for sample in samples)
    return Mined(samples, answers, {**entry, **counts, **_clocks(answers, certified)})


def _draft(candidate: Candidate, sample: Sample, reference: Reference, suite: Suite) -> Draft:
    return Draft(
        sample=sample,
        reference=reference,
        ranked=candidate.tests,
        others=candidate.others,
        blank=suite.blank(sample),
        mutants=partial(sample.language.miner().mutants, reference.target),
        clocks=candidate.clocks,
    )


def _none(name: str, search: Search, failed: Mapping[str, int]) -> InputFault:
    dropped = Counter(search.drops) + Counter(failed)
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(dropped.items()))
    return InputFault(
        f"no function of {name!r} can become a sample ({reasons or 'none is documented'})",
        cure="check [tests] in its manifest, or choose another repository",
    )


def _clocks(references: Sequence[Reference], certified: Certified) -> dict[str, Any]:
    alone = sum(bool(reference.clocks) and len(reference.clocks) == len(reference.tests) for reference in references)
    return {
        "kept_clocks_only": alone,
        "kept_clocks_too": sum(bool(reference.clocks) for reference in references) - alone,
        "tests_dropped": {FAILS_UNDER_LOAD: len(certified.left_out)} if certified.left_out else {},
    }


def _counts(
    search: Search, tried: Sequence[Candidate], sampled: Sequence[Candidate], certified: Certified
) -> dict[str, Any]:
    levels = Counter(candidate.level for candidate in sampled)
    failed, mutants = certified.drops, certified.mutants
    return {
        **search.counts,
        "candidates": len(tried),
        "tried": len(sampled) + sum(failed.values()),
        "kept": len(sampled),
        "kept_one_line": sum(candidate.end - candidate.cursor.line == 1 for candidate in sampled),
        "levels": {level.value: levels[level] for level in Level if levels[level]},
        **({"mutants": asdict(mutants)} if mutants.tried else {}),
        "drops": dict(sorted((Counter(search.drops) + Counter(failed)).items())),
    }


REFERENCE, BLANK = "reference", "blank"
BROKEN, VACUOUS = "broken", "vacuous"
"""Reasons why a sample is unusable: the reference fails its tests, or an empty body passes them."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Verdicts on a sample's reference and on an empty body."""

    id: str
    reference: Judgement
    blank: Judgement
    image: str = ""

    def faults(self) -> Iterator[tuple[str, Judgement]]:
        """Yield (``reference`` or ``blank``, judgement) for each unexpected judgement, machine faults included."""
        if self.reference.verdict is not Verdict.PASSED:
            yield REFERENCE, self.reference
        if self.blank.verdict in (Verdict.PASSED, Verdict.BROKEN):
            yield BLANK, self.blank

    def marks(self) -> Iterator[tuple[str, str]]:
        """Yield why the sample is unusable: `BROKEN` or `VACUOUS`, each with details. Machine faults do not count."""
        if self.reference.verdict not in (Verdict.PASSED, Verdict.BROKEN):
            yield BROKEN, f"the reference {self.reference.verdict} {self.reference.reason}".rstrip()
        if self.blank.verdict is Verdict.PASSED:
            yield VACUOUS, "an empty body passes"


@dataclass(frozen=True, slots=True)
class Verification:
    """Verdicts on all function samples of a set."""

    checked: tuple[Checked, ...]

    @property
    def references_passed(self) -> int:
        """Number of references that passed their tests."""
        return sum(sample.reference.verdict is Verdict.PASSED for sample in self.checked)

    @property
    def blanks_passed(self) -> int:
        """Number of empty bodies that passed the tests; 0 in a valid set."""
        return sum(sample.blank.verdict is Verdict.PASSED for sample in self.checked)

    @property
    def machine_faults(self) -> int:
        """Number of samples whose reference or empty body has no verdict because the machine failed."""
        return sum(Verdict.BROKEN in (sample.reference.verdict, sample.blank.verdict) for sample in self.checked)

    @property
    def faults(self) -> tuple[tuple[str, str, Judgement], ...]:
        """All unexpected judgements, as (sample id, ``reference`` or ``blank``, judgement)."""
        return tuple((sample.id, what, judgement) for sample in self.checked for what, judgement in sample.faults())


def verify(
    home: Home,
    sample_set: SampleSet,
    sandbox: Sandbox,
    *,
    workers: int,
    report: Report,
    tick: Callable[[int], None],
) -> Verification:
    """Judge the reference and an empty body of every function sample. A reference that times out is judged again.

    Raises:
        InputFault: if the set contains no functions, or a repository is missing or changed.
        MachineFault: if no box can be started.
    """
    functions = [sample for sample in sample_set.samples if sample.kind is Kind.FUNCTION]
    if not functions:
        raise InputFault(
            f"the sample set {sample_set.name!r} contains no functions",
            cure="build one with `ctxbench samples build NAME --kind function --repo R`",
        )
    suites = {name: suite_of(home, sample_set, name, sandbox) for name in dict.fromkeys(s.repo for s in functions)}

    def check(sample: Sample) -> Checked:
        return _check_sample(sample, sample_set, suites[sample.repo], judge)

    results: list[Checked] = []
    with Judge(home, sample_set, sandbox, width=workers, reuse=PUBLISHED_REUSE) as judge:
        pool = ThreadPoolExecutor(workers, thread_name_prefix="verify")
        try:
            for checked in pool.map(check, functions):
                for what, judgement in checked.faults():
                    report(f"{checked.id}: {what} {judgement.verdict} {judgement.reason}".rstrip())
                results.append(checked)
                tick(1)
        finally:
            pool.shutdown(cancel_futures=True)
    return Verification(tuple(results))


def _check_sample(sample: Sample, sample_set: SampleSet, suite: Suite, judge: Judge) -> Checked:
    target = sample_set.references[sample.id].target
    reference = judge.judge(sample, target)
    if reference.verdict is Verdict.TIMED_OUT:
        reference = judge.judge(sample, target)  # the machine may have been busy
    return Checked(sample.id, reference, judge.judge(sample, suite.blank(sample)), judge.image(sample))
