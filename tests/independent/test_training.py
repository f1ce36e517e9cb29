"""The training data of the built-in model contains none of the benchmark's repositories."""

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = ROOT / "harness" / "generators" / "incontext"


def plain(name: str) -> str:
    """Return a project's name in a form that is equal for different package indexes."""
    return re.sub(r"[-_.]+", "-", name.lower()).removeprefix("lib").removesuffix("-java")


def measured() -> set[str]:
    """Return all names of the built-in repositories: their own, their packages', and those in their addresses."""
    found: set[str] = set()
    for file in (ROOT / "bench" / "repos").rglob("*.toml"):
        manifest = tomllib.loads(file.read_text("utf-8"))
        found.add(plain(manifest["name"].removeprefix("codereval-")))
        for source in manifest["source"]:
            found |= {plain(source[key].rpartition("/")[2]) for key in ("name", "url") if key in source}
    return found


def test_the_built_in_model_is_not_trained_on_benchmark_repositories() -> None:
    measured_on = measured()
    assert {"commons-lang3", "commons-lang", "fasta2a", "python-dateutil"} <= measured_on
    for language in ("python", "java"):
        shipped = json.loads((WEIGHTS / f"weights-{language}.json").read_text("utf-8"))
        learnt = {plain(one["name"]) for one in shipped["sources"]}
        assert len(learnt) > 5 and not learnt & measured_on, learnt & measured_on
