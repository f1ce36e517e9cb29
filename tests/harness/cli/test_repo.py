"""`ctxbench repo`: its output, one-line faults with cures for invalid input, and `add` from a folder to a manifest."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxbench.bench.repositories import manifest
from ctxbench.sandbox import registry, wheels
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.types import Call, Ended, Job, Outcome
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.mining import FILES, in_process
from tests.helpers.sandboxes import real
from tests.helpers.trees import write_tree

HEAD = 'name = "demo"\nlanguage = "python"\nlicense = "MIT"\nversion = "1.0"\n'
GIT = '[[source]]\nkind = "git"\nurl = "https://example.org/x"\ncommit = "main"\n'
LOCAL = '[[source]]\nkind = "local"\npath = "copy"\n'


@pytest.fixture
def demo(tmp_path: Path) -> str:
    """Write a manifest whose source is a folder beside it; return its path."""
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "a.py").write_text("x = 1\n")
    (tmp_path / "demo.toml").write_text(HEAD + LOCAL)
    return str(tmp_path / "demo.toml")


def test_the_example_manifest_is_valid_with_and_without_comments(tmp_path: Path) -> None:
    printed = run_cli("repo", "sample")
    assert printed.code == 0
    path = tmp_path / "example.toml"
    path.write_text(printed.out)
    assert run_cli("repo", "check", str(path)).code == 0
    lines = printed.out.splitlines()
    bare = [line[2:] if line.startswith("# ") and ("=" in line or "[" in line) else line for line in lines]
    keys = [line for line in bare if not line.startswith(("A ", "Optional", "Where"))]
    # TOML requires plain keys before the first table. The example shows each key where it belongs.
    path.write_text("\n".join(keys))
    (tmp_path / "my-tests" / "example").mkdir(parents=True)
    result = run_cli("repo", "check", str(path))
    assert result.code == 0, result.err
    assert len(manifest.load(str(path)).sources) == 4


def test_list_shows_which_repositories_are_fetched(demo: str) -> None:
    result = run_cli("repo", "list")
    rows = result.out.splitlines()
    assert result.code == 0 and rows[0].split() == [
        "NAME",
        "VERSION",
        "RELEASED",
        "LANGUAGE",
        "LICENCE",
        "FETCHED",
        "SETS",
    ]
    assert [row.split()[0] for row in rows[1:]] == list(manifest.builtin_names())
    # A licence may have several words.
    fetched = rows[0].index("FETCHED")
    assert all(row[fetched:].split()[0] == "no" for row in rows[1:])


def test_fetch_prints_only_name_and_folder_to_stdout(demo: str, tmp_path: Path) -> None:
    result = run_cli("repo", "fetch", demo)
    name, folder = result.out.rstrip("\n").split("\t")
    assert (result.code, name) == (0, "demo") and (Path(folder) / "a.py").is_file()
    assert "fetching local:" in result.err
    again = run_cli("repo", "fetch", demo)
    assert (again.code, again.out, again.err) == (0, result.out, "")


def test_one_failed_fetch_does_not_stop_the_others(demo: str, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.toml").write_text(HEAD.replace("demo", name) + LOCAL.replace("copy", "none"))
    result = run_cli("repo", "fetch", str(tmp_path / "first.toml"), str(tmp_path / "second.toml"), demo)
    assert_fault(result, "2 of 3 repositories", "run the same command again")
    assert result.out.startswith("demo\t") and "first: no source can be reached" in result.err


def test_check_prints_every_fault_and_their_number(demo: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text('language = "c"\nlicence = "MIT"\n' + LOCAL)
    result = run_cli("repo", "check", str(bad), demo, "glom")
    assert_fault(result, "5 faults in 1 manifest", "repo sample")
    assert result.out == f"{demo}: ok\nglom: ok\n"
    told = [line for line in result.err.splitlines() if line.startswith(str(bad))]
    assert len(told) == 5 and any("did you mean 'license'" in line for line in told)


def broken(folder: Path, text: str) -> str:
    (folder / "demo.toml").write_text(text)
    return str(folder / "demo.toml")


BAD: list[tuple[str, Callable[[Path], list[str]], list[str]]] = [
    ("missing-file", lambda f: ["fetch", str(f / "none.toml")], ["none.toml", "no such file", "check the path"]),
    ("folder", lambda f: ["fetch", f"{f}/"], ["is a folder", "not a manifest", "`ctxbench repo add"]),
    ("broken-toml", lambda f: ["fetch", broken(f, "name = [\n")], ["is not valid TOML", "repo sample"]),
    ("no-text", lambda f: ["fetch", broken(f, "")], ["name: is missing", "source: is missing"]),
    ("branch", lambda f: ["fetch", broken(f, HEAD + GIT)], ["source[1].commit", "git ls-remote URL REF"]),
    ("wrong-hash", lambda f: ["fetch", broken(f, HEAD + LOCAL.replace("copy", "demo.toml") + f'sha256 = "{"0" * 64}"')],
     ["0" * 64, "correct its sha256"]),
    ("unreachable", lambda f: ["fetch", broken(f, HEAD + LOCAL)], ["no source can be reached", 'kind = "local"']),
    ("no-archive", lambda f: ["fetch", broken(f, HEAD + LOCAL.replace("copy", "demo.toml"))], ["complete archive"]),
    ("unknown-name", lambda f: ["fetch", "fasta2"], ["'fasta2'", "did you mean fasta2a", "ctxbench repo list"]),
    ("unknown-set", lambda f: ["fetch", "--set", "recnt"], ["did you mean recent"]),
    ("unknown-set-list", lambda f: ["list", "--set", "x"], ["no repository set", "known: "]),
    ("check-unknown", lambda f: ["check", "nope"], ["1 fault in 1 manifest"]),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "words"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_invalid_input_is_refused(tmp_path: Path, arguments: Callable[[Path], list[str]], words: list[str]) -> None:
    assert_fault(run_cli("repo", *arguments(tmp_path)), *words)


DOCS = Path(__file__).parents[3] / "docs" / "repository.md"
PROJECT = '[project]\nname = "till"\nversion = "1.4"\nlicense = "MIT"\n'
PACKAGE = {
    "pyproject.toml": PROJECT + '[project.optional-dependencies]\ntest = ["pytest>=6", "six"]\n',
    "src/till/__init__.py": "",
    "src/till/sums.py": 'def total(amounts):\n    """Return the sum."""\n    return sum(amounts)\n',
    "src/till/bill.py": "from till.sums import total\n\n\ndef bill(items):\n    return f'{total(items)} EUR'\n",
    "tests/test_till.py": "import six\n\nfrom till.bill import bill\nfrom till.sums import total\n\n\n"
    "def test_total():\n    assert total([1, 2]) == 3\n\n\ndef test_bill():\n    assert bill([1, 2]) == '3 EUR'\n\n\n"
    "def test_reached():\n    raise ConnectionError('nobody answers')\n",
    "tests/test_more.py": "from tests_of_another import helper\n\n\ndef test_more():\n    assert helper\n",
}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeSandbox:
    """Replace the back end of the command line by one that runs trusted tests in this process."""
    sandbox = in_process()
    monkeypatch.setattr(wheels, "lock", lambda *_, **__: ("pytest==9.2.0",))
    monkeypatch.setattr(registry, "open_sandbox", lambda name, cache: sandbox)
    monkeypatch.setattr(registry, "docker_fault", lambda: SandboxUnavailable("no engine answers"))
    return sandbox


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """Return a folder with a package and its tests."""
    till = "from shop import double\n\n\ndef ring():\n    return double(1)\n"
    return str(write_tree(tmp_path / "shop", {**FILES, "till.py": till}))


def test_the_docs_example_works(fake: FakeSandbox, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CTXBENCH_HOME")
    section = DOCS.read_text().partition("## Add a repository")[2].partition("\n## ")[0]
    block = re.search(r"```sh\n(.*?)```", section, re.S)
    assert block is not None
    commands = [shlex.split(line) for line in block.group(1).replace("\\\n", "").splitlines()]
    assert [command[:2] for command in commands] == [
        ["ctxbench", "repo"],
        ["ctxbench", "samples"],
        ["ctxbench", "samples"],
    ]
    for command in commands:
        local = [word.replace("pypi:webcolors==24.11.1", "shop").replace("webcolors", "shop") for word in command[1:]]
        result = run_cli(*local)
        assert result.code == 0, result
    assert run_cli("samples", "list").out.count(" samples  ") == 2


def test_add_prints_the_manifest_and_the_test_results(fake: FakeSandbox, shop: str, tmp_path: Path) -> None:
    result = run_cli("repo", "add", shop, "--folder", str(tmp_path / "mine"))
    path = tmp_path / "mine" / "shop.toml"
    assert result.code == 0 and result.out.startswith(f"{path}: "), result
    assert "6 of 6 tests passed." in result.out and len(result.out.splitlines()) == 1
    assert "shop: please check: no file names a recognised licence" in result.err
    assert_fault(run_cli("repo", "add", shop, "--folder", str(tmp_path / "mine")), "exists already", "--force")
    assert run_cli("repo", "check", str(path)).code == 0


@pytest.mark.parametrize(("words", "beside"), [((), " and in bubblewrap"), (("--sandbox", "docker"), "")])
def test_tests_run_in_both_back_ends_by_default(
    fake: FakeSandbox, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], beside: str
) -> None:
    other = in_process()
    other.name = "bubblewrap"
    monkeypatch.setattr(registry, "open_sandbox", lambda name, cache: other if name == "bubblewrap" else fake)
    for fault in ("docker_fault", "bubblewrap_fault"):
        monkeypatch.setattr(registry, fault, lambda *_: None)
    result = run_cli("repo", "add", shop, "--folder", str(tmp_path), *words)
    assert f"The tests ran in fake{beside}." in result.out and ("only in fake" in result.err) is not bool(beside)


def test_without_tests_no_sandbox_is_opened(shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "open_sandbox", lambda *_: pytest.fail("opened"))
    result = run_cli("repo", "add", shop, "--no-tests", "--name", "mine", "--folder", str(tmp_path))
    assert result.code == 0 and manifest.load(str(tmp_path / "mine.toml")).tests is None


def test_a_fault_says_what_to_write_if_no_test_runs(fake: FakeSandbox, shop: str, tmp_path: Path) -> None:
    inner = fake.answer

    def answer(job: Job) -> Outcome:
        assert isinstance(job.action, Call)
        if job.action.function.endswith(":cover"):
            return Outcome(ended=Ended.EXITED, exit_code=4, output="ImportError while loading conftest", seconds=0.1)
        return inner(job)

    fake.answer = answer
    result = run_cli("repo", "add", shop, "--folder", str(tmp_path))
    assert_fault(result, "shop.toml: no test of the repository ran", "loading conftest", "# [tests]", "samples build")
    assert manifest.load(str(tmp_path / "shop.toml")).tests is None


@pytest.mark.parametrize("ref", ["pypi:demo", "git+https://example.org/x@main", "/no/such/folder"])
def test_an_invalid_source_is_a_one_line_fault(ref: str) -> None:
    assert_fault(run_cli("repo", "add", ref), "give ")


@pytest.mark.parametrize(
    ("words", "said"), [("fetch", "--set"), ("add x --no-tests --sandbox bubblewrap", "--no-tests runs no tests")]
)
def test_fetch_without_names_and_a_sandbox_without_tests_are_wrong_usage(words: str, said: str) -> None:
    result = run_cli("repo", *words.split())
    assert result.code == 2 and said in result.err


@pytest.mark.slow
@pytest.mark.network  # fetches the wheels of pytest, coverage and six
def test_a_package_in_a_folder_is_adopted_in_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "open_sandbox", lambda *_: real("bubblewrap"))
    tree = write_tree(tmp_path / "till", PACKAGE)
    result = run_cli("repo", "add", str(tree), "--folder", str(tmp_path))
    assert result.code == 0 and "2 of 3 tests passed (1 failed)" in result.out, result
    adopted = manifest.load(str(tmp_path / "till.toml"))
    assert adopted.tests is not None and adopted.tests.deselect == ("tests/test_more.py",)
    assert (adopted.tests.pythonpath, adopted.tests.paths) == ("src", ("tests",))
    assert "test_more.py cannot be imported" in result.err
    assert "test_reached (ConnectionError: nobody answers)" in result.err
