"""The tasks that belong to each format of predictions."""

from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import formats
from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Cursor
from tests.helpers.functions import make_function_set
from tests.helpers.sets import make_set


def task_lines(shape: str, made: SampleSet) -> dict[str, dict[str, Any]]:
    return formats.tasks(formats.predictions(shape), made.samples, made.references)


def test_predictions_with_the_sets_own_ids_need_no_tasks(tmp_path: Path) -> None:
    made = make_set(Home(tmp_path))
    assert task_lines("ctxbench", made) == task_lines("codereval", made) == {}


@pytest.mark.parametrize("shape", ["crosscodeeval", "infercom", "projbench", "repocoder"])
def test_every_sample_has_a_task_with_a_unique_id(tmp_path: Path, shape: str) -> None:
    made = make_set(Home(tmp_path))
    tasks = task_lines(shape, made)
    assert list(tasks) == [sample.id for sample in made.samples]
    assert len({task["metadata"]["task_id"] for task in tasks.values()}) == len(tasks)


def test_repoeval_keeps_its_own_lines(tmp_path: Path) -> None:
    own = make_set(Home(tmp_path), benchmark="repoeval", cursor=Cursor(line=2, column=0), prefix="a\nb\n")
    first = next(iter(task_lines("repocoder", own).values()))["metadata"]
    assert first["task_id"] == own.samples[0].id and first["line_no"] == 2 and "col" not in first
    assert "col" in next(iter(task_lines("infercom", own).values()))["metadata"]


@pytest.mark.parametrize("shape", ["infercom", "repocoder"])
def test_function_samples_are_refused_by_line_formats(tmp_path: Path, shape: str) -> None:
    with pytest.raises(InputFault, match="function sample"):
        task_lines(shape, make_function_set(Home(tmp_path)))
