"""Verifies a package: computes the values of some or all samples again, and compares them with the package's.

The strategy runs in its cell as in any run. `Replay` returns the package's answers in place of the model, so prompts
that contain drafts are derived too. Everything is stored in a temporary database.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, get_args

from ctxbench.bench import standard
from ctxbench.bench.code_tokens import NAME as TOKENIZER
from ctxbench.bench.concurrency import Progress
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import sha256
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.harness import metrics
from ctxbench.harness.cells import open_cells
from ctxbench.harness.generators import base
from ctxbench.harness.generators.base import Capabilities, Generator, Request, Response
from ctxbench.harness.generators.incontext import VERSION
from ctxbench.harness.imported import sample_records
from ctxbench.harness.imported.probes import metrics_digest
from ctxbench.harness.metrics import COPY_MODEL
from ctxbench.harness.results import BITS, EVERY, GAINS, Measurement
from ctxbench.harness.run.batching import Answer
from ctxbench.harness.run.execution import open_executor
from ctxbench.harness.run.runner import card_of, fault_of, run
from ctxbench.harness.run.sample import completion
from ctxbench.harness.run.spec import NO_SANDBOX, RunOptions, decoding
from ctxbench.harness.run.stored import judge_run, rescore
from ctxbench.harness.store import verdicts
from ctxbench.harness.store.details import RunRows, rows_of
from ctxbench.harness.store.runs import CONTEXT
from ctxbench.harness.store.store import Store, open_store
from ctxbench.harness.store.verdicts import PASS, PROFILE
from ctxbench.harness.store.write import clean
from ctxbench.harness.submissions import records as form
from ctxbench.harness.submissions import stored
from ctxbench.harness.submissions.records import PackageVerification, PartCheck, PartName, PartState, ValueDifference
from ctxbench.strategies.api import FAILED, TRIMMED

DRAWN = 30
"""Number of samples that a verification draws unless it checks all."""
_NEAR = 1e-9
"""Relative difference allowed between values of two machines, whose libraries add in different orders."""
_SHOWN = 300
"""Maximum characters of a value in a reported difference."""


class Replay(Generator):
    """A model that returns the answers of one repetition in a package, and an empty answer to any other prompt."""

    version = "1"

    def __init__(self, manifest: form.Manifest, records: Iterable[form.AnsweredRecord]) -> None:
        """Read the answers from the records of one repetition."""
        model, self._answers = manifest.model, dict[tuple[str, int, int], str]()
        self.capabilities = Capabilities(
            batch_size=64,
            instructs=model.instructs,
            tools=model.tools,
            writes=manifest.sampling.completions > 0,
        )
        for record in records:
            for call in record.calls:
                self._answers[call.prompt, 0, call.max_tokens] = call.answer
            for index, answer in enumerate(record.completions):
                self._answers[record.prompt, index, manifest.sampling.max_tokens] = answer.written

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        """Return one response per request, in order."""
        keys = [(request.prompt.digest, request.index, request.sampling.max_tokens) for request in requests]
        texts = [self._answers.get(key, "") for key in keys]
        return [Response(text=text, finish="stop", tokens_in=0, tokens_out=0, seconds=0.0) for text in texts]


def same(expected: object, got: object) -> bool:
    """Return whether two values are equal. Floats may differ by a billionth: absolute below 1, relative above."""
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(same(expected[name], got[name]) for name in expected)
    if isinstance(expected, float) and isinstance(got, float | int):
        return abs(expected - got) <= _NEAR * max(1.0, abs(expected))
    return expected == got


def not_derivable(manifest: form.Manifest) -> str:
    """Return why this machine cannot derive the prompts of a package; empty if it can try."""
    strategy = manifest.strategy
    if manifest.model.summaries:
        return "a model summarised APIs, but the package lacks the summaries"
    if manifest.sampling.fim:
        return "the model's own fill-in-the-middle template built the prompts"
    if manifest.versions.tokenizer != TOKENIZER:
        return "budgets were counted with another tokenizer"
    if strategy.source == "file" and strategy.file is None:
        return "the package lacks a part of the strategy's source"
    name, _, pinned = (strategy.package or "").partition("==")
    if strategy.source == "package" and _installed(name) != pinned:
        return f"{name} {pinned} is not installed here; verify never installs a package"
    return ""


def _installed(name: str) -> str:
    with contextlib.suppress(PackageNotFoundError, ValueError):
        return version(name)
    return ""


@dataclass(frozen=True)
class Verifier:
    """The verification of one package."""

    home: Home
    submission: form.Submission
    sample_set: SampleSet
    whole: bool
    sandbox: str | None
    workers: int
    progress: Progress
    replaced: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `open_resources` that only ctxbench's own tests replace."""

    @property
    def _manifest(self) -> form.Manifest:
        return self.submission.manifest

    @cached_property
    def _drawn(self) -> list[str]:
        """The samples to check. The digest of the package draws them, so that its author cannot choose them freely."""
        digest = form.digest_of(self._manifest)
        ids = [record.id for record in self.submission.samples]
        drawn = sorted(ids, key=lambda sample: sha256(f"{digest} {sample}"))[: len(ids) if self.whole else DRAWN]
        return [sample for sample in ids if sample in set(drawn)]

    @cached_property
    def _set(self) -> SampleSet:
        """The sample set with the drawn samples only."""
        drawn = set(self._drawn)
        return replace(self.sample_set, samples=tuple(s for s in self.sample_set.samples if s.id in drawn))

    @cached_property
    def _records(self) -> dict[tuple[str, int], form.AnsweredRecord]:
        drawn = set(self._drawn)
        records = self.submission.completions
        return {(record.sample, record.repetition): record for record in records if record.sample in drawn}

    @cached_property
    def _copies(self) -> bool:
        """Whether the model ships with ctxbench, so that its answers can be derived too."""
        return (self._manifest.model.spec, self._manifest.model.version) == (COPY_MODEL, VERSION)

    @cached_property
    def _measures_bits(self) -> bool:
        """Whether the coder ships with ctxbench, so that bits can be derived."""
        return self._manifest.versions.coder == f"{COPY_MODEL} {VERSION}"

    @cached_property
    def _columns(self) -> set[tuple[str, str]]:
        """(profile, metric) pairs for which the package has scores."""
        return {(p, m) for line in self.submission.scores for p, values in line.scores.items() for m in values}

    @cached_property
    def _parts(self) -> dict[PartName, PartCheck]:
        """Part of the package -> result of its check so far."""
        records, scores = self.submission.completions, self.submission.scores
        of: dict[PartName, int] = dict.fromkeys(get_args(PartName), len(records)) | {
            "samples": len(self.submission.samples),
            "answers": sum(len((*record.calls, *record.completions)) for record in records),
            "completions": len(records) * self._manifest.sampling.completions,
            "verdicts": sum(line.verdict is not None for line in scores),
            "scores": sum(len(values) for line in scores for values in line.scores.values()),
            **dict.fromkeys(("strategy", "description"), 1),
        }
        return {name: PartCheck(name=name, state=PartState.DERIVED, checked=0, of=of[name]) for name in of}

    def _put(self, name: PartName, **changes: Any) -> None:
        self._parts[name] = replace(self._parts[name], **changes)

    def _trust(self, name: PartName, note: str) -> None:
        """Record that a part cannot be checked here, and why."""
        self._put(name, state=PartState.TRUSTED, note=note)

    def _compare(
        self, name: PartName, sample: str, what: str, expected: object, got: object, *, counts: bool = True
    ) -> None:
        """Compare a value in the package with the one computed here. If `counts` is False, it is not among the `of`."""
        part = self._parts[name]
        self._put(name, checked=part.checked + counts)
        if not same(expected, got):
            texts = {"expected": str(expected)[:_SHOWN], "got": str(got)[:_SHOWN]}
            first = part.difference or ValueDifference(sample=sample, what=what, **texts)
            self._put(name, differing=part.differing + 1, difference=first)

    def verify(self) -> PackageVerification:
        """Compute the values of the drawn samples again; return how far each part was checked, and what differs.

        Raises:
            InputFault: if an input is missing here, such as a repository that is not fetched.
            MachineFault: if a part could not be checked because this machine failed.
        """
        if self._check_samples():
            self._compare_rest()
        return PackageVerification(
            id=self._manifest.id,
            digest=form.digest_of(self._manifest),
            ctxbench=version("ctxbench"),
            samples=len(self._drawn),
            of=len(self.submission.samples),
            parts=tuple(part for part in self._parts.values() if part.of),
        )

    def _compare_rest(self) -> None:
        """Compare everything but the samples."""
        self._check_means()
        self._check_completions()
        versions = self._manifest.versions
        own_metrics = metrics_digest(sorted({record.language for record in self.submission.samples}))
        self._compare("scores", "", "versions.metrics", versions.metrics, own_metrics, counts=False)
        note = "title, authors, dates, model, seeds, sampling, costs and times are the author's claims"
        if self._manifest.supersedes:
            note += f"; the package replaces {self._manifest.supersedes}, so check that both have the same authors"
        self._trust("description", note)
        if self._copies:
            self._compare("scores", "", "versions.coder", versions.coder, f"{COPY_MODEL} {VERSION}", counts=False)
        else:
            self._trust("answers", "only the model's owner can check its answers")
        reason = not_derivable(self._manifest)
        # The cell can read the strategy's folder, so the database is in another folder.
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as own:
            spec = reason or stored.placed(self._manifest.strategy, self.submission.sources, Path(own))
            with open_store(f"sqlite:///{folder}/verify.db") as store:
                if not reason:
                    reason = self._check_strategy(spec)
                if reason:
                    self._rescore(store, reason)
                else:
                    for repetition in range(len(self._manifest.sampling.seeds)):
                        self._derive(store, spec, repetition)

    def _check_samples(self) -> bool:
        """Compare the public facts of all samples; return whether the rest can be compared. Marks are trusted."""
        manifest = self._manifest
        own = sample_records(self.sample_set, manifest.set.limit, manifest.set.after)
        published = {
            digest: standard.samples_name(name, kind)
            for name in standard.names()
            for kind, digest in standard.load(name).digests.items()
        }
        claimed = manifest.set.name
        facts = {
            "samples": len(own),
            "kind": " ".join(sorted({str(sample.kind) for sample in self.sample_set.samples})),
            "protocol": str(self.sample_set.manifest.get("protocol", "ctxbench")),
            "name": published.get(manifest.set.digest, "" if claimed in published.values() else claimed),
            "limit": None if len(own) == len(self.sample_set.samples) else manifest.set.limit,
        }
        for name, value in facts.items():
            self._compare("samples", "", f"set.{name}", getattr(manifest.set, name), value, counts=False)
        for packed, record in zip(self.submission.samples, own, strict=False):
            self._compare("samples", record.id, "sample", asdict(replace(packed, marks=())), asdict(record))
        marked = sum(bool(record.marks) for record in self.submission.samples)
        if marked:
            self._put("samples", note=f"the exclusion of {marked} samples is the author's claim")
        if [record.id for record in own] == [record.id for record in self.submission.samples]:
            return True
        for name in self._parts.keys() - {"samples"}:
            self._trust(name, "the package's samples differ from the set's")
        return False

    def _check_means(self) -> None:
        own = stored.means(self.submission)
        self._put("means", of=max(len(own), len(self._manifest.mean)))
        means = [{(mean.language, mean.metric): asdict(mean) for mean in some} for some in (self._manifest.mean, own)]
        for key in sorted(means[0].keys() | means[1].keys()):
            self._compare("means", "", " ".join(key), *(some.get(key) for some in means))

    def _check_completions(self) -> None:
        """Compare each text with what follows from the model's answer."""
        samples = {sample.id: sample for sample in self._set.samples}
        for (sample, repetition), record in self._records.items():
            states = []
            for index, answer in enumerate(record.completions):
                raw = Response(text=answer.written, finish="stop", tokens_in=0, tokens_out=0, seconds=0.0)
                text = clean(completion(samples[sample], Answer("", raw)).text)
                states.append("scored" if text.strip() else "model-failed")
                self._compare("completions", sample, f"text {repetition}.{index}", answer.text, text)
                self._compare("completions", sample, "status", answer.status, states[-1], counts=False)
            if states:
                whole = "scored" if "scored" in states else "model-failed"
                self._compare("completions", sample, "status", record.status, whole, counts=False)

    def _check_strategy(self, spec: str) -> str:
        """Compare the strategy's version; return why it cannot run here."""
        try:
            with open_cells([self.home.root], 1) as cells:
                if self._manifest.strategy.file and cells.describe()["isolation"] == "process":
                    return "this machine's kernel cannot confine foreign source code"
                own = card_of(spec, cells).version
        except InputFault as fault:
            self._compare("strategy", "", "strategy", self._manifest.strategy.spec, stored.public(fault.what))
            return "the strategy cannot be loaded on this machine"
        self._compare("strategy", "", "strategy.version", self._manifest.strategy.version, own)
        return "the strategy has another version on this machine" if self._parts["strategy"].differing else ""

    def _derive(self, store: Store, spec: str, repetition: int) -> None:
        """Run the strategy over the drawn samples, and compare prompts, answers, scores and verdicts."""
        sampling = self._manifest.sampling
        records = {sample: record for (sample, index), record in self._records.items() if index == repetition}
        choices = RunOptions(
            n=max(1, sampling.completions),
            seed=sampling.seeds[repetition],
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            workers=self.workers,
            sandbox=self.sandbox,
            measure=EVERY if self._measures_bits and (CONTEXT, BITS) in self._columns else EVERY - {Measurement.GAIN},
        )
        own = decoding(choices, self._set.samples)
        for name in ("max_tokens", "stop"):
            if getattr(own, name) != getattr(sampling, name):
                self._compare("prompts", "", f"sampling.{name}", getattr(sampling, name), getattr(own, name))
        # The package's name of the model is never read as a spec.
        replay = Replay(self._manifest, records.values())
        generator = COPY_MODEL if self._copies else "none"
        [summary] = run(
            self.home,
            store,
            self._set,
            strategies=[spec],
            generator=generator,
            choices=choices,
            progress=self.progress,
            **{"resolve": lambda name: base.resolve(name) if name == COPY_MODEL else replay, **self.replaced},
        )
        if (fault := fault_of([summary])) and (isinstance(fault, MachineFault) or summary.unjudged):
            raise fault
        rows = rows_of(store, summary.run)
        faults = {fault.sample_id: fault.message for fault in summary.faults}
        for sample, record in records.items():
            if sample not in rows.results:
                self._compare("prompts", sample, "prompt", record.prompt, stored.public(faults.get(sample, "")))
                continue
            self._compare_prompts(record, stored.completion_of(rows, sample, repetition))
        if self._parts["prompts"].checked <= 0:
            self._put("prompts", state=PartState.TRUSTED)
        self._compare_scores(rows, repetition, only_text=False)

    def _compare_prompts(self, record: form.AnsweredRecord, own: form.AnsweredRecord) -> None:
        sample = record.sample
        trimmed = {TRIMMED, FAILED} & {*record.flags} and not self._copies
        if trimmed:
            self._put("prompts", note="prompts that were cut to the model's window are the author's claims")
        names = () if trimmed else ("prompt", "context_tokens", "flags")
        facts: list[dict[str, Any]] = [
            {"calls": [(call.role, call.prompt) for call in some.calls]} | {name: getattr(some, name) for name in names}
            for some in (record, own)
        ]
        what = next((name for name in facts[0] if facts[0][name] != facts[1][name]), "prompt")
        self._compare("prompts", sample, what, *(json.dumps(some.get(what)) for some in facts), counts=not trimmed)
        if self._copies:
            for name in ("calls", "completions"):
                texts = [[answer.written for answer in getattr(some, name)] for some in (record, own)]
                for index in range(max(map(len, texts))):
                    pair = [some[index] if index < len(some) else None for some in texts]
                    self._compare("answers", sample, f"{name} {index}", *pair)

    def _rescore(self, store: Store, reason: str) -> None:
        """Compute the scores and verdicts of the package's own completions, without its prompts."""
        self._trust("prompts", reason)
        if not self._parts["strategy"].checked:
            self._trust("strategy", reason)
        self._put("scores", state=PartState.RESCORED, note="scores of the prompts are the author's claims")
        if self._copies:
            self._trust("answers", reason)
        ids = {sample.id for sample in self._set.samples}
        part = replace(
            self.submission,
            samples=tuple(record for record in self.submission.samples if record.id in ids),
            completions=tuple(record for record in self._records.values() if record.sample in ids),
        )
        for repetition, id_ in enumerate(stored.add(store, part, scored=False)):
            for profile in metrics.PROFILES:
                rescore(store, id_, self._set, profile, progress=self.progress)
            lacking = verdicts.unjudged(store, id_) if self.sandbox != NO_SANDBOX else []
            if lacking:
                with (
                    open_executor(
                        self.workers,
                        home=self.home,
                        store=store,
                        sample_set=self._set,
                        sandbox=self.sandbox,
                        **{name: value for name, value in self.replaced.items() if name == "judges"},
                    ) as executor,
                    self.progress("tests", len(lacking)) as tick,
                ):
                    for row in judge_run(store, executor, self._set, id_, lacking):
                        if row.fault is not None:
                            raise row.fault
                        tick(1)
            self._compare_scores(rows_of(store, id_), repetition, only_text=True)

    def _compare_scores(self, rows: RunRows, repetition: int, *, only_text: bool) -> None:
        """Compare scores in every column that the package has, and verdicts."""
        columns = self._columns
        trusted = {(CONTEXT, metric) for metric in GAINS} if not self._measures_bits else set()
        if trusted & columns and not only_text:
            self._put("scores", note="only the model that measured the bits can check them")
        if self.sandbox == NO_SANDBOX:
            trusted |= {(PROFILE, PASS)}
            self._trust("verdicts", "no sandbox ran the tests")
        drawn = set(self._drawn)
        for line in self.submission.scores:
            if line.sample not in drawn or line.repetition != repetition or line.sample not in rows.results:
                continue
            own = rows.scores[line.sample, line.completion]
            flat = [{(p, m): v for p, some in scores.items() for m, v in some.items()} for scores in (line.scores, own)]
            due = columns | {key for key in flat[1] if key[0] == PROFILE}
            for key in sorted(due - trusted):
                if only_text and (key[0] == CONTEXT or key not in flat[1]):
                    continue
                if key in flat[0] or key in flat[1]:
                    self._compare("scores", line.sample, ".".join(key), *(some.get(key, "none") for some in flat))
            verdict = rows.verdicts.get((line.sample, line.completion))
            if self.sandbox != NO_SANDBOX and (line.verdict or verdict):
                self._compare("verdicts", line.sample, "verdict", line.verdict, verdict)
