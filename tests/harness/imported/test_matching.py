"""Records of predictions and the samples of a set: which belong together, and which only have the same number."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import formats
from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.harness.imported.matching import Labels, MatchedRun, match_runs
from tests.helpers.sets import make_set

ANSWER = {"pred_res": "x", "choices": [{"text": "x"}]}


def match(shape: str, lines: list[dict[str, Any]], sample_set: SampleSet) -> list[MatchedRun]:
    form = formats.predictions(shape)
    recorded = form.read((f"p.jsonl:{number}", line) for number, line in enumerate(lines, 1))
    return match_runs(recorded, form, file="p.jsonl", stem="p", labels=Labels(), sample_set=sample_set, language=None)


def exported(shape: str, made: SampleSet) -> list[dict[str, Any]]:
    tasks = formats.tasks(formats.predictions(shape), made.samples, made.references)
    return [{**task, **ANSWER} for task in tasks.values()]


@pytest.mark.parametrize("shape", ["infercom", "projbench", "repocoder"])
def test_numbers_of_another_set_are_refused(tmp_path: Path, shape: str) -> None:
    home = Home(tmp_path)
    made = make_set(home)
    lines = exported(shape, made)
    assert lines[0]["metadata"]["task_id"] == "shop0/0", "a running number, that other sets have too"
    [run] = match(shape, lines, made)
    assert list(run.answers) == [sample.id for sample in made.samples]
    # Another seed chooses other lines of the same repositories.
    other = sets.save(home, "other", made.samples[1:], list(made.references.values())[1:], made.manifest)
    with pytest.raises(InputFault) as caught:
        match(shape, lines, other)
    assert str(caught.value) == (
        f"p.jsonl:1: field metadata.line_no differs from that of {other.samples[0].id!r} in the sample set 'other'; "
        "give --samples the set that the file was made for"
    )


@pytest.mark.parametrize(
    ("shape", "make", "field", "value"),
    [
        ("infercom", make_set, "fpath_tuple", ["shop0", "old.py"]),
        ("infercom", make_set, "line_no", 99),
        ("infercom", make_set, "ground_truth", "apply_tax(cart_0)"),
    ],
)
def test_ids_of_another_version_are_refused(
    tmp_path: Path, shape: str, make: Callable[[Home], SampleSet], field: str, value: object
) -> None:
    made = make(Home(tmp_path))
    lines = exported(shape, made)
    for line, sample in zip(lines, made.samples, strict=True):
        line["metadata"]["task_id"] = sample.id
        line["metadata"]["ground_truth"] += " \r\n"
    assert len(match(shape, lines, made)) == 1, "blanks behind an answer are none of it"
    lines[2]["metadata"][field] = value
    with pytest.raises(InputFault, match=rf"p\.jsonl:3: field metadata\.{field} .*{made.samples[2].id}.*--samples"):
        match(shape, lines, made)


def test_records_that_tell_only_their_id_are_taken(tmp_path: Path) -> None:
    made = make_set(Home(tmp_path))
    lines = [{"metadata": {"task_id": id_}, **ANSWER} for id_ in ("shop0/0", "shop1/0")]
    [run] = match("infercom", lines, made)
    assert list(run.answers) == [made.samples[0].id, made.samples[4].id]
