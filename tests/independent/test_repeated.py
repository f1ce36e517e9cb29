"""Rows of several runs: values and variance components are checked against a recomputation from the stored rows.

Here the components solve three equations. Each sum of squares is a quadratic form of all answers. Its expectation is
a sum of traces, one for each source of variance.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.independent import recomputing as again
from tests.independent.drawing import Made
from tests.independent.inserting import GREEDY, Rows
from tests.independent.test_recomputed import board, check_difference, empty, near

__all__ = ["empty"]
NAMES = ("lc.infile", "lc.repocoder")
Answers = Mapping[str, list[float]]


class Pooled(again.Run):
    """Runs of several seeds, with the interface of a single `Run`."""

    def __init__(self, runs: list[again.Run]) -> None:
        self.runs = runs
        self.repo = runs[0].repo
        self.strategy = runs[0].strategy

    def answers(self, metric: str) -> Answers:
        """Return sample -> its value in each run that has one."""
        values = [run.values(metric) for run in self.runs]
        return {id_: some for id_ in self.repo if (some := [of[id_] for of in values if id_ in of])}

    def values(self, metric: str) -> dict[str, float]:
        return {id_: sum(some) / len(some) for id_, some in self.answers(metric).items()}


def components(answers: Answers, repo: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    """Return source -> the variance of its effect, and its part in the variance of the mean over samples."""
    samples = sorted(answers)
    names = sorted({repo[one] for one in samples})
    y = np.array([value for one in samples for value in answers[one]])
    of_sample = np.array([[float(one == other) for other in samples] for one in samples for _ in answers[one]])
    of_repo = of_sample @ np.array([[float(repo[one] == name) for name in names] for one in samples])
    effects = {"repositories": of_repo, "samples": of_sample, "repetition": np.eye(len(y))}
    means = (of_sample / of_sample.sum(axis=0)).T
    within = (of_sample.T @ of_repo > 0).astype(float)
    of_own_repo = within @ (within / within.sum(axis=0)).T @ means
    centre = means.mean(axis=0)
    residuals = np.eye(len(y)) - of_sample @ means
    forms = [form.T @ form for form in (of_own_repo - centre, means - of_own_repo, residuals)]
    covariances = [effect @ effect.T for effect in effects.values()]
    expected = np.array([[np.sum(form * covariance) for covariance in covariances] for form in forms])
    kept = [at for at, form in enumerate(forms) if np.abs(form).max() > 1e-9]
    solved = np.linalg.solve(expected[np.ix_(kept, kept)], [y @ forms[at] @ y for at in kept])
    sources = list(effects)
    return {sources[at]: (x, float(centre @ covariances[at] @ centre)) for at, x in zip(kept, solved, strict=True)}


@pytest.mark.parametrize("seed", range(6))
def test_a_row_of_several_runs_equals_a_recomputation(empty: Path, tmp_path: Path, seed: int) -> None:
    path = Path(shutil.copy(empty, tmp_path / "results.db"))
    made = Made(seed)
    made.n, made.flat = 1, None
    # The repositories differ in skill and in their number of samples.
    repos = made.draw.choice((2, 5, 7))
    made.samples = [
        replace(made._sample(at, repos), repo=f"r{min(made.draw.randrange(repos) for _ in '12')}") for at in range(24)
    ]
    skills = {(name, f"r{at}"): made.draw.random() for name in NAMES for at in range(repos)}
    repo_of = {one.id: one.repo for one in made.samples}
    rows = Rows(path)
    rows.samples(made.samples)
    for strategy, count in zip(NAMES, (4, made.draw.choice((1, 3))), strict=True):
        for at in range(count):
            kept = [one for one in repo_of if made.draw.random() >= 0.15]
            done = {one: made.done(skills[strategy, repo_of[one]]) for one in kept}
            sampling = json.dumps({**GREEDY, "temperature": 0.8, "seed": at})
            rows.run(f"{strategy}{at}", list(repo_of), done, strategy=strategy, seed=at, sampling=sampling)
    rows.close()
    runs = again.read(path)
    of_language: dict[str, dict[str, tuple[dict[str, Any], Pooled]]] = {}
    for record in board(path):
        members = [runs[id_, record["language"]] for id_ in record["repetitions"] or [record["run"]]]
        of_language.setdefault(record["language"], {})[record["strategy"]] = record, Pooled(members)
    assert of_language
    for named in of_language.values():
        for record, row in named.values():
            check(record, row)
        record, row = named["lc.repocoder"]
        for metric, difference in record["difference"].items():
            check_difference(difference, row, named["lc.infile"][1], metric)


def check(record: dict[str, Any], row: Pooled) -> None:
    """Compare counts, means, intervals and variance components of a row."""
    completed = [set(run.counts) for run in row.runs]
    counting = set[str]().union(*completed)
    assert (record["n"], record["runs"]) == (len(counting), len(row.runs) if len(row.runs) > 1 else None)
    assert record["answers"]["missing"] == sum(len(counting - of) for of in completed)
    worst = [one for one in counting if all(one in run.failed for run in row.runs if one in run.counts)]
    assert record["model_failed"] == len(worst)
    for metric in sorted({name for run in row.runs for name in run.metrics()}):
        values = row.values(metric)
        expected = again.estimate(values, row.repo, again.bounds(metric))
        assert {name: record[metric][name] for name in expected} == {name: near(x) for name, x in expected.items()}
        answers = row.answers(metric)
        if all(len(some) < 2 for some in answers.values()):
            assert metric not in record["variance"]
            continue
        parts, split = record["variance"][metric], components(answers, row.repo)
        assert set(parts) == set(split)
        of_mean = {name: max(0.0, x) * weight for name, (x, weight) in split.items()}
        for name, (x, _) in split.items():
            assert parts[name]["deviation"] == pytest.approx(max(0.0, x) ** 0.5, rel=1e-4, abs=2e-3)
            assert parts[name]["share"] == pytest.approx(of_mean[name] / (sum(of_mean.values()) or 1.0), abs=2e-5)
            assert parts[name]["negative"] == (x < -1e-7) or abs(x) < 1e-6
