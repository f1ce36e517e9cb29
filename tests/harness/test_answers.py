"""One reference is read from the run's own set without loading the others."""

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.samples import answered_task
from ctxbench.bench.types import Reference
from tests.helpers.samples import make_sample
from tests.helpers.sets import make_set


def test_a_sample_is_found_with_its_reference(home: Home) -> None:
    made = make_set(home)
    for sample in made.samples:
        task = answered_task(home, "demo", made.digest, sample.id)
        assert task is not None
        assert (task.prefix, task.target) == (sample.prefix, made.references[sample.id].target)
        assert task.has_answer and not task.tests
    assert answered_task(home, "demo", made.digest, "none") is None


def test_a_set_is_found_by_digest_and_not_by_name(home: Home) -> None:
    made = make_set(home, name="kept")
    other = make_set(home, name="demo", per_repo=1)
    sample = made.samples[0].id
    assert answered_task(home, "demo", made.digest, sample) is not None, "it is here under another name"
    assert answered_task(home, "demo", "0" * 64, sample) is None
    assert answered_task(home, "demo", other.digest, made.samples[-1].id) is None
    assert answered_task(Home(home.root / "nowhere"), "demo", made.digest, sample) is None
    assert answered_task(home, "../demo", made.digest, sample) is not None, "names are looked up, never joined to paths"


def test_a_changed_set_is_refused(home: Home) -> None:
    made = make_set(home)
    sample = made.samples[0].id
    assert answered_task(home, "demo", made.digest, sample) is not None
    file = home.samples / "demo" / "references.jsonl"
    file.write_text(file.read_text().replace("apply_tax", "apply_all"))
    with pytest.raises(InputFault, match="was changed after it was built"):
        answered_task(home, "demo", made.digest, sample)
    file.write_text("[]\n")
    with pytest.raises(InputFault, match="was changed after it was built"):
        answered_task(home, "demo", made.digest, sample)


def test_a_damaged_manifest_is_skipped(home: Home) -> None:
    made = make_set(home)
    (home.samples / "broken").mkdir()
    (home.samples / "broken" / "manifest.json").write_text("{")
    assert answered_task(home, "broken", made.digest, made.samples[0].id) is not None


def test_unusual_ids_and_texts_are_read_unchanged(home: Home) -> None:
    target = 'x = "\u2028\\"\n\x85 \U0001f600'
    strange = make_sample(id='a "quoted\\" \u2028 id \U0001f600\n', signature="def f():", docstring="Do it.")
    reference = Reference(id=strange.id, target=target, tests=("t",), fields={"no_reference": True})
    plain, answer = make_sample(id="b"), Reference(id="b", target="")
    made = sets.save(home, "demo", [strange, plain], [reference, answer], {"repositories": {}})
    task = answered_task(home, "demo", made.digest, strange.id)
    assert task is not None and (task.target, task.tests, task.has_answer) == (target, ("t",), False)
    assert (task.signature, task.docstring) == ("def f():", "Do it.")
