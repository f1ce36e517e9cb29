"""Measures the significance test within one repository: ``python -m scripts.one_repository HOME``.

Runs two strategies over each repository of the standard set, and writes the rates of false positives and of detected
differences into docs/statistics.md. ``HOME/commits.json`` may contain the last commit of each sample's line, by
repository and sample. ``--tables`` skips the runs.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from ctxbench.bench import samples as sets
from ctxbench.bench import standard
from ctxbench.bench.home import Home
from ctxbench.harness.cli.main import cli
from ctxbench.harness.leaderboard import pairs, power, signflip, stats
from ctxbench.harness.leaderboard.scales import scale_of
from ctxbench.harness.leaderboard.stats import Array, Codes
from ctxbench.harness.metrics import COPY_MODEL
from ctxbench.harness.results import RunTable
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.store import open_reader
from scripts import write_section

PAGE = Path(__file__).resolve().parents[1] / "docs" / "statistics.md"
PER_REPO = 100
STRATEGIES = ("lc.infile", "lc.repocoder(iterations=1)")
METRICS = ("es", "copyable_bits")
SAMPLES = (50, 100, 200)
EFFECTS = {"es": (5.0, 10.0, 20.0), "copyable_bits": (5.0, 10.0, 20.0)}
RUNS, CHUNK = 2_000, 1_000
BOUND = 0.06
"""Maximum allowed rate of false positives at a 5% level."""


@dataclass(frozen=True, kw_only=True)
class Differences:
    """Paired differences of one metric on samples of one repository, and the samples' groups."""

    repo: str
    metric: str
    values: Array
    groups: Mapping[str, Codes]
    """Code of each sample's group, by level: ``sample``, ``file``, ``folder`` (and ``commit`` if known)."""

    def drawn(
        self, unit: str, level: str, samples: int, *, swapped: bool, effect: float, random: np.random.Generator
    ) -> Array:
        """Draw sets of differences with true mean `effect`; return sums by unit, shape (`CHUNK`, units).

        Whole groups of `level` are drawn with replacement, `samples` per set on average. Samples per file are limited
        as in `ctxbench samples build`. `unit` is the unit that the test flips. If `swapped`, the two strategies change
        places in half of the drawn groups, so that neither leads; otherwise the mean is subtracted.
        """
        level_codes, files = self.groups[level], self.groups["file"]
        of_level, of_file = np.bincount(level_codes), np.bincount(files)
        groups = max(len(of_level), round(len(of_level) * samples / len(self.values)))
        larger = groups / len(of_level)
        most = _most_each(of_file, samples / larger)
        taken = np.minimum(of_file, most)
        weights = (taken / of_file)[files]
        centre = 0.0 if swapped else math.fsum((weights * self.values).tolist()) / math.fsum(weights.tolist())
        values = self.values - centre + effect
        order = np.argsort(level_codes, kind="stable")
        starts = np.cumsum(of_level) - of_level
        rank, file_rank = (_ranks(self.groups[name], level_codes) for name in (unit, "file"))
        picked = random.integers(0, len(of_level), size=CHUNK * groups)
        lengths = of_level[picked]
        place = np.repeat(np.arange(len(picked)), lengths)
        inner = np.arange(len(place)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        drawn = order[np.repeat(starts[picked], lengths) + inner]
        keep = _first_each(place * (int(file_rank.max()) + 1) + file_rank[drawn], most, random)
        keep = keep[random.random(len(keep)) < samples / (larger * taken.sum())]
        place, drawn = place[keep], drawn[keep]
        signs = random.choice([-1.0, 1.0], size=len(picked)) if swapped else np.ones(len(picked))
        units = int(rank.max()) + 1
        of_unit = place * units + rank[drawn]
        sums = np.bincount(of_unit, weights=values[drawn] * signs[place], minlength=CHUNK * groups * units)
        return sums.astype(np.float64).reshape(CHUNK, groups * units)

    def leads(
        self, unit: str, level: str, samples: int, *, swapped: bool = False, effect: float = 0.0, runs: int = RUNS
    ) -> tuple[float, float]:
        """Return the shares of sets with a significant difference (5%) below and above 0; arguments as for `drawn`."""
        random = np.random.default_rng(7)
        below = above = 0
        for _ in range(0, runs, CHUNK):
            sums = self.drawn(unit, level, samples, swapped=swapped, effect=effect, random=random)
            found, total = significant(sums), sums.sum(axis=1)
            below += int(np.count_nonzero(found & (total < 0)))
            above += int(np.count_nonzero(found & (total > 0)))
        return below / runs, above / runs

    @property
    def offered(self) -> bool:
        """Whether the board would test differences within this repository, with files as units."""
        names = {str(place): str(code) for place, code in enumerate(self.groups["file"].tolist())}
        return pairs.units_of(dict.fromkeys(names, self.repo), names)[0].noun == "file"


def _most_each(of_file: NDArray[np.intp], samples: float) -> int:
    """Return the smallest limit of samples per file at which all files together have `samples` samples."""
    return next(m for m in itertools.count(1) if np.minimum(of_file, m).sum() >= min(samples, of_file.sum()))


def _ranks(codes: Codes, within: Codes) -> Codes:
    """Return the rank of each code within its group, because repeated draws of a group are separate units."""
    rank = np.zeros_like(codes)
    for group in range(int(within.max()) + 1):
        mine = within == group
        rank[mine] = np.unique(codes[mine], return_inverse=True)[1]
    return rank


def _first_each(keys: Codes, most: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Return the indices of at most `most` random elements of each key."""
    by_key = np.lexsort((random.random(len(keys)), keys))
    place = np.arange(len(keys))
    first = np.concatenate(([True], np.diff(keys[by_key]) > 0))
    return by_key[place - np.maximum.accumulate(np.where(first, place, 0)) < most]


def significant(sums: Array) -> NDArray[np.bool_]:
    """Return for each set (row of sums by unit, 0 for units without a sample) whether its difference is significant."""
    observed, units = np.abs(sums.sum(axis=1)), np.count_nonzero(sums, axis=1)
    if sums.shape[1] > 2 * signflip.EXACT_UP_TO:
        # For many units, random flips approach Student's t, a function of the statistic: see `power`.
        t = np.array([stats.quantile(1 - signflip.ALPHA / 2, max(1, count - 1)) for count in units.tolist()])
        bar = np.sqrt(np.square(sums).sum(axis=1) * units / np.maximum(1, units - 1 + t * t)) * t
        return np.asarray(observed > bar)
    signs = np.concatenate(list(itertools.islice(signflip.flip_signs("one", sums.shape[1]), 4)), axis=1)
    drawn = int(sums.shape[1] > signflip.EXACT_UP_TO)
    bar = observed - signflip.TOLERANCE * np.abs(sums).sum(axis=1)
    hits = np.count_nonzero(np.abs(sums @ signs) >= bar[:, np.newaxis], axis=1)
    return np.asarray((hits + drawn) / (signs.shape[1] + drawn) <= signflip.ALPHA)


LEADS_BEGIN, POWER_BEGIN, END = (
    "<!-- false leads: python -m scripts.one_repository HOME -->\n",
    "<!-- power: python -m scripts.one_repository HOME -->\n",
    "<!-- end -->\n",
)
CASES = (
    ("sample", "file", True),
    ("commit", "file", True),
    ("file", "file", True),
    ("file", "file", False),
    ("file", "folder", False),
)
"""Unit, drawn level, and whether strategies change places."""


def measure(home: Home, names: Sequence[str]) -> None:
    """Build each repository's sample set, and complete missing runs of both strategies."""
    for name in names:
        place = ["--home", str(home.root)]
        if f"one-{name}" not in sets.names(home):
            build = ["samples", "build", f"one-{name}", "--repo", name, "--per-repo", str(PER_REPO), *place]
            cli.main(args=build, standalone_mode=False)
        strategies = [word for strategy in STRATEGIES for word in ("--strategy", strategy)]
        run = ["run", "--samples", f"one-{name}", "--generator", COPY_MODEL, *strategies, "--measure", "scores"]
        cli.main(args=[*run, "--measure", "gain", *place], standalone_mode=False)


def differences(home: Home, names: Sequence[str]) -> Iterator[Differences]:
    """Yield the differences of each metric and repository with two complete runs."""
    noted = home.root / "commits.json"
    commits = json.loads(noted.read_text()) if noted.is_file() else {}
    with open_reader(home.database) as store:
        for name in names:
            tables = list(run_tables(store, samples=f"one-{name}")) if f"one-{name}" in sets.names(home) else []
            whole = {t.run.strategy.partition("(")[0]: t for t in tables if set(map(str, t.status)) == {"scored"}}
            if len(whole.keys() & {"lc.infile", "lc.repocoder"}) == 2:
                groups = _groups(whole["lc.infile"], commits.get(name, {}))
                for metric in METRICS:
                    factor = scale_of("ctxbench", metric).factor
                    other, this = (
                        np.array(whole[of].metrics[metric], dtype=np.float64) for of in ("lc.infile", "lc.repocoder")
                    )
                    yield Differences(repo=name, metric=metric, values=factor * (this - other), groups=groups)


def _groups(table: RunTable, commits: Mapping[str, str]) -> dict[str, Codes]:
    names = {
        "sample": table.sample,
        "file": table.path,
        "folder": [str(PurePosixPath(path).parent) for path in table.path],
    }
    if commits:
        names["commit"] = [commits.get(sample, sample) for sample in table.sample]
    return {name: stats.coded(of) for name, of in names.items()}


def leads_lines(measured: Sequence[Differences]) -> Iterator[str]:
    """Yield the lines of the table of false positives."""
    yield f"| metric | unit | drawn | null | repositories | {' | '.join(f'{n} samples' for n in SAMPLES)} |\n"
    yield f"|---|---|---|---|---:|{'---:|' * len(SAMPLES)}\n"
    for metric, (unit, level, swapped) in itertools.product(METRICS, CASES):
        of_metric = [d for d in measured if d.metric == metric and d.offered and unit in d.groups]
        of_metric = [d for d in of_metric if len(set(d.groups[level].tolist())) >= signflip.LEAST]
        cells = []
        for samples in SAMPLES:
            shares = [sum(d.leads(unit, level, samples, swapped=swapped)) for d in of_metric]
            if unit == "file" and swapped:
                # With so many rates, some exceed the bound by chance.
                again = {d.repo for d, share in zip(of_metric, shares, strict=True) if share > BOUND}
                shares = [
                    sum(d.leads(unit, level, samples, swapped=True, runs=10 * RUNS)) if d.repo in again else share
                    for d, share in zip(of_metric, shares, strict=True)
                ]
            print(metric, unit, level, swapped, samples, {d.repo: s for d, s in zip(of_metric, shares, strict=True)})
            within = sum(share <= BOUND for share in shares)
            cells.append(
                f"{100 * statistics.median(shares):.1f} %, at most {100 * max(shares):.1f} %; {within} of {len(shares)}"
                if shares
                else "-"
            )
        null = "places changed" if swapped else "mean taken away"
        yield f"| {metric} | {unit} | {level}s | {null} | {len(of_metric)} | {' | '.join(cells)} |\n"


def power_lines(measured: Sequence[Differences]) -> Iterator[str]:
    """Yield the lines of the table of power: the share of sets in which the test finds the true difference."""
    yield f"| metric | true difference | {' | '.join(f'{n} samples' for n in SAMPLES)} |\n"
    yield f"|---|---:|{'---:|' * len(SAMPLES)}\n"
    for metric in METRICS:
        of_metric = [d for d in measured if d.metric == metric and d.offered]
        for effect in EFFECTS[metric]:
            cells = []
            for samples in SAMPLES:
                shares = [d.leads("file", "file", samples, effect=effect, runs=CHUNK)[1] for d in of_metric]
                cells.append(
                    f"{100 * statistics.median(shares):.0f} % ({100 * min(shares):.0f} to {100 * max(shares):.0f} %)"
                )
            yield f"| {metric} | {effect:g} | {' | '.join(cells)} |\n"


def spreads(measured: Sequence[Differences]) -> Iterator[str]:
    """Yield a line per metric with the values for `power.WITHIN_ONE`, which are medians over repositories."""
    for metric in METRICS:
        found = [
            power.spread(stats.clustered(d.values, d.groups["file"]))
            for d in measured
            if d.metric == metric and d.offered
        ]
        of = [spread for spread in found if spread]
        between, within = (statistics.median(getattr(s, n) for s in of) ** 0.5 for n in ("between", "within"))
        total = statistics.median(float(np.std(d.values, ddof=1)) for d in measured if d.metric == metric)
        yield f"{metric}: files {between:.1f}, samples {within:.1f} (of {len(of)}); all {total:.1f}\n"


def main(home: Home, *, run: bool = True) -> None:
    """Complete missing runs, then write the tables into docs/statistics.md."""
    names = [manifest.name for manifest in standard.repositories("ctxbench-2")]
    if run:
        measure(home, names)
    measured = list(differences(home, names))
    print(len(measured) // len(METRICS), "repositories,", "".join(spreads(measured)))
    for begin, lines in ((POWER_BEGIN, power_lines), (LEADS_BEGIN, leads_lines)):
        write_section(PAGE, begin, END, "".join(lines(measured)))


if __name__ == "__main__":
    main(Home(Path(sys.argv[1])), run="--tables" not in sys.argv)
