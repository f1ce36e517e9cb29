"""Checks of the code itself: names, test selection, layers, and the files on a sample's call path."""

import ast
import itertools
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ctxbench.bench.home import Home
from scripts import names
from tests import conftest
from tests.helpers.sets import make_set

ROOT = Path(__file__).resolve().parents[1]


def test_vague_names_are_found_where_they_are_bound() -> None:
    tree = ast.parse(
        "class Found:\n    def one(self, told=1):\n        kept = x.asked = 2\n        return [_made for _made in y]"
    )
    assert {name for name in names.bound_names(tree) if names.is_vague(name)} == {
        "Found",
        "one",
        "told",
        "kept",
        "_made",
    }


def test_packages_over_the_limit_and_duplicate_classes_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for room in names.PACKAGES:
        (tmp_path / room).mkdir()
        (tmp_path / room / "a.py").write_text("path = 1\n")
    monkeypatch.setattr(names, "ROOT", tmp_path)
    assert names.main() == 0
    (tmp_path / "bench" / "a.py").write_text("found = 1\nclass Row: ...\n")
    (tmp_path / "sandbox" / "b.py").write_text("class Row: ...\nclass _Own: ...\n")
    (tmp_path / "harness" / "b.py").write_text("class _Own: ...\n")
    capsys.readouterr()
    assert names.main() == 1
    printed = capsys.readouterr().out
    assert "bench: 1 of 2 names are vague (50.0 %), bench/a.py 1\n" in printed
    assert "class Row is defined in bench/a.py, sandbox/b.py\n" in printed
    assert "_Own" not in printed


def test_files_with_special_collection_rules_exist() -> None:
    assert [file for file in conftest.LONGEST if not (ROOT / file).is_file()] == []
    for name in conftest.WITH_MODELS:
        (file,) = (ROOT / "tests").rglob(name)
        assert "\npytestmark = [\n    pytest.mark.slow,\n" in file.read_text(encoding="utf-8"), "all of it is slow"


def test_files_are_skipped_only_if_none_of_their_tests_is_selected(tmp_path: Path) -> None:
    texts = {
        "unit": "def test_a(): ...\n",
        "some": "@pytest.mark.slow\ndef test_a(): ...\n\ndef test_b(): ...\n",
        "all": "pytestmark = [\n    pytest.mark.network,\n]\n",
        "apart": "pytestmark = pytest.mark.usefixtures('home')\n",
        "long": "@pytest.mark.long\n@pytest.mark.slow\ndef test_a(): ...\n",
    }
    for name, text in texts.items():
        (tmp_path / f"test_{name}.py").write_text(text)

    def left_out(markers: str) -> set[str]:
        config: Any = SimpleNamespace(option=SimpleNamespace(markexpr=markers))
        return {name for name in texts if conftest.pytest_ignore_collect(tmp_path / f"test_{name}.py", config)}

    assert left_out("not slow and not network") == {"all"}
    assert left_out("(slow or network) and not long") == {"unit", "apart"}
    assert left_out("long") == {"unit", "some", "all", "apart"}
    assert left_out("") == left_out("slow") == set()


