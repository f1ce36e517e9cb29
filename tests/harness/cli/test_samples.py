"""``ctxbench samples`` on lines and on functions, as a user calls it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import ctxbench
from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.bench.judging.python.judging import Canary
from ctxbench.harness.store import open_store
from ctxbench.harness.store.notes import marks_of
from ctxbench.sandbox import registry, wheels
from ctxbench.sandbox.errors import SandboxLost
from ctxbench.sandbox.types import Call, Ended, Job, Outcome
from tests.bench.judging import told
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.mining import in_process, local_manifest
from tests.helpers.trees import write_tree

BODY = "\n".join(f"    value_{i} = total(Cart({i}))" for i in range(30))
FILES = {
    "shop/__init__.py": "",
    "shop/cart.py": "class Cart: ...\ndef total(x): ...\n",
    "shop/pay.py": f"from shop.cart import Cart, total\n\ndef f():\n{BODY}\n",
}


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    tree = write_tree(tmp_path / "tree", FILES)
    path = tmp_path / "demo.toml"
    path.write_text(
        f'name = "demo"\nlanguage = "python"\nlicense = "MIT"\nversion = "1"\n'
        f'[[source]]\nkind = "local"\npath = "{tree}"\n'
    )
    return str(path)


@pytest.fixture
def built(manifest: str) -> str:
    result = run_cli("samples", "build", "tiny", "--repo", manifest, "--per-repo", "5", "--workers", "1")
    assert result.code == 0, result.err
    return "tiny"


def test_a_built_set_is_listed_and_shown(built: str) -> None:
    assert "tiny  5 samples" in run_cli("samples", "list").out
    summary = run_cli("samples", "show", built)
    assert summary.code == 0
    assert "demo (python): 5 samples" in summary.out
    assert "candidates   30" in summary.out
    ids = run_cli("samples", "show", built, "--ids").out.split()
    assert len(ids) == 5 and all(name.startswith("demo/shop/pay.py#L") for name in ids)


def test_show_hides_the_reference_by_default(built: str, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "samples" / built
    record = json.loads((folder / "references.jsonl").read_text().splitlines()[0])
    shown = run_cli("samples", "show", built, record["id"])
    assert shown.code == 0 and record["target"] not in shown.out
    assert record["target"] in run_cli("samples", "show", built, record["id"], "--reference").out


def test_a_set_is_built_by_the_papers_protocol(manifest: str) -> None:
    build = ("samples", "build", "theirs", "--repo", manifest, "--workers", "1")
    result = run_cli(*build, "--protocol", "projbench(first_use=member)")
    assert result.code == 0 and "theirs: 30 samples" in result.out
    shown = run_cli("samples", "show", "theirs").out
    assert "protocol projbench(first_use=member), seed 0, per_repo 200" in shown
    assert run_cli("samples", "build", "few", *build[3:], "--protocol", "projbench", "--per-repo", "3").code == 0
    assert_fault(run_cli(*build, "--protocol", "projbenc"), "did you mean projbench")
    for options, words in (
        (("--kind", "function"), "--protocol needs --kind line"),
        (("--set", "ctxbench-2"), "a standard set has its own"),
    ):
        refused = run_cli("samples", "build", "x", *options, "--protocol", "projbench")
        assert refused.code == 2 and words in refused.err


def test_the_python_function_builds_the_same_set_as_the_command(built: str, manifest: str) -> None:
    assert len(ctxbench.build(built, manifest, per_repo=5, workers=1)) == 5
    with pytest.raises(ctxbench.InputFault, match="another sample set is called 'tiny'"):
        ctxbench.build(built, [manifest], per_repo=6, workers=1)
    frame = ctxbench.build(built, [manifest], per_repo=6, workers=1, force=True)
    assert len(frame) == 6 and set(frame["repository"]) == {"demo"}


def test_an_exported_set_can_be_imported(built: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out.jsonl")
    assert run_cli("samples", "export", built, "--format", "projbench", "--out", out).code == 0
    write_tree(tmp_path / "repos" / "demo", FILES)
    result = run_cli(
        "samples", "import", "--format", "projbench", out, "--name", "again", "--repos", str(tmp_path / "repos")
    )
    assert "again: 5 samples (projbench, rebuilt prompts)" in result.out, result.err
    assert "stored prompts" in run_cli("samples", "import", "--format", "projbench", out, "--name", "bare").out
    assert "5 samples" in run_cli("samples", "show", "bare").out
    assert run_cli("samples", "export", built, "--format", "ctxbench", "--out", out).code == 0
    first = json.loads(Path(out).read_text().splitlines()[0])
    assert first["reference"]["id"] == first["id"]
    result = run_cli("samples", "import", "--format", "ctxbench", out, "--name", "ours")
    assert "ours: 5 samples (ctxbench, stored prompts), digest" in result.out, result.err


def test_import_reports_rows_that_are_left_out(built: str, tmp_path: Path) -> None:
    records = [
        {
            "prompt": "",
            "metadata": {
                "task_id": f"demo/{number}",
                "ground_truth": target,
                "fpath_tuple": ["demo", "shop", "cart.py"],
                "line_no": 0,
            },
        }
        for number, target in enumerate(["class Cart: ...", " ", "class Other: ..."])
    ]
    path = tmp_path / "line_level.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    repos = write_tree(tmp_path / "repos" / "demo", FILES).parent
    load = ("samples", "import", str(path), "--format", "repoeval", "--name", "lines", "--repos", str(repos))
    result = run_cli(*load)
    assert "lines: 1 samples (repoeval, rebuilt prompts), left out: empty_target 1, source_mismatch 1" in result.out
    assert f"{path}:2: demo/1 left out: empty_target" in result.err
    shown = run_cli("samples", "show", "lines").out
    assert f"from {path}  3 rows, " in shown
    assert "left out: empty_target 1, source_mismatch 1" in shown and "note:" not in shown
    assert run_cli(*load, "--hygiene", "off", "--force").code == 0
    assert "note: hygiene off: strategies can see copies of the answers" in run_cli("samples", "show", "lines").out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--format", "projbench", "--rebuild"), "--rebuild needs --format codereval"),
        (("--format", "projbench", "--docstring", "human"), "--docstring needs --format codereval"),
        (("--format", "projbench", "--sandbox", "docker"), "--sandbox needs --rebuild"),
        (("--format", "codereval", "--rebuild", "--repos", "x"), "--rebuild takes no --repos"),
        (("--format", "codereval", "--rebuild", "--hygiene", "off"), "--rebuild takes no --hygiene off"),
        (("--format", "coderevil"), "'coderevil' is not one of 'codereval', "),
        (("--format", "infercom"), "'infercom' is not one of 'codereval', "),
    ],
)
def test_import_options_without_effect_are_refused(options: tuple[str, ...], words: str) -> None:
    result = run_cli("samples", "import", "f.jsonl", "--name", "n", *options)
    assert result.code == 2 and words in result.err


def test_an_export_to_an_unsuitable_format_is_refused(built: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert_fault(run_cli("samples", "export", built, "--format", "repobench", "--out", str(out)), "choose another")
    assert not out.exists()


def test_invalid_input_is_a_one_line_fault(built: str, manifest: str, tmp_path: Path) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_text('{"prompt": "x", ')
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"prompt": "x"}\n')
    build = ("samples", "build", "new", "--repo")
    load = ("samples", "import", "--format", "projbench", "--name", "new")
    assert_fault(run_cli(*build, manifest, "--kind", "function"), "no [tests]", "add a [tests] table")
    assert_fault(run_cli(*build, "fasta2b"), "no repository", "did you mean fasta2a")
    assert_fault(run_cli(*build, manifest, "--repo", manifest), "name each repository once")
    assert_fault(run_cli(*build, manifest, "--language", "java"), "none of the repositories", "leave --language out")
    assert_fault(run_cli("samples", "build", "../x", "--repo", manifest), "not a valid name", "begin with a letter")
    assert_fault(run_cli("samples", "show", "tyny"), "no sample set", "did you mean tiny")
    assert_fault(run_cli("samples", "show", built, "demo/shop/pay.py"), "no sample", "did you mean demo/", "--ids")
    assert_fault(run_cli(*load, str(tmp_path / "gone.jsonl")), "no such file", "check the path")
    assert_fault(run_cli(*load, str(torn)), "torn.jsonl:1", "cut off")
    assert_fault(run_cli(*load, str(wrong)), "wrong.jsonl:1", "field metadata", "--help")
    assert_fault(run_cli("samples", "export", "tyny", "--format", "projbench", "--out", "x"), "did you mean tiny")
    assert run_cli("samples", "list").out.startswith("tiny  5 samples"), "nothing was lost or half made"


def test_a_tampered_set_is_refused(built: str, tmp_path: Path) -> None:
    path = tmp_path / "home" / "samples" / built / "references.jsonl"
    path.write_text(path.read_text().replace("total", "sum", 1))
    assert_fault(run_cli("samples", "show", built), "references.jsonl", "sha256", "--force")
    listed = run_cli("samples", "list")
    assert listed.code == 0 and "tiny  cannot be read" in listed.out


@pytest.mark.network
def test_a_shipped_repository_builds_the_same_set_twice(tmp_path: Path) -> None:
    digests = set()
    for name, workers in (("one", "1"), ("two", "2")):
        result = run_cli("samples", "build", name, "--repo", "fasta2a", "--per-repo", "100", "--workers", workers)
        assert f"{name}: 100 samples" in result.out, result.err
        digests.add(result.out.split()[-1])
    assert len(digests) == 1


Use = Callable[[FakeSandbox], None]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Return a function that replaces the back end of the command line."""
    monkeypatch.setattr(wheels, "lock", lambda *_, **__: ("pytest==9.2.0",))

    def put(sandbox: FakeSandbox) -> None:
        monkeypatch.setattr(registry, "open_sandbox", lambda name, cache: sandbox)

    return put


