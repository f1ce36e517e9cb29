"""`RunSpec`: the choices that identify a run. Also a run's planned samples, and the command that repeats a run."""

from __future__ import annotations

import dataclasses
import functools
import json
import shlex
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from ctxbench.bench import standard
from ctxbench.bench.code_tokens import P50K_BASE
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.secrets import redacted
from ctxbench.bench.types import Kind, Sample
from ctxbench.harness.cells import StrategyBounds
from ctxbench.harness.generators import fim
from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.results import EVERY, Measurement, Origin, generator_label, is_released, samples_label

PROGRAM = "ctxbench"
GREEDY = (0.0, 1.0)
"""Default temperature and top-p for one completion per sample, and for several completions of a line."""
LINE_TOKENS, FUNCTION_TOKENS = 128, 1024
"""Maximum tokens of a completion: of a line, and of a function."""
SEVERAL = (0.8, 0.95)
"""Default temperature and top-p for several completions of a function, as in the pass@k literature."""
NO_SANDBOX = "none"
"""Value of ``--sandbox`` that stores completions of functions without verdicts."""
_MOST_SEEDS = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """All choices of a run. Runs with equal specs have the same id: the second continues the first."""

    samples: str
    samples_digest: str
    set_size: int = 0
    """Number of samples in the complete set; 0 if unknown. Not part of the id."""
    limit: int | None = None
    """Maximum number of samples chosen from the set; None for all."""
    after: date | None = None
    """Day after which a sample's code must be dated for the sample to be selected; None for all samples."""
    strategy: str
    strategy_version: str
    generator: str
    generator_version: str
    coder: str
    """Spec and version of the model that measures context gain; empty for none."""
    sampling: Sampling
    n: int = 1
    """Completions per sample; 0 if the generator writes no answers."""
    seed: int = 0
    tokenizer: str
    code: str
    summariser: str = ""
    """Spec of the generator that writes summaries; empty if the run's own generator writes them."""
    summariser_version: str = ""
    summarises_tests: bool = False
    """Whether the summariser also summarises APIs of tests and vendored files."""

    @property
    def id(self) -> str:
        """Id of the run: twelve hexadecimal digits of a digest of all choices except `set_size`."""
        fields = {**dataclasses.asdict(self), "sampling": _fields(self.sampling)}
        # Options that the user did not choose are not part of the id either.
        del fields["set_size"]
        day = fields.pop("after")
        fields |= {} if day is None else {"after": day.isoformat()}
        if not self.summariser:
            for name in ("summariser", "summariser_version", "summarises_tests"):
                del fields[name]
        return sha256(json.dumps(fields, sort_keys=True))[:12]

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the components that the run uses, by component."""
        versions = {
            "ctxbench": self.code,
            "strategy": self.strategy_version,
            "generator": self.generator_version,
            "coder": self.coder,
            "tokenizer": self.tokenizer,
            "summariser": self.summariser_version,
        }
        return {name: version for name, version in versions.items() if version}

    @property
    def shown_samples(self) -> str:
        """Displayed name of the samples, such as ``demo[:10]``."""
        return samples_label(self.samples, limit=self.limit, after=self.after)

    @property
    def shown_generator(self) -> str:
        """Displayed name of the generator. Only runs with equal names are ranked together."""
        return generator_label(
            redacted(self.generator),
            fim=self.sampling.fim,
            summariser=redacted(self.summariser),
            summarises_tests=self.summarises_tests,
            released_template=is_released(self.summariser_version),
            tokenizer=self.tokenizer,
        )


@functools.lru_cache(256)
def sampling_key(sampling: Sampling) -> str:
    """Return the decoding parameters as JSON, equal for equal parameters."""
    return json.dumps(_fields(sampling), sort_keys=True)


def _fields(sampling: Sampling) -> dict[str, Any]:
    fields = dataclasses.asdict(sampling)
    if not fields["fim"]:
        del fields["fim"]
    return fields


def samples_after(samples: Sequence[Sample], day: date | None, days: Mapping[str, date]) -> Sequence[Sample]:
    """Return the samples dated after `day`, without undated samples, which may be older; all if `day` is None."""
    return samples if day is None else tuple(s for s in samples if s.id in days and days[s.id] > day)


def planned_samples(samples: Sequence[Sample], limit: int | None) -> tuple[Sample, ...]:
    """Return the samples of a run, in the order of `samples`.

    A limit takes samples from the repositories in turn, in a fixed pseudo-random order, so that a larger limit includes
    a smaller limit's samples. Sets list their samples by repository, so that few indices are in memory at a time.

    Raises:
        InputFault: if the limit is less than 1.
    """
    if limit is not None and limit < 1:
        raise InputFault(f"a limit of {limit} leaves no samples", cure="use --limit 1 or more")
    if limit is None or limit >= len(samples):
        return tuple(samples)
    by_repo: dict[str, list[Sample]] = defaultdict(list)
    for sample in sorted(samples, key=lambda sample: sha256(sample.id)):
        by_repo[sample.repo].append(sample)
    turns = chain.from_iterable(zip_longest(*(by_repo[repo] for repo in sorted(by_repo))))
    ids = {sample.id for sample in islice((sample for sample in turns if sample is not None), limit)}
    return tuple(sample for sample in samples if sample.id in ids)


def unfinished_samples(
    planned: Sequence[Sample], finished: Collection[str], failed: Collection[str] = ()
) -> tuple[Sample, ...]:
    """Return the planned samples without a result. Samples in `failed` come last, because they may fail again."""
    finished_ids, failed_ids = frozenset(finished), frozenset(failed)
    unfinished = [sample for sample in planned if sample.id not in finished_ids]
    return tuple(sorted(unfinished, key=lambda sample: sample.id in failed_ids))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFile:
    """The file from which a run was imported, with the options of the import."""

    format: str
    source: str
    has_sample_set: bool = True
    """Whether the run's samples are in a sample set. False if the file itself describes them."""
    language: str = ""
    labels: tuple[str, ...] = ("strategy", "generator")
    """Labels for which the import command needs an option, because all runs of the file have the same value."""


