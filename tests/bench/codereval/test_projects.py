"""The shipped repositories that represent CoderEval's projects, and the tests that ctxbench adds to them."""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from ctxbench.bench.codereval.rebuild import rebuild
from ctxbench.bench.home import Home
from ctxbench.bench.judging.judge import Judge
from ctxbench.bench.judging.types import Verdict
from ctxbench.bench.repositories import manifest as manifests
from ctxbench.bench.repositories.manifest import RepoManifest
from ctxbench.bench.repositories.sources import PypiSource
from ctxbench.sandbox.types import Sandbox
from tests.bench.codereval.asked import Asked, tasks
from tests.helpers.sandboxes import lock_wheels

ROOT = Path(manifests.__file__).resolve().parents[2]
REPOS = ROOT / "bench" / "repos"
OWN = REPOS / "codereval-tests"
NAMES = sorted(path.stem for path in REPOS.glob("codereval-*.toml"))
PAGE = OWN / "README.md"
OUTSIDE = frozenset({"socket", "urllib", "http", "time"})


def added(manifest: RepoManifest) -> str:
    """Return the folder of added tests, as the manifest names it."""
    text = (REPOS / f"{manifest.name}.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text).get("tests", {}).get("added", ""))


def test_every_project_has_one_repository() -> None:
    assert len(NAMES) >= 25
    projects = Counter(project.lower() for name in NAMES for project in manifests.load(name).codereval)
    assert all(projects) and max(projects.values()) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_repository_is_a_pinned_release_of_a_project(name: str) -> None:
    manifest = manifests.load(name)
    assert manifest.codereval and all(re.fullmatch(r"[\w.-]+/[\w.-]+", one) for one in manifest.codereval)
    assert manifest.sets == ("codereval",)
    assert all(isinstance(source, PypiSource) for source in manifest.sources)
    if folder := added(manifest):
        assert list((REPOS / folder).glob("test_*.py"))


def test_every_folder_of_added_tests_is_used_once() -> None:
    used = [added(manifests.load(name)) for name in NAMES]
    assert sorted(filter(None, used)) == sorted({f"{OWN.name}/{path.parent.name}" for path in OWN.glob("*/*.py")})


@pytest.mark.parametrize("path", sorted(OWN.glob("*/*.py")), ids=lambda path: path.name)
def test_an_added_file_describes_itself_and_imports_no_network_or_clock(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = ast.get_docstring(tree) or ""
    if path.name.startswith("test_"):
        assert said.startswith("Tests of our own for ") and "Expectations: " in said
    else:
        assert said.startswith(("Stands in for ", "Puts in place "))
    imported = {
        alias.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    # The files for cloudmesh-common replace what the project uses of `socket`.
    assert not imported & (OUTSIDE - ({"socket"} if path.parent.name == "cloudmesh-common" else set()))


def test_the_page_names_every_repository_and_project() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in NAMES:
        assert f"`{name}`" in page
        assert all(project in page for project in manifests.load(name).codereval)


SHOWN = (
    "Convert a number to a string, using the given alphabet.\n\n    The output has the most significant digit first."
)
NUMBER = Asked(
    "int_to_string",
    "def int_to_string(number, alphabet, padding=None):",
    SHOWN,
    "shortuuid/main.py",
    "skorokithakis/shortuuid",
)
HEAD = "def int_to_string(number, alphabet, padding=None):\n"
LOOP = """    digits = []
    while number:
        number, digit = divmod(number, len(alphabet))
        digits.append(alphabet[digit])
"""
WRONG = {
    "another way": (
        f"{HEAD}{LOOP}    text = ''.join(reversed(digits))\n    return text.rjust(padding or 0, alphabet[0])\n",
        Verdict.PASSED,
    ),
    "its argument": (f"{HEAD}    return number\n", Verdict.FAILED),
    "nothing": (f"{HEAD}    return None\n", Verdict.FAILED),
    "turned round": (f"{HEAD}{LOOP}    return ''.join(digits).rjust(padding or 0, alphabet[0])\n", Verdict.FAILED),
    "padded behind": (
        f"{HEAD}{LOOP}    return ''.join(reversed(digits)).ljust(padding or 0, alphabet[0])\n",
        Verdict.FAILED,
    ),
    "never padded": (f"{HEAD}{LOOP}    return ''.join(reversed(digits))\n", Verdict.FAILED),
    "off by one": (
        f"{HEAD}{LOOP}    return ''.join(reversed(digits)).rjust((padding or 0) + 1, alphabet[0])\n",
        Verdict.FAILED,
    ),
}


@pytest.mark.slow
@pytest.mark.network
def test_added_tests_pass_correct_and_fail_wrong_completions(tmp_path: Path, bubblewrap_sandbox: Sandbox) -> None:
    home = Home(tmp_path / "home")
    made = rebuild(
        tasks(tmp_path / "files", [NUMBER]), home, "ce", sandbox=bubblewrap_sandbox, lock=lock_wheels, workers=2
    )
    [sample] = made.samples
    with Judge(home, made, bubblewrap_sandbox, width=2) as judge:
        found = {what: judge.judge(sample, text).verdict for what, (text, _) in WRONG.items()}
    assert found == {what: verdict for what, (_, verdict) in WRONG.items()}
