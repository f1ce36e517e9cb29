"""How the quick start treats existing sets with the names of its own sets."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ctxbench.bench import quickstart
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.repositories import manifest
from ctxbench.bench.types import Kind
from ctxbench.harness.cli import reproduce
from ctxbench.harness.imported import reference
from ctxbench.harness.store import open_store
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.functions import make_function_set
from tests.helpers.sets import make_set
from tests.test_docs import ROOT, blocks

OURS = {"seed": quickstart.FUNCTION_SEED, "per_repo": quickstart.FUNCTIONS_PER_REPO}
FOUND = manifest.in_set(quickstart.FUNCTION_SET)
NAME = quickstart.FUNCTION_SET


@pytest.fixture
def home(tmp_path: Path) -> Home:
    # A shell splits this path into two words.
    return Home(tmp_path / "my home")


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch, home: Home) -> list[bool]:
    """Build a small set instead of the real ones; record each build and whether it may replace another set."""
    made: list[bool] = []

    def build(*_: object, force: bool, **__: object) -> object:
        made.append(force)
        return make_set(home, name="built")

    monkeypatch.setattr("ctxbench.bench.functions.build.build", build)
    return made


def there(home: Home, **account: object) -> Path:
    """Build a set with the name of the quick start's own set; return its folder."""
    make_set(home, name=NAME)
    path = home.samples / NAME / "manifest.json"
    versions = {one.name: {"language": "python", "version": one.version} for one in FOUND}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"repositories": versions, **account}))
    return path.parent


def functions(home: Home) -> str:
    nothing = FakeSandbox(lambda job: pytest.fail("no job is to be done"))
    return quickstart.function_set(home, FOUND, nothing, workers=1, report=lambda _: None).name


def test_the_quick_start_reuses_its_own_set(home: Home, builds: list[bool]) -> None:
    there(home, **OURS)
    assert functions(home) == NAME and builds == []


def test_the_quick_start_replaces_its_own_set_of_other_repositories(home: Home, builds: list[bool]) -> None:
    there(home, **OURS, repositories={"toolz": {"language": "python", "version": "0.1"}})
    assert functions(home) == "built" and builds == [True]


def rewrite(file: str, change: Callable[[str], str]) -> Callable[[Path], object]:
    return lambda folder: (folder / file).write_text(change((folder / file).read_text()))


@pytest.mark.parametrize(
    "change",
    [
        rewrite("manifest.json", lambda text: text.replace('"per_repo": 5', '"per_repo": 4')),
        lambda folder: (folder / "manifest.json").unlink(),
        rewrite("samples.jsonl", lambda text: f"{text}\n"),
        rewrite("references.jsonl", lambda _: '{"id": '),
    ],
)
def test_another_set_with_the_same_name_is_kept_and_the_cure_works(
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


def test_an_invalid_database_is_reported_before_any_work(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quickstart, "fetch_set", lambda *_, **__: pytest.fail("the work was begun"))
    assert_fault(run_cli("quickstart", "--home", str(home.root), "--db", "results.db"), "is not a database URL")
    home.root.mkdir()
    (home.root / "results.db").write_text("no database, but long enough to be looked at\n" * 100)
    assert_fault(run_cli("quickstart", "--home", str(home.root)), "is not a database")


@pytest.mark.parametrize(
    ("model", "words"),
    [("no-such-model", ["no-such-model", "ctxbench model list"]), ("smollm2-135m", ["xllamacpp", "pip install"])],
)
def test_a_model_that_cannot_answer_is_reported_before_any_work(
    home: Home, model: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quickstart, "fetch_set", lambda *_, **__: pytest.fail("the work was begun"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert_fault(run_cli("quickstart", "--home", str(home.root), "--model", model), *words)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["", "said"])
def test_lines_are_shown_even_if_functions_cannot_be_built(
    home: Home, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    monkeypatch.setattr(reproduce, "_generators", lambda _: {Kind.LINE: "scripted(text=said)"})
    monkeypatch.setattr(
        "ctxbench.sandbox.registry.open_sandbox", lambda *_: FakeSandbox(lambda job: pytest.fail("no job"))
    )
    result = run_cli("quickstart", "--home", str(home.root), *(("--model", model, "--limit", "1") if model else ()))
    assert_fault(result, str(fault))
    stored, _, now = result.out.partition("ANSWERED NOW, here, by scripted(text=said): 1 of the 2 lines.")
    assert stored.startswith("STORED ANSWERS: hf(model=qwen2.5-coder-0.5b)") and result.err.rstrip().endswith(
        str(fault)
    )
    assert {"repocoder", "oracle-context"} <= set(re.findall(r"^ *[\d-]+  (\S+)", stored, re.M))
    # The set of the stored answers is not installed, so the true lines are unknown.
    assert "the true line" not in stored and bool(now) is bool(model)
    if model:
        assert (
            "the true line                       apply_tax(cart_" in now
            and "  now, lc.infile                      said" in now
        )
        assert "  stored, lc.infile" in now
    assert shown == [result.out], "the lines' board is there before the minutes that functions take"


def test_stored_answers_to_functions_are_shown_if_they_exist(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    functions = make_function_set(home)
    shipped = reference.load("ctxbench-2", Kind.FUNCTION)
    files = {
        model: replace(
            shipped, runs=tuple(replace(run, generator=f"hf(chat=true, model={model})") for run in shipped.runs)
        )
        for model in ("one", "two")
    }
    with open_store(home.database) as store:
        steps = reproduce._Steps(home, store)
        monkeypatch.setattr(reference, "models", lambda name, kind: {})
        assert steps.show_stored(functions, "") == {} and capsys.readouterr().out == ""
        monkeypatch.setattr(reference, "models", lambda name, kind: files if name == "ctxbench-2" else {})
        for model, generator in (("", files["one"]), ("two", files["two"])):
            assert steps.show_stored(functions, model) == {}
            shown = capsys.readouterr().out
            assert shown.startswith(f"STORED ANSWERS: {generator.runs[0].generator} answered these 96 functions")
            assert re.search(r"\bdirect +0\.0 ", shown)
            assert re.search(r"gold \(control\) +100\.0 ", shown)
            assert "lc.repocoder" not in shown


@pytest.mark.parametrize("page", ["README.md", "docs/first-model.md"])
def test_answers_on_a_page_equal_the_shipped_ones(page: str) -> None:
    results = reference.models("ctxbench-2-lite")["qwen2.5-coder-0.5b"]
    shown = "\n".join(blocks("text", (ROOT / page).read_text(encoding="utf-8")))
    parts = re.split(r"^(\S+#\S+)$", shown, flags=re.M)[1:]
    assert len(parts) == (6 if "model" in page else 2)
    for sample, answers in zip(parts[::2], parts[1::2], strict=True):
        at = [of.id for of in results.samples].index(sample)
        stored = {run.strategy: " ".join(run.texts[at].split()) for run in results.runs}
        told = re.findall(r"^  stored, (\S+) +(.+)$", answers, re.M)
        assert len(told) == 2 and all(stored[strategy] == text for strategy, text in told)
