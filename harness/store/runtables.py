"""The `RunTable`s of a stored run, one a language. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctxbench.harness.results import Load, Origin, RunInfo, RunTable
from ctxbench.harness.store import passes
from ctxbench.harness.store.costs import Costs
from ctxbench.harness.store.planned import Planned, Values
from ctxbench.harness.store.rows import versions
from ctxbench.harness.store.sets import shown_generator
from ctxbench.strategies.registration import is_control


def shown_samples(run: Any) -> str:
    """Return how the sample set of a run is named, from the run's row."""
    return str(run.samples) if run.sample_limit is None else f"{run.samples}[:{run.sample_limit}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunColumns:
    """All that is stored of one run and matters to a leaderboard."""

    run: Any
    """Its row."""
    profile: str
    samples: Planned
    values: Mapping[str, Values]
    """Metric -> sample -> value."""
    verdicts: passes.Counts
    marks: Mapping[str, str]
    """Sample -> its mark."""
    exclude: bool
    """Whether marked samples are left out."""
    costs: Costs
    imported: bool
    loads: tuple[Load | None, ...]
    remarks: tuple[str, ...]

    def tables(self, language: str | None = None) -> list[RunTable]:
        """Return a table a language, in the order of their names; or only that of one."""
        languages = {facts.language for facts in self.samples.kinds}
        return [self._table(name) for name in sorted(languages) if language in (None, name)]

    def _table(self, language: str) -> RunTable:
        samples = self.samples.among(language)
        ids = samples.id
        unknown = (None,) * len(ids)
        columns = {metric: tuple(map(of_sample.get, ids)) for metric, of_sample in sorted(self.values.items())}
        return RunTable(
            run=self._info(samples, language),
            sample=ids,
            repo=tuple([facts.repo for facts in samples.facts]),
            level=tuple([facts.level for facts in samples.facts]),
            status=samples.status(self.verdicts, self.run.n, self.marks.keys() if self.exclude else ()),
            metrics={name: column for name, column in columns.items() if any(value is not None for value in column)},
            context_tokens=unknown if self.imported else samples.context_tokens,
            calls=unknown if self.imported else samples.calls,
            seconds=unknown if self.imported else samples.seconds,
            mark=tuple([self.marks.get(id_, "") for id_ in ids]) if self.marks else (),
            costs=self._costs(samples),
        )

    def _costs(self, samples: Planned) -> dict[str, tuple[float | None, ...]]:
        """Return the columns of `harness.results.COSTS`."""
        of_calls = {
            "tokens_in": self.costs.tokens_in,
            "tokens_out": self.costs.tokens_out,
            "tokens_cached": self.costs.tokens_cached,
            "price": self.costs.price,
        }
        unknown = (None,) * len(samples.id)
        return {
            **{
                name: unknown if self.imported else tuple(map(column.get, samples.id))
                for name, column in of_calls.items()
            },
            "strategy_seconds": unknown if self.imported else samples.strategy_seconds,
            "generator_seconds": unknown if self.imported else samples.generator_seconds,
            "test_seconds": unknown if self.imported else self._test_seconds(samples),
        }

    def _test_seconds(self, samples: Planned) -> tuple[float | None, ...]:
        """Return what their tests took: nothing where there was nothing but blanks to test."""
        return tuple(
            self.costs.test_seconds.get(id_, 0.0 if facts.tested and stored else None)
            for id_, facts, stored in zip(samples.id, samples.facts, samples.stored, strict=True)
        )

    def _info(self, samples: Planned, language: str) -> RunInfo:
        run = self.run
        control = is_control(run.strategy)
        return RunInfo(
            id=run.id,
            samples=shown_samples(run),
            samples_digest=run.samples_digest,
            language=language,
            strategy=run.strategy,
            generator=shown_generator(run),
            origin=Origin.IMPORTED if self.imported else Origin.RUN,
            profile=self.profile,
            ranked=not control,
            control=control,
            functions=any(facts.tested for facts in self.samples.kinds),
            completions=run.n,
            # How imported completions were decoded their file does not say.
            sampling="" if self.imported else run.sampling,
            benchmark="+".join(sorted({facts.benchmark for facts in samples.kinds})),
            versions=versions(run),
            loads=() if self.imported else self.loads,
            remarks=self.remarks,
        )
