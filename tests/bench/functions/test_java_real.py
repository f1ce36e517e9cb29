"""Java function samples of a tiny repository and of a real one, built and verified in real back ends."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from ctxbench.bench.functions import certify
from ctxbench.bench.functions.build import build, verify
from ctxbench.bench.home import Home
from ctxbench.bench.judging.judge import Judge
from ctxbench.bench.judging.types import Verdict
from ctxbench.bench.repositories import manifest
from ctxbench.bench.repositories.manifest import RepoManifest
from ctxbench.bench.samples import SampleSet
from ctxbench.sandbox.types import Sandbox
from tests.helpers.java_shop import MODULES, PATH, PRICES, TREE
from tests.helpers.sandboxes import bubblewrap_sandbox, docker_sandbox
from tests.helpers.trees import write_tree

__all__ = ["bubblewrap_sandbox", "docker_sandbox"]
MANIFEST = """\
name = "shop"
language = "java"
license = "MIT"
version = "1"
[[source]]
kind = "local"
path = "tree"
[tests]
"""


def repository(folder: Path, files: Mapping[str, bytes], deselect: Sequence[str] = (), **more: str) -> RepoManifest:
    # Files that are read as text must be UTF-8. The other encoding is tested with the suite.
    write_tree(folder / "tree", {path: content.replace(b"\xe9", b"e") for path, content in files.items()})
    keys = "".join(f'{key} = "{value}"\n' for key, value in more.items())
    (folder / "shop.toml").write_text(f"{keys}{MANIFEST}deselect = {json.dumps(deselect)}\n")
    return manifest.load(str(folder / "shop.toml"))


@pytest.fixture(autouse=True, scope="module")
def _judged_once() -> Iterator[None]:
    """Certify a reference after one pass. The required number of passes does not depend on the language."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certify, "RUNS", 1)
        yield


def no_lock(*_: object) -> tuple[str, ...]:
    raise AssertionError("Java needs no wheels")


@pytest.mark.slow
def test_a_small_repository_is_built_and_verified_end_to_end(tmp_path: Path, docker_sandbox: Sandbox) -> None:
    # The other back end builds and verifies the modules below.
    home = Home(tmp_path / "home")
    made = build([repository(tmp_path, TREE)], home, "set", sandbox=docker_sandbox, lock=no_lock)
    assert {sample.id for sample in made.samples} == {f"shop/{PATH}::Prices.{name}" for name in ("total", "round")}
    entry = made.manifest["repositories"]["shop"]
    counted = {key: entry[key] for key in ("functions", "documented", "covered", "kept", "test_files_dropped")}
    assert counted == {"functions": 3, "documented": 2, "covered": 2, "kept": 2, "test_files_dropped": 1}
    assert (entry["tests_passed"], entry["tests_failed"]) == (5, 1)
    assert entry["mutants"] == {"tried": 4, "killed": 4, "killed_by_all": 4}
    by_name = {sample.name: sample for sample in made.samples}
    total = by_name["Prices.total"]
    assert total.hidden == ("src/test/",) and total.subkind == "class_runnable"
    assert made.references[total.id].tests == (
        "shop.CartTest#pays", "shop.PricesTest#adds", "shop.PricesTest#rates",
    )  # fmt: skip
    text = PRICES.replace("\u00e9", "e")
    assert total.suffix is not None and text.startswith(total.prefix) and text.endswith(total.suffix)
    assert total.prefix.endswith("{\n") and total.suffix.startswith("    }\n")
    checked = verify(home, made, docker_sandbox, workers=1, report=print, tick=lambda _: None)
    assert checked.references_passed == 2 and checked.blanks_passed == 0
    with Judge(home, made, docker_sandbox, width=1) as judge:
        assert judge.judge(total, "double total() { return 1; }").verdict is Verdict.FAILED
        assert judge.judge(total, "no method").verdict is Verdict.FAILED


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory, bubblewrap_sandbox: Sandbox) -> tuple[Home, SampleSet]:
    """Return the samples of one module of a repository. Some of its tests are JUnit 3 suites."""
    folder = tmp_path_factory.mktemp("modules")
    files = {path: text.encode() for path, text in MODULES.items()}
    deselected = ["core/src/test/java/shop/EndTest.java", "shop.FullTest#staysFull"]
    made = [repository(folder, files, deselected, source_dir="core")]
    home = Home(folder / "home")
    return home, build(made, home, "set", sandbox=bubblewrap_sandbox, lock=no_lock)