def test_the_makefiles_selections_cover_every_test_once() -> None:
    selections = re.findall(r'-m "([^"]+)"', (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert sorted(selections) == sorted(conftest.LEAVES_OUT)
    for slow, network, long in itertools.product((False, True), repeat=3):
        if long and not slow:
            continue  # see the test below
        marks = {"slow": slow, "network": network, "long": long}
        assert sum(eval(selection, {}, marks) for selection in conftest.LEAVES_OUT) == 1, marks


def test_long_tests_are_also_slow() -> None:
    for file in (ROOT / "tests").rglob("test_*.py"):
        text = file.read_text(encoding="utf-8")
        if file.name != Path(__file__).name and "mark.long" in text:
            long = re.findall(r"(?:@pytest\.mark\..*\n)*@pytest\.mark\.long\n(?:@pytest\.mark\..*\n)*", text)
            assert "\npytestmark = " in text or all("mark.slow" in decorators for decorators in long), file


def test_files_that_share_expensive_fixtures_run_in_one_worker() -> None:
    for files in conftest.GROUPS.values():
        paths = [path.relative_to(ROOT).as_posix() for name in files for path in (ROOT / "tests").rglob(name)]
        assert len(paths) == len(files)
        assert len({conftest.group_of(f"{path}::test") for path in paths}) == 1
    assert conftest.group_of("tests/test_docs.py::TestA::test_b") == "tests/test_docs.py"
    chosen = {"dist": "loadfile", "tx": ["2*popen"]}
    scheduling: Any = conftest.pytest_xdist_make_scheduler(SimpleNamespace(getvalue=chosen.get), None)
    assert scheduling._split_scope("tests/bench/functions/test_java_real.py::test_a") == "java"
    assert conftest.pytest_xdist_make_scheduler(SimpleNamespace(getvalue={"dist": "worksteal"}.get), None) is None


def test_strings_do_not_name_packages_of_a_higher_layer() -> None:
    rooms = ("dashboard", "harness", "strategies", "bench", "sandbox")
    for number, room in enumerate(rooms[1:], 1):
        above = re.compile(rf"ctxbench\.({'|'.join(rooms[:number])})\b")
        for file in (ROOT / room).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            if not above.search(text):
                continue
            tree = ast.parse(text)
            prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
                    assert not above.search(node.value), f"{file}:{node.lineno}"


@pytest.mark.slow
def test_the_trace_lists_the_files_from_run_to_metrics_in_order(tmp_path: Path) -> None:
    home = Home(tmp_path)
    make_set(home)
    command = [sys.executable, "-m", "scripts.trace_sample", "demo", "--home", str(home.root)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    files = [line.split()[1] for line in done.stdout.splitlines()]
    way = ["harness/run/runner.py", "harness/run/attempt.py", "strategies/repocoder.py", "harness/metrics/__init__.py"]
    assert [file for file in files if file in way] == way
    assert len(files) == len(set(files)) > 30
    # Code that only the end of a run needs is not on a sample's call path.
    assert "harness/store/runs.py" not in files and "bench/errors.py" not in files
    assert not (tmp_path / "results.db").exists()
    command[3] = "dmo"
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and "demo" in done.stderr and done.stderr.count("\n") == 1


_LANGUAGE = re.compile(r"""\b(?:PYTHON|JAVA)\b|["'](?:python|java)["']|languages\.(?:python|java)\b""")
_OF_ONE_LANGUAGE = re.compile(
    r"bench/(?:languages|functions|judging)/(?:python|java)/|bench/codereval/|bench/repos/|sandbox/"
)
"""The folders of a language, CoderEval's official protocol, and the programs in the boxes."""
_NAMING = {
    "bench/adoption/adopt.py": "a draft of a manifest before its language is known",
    "bench/adoption/declared.py": "the files in which Python projects declare what they need",
    "bench/adoption/guess.py": "which language a repository is in",
    "bench/adoption/python.py": "what the files of a Python project tell",
    "bench/adoption/trial.py": "what pytest, pip and javac say that a suite lacks",
    "bench/apis.py": "the digests of the templates that InferCom released",
    "bench/engines/conformance.py": "its sample of code",
    "bench/formats/codereval.py": "the shape of CoderEval's files, which differs by language",
    "bench/formats/repoeval.py": "a benchmark of Python repositories",
    "bench/repositories/manifest.py": "a folder of added tests is pytest's",
    "bench/samples.py": "the version of the interpreter in a set's account",
    "bench/judging/suites.py": "sets of earlier versions name no language",
    "dashboard/pages/runs.py": "the language that a traceback is coloured in",
    "dashboard/views/benchmark.py": "the version of the interpreter in a set's account",
    "harness/cli/doctor.py": "the programs that a machine has",
    "harness/generators/conformance.py": "its sample of code",
    "harness/generators/incontext/lexer.py": "the grammar that the weights were fitted with",
    "harness/leaderboard/rows.py": "the mean over both languages that the papers print",
    "harness/metrics/published.py": "the keyword lists of the published scorers, and where a statement ends",
    "harness/papers/render.py": "the languages that papers print",
    "harness/paper_tables.py": "the same",
    "strategies/baselines/cocogen.py": "a method for Python",
    "strategies/baselines/selfcollab.py": "a method for Python",
    "strategies/tiny.py": "the little repository of the conformance check",
}


def test_languages_are_named_only_in_their_folders_and_in_listed_files() -> None:
    rooms = ("bench", "dashboard", "harness", "sandbox", "strategies")
    paths = {path.relative_to(ROOT).as_posix(): path for room in rooms for path in (ROOT / room).rglob("*.py")}
    naming = {
        name
        for name, path in paths.items()
        if not _OF_ONE_LANGUAGE.match(name) and _LANGUAGE.search(path.read_text(encoding="utf-8"))
    }
    assert naming == _NAMING.keys()