def repeat_command(
    run: RunSpec, file: ImportedFile | None = None, *, sandbox: str = "", options: Sequence[str] = ()
) -> str:
    """Return the shell command (POSIX) that runs or imports a run again, with additional `options`."""
    options = [*(["--sandbox", sandbox] if sandbox else []), *options]
    words = _import_words(run, file, options) if file is not None else _run_words(run, options)
    return shlex.join([PROGRAM, *words])


def place_options(home: Home, url: str, shown_url: str) -> list[str]:
    """Return the command options that name home and database. `shown_url` is `url` without its password."""
    words = ["--home", str(home.root)]
    if url != home.database:
        # --db accepts only a URL, and the URL of a SQLite file has no password.
        words += ["--db", url if url.startswith("sqlite:") else shown_url]
    return words


def judge_command(run: RunSpec, id_: str, *, options: Sequence[str] = ()) -> str:
    """Return the command that judges the stored completions of a run that lack a verdict."""
    return shlex.join([PROGRAM, "exec", "--samples", run.samples, "--run", id_, *options])


def _run_words(run: RunSpec, options: Sequence[str]) -> list[str]:
    words = ["run", "--samples", run.samples, "--strategy", run.strategy, "--generator", run.generator]
    if run.summariser:
        words += ["--summariser", run.summariser, *(["--summarise-tests"] if run.summarises_tests else [])]
    if is_released(run.summariser_version):
        words += ["--summary-template", "InferCom"]  # the path of the user's checkout is not stored
    if run.tokenizer == P50K_BASE:
        words += ["--tokenizer", f"{run.tokenizer}.tiktoken"]  # the path of the user's file is not stored
    if run.limit is not None:
        words += ["--limit", str(run.limit)]
    if run.after is not None:
        words += ["--after", run.after.isoformat()]
    if run.n > 1:
        words += ["--n", str(run.n)]
    if run.seed:
        words += ["--seed", str(run.seed)]
    return [*words, *_decoding(run), *options]


def _decoding(run: RunSpec) -> list[str]:
    temperature, top_p = run.sampling.temperature, run.sampling.top_p
    words = ["--fim"] if run.sampling.fim else []
    # The defaults for several completions depend on the kind of sample, so always write the options.
    if run.n > 1 or (temperature, top_p) != GREEDY:
        words = ["--temperature", repr(temperature), "--top-p", repr(top_p), *words]
    return words


