"""Views of CoderEval's samples: strategies see neither the reference nor the other docstring."""

from pathlib import Path

import pytest

from ctxbench.bench.formats import Options
from ctxbench.bench.formats.importing import import_set
from ctxbench.bench.home import Home
from ctxbench.bench.repository import Repository
from ctxbench.bench.samples import SampleSet
from tests.bench.formats.test_codereval import CODE, PYTHON, lines, prompts, result
from tests.helpers.trees import write_tree
from tests.helpers.views import make_view

OTHER = 'def grown(circle):\n    """Return a larger circle."""\n    return circle.area(3)\n'
TREE = {"shapes/round.py": PYTHON, "shapes/more.py": OTHER}


def attached(folder: Path, docstring: str) -> SampleSet:
    write_tree(folder / "repos" / "shapes", TREE)
    files = [lines(folder, "out.jsonl", result()), *prompts(folder)]
    home = Home(folder / "home")
    options = Options(docstring=docstring)
    return import_set("codereval", files, home, "set", repos=folder / "repos", options=options)


def seen(made: SampleSet) -> tuple[Repository, str]:
    """Return the view of the set's only sample, and all text that the view shows."""
    (sample,) = made.samples
    query = sample.query()
    view = make_view(query, TREE, hidden=sample.hidden)
    asked = f"{CODE}\nscale times what math pi radius"
    found = [hit.text for hit in view.search(asked, ranker="bm25", top=50)]
    found += [repr(hit) for hit in view.similar_windows(asked, top=50)]
    return view, "\n".join([*(view.read(path) for path in view.files()), *found, repr(query)])


@pytest.mark.parametrize(
    ("docstring", "shown", "kept"), [("raw", "times what", "how large"), ("human", "how large", "times what")]
)
def test_a_view_shows_the_chosen_docstring_but_no_answer(docstring: str, shown: str, kept: str, tmp_path: Path) -> None:
    _, text = seen(attached(tmp_path, docstring))
    assert shown in text
    assert kept not in text
    assert "self.radius ** 2" not in text
    assert "return circle.area(3)" in text


@pytest.mark.parametrize("docstring", ["raw", "human"])
def test_other_functions_of_the_file_are_found(docstring: str, tmp_path: Path) -> None:
    view, _ = seen(attached(tmp_path, docstring))
    hits = view.search("class Disc area scale return 0", ranker="bm25", top=50)
    assert any("return 0" in hit.text for hit in hits)
    assert "class Disc" in view.read("shapes/round.py")


def test_without_a_repository_the_view_shows_only_the_prompt(tmp_path: Path) -> None:
    files = [lines(tmp_path, "out.jsonl", result()), *prompts(tmp_path)]
    made = import_set("codereval", files, Home(tmp_path / "home"), "set")
    query = made.samples[0].query()
    view = make_view(query, {})
    assert [view.read(path) for path in view.files()] == [query.prefix]
    assert "GENERATED" not in repr(query)
    assert "how large" not in repr(query)