def passed(job: Job) -> Outcome:
    """Return the outcome of a box in which all tests of the job pass."""
    assert isinstance(job.action, Call)
    asked = job.action.arguments
    drawn = [Canary(**each) for each in asked["canaries"]]
    return told.outcome(told.result(told.events(asked["tests"], drawn), nonce=asked["nonce"]))


def lost(job: Job) -> Outcome:
    raise SandboxLost("gone")


@pytest.fixture
def built_functions(use: Use, tmp_path: Path) -> str:
    local_manifest(tmp_path)
    use(in_process())
    result = run_cli("samples", "build", "shop", "--kind", "function", "--repo", str(tmp_path / "demo.toml"))
    assert result.code == 0 and result.out.startswith("shop: 3 samples, digest "), result
    assert "tests run in fake" in result.err and "demo: 3 samples of 6 candidates" in result.err
    return "shop"


def test_a_function_set_is_shown_with_its_counts(built_functions: str) -> None:
    shown = run_cli("samples", "show", built_functions)
    assert shown.code == 0
    for part in (
        "3 function samples",
        "documented   7",
        "covered      6",
        "1 slib_runnable",
        "tried        6",
        "certified    3 of 4 that a test can judge (75.0 %)",
        "flaky 1",
        "not_covered 1",
    ):
        assert part in shown.out, part
    assert "masked" not in shown.out


