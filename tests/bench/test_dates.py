"""The day of a sample's code: the day of its line if known, otherwise the day of the repository's release."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import records, samples, standard
from ctxbench.bench.dates import dates_of, last_day, read_date
from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.repositories import manifest
from ctxbench.bench.samples import SampleSet
from tests.helpers.samples import make_reference, make_sample
from tests.helpers.sets import make_set


def set_of(*sample: Any, **repositories: dict[str, Any]) -> SampleSet:
    return SampleSet("demo", "d", sample, {}, {"repositories": repositories})


@pytest.mark.parametrize("text", ["2024-13", "2024-00", "2024-2", "2024", "0000-01", "2024-02-30", ""])
def test_a_month_means_its_last_day(text: str) -> None:
    assert (last_day("2024-02"), last_day("2023-02"), last_day("2023-12")) == (
        date(2024, 2, 29), date(2023, 2, 28), date(2023, 12, 31),
    )  # fmt: skip
    assert last_day("2024-02-03") == date(2024, 2, 3)
    with pytest.raises(ValueError, match="is not a date"):
        last_day(text)


@pytest.mark.parametrize("text", ["2024-02-30", "20240601", "2024-W22-6", "2024-6-1", "٢٠٢٤-٠٦-٠١", "", "now"])
def test_a_day_has_only_one_valid_spelling(text: str) -> None:
    assert read_date("2024-06-01") == date(2024, 6, 1)
    with pytest.raises(ValueError, match="is not a date"):
        read_date(text)


def test_a_sample_has_its_own_day_or_the_day_of_the_release() -> None:
    own = make_sample(id="own", dated=date(2025, 3, 4))
    released, unknown = make_sample(id="released"), make_sample(id="unknown", repo="other")
    sample_set = set_of(own, released, unknown, demo={"released": "2024-06-01"}, other={"version": "1"})
    assert dates_of(sample_set) == {"own": date(2025, 3, 4), "released": date(2024, 6, 1)}


def test_an_imported_standard_set_has_the_days_of_its_manifests() -> None:
    sample = make_sample(repo="mistune")
    imported = SampleSet(
        "mine", standard.load("ctxbench-2-lite").digests["line"], (sample,), {}, {"repositories": {"mistune": {}}}
    )
    assert dates_of(imported) == {sample.id: manifest.load("mistune").released}
    assert dates_of(replace(imported, digest="d")) == {}


def test_an_invalid_day_of_a_set_is_a_fault_with_a_fix() -> None:
    with pytest.raises(InputFault, match=r"repositories\.demo\.released: 'soon' is not a date") as caught:
        dates_of(set_of(make_sample(), demo={"released": "soon"}))
    assert "build the set again" in str(caught.value)


def test_a_record_contains_a_day_only_if_it_is_known(tmp_path: Path) -> None:
    plain = make_sample()
    assert "dated" not in records.from_sample(plain)
    dated = replace(plain, dated=date(2025, 3, 4))
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps(records.from_sample(dated)) + "\n")
    assert list(records.read_samples(path)) == [dated]
    path.write_text(path.read_text().replace("2025-03-04", "2025-03-34"))
    with pytest.raises(InputFault, match="field dated"):
        list(records.read_samples(path))


def test_release_days_in_the_manifest_do_not_change_the_set(tmp_path: Path) -> None:
    home = Home(tmp_path)
    sample_set = make_set(home)
    entries = {name: entry | {"released": "2024-06-01"} for name, entry in sample_set.manifest["repositories"].items()}
    account = {key: value for key, value in sample_set.manifest.items() if key not in ("format", "samples", "files")}
    references = [sample_set.references[sample.id] for sample in sample_set.samples]
    again = samples.save(home, sample_set.name, sample_set.samples, references, account | {"repositories": entries})
    assert again.digest == sample_set.digest and set(dates_of(again).values()) == {date(2024, 6, 1)}
    with pytest.raises(InputFault, match="--force"):
        samples.save(home, sample_set.name, [make_sample()], [make_reference()], account)
