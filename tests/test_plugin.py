"""The docs' example packages with a strategy, a metric, a generator and a format are installed, run and ranked."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
from sqlalchemy import text

from ctxbench.bench.home import Home
from ctxbench.harness.store import open_store
from tests.helpers.cli import run_cli
from tests.helpers.sets import make_set

PACKAGE, ALONE = ("nearest_functions.py", "pyproject.toml"), "guess_first.py"
"""The files of the page's package, and the page's file that needs no package."""
DOCS = Path(__file__).resolve().parents[1] / "docs"


def files_of_the_page(name: str = "strategy.md") -> dict[str, str]:
    """Return name -> text of the files that a page shows."""
    page = (DOCS / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^```(?:python|toml)\n# ([\w.-]+)\n(.*?)^```", page, re.S | re.M))


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create an environment that includes this one, install the packages in it and return its folder of programs."""
    folder = tmp_path_factory.mktemp("outside")
    place = folder / "venv"
    strategy = {name: files_of_the_page()[name] for name in PACKAGE}
    pages = {"metric": "metric.md", "generator": "generator.md", "format": "benchmark.md"}
    packages = {"strategy": strategy, **{kind: files_of_the_page(page) for kind, page in pages.items()}}
    for package, files in packages.items():
        (folder / package).mkdir()
        for name, content in files.items():
            (folder / package / name).write_text(content, encoding="utf-8")
    # The path file below also provides pip.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True, capture_output=True)
    python = place / "bin" / "python"
    # A path file adds this environment, with its own path files. Only build requirements are then downloaded.
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    theirs = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.strip()
    ours = sysconfig.get_path("purelib")
    Path(theirs, "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n", encoding="utf-8")
    # The first package is installed with its build requirements. The others have the same ones and reuse them.
    needs = [tomllib.loads(files["pyproject.toml"])["build-system"]["requires"] for files in packages.values()]
    assert all(each == needs[0] for each in needs)
    first, *others = (str(folder / name) for name in packages)
    for arguments in ([first, *needs[0]], ["--no-build-isolation", *others]):
        command = [python, "-m", "pip", "install", "--no-deps", *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return place / "bin"


def ctxbench(scripts: Path, *arguments: str, home: Path | None = None) -> str:
    """Run `ctxbench` in the fresh environment; return what it prints."""
    environment = {**os.environ, "CTXBENCH_HOME": str(home)}
    command = [str(scripts / "python"), "-c", "from ctxbench.harness.cli.main import main; main()", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=scripts)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_strategy_page_shows_a_short_package() -> None:
    files = files_of_the_page()
    assert set(files) == {*PACKAGE, ALONE}
    code = [line for line in files["nearest_functions.py"].splitlines() if line.strip()]
    assert len(code) <= 15 and "repo.search(" in files["nearest_functions.py"]


@pytest.mark.slow
def test_the_pages_strategy_that_asks_the_model_can_be_checked_and_run(tmp_path: Path) -> None:
    file, home = tmp_path / ALONE, Home(tmp_path / "home")
    file.write_text(files_of_the_page()[ALONE], encoding="utf-8")
    checked = run_cli("strategy", "check", f"{file}@demo.guess", "--home", str(home.root))
    assert checked.code == 0 and checked.out.endswith("\n10 of 10 checks passed\n"), checked
    make_set(home, repos=2, per_repo=1)
    spec = f"{file}@demo.guess(top=3)"
    asked = ["--samples", "demo", "--strategy", spec, "--generator", "incontext", "--home", str(home.root)]
    ran = run_cli("run", *asked)
    assert ran.code == 0 and "scored 2  model-failed 0  missing 0" in ran.out, ran
    with open_store(home.database) as store, store.reading() as connection:
        assert set(connection.execute(text("SELECT role FROM call")).scalars()) == {"guess", "final"}


@pytest.mark.network
@pytest.mark.slow
def test_an_installed_strategy_is_listed_shown_and_passes_the_check(scripts: Path) -> None:
    listed = ctxbench(scripts, "strategy", "list", "demo.nearest")
    assert re.search(r"demo\.nearest +Show the functions most like the last lines before the cursor\.", listed)
    shown = ctxbench(scripts, "strategy", "show", "demo.nearest")
    assert "nearest_functions.py (version " in shown and "  top = 3  (a whole number)" in shown
    lines = ctxbench(scripts, "strategy", "check", "demo.nearest").splitlines()
    assert lines[-1] == f"{len(lines) - 1} of {len(lines) - 1} checks passed"


@pytest.mark.network
@pytest.mark.slow
def test_an_installed_strategy_runs_and_is_ranked_beside_a_built_in(scripts: Path, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    make_set(home, repos=2, per_repo=3)
    chosen = ["--strategy", "lc.infile", "--strategy", "demo.nearest(top=2)"]
    printed = ctxbench(scripts, "run", "--samples", "demo", *chosen, "--generator", "incontext", home=home.root)
    assert printed.count("scored 6  model-failed 0  missing 0") == 2
    rows = json.loads(ctxbench(scripts, "leaderboard", "--samples", "demo", "--format", "json", home=home.root))
    ranks = {row["strategy"]: (row["rank_low"], row["rank_high"]) for row in rows}
    assert set(ranks) == {"lc.infile", "demo.nearest(top=2)"} and all(all(rank) for rank in ranks.values())
    gains = {row["strategy"]: row["copyable_bits"]["mean"] for row in rows}
    assert gains["demo.nearest(top=2)"] > gains["lc.infile"]


@pytest.mark.network
@pytest.mark.slow
def test_the_pages_metric_scores_and_ranks_a_stored_run(scripts: Path, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    made = make_set(home, repos=2, per_repo=3)
    for strategy, answer in (("right", "{}"), ("wrong", "{} + 100000")):
        file = tmp_path / f"{strategy}.jsonl"
        lines = [{"sample": id_, "text": answer.format(one.target)} for id_, one in made.references.items()]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        named = ["--samples", "demo", "--strategy", strategy, "--generator", "model", "--home", str(home.root)]
        # The test's own environment, which lacks the package, stores the run.
        assert run_cli("results", "import", "--format", "ctxbench", str(file), *named).code == 0
    board = ["leaderboard", "--profile", "edits"]
    assert "`ctxbench rescore --profile edits`" in ctxbench(scripts, *board, home=home.root)
    assert ctxbench(scripts, "rescore", home=home.root).count("edits  scored 6\n") == 2
    printed = ctxbench(scripts, *board, "--explain", home=home.root)
    assert "Ranked by edits (edits, lower is better;" in printed and "edits %" not in printed
    rows = json.loads(ctxbench(scripts, *board, "--format", "json", home=home.root))
    assert [(row["strategy"], row["edits"]["mean"]) for row in rows] == [("right", 0.0), ("wrong", 9.0)]


@pytest.mark.network
@pytest.mark.slow
def test_the_pages_generator_is_checked_run_and_ranked(scripts: Path, tmp_path: Path) -> None:
    spec, home = "demo.before(back=2)", Home(tmp_path / "home")
    assert "demo.before(back=1, window=0, batch=8)" in ctxbench(scripts, "generator", "list")
    checked = ctxbench(scripts, "generator", "check", spec)
    assert "pass  counts tokens" in checked and "\n7 of 7 checks passed\n" in checked
    make_set(home, repos=2, per_repo=3)
    asked = ["--samples", "demo", "--strategy", "lc.infile", "--generator"]
    printed = ctxbench(scripts, "run", *asked, "demo.before(back=2, batch=2)", home=home.root)
    assert "scored 6  model-failed 0  missing 0" in printed
    # The batch size does not affect results, so this is the same run, and it is complete.
    assert "scored 6" in ctxbench(scripts, "run", *asked, spec, home=home.root)
    [row] = json.loads(ctxbench(scripts, "leaderboard", "--samples", "demo", "--format", "json", home=home.root))
    assert (row["generator"], row["strategy"]) == (spec, "lc.infile")


@pytest.mark.network
@pytest.mark.slow
def test_the_pages_format_imports_and_exports_samples_and_predictions(scripts: Path, tmp_path: Path) -> None:
    repository = tmp_path / "repositories" / "shop"
    repository.mkdir(parents=True)
    (repository / "tax.py").write_text("RATE = 2\n\n\ndef tax(price):\n    return price * RATE\n")
    record = {"repository": "shop", "file": "tax.py", "before": "RATE = 2\n\n\n", "answer": "def tax(price):"}
    lines = [{"id": "a", **record}, {"id": "b", **record, "before": record["before"] + "def tax(price):\n"}]
    lines[1]["answer"] = "    return price * RATE"
    files = {name: tmp_path / f"{name}.jsonl" for name in ("tasks", "again", "guesses", "written")}
    files["tasks"].write_text(
        "".join(json.dumps(line) + "\n" for line in [*lines, {**lines[0], "id": "c", "answer": ""}])
    )
    home, chosen = tmp_path / "home", ("--format", "next-lines")
    asked = [str(files["tasks"]), *chosen, "--name", "lines", "--repos", str(repository.parent)]
    imported = ctxbench(scripts, "samples", "import", *asked, home=home)
    assert imported.startswith("lines: 2 samples (next-lines, rebuilt prompts), left out: empty_answer 1, digest ")
    ctxbench(scripts, "samples", "export", "lines", *chosen, "--out", str(files["again"]), home=home)
    assert [json.loads(line) for line in files["again"].read_text().splitlines()] == lines
    guesses = [{"id": "a", "guess": "def tax(price):\n"}, {"id": "b", "guess": "    return 0"}]
    files["guesses"].write_text("".join(json.dumps(guess) + "\n" for guess in guesses))
    named = ["--samples", "lines", "--strategy", "theirs", "--generator", "model"]
    run = ctxbench(scripts, "results", "import", str(files["guesses"]), *chosen, *named, home=home).split()[0]
    ctxbench(scripts, "results", "export", run, *chosen, "--out", str(files["written"]), home=home)
    assert [json.loads(line) for line in files["written"].read_text().splitlines()] == guesses
    rows = json.loads(ctxbench(scripts, "leaderboard", "--samples", "lines", "--format", "json", home=home))
    assert [row["em"]["mean"] for row in rows] == [50.0]
    told = " ".join(ctxbench(scripts, "samples", "import", "--help").split())
    assert "next-lines `id`, `repository`, `file`, `before` and `answer`." in told and "|next-lines|" in told
