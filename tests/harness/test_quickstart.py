"""What the quick start does about sets that lie where its own belong."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxbench.bench import quickstart
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.repositories import manifest
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.sets import make_set

OURS = {"seed": quickstart.FUNCTION_SEED, "per_repo": quickstart.FUNCTIONS_PER_REPO}
FOUND = manifest.in_set(quickstart.FUNCTION_SET)
NAME = quickstart.FUNCTION_SET


@pytest.fixture
def home(tmp_path: Path) -> Home:
    # A folder that a shell would take for two words.
    return Home(tmp_path / "my home")


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch, home: Home) -> list[bool]:
    """Build a small set in the place of the real ones; note each build and whether it may replace another."""
    made: list[bool] = []

    def build(*_: object, force: bool, **__: object) -> object:
        made.append(force)
        return make_set(home, name="built")

    monkeypatch.setattr("ctxbench.bench.functions.build.build", build)
    return made


def there(home: Home, **account: object) -> Path:
    """Make a set with the name of the quick start's; return its folder."""
    make_set(home, name=NAME)
    path = home.samples / NAME / "manifest.json"
    versions = {one.name: {"language": "python", "version": one.version} for one in FOUND}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"repositories": versions, **account}))
    return path.parent


def functions(home: Home) -> str:
    nothing = FakeSandbox(lambda job: pytest.fail("no job is to be done"))
    return quickstart.function_set(home, FOUND, nothing, workers=1, report=lambda _: None).name


def test_its_own_set_is_used_again(home: Home, builds: list[bool]) -> None:
    there(home, **OURS)
    assert functions(home) == NAME and builds == []


def test_its_own_set_of_other_repositories_is_replaced(home: Home, builds: list[bool]) -> None:
    there(home, **OURS, repositories={"toolz": {"language": "python", "version": "0.1"}})
    assert functions(home) == "built" and builds == [True]


def _other_size(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"per_repo": 5', '"per_repo": 4'))


def _no_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def _edited(folder: Path) -> None:
    with (folder / "samples.jsonl").open("a") as file:
        file.write("\n")


def _torn(folder: Path) -> None:
    (folder / "references.jsonl").write_text('{"id": ')


@pytest.mark.parametrize("change", [_other_size, _no_manifest, _edited, _torn])
def test_another_set_of_that_name_is_kept_and_the_cure_works(
    home: Home, builds: list[bool], change: Callable[[Path], None]
) -> None:
    folder = there(home, **OURS)
    change(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    folder.with_name(f"{NAME}-1").mkdir()
    with pytest.raises(InputFault) as caught:
        functions(home)
    assert builds == [] and str(folder) in caught.value.where and "--force" not in str(caught.value)
    told = re.search("`(mv .*)`", caught.value.cure)
    assert told is not None
    subprocess.run(shlex.split(told[1]), check=True)
    kept = folder.with_name(f"{NAME}-2")
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == before
    assert functions(home) == "built" and builds == [True]


def test_a_wrong_database_is_told_before_the_work(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quickstart, "fetch_set", lambda *_, **__: pytest.fail("the work was begun"))
    assert_fault(run_cli("quickstart", "--home", str(home.root), "--db", "results.db"), "is not a database URL")
    home.root.mkdir()
    (home.root / "results.db").write_text("no database, but long enough to be looked at\n" * 100)
    assert_fault(run_cli("quickstart", "--home", str(home.root)), "is not a database")


@pytest.mark.slow
def test_lines_are_shown_though_functions_cannot_be_made(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = MachineFault("a lost index", cure="wait")
    lines = make_set(home, name="lines", repos=1, per_repo=2)
    shown: list[str] = []

    def fetched(_home: Home, _report: object, name: str = quickstart.SET) -> tuple[()]:
        if name == NAME:
            shown.append(sys.stdout.getvalue())
            raise fault
        return ()

    monkeypatch.setattr(quickstart, "fetch_set", fetched)
    monkeypatch.setattr(quickstart, "sample_set", lambda *_, **__: lines)
    monkeypatch.setattr(
        "ctxbench.sandbox.registry.open_sandbox", lambda *_: FakeSandbox(lambda job: pytest.fail("no job"))
    )
    result = run_cli("quickstart", "--home", str(home.root))
    assert_fault(result, str(fault))
    assert "lc.repocoder" in result.out and result.err.rstrip().endswith(str(fault))
    assert shown == [result.out], "the lines' board is there before the minutes that functions take"
