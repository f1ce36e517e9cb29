"""Compare across generators: a model beside another, and beside itself when it also sees what follows the cursor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctxbench.bench.home import Home
from ctxbench.harness.generators import base
from ctxbench.harness.generators.base import Capabilities
from ctxbench.harness.generators.fim import Template, family
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.run.spec import RunOptions
from tests.dashboard.browser import app
from tests.dashboard.stored import make_runs
from tests.dashboard.test_compare_page import comparison, page_text, query_of, stored
from tests.dashboard.test_leaderboard import drawn_table
from tests.helpers.sets import make_set

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.slow
OTHER = base.canonical("openai:other@http://127.0.0.1:1/v1")
"""The name of a second model; nobody asks there."""


class _Middle(Scripted):
    """A model with marks for what follows the cursor."""

    capabilities = Capabilities(batch_size=16, instructs=True, fills=True)

    def infilling(self) -> Template:
        return family("qwen", where="test")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a home with one set and four runs: two strategies, one of them by three generators."""
    home = Home(Path(tmp_path_factory.mktemp("models")) / "home")
    sample_set = make_set(home, repos=6, per_repo=2, suffix="def refund(rate):\n    return rate\n")
    middle = _Middle(lambda request: "apply_tax(cart_0, rate)", version="1")
    make_runs(home, sample_set, middle, ("lc.infile", "lc.repocoder"), generator="scripted")
    make_runs(home, sample_set, middle, ("lc.infile",), generator="scripted", choices=RunOptions(fim=True))
    other = Scripted(lambda request: "nothing", version="1")
    make_runs(home, sample_set, other, ("lc.infile",), generator=OTHER)
    return home


def test_runs_of_any_generator_are_offered_and_paired_by_sample(models: Home) -> None:
    ids = {(row["strategy"], row["generator"]): row["run"] for row in stored(models, "demo")}
    assert set(ids) == {
        ("lc.infile", "scripted"),
        ("lc.repocoder", "scripted"),
        ("lc.infile", "scripted [fim]"),
        ("lc.infile", OTHER),
    }
    page = app("compare", models.root, samples="demo", metric="es")
    assert not page.exception and not page.error
    # Unasked two strategies of one model; every other run can be chosen.
    assert names(page) == ["lc.repocoder · scripted"] or names(page) == ["lc.repocoder"]
    assert query_of(page)["first"] == [ids["lc.infile", "scripted"]]
    [options] = [box.options for box in page.multiselect if box.label == "Compared with it"]
    assert {option.rpartition(" · ")[0] for option in options} == {
        "lc.repocoder · scripted",
        "lc.infile · scripted [fim]",
        f"lc.infile · {OTHER}",
    }


def test_a_model_beside_another_and_beside_itself_with_what_follows(models: Home) -> None:
    ids = {(row["strategy"], row["generator"]): row["run"] for row in stored(models, "demo")}
    first, *others = (
        ids[run] for run in (("lc.repocoder", "scripted"), ("lc.infile", "scripted [fim]"), ("lc.infile", OTHER))
    )
    page = app("compare", models.root, samples="demo", metric="es", first=first, runs=others)
    assert not page.exception and not page.error
    rows, printed = drawn_table(page), comparison(models, [first, *others], "es")
    assert names(page) == ["lc.infile · scripted [fim]", f"lc.infile · {OTHER}"]
    for row, record in zip(rows, printed, strict=True):
        assert [row[name] for name in ("better", "equal", "worse")] == [
            str(record["difference"][name]) for name in ("wins", "ties", "losses")
        ]
        assert row["common"] == "12"
    text = page_text(page)
    assert text.count("strategy and generator both differ from the baseline") == 2
    alone = app("compare", models.root, samples="demo", metric="es", first=others[0], runs=others[1])
    assert "differ from the baseline" not in page_text(alone), (
        "of one strategy the generator alone makes the difference"
    )


def test_a_filter_of_generators_is_a_filter(models: Home) -> None:
    page = app("compare", models.root, samples="demo", generator=OTHER)
    assert not page.exception and "two runs over the same sample set" in page_text(page)
    both = app("compare", models.root, samples="demo", metric="es", generator=[OTHER, "scripted [fim]"])
    # Neither has another strategy: the one stands beside itself, by the other.
    assert {*names(both)} < {"lc.infile · scripted [fim]", f"lc.infile · {OTHER}"} and len(names(both)) == 1


def names(page: AppTest) -> list[str]:
    """Return what is compared with the baseline."""
    return [row["strategy"] for row in drawn_table(page)]
