"""Compare across generators: a model beside another, and beside itself when it also sees what follows the cursor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctxbench.bench.home import Home
from ctxbench.harness.generators import registry
from ctxbench.harness.generators.fim import Template, family
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.runner import RunOptions
from tests.dashboard.browser import app
from tests.dashboard.stored import make_runs
from tests.dashboard.test_compare_page import frame, query_of, said, stored, told
from tests.helpers.sets import make_set

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.slow
OTHER = registry.canonical("openai:other@http://127.0.0.1:1/v1")
"""The name of a second model; nobody asks there."""


class _Middle(Scripted):
    """A model with marks for what follows the cursor."""

    def infilling(self) -> Template:
        return family("qwen", where="test")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a home with one set and four runs: two strategies, one of them by three generators."""
    home = Home(Path(tmp_path_factory.mktemp("models")) / "home")
    made = make_set(home, repos=6, per_repo=2, suffix="def refund(rate):\n    return rate\n")
    middle = _Middle(lambda request: "apply_tax(cart_0, rate)", version="1")
    make_runs(home, made, middle, ("lc.infile", "lc.repocoder"), generator="scripted")
    make_runs(home, made, middle, ("lc.infile",), generator="scripted", choices=RunOptions(fim=True))
    other = Scripted(lambda request: "nothing", version="1")
    make_runs(home, made, other, ("lc.infile",), generator=OTHER)
    return home


def test_runs_of_any_generator_are_offered_and_paired_by_sample(models: Home) -> None:
    ids = {(row["strategy"], row["generator"]): row["run"] for row in stored(models, "demo")}
    assert set(ids) == {
        ("lc.infile", "scripted"),
        ("lc.repocoder", "scripted"),
        ("lc.infile", "scripted [fim]"),
        ("lc.infile", OTHER),
    }
    shown = app("compare", models.root, samples="demo", metric="es")
    assert not shown.exception and not shown.error
    # Unasked two strategies of one model; every other run can be chosen.
    assert frame(shown, "p")[0]["strategy"] == "lc.repocoder" and len(frame(shown, "p")) == 1
    assert query_of(shown)["first"] == [ids["lc.infile", "scripted"]]
    [options] = [one.options for one in shown.multiselect if one.label == "Compared with it"]
    assert {one.rpartition(" · ")[0] for one in options} == {
        "lc.repocoder · scripted",
        "lc.infile · scripted [fim]",
        f"lc.infile · {OTHER}",
    }


def test_a_model_beside_another_and_beside_itself_with_what_follows(models: Home) -> None:
    ids = {(row["strategy"], row["generator"]): row["run"] for row in stored(models, "demo")}
    first, *others = (
        ids[one] for one in (("lc.repocoder", "scripted"), ("lc.infile", "scripted [fim]"), ("lc.infile", OTHER))
    )
    shown = app("compare", models.root, samples="demo", metric="es", first=first, runs=others)
    assert not shown.exception and not shown.error
    rows, wanted = frame(shown, "p"), told(models, [first, *others], "es")
    assert names(shown) == ["lc.infile · scripted [fim]", f"lc.infile · {OTHER}"]
    for row, one in zip(rows, wanted, strict=True):
        assert (row["better"], row["equal"], row["worse"]) == tuple(
            one["difference"][name] for name in ("wins", "ties", "losses")
        )
        assert row["common"] == 12
    text = said(shown)
    assert text.count("strategy and generator differ from the baseline") == 2
    alone = app("compare", models.root, samples="demo", metric="es", first=others[0], runs=others[1])
    assert "differ from the baseline" not in said(alone), "of one strategy the generator alone makes the difference"


def test_a_filter_of_generators_is_a_filter(models: Home) -> None:
    shown = app("compare", models.root, samples="demo", generator=OTHER)
    assert not shown.exception and "two runs of one sample set" in said(shown)
    both = app("compare", models.root, samples="demo", metric="es", generator=[OTHER, "scripted [fim]"])
    # Neither has another strategy: the one stands beside itself, by the other.
    assert {*names(both)} < {"lc.infile · scripted [fim]", f"lc.infile · {OTHER}"} and len(names(both)) == 1


def names(shown: AppTest) -> list[str]:
    """Return what is compared with the baseline."""
    return [row["strategy"] for row in frame(shown, "p")]
