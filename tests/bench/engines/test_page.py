"""The page on writing an engine: its example runs in a real box, and a user's strategy asks engines."""

import re
from pathlib import Path

import pytest

from ctxbench.bench.engines import conformance, recipe
from ctxbench.bench.home import Home
from ctxbench.sandbox.types import Sandbox
from tests.bench.engines.rooms import attempt, make_set, prompts

PAGE = Path(__file__).resolve().parents[3] / "docs" / "engine.md"
ENGINES = PAGE.parent / "engines"
STRATEGY = """\
from ctxbench import Context, EngineSpec, Query, Repository, Snippet, strategy


@strategy("asks")
def asks(query: Query, repo: Repository, *, engine: EngineSpec = "ripgrep", other: str = "") -> Context:
    hits = repo.engine(other or engine).search(query.prefix, top=3)
    return Context.ranked(
        Snippet(path=h.place.path, text=h.text, start=h.place.start, end=h.place.end, score=h.score) for h in hits
    )
"""


def example(folder: Path) -> Path:
    [code] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    file = folder / "nearest.py"
    file.write_text(code)
    return file


def test_the_page_on_writing_an_engine_is_short() -> None:
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= 100


def test_every_recipe_is_short_and_pins_its_versions() -> None:
    for file in ENGINES.glob("*.toml"):
        assert len(file.read_text(encoding="utf-8").splitlines()) <= 25, file
        read = recipe.read(str(file))
        # Requirements that only bound the SDK or one of its parts need no exact version.
        assert any("==" in text for text in read.requirements) and read.summary, file


@pytest.mark.network
def test_the_pages_example_passes_the_check_and_runs(tmp_path: Path, bubblewrap_sandbox: Sandbox) -> None:
    spec = f"{example(tmp_path)}@Nearest"
    read = recipe.read(spec)
    assert read.requirements == ("rapidfuzz>=3",) and read.summary == "Lines most like the last one."
    findings = list(conformance.check(read, bubblewrap_sandbox))
    assert len(findings) == 7 and all(finding.passed for finding in findings), findings
    assert attempt(tmp_path, bubblewrap_sandbox, f"{spec}(window=3)").scored == 3
    assert all("zq_amount" in prompt for prompt in prompts(tmp_path).values())


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(
    "spec", ["ripgrep", "jedi", "tantivy", "repomap", str(ENGINES / "code-index.toml"), str(ENGINES / "mcp-grep.toml")]
)
def test_every_shipped_engine_passes_the_check(spec: str, bubblewrap_sandbox: Sandbox) -> None:
    findings = list(conformance.check(recipe.read(spec), bubblewrap_sandbox))
    assert len(findings) == 7 and all(finding.passed for finding in findings), findings
    assert findings[-2].detail == "the same places, from an updated base"


@pytest.mark.network
@pytest.mark.slow
def test_an_engine_passes_the_check_in_docker_too(docker_sandbox: Sandbox) -> None:
    findings = list(conformance.check(recipe.read("repomap"), docker_sandbox))
    assert len(findings) == 7 and all(finding.passed for finding in findings), findings


@pytest.mark.slow
def test_a_strategy_can_ask_only_the_engines_named_in_its_parameters(
    tmp_path: Path, bubblewrap_sandbox: Sandbox
) -> None:
    home = Home(tmp_path / "home")
    make_set(home)
    (tmp_path / "mine.py").write_text(STRATEGY)
    own = f"{tmp_path / 'mine.py'}@asks(engine=repomap)"
    assert attempt(tmp_path, bubblewrap_sandbox, "", home=home, strategy=own).scored == 3
    other = f"{tmp_path / 'mine.py'}@asks(engine=repomap, other=jedi)"
    summary = attempt(tmp_path, bubblewrap_sandbox, "", home=home, strategy=other)
    assert summary.missing == 3 and "but has no parameter with this engine" in summary.faults[0].message


@pytest.mark.slow
def test_a_wrapper_runs_over_an_engine(tmp_path: Path, bubblewrap_sandbox: Sandbox) -> None:
    strategy = "aim(engine(repomap), encoder=bm25)"
    assert attempt(tmp_path, bubblewrap_sandbox, "", strategy=strategy).scored == 3
    # The first part is the engine's, the second the wrapper's.
    assert any(re.search("relevant code fragments.*APIs that may", text, re.S) for text in prompts(tmp_path).values())