def test_show_hides_the_body_of_a_function_by_default(built_functions: str) -> None:
    shown = run_cli("samples", "show", built_functions, "demo/shop.py::root")
    assert shown.code == 0 and "slib_runnable" in shown.out and "hidden  tests/" in shown.out
    assert "math.sqrt" not in shown.out and "def root(x):" in shown.out
    asked = run_cli("samples", "show", built_functions, "demo/shop.py::root", "--reference")
    assert "return math.sqrt(x)" in asked.out and "tests/test_shop.py::test_root" in asked.out


def test_show_marks_tests_that_read_a_clock(built_functions: str, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    made = sets.load(home, built_functions)
    root = made.references["demo/shop.py::root"]
    references = {**made.references, root.id: replace(root, clocks=root.tests)}
    counts = {"kept_clocks_only": 1, "tests_dropped": {"fails_under_load": 2}}
    entry = {**made.manifest["repositories"]["demo"], **counts}
    sets.save(home, "timed", made.samples, references.values(), {**made.manifest, "repositories": {"demo": entry}})
    shown = run_cli("samples", "show", "timed").out
    assert "clocks       judged only by tests that read a clock 1, also by other tests 0" in shown
    assert "tests dropped fails_under_load 2" in shown
    assert "clocks " not in run_cli("samples", "show", built_functions).out
    assert "test_root  (reads a clock)" in run_cli("samples", "show", "timed", root.id, "--reference").out
    assert "reads a clock" not in run_cli("samples", "show", built_functions, root.id, "--reference").out


def test_verify_judges_references_and_empty_bodies(built_functions: str, use: Use) -> None:
    result = run_cli("samples", "verify", built_functions, "--workers", "2")
    assert result.code == 0 and result.out == "shop: pass rates: reference 100.0% (3 of 3), blank 0.0% (0 of 3)\n"

    use(in_process(more=lambda job: Outcome(ended=Ended.TIMED_OUT)))
    failed = run_cli("samples", "verify", built_functions)
    assert failed.code == 1 and "reference 0.0% (0 of 3)" in failed.out
    assert "demo/shop.py::root: reference TIMED_OUT" in failed.err


def test_verify_marks_invalid_samples(built_functions: str, use: Use, tmp_path: Path) -> None:
    assert run_cli("samples", "verify", built_functions, "--mark").out.endswith("\ninvalid: none\n")

    def blind(job: Job) -> Outcome | None:
        """Answer like a box whose tests do not check what ``double`` returns."""
        changed = job.files.get("shop.py")
        return None if changed is None or b"return x * RATE" in changed else passed(job)

    use(in_process(more=blind))
    plain = run_cli("samples", "verify", built_functions)
    assert plain.code == 1
    found = run_cli("samples", "verify", built_functions, "--mark")
    assert found.code == 0 and found.out.endswith("invalid: 1 vacuous (1 new)\n"), found
    assert run_cli("samples", "verify", built_functions, "--mark").out.endswith("invalid: 1 vacuous (0 new)\n")
    use(in_process(more=lambda job: Outcome(ended=Ended.TIMED_OUT)))
    assert "invalid: 3 broken (3 new)" in run_cli("samples", "verify", built_functions, "--mark").out
    use(in_process(more=lost))
    machine = run_cli("samples", "verify", built_functions, "--mark")
    assert machine.code == 1 and "invalid: none" in machine.out
    digest = sets.load(Home(tmp_path / "home"), built_functions).digest
    with open_store(Home(tmp_path / "home").database) as store:
        held = [(one.sample_id, one.mark, one.reason) for one in marks_of(store, digest)]
    assert ("demo/shop.py::double", "vacuous", "an empty body passes") in held
    assert ("demo/shop.py::root", "broken", "the reference TIMED_OUT ran out of time") in held and len(held) == 4


def test_invalid_function_commands_are_refused(built_functions: str, tmp_path: Path) -> None:
    assert_fault(run_cli("samples", "verify", "shap"), "no sample set", "did you mean shop")
    lines = ("samples", "build", "new", "--repo", str(tmp_path / "demo.toml"))
    wrong = run_cli(*lines, "--sandbox", "docker")
    assert wrong.code == 2 and "--kind function" in wrong.err
    assert run_cli(*lines, "--kind", "function", "--sandbox", "none").code == 2, "never a plain subprocess"