def _import_words(run: RunSpec, file: ImportedFile, options: Sequence[str]) -> list[str]:
    if file.format == Origin.REFERENCE:
        usual = [standard.samples_name(file.source, kind) for kind in Kind]
        named = [] if run.samples in usual else ["--samples", run.samples]
        return ["results", "import", "--reference", file.source, *named, *options]
    words = ["results", "import", "--format", file.format]
    if file.has_sample_set:
        words += ["--samples", run.samples]
    for label in file.labels:
        words += [f"--{label}", getattr(run, label)]
    if file.language:
        words += ["--language", file.language]
    # A file name that begins with a hyphen would look like an option.
    end = ["--"] if file.source.startswith("-") else []
    return [*words, *options, *end, file.source]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """A user's options for a run, except samples, strategy and generator. The command line checks their ranges."""

    limit: int | None = None
    after: date | None = None
    """Day after which a sample's code must be dated for the sample to be selected; None for all samples."""
    n: int = 1
    seed: int = 0
    repeat: int = 1
    """Maximum number of runs per strategy, with seeds that rise from `seed` by 1. Controls run once."""
    workers: int | None = None
    temperature: float | None = None
    """Sampling temperature; None for the default: 0.8 for several completions of a function, otherwise 0."""
    top_p: float | None = None
    sandbox: str | None = None
    """Name of the sandbox back end; None for the default, `NO_SANDBOX` for none, so that functions get no verdicts."""
    strategy_seconds: float = StrategyBounds.work
    """Maximum processor seconds of a strategy per sample, excluding waiting for the model."""
    fim: bool = False
    """Whether the model sees the text after the cursor. Strategies see it only for functions."""
    summariser: str = ""
    """Spec of the generator that writes summaries; empty for the run's generator."""
    summarise_tests: bool = False
    """Whether APIs of tests and vendored files also get summaries from a separate summariser."""
    summary_templates: Mapping[str, str] = field(default_factory=dict)
    """Prompts for summaries that the InferCom paper released, by language; empty for ctxbench's own prompt."""
    measure: frozenset[Measurement] = EVERY
    """Measurements in addition to the scores of the default profile."""
    max_cost: float | None = None
    """Cost of new answers, in US dollars, at which no more samples are started; None for no limit."""
    tokenizer: Path | None = None
    """Path of the p50k_base file with which budgets are counted; None for the tokenizer `ctxcode-1`."""


def planned_by(
    sample_set: SampleSet, choices: RunOptions, days: Mapping[str, date]
) -> tuple[RunOptions, Sequence[Sample]]:
    """Return the options and the samples of the run. A limit that excludes no sample is removed from the options.

    Raises:
        InputFault: if the options do not fit the set, the limit is less than 1, or a seed would be too large.
    """
    if choices.seed + choices.repeat > _MOST_SEEDS:
        raise InputFault(f"fewer than {choices.repeat} seeds are left from {choices.seed} on", cure="lower --seed")
    eligible = samples_after(sample_set.samples, choices.after, days)
    if choices.after is not None and not eligible:
        newest = f"the newest is dated {max(days.values())}" if days else "no sample has a date"
        raise InputFault(
            f"no sample of {sample_set.name!r} is dated after {choices.after}: {newest}",
            cure="use an earlier day, or build newer samples with `ctxbench samples build --since`",
        )
    if choices.limit is not None and choices.limit >= len(eligible):
        choices = replace(choices, limit=None)
    planned = planned_samples(eligible, choices.limit)
    for sample in planned if choices.fim else ():
        fim.suffix_block(sample)
    return choices, planned


def decoding(choices: RunOptions, samples: Sequence[Sample]) -> Sampling:
    """Return the decoding parameters. Defaults: `SEVERAL` for several completions of functions, otherwise greedy."""
    functions = any(sample.kind is Kind.FUNCTION for sample in samples)
    temperature, top_p = SEVERAL if functions and choices.n > 1 else GREEDY
    return Sampling(
        max_tokens=FUNCTION_TOKENS if functions else LINE_TOKENS,
        temperature=temperature if choices.temperature is None else choices.temperature,
        top_p=top_p if choices.top_p is None else choices.top_p,
        seed=choices.seed,
        fim=choices.fim,
    )