@pytest.mark.slow
def test_a_module_is_mined_with_the_modules_that_it_needs(
    module: tuple[Home, SampleSet],
) -> None:
    _, made = module
    assert {sample.path for sample in made.samples} == {
        "core/src/main/java/shop/Coupon.java",
        "core/src/main/java/shop/Offer.java",
        "core/src/main/java/shop/Prices.java",
        "core/src/main/java/shop/Stock.java",
    }
    assert made.manifest["repositories"]["shop"]["files"] == 10, "others are read by nobody"
    assert len(made.samples) == 5


@pytest.mark.slow
def test_tests_of_a_suite_judge_alone_or_with_their_class(module: tuple[Home, SampleSet]) -> None:
    _, made = module
    tests = {str(sample.name): made.references[sample.id].tests for sample in made.samples}
    assert tests["Coupon.reduced"] == ("shop.SuiteTest#testReduced[*]",)
    entry = made.manifest["repositories"]["shop"]
    assert (entry["tests_passed"], entry["tests_unselectable"]) == (7, 1)
    assert entry["drops"] == {"tests_unselectable": 1}


@pytest.mark.slow
def test_tests_that_read_a_clock_judge_only_functions_without_other_tests(module: tuple[Home, SampleSet]) -> None:
    _, made = module
    tests = {str(sample.name): made.references[sample.id] for sample in made.samples}
    assert tests["Offer.isOpen"].tests == tests["Offer.isOpen"].clocks == ("shop.OfferTest#isOpen",)
    assert (tests["Prices.text"].tests, tests["Prices.text"].clocks) == (("shop.PricesTest#asText",), ())
    entry = made.manifest["repositories"]["shop"]
    assert (entry["kept_clocks_only"], entry["kept_clocks_too"]) == (3, 0)


@pytest.mark.slow
def test_setup_code_of_a_class_or_object_is_run_by_its_tests(module: tuple[Home, SampleSet]) -> None:
    _, made = module
    tests = {str(sample.name): made.references[sample.id] for sample in made.samples}
    assert tests["Stock.full"].tests == tests["Stock.full"].clocks == ("shop.FullTest#isFull",)
    assert tests["Stock.left"].tests == tests["Stock.left"].clocks == ("shop.LeftTestCase#isLeft",)


@pytest.mark.slow
def test_a_completion_that_fails_only_clock_tests_is_judged_again(
    module: tuple[Home, SampleSet], bubblewrap_sandbox: Sandbox
) -> None:
    home, made = module
    offer = next(sample for sample in made.samples if sample.name == "Offer.isOpen")
    text = next(sample for sample in made.samples if sample.name == "Prices.text")
    with Judge(home, made, bubblewrap_sandbox, width=1) as judge:
        wrong = judge.judge(offer, "boolean isOpen() { return false; }")
        other = judge.judge(text, "public static String text(final int price) { return null; }")
    assert wrong.verdict is Verdict.FAILED and wrong.earlier.startswith("FAILED: 1 of 1 tests did not pass")
    assert other.verdict is Verdict.FAILED and not other.earlier


@pytest.mark.long
@pytest.mark.network
@pytest.mark.slow
def test_a_real_repository_is_built_into_certified_samples(tmp_path: Path, bubblewrap_sandbox: Sandbox) -> None:
    home = Home(tmp_path)
    repository = manifest.load("classmate")
    made = build([repository], home, "set", sandbox=bubblewrap_sandbox, lock=no_lock, workers=2, per_repo=1)
    entry = made.manifest["repositories"]["classmate"]
    assert len(made.samples) == 1
    assert entry["documented"] > 70 and entry["covered"] > 50 and entry["tests_passed"] > 200
    assert all(test.startswith("com.fasterxml.classmate.") for r in made.references.values() for test in r.tests)
