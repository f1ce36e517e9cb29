"""Finding the files and folders that contain tests."""

import pytest

from ctxbench.bench.functions.candidates import test_places as places


@pytest.mark.parametrize(
    ("paths", "hidden"),
    [
        (["shop/a.py", "tests/test_a.py", "tests/deep/b.py"], ("tests/",)),
        (["toolz/a.py", "toolz/tests/test_a.py", "toolz/sandbox/tests/b.py"], ("toolz/sandbox/tests/", "toolz/tests/")),
        (["glom/core.py", "glom/test/test_core.py"], ("glom/test/",)),
        (["a.py", "test_a.py", "conftest.py", "a_test.py", "latest.py", "testing.py"], None),
        (["src/main/java/a/Cart.java", "src/test/java/a/CartTest.java"], ("src/test/",)),
        (["a/Cart.java", "a/CartTest.java", "a/Latest.java"], ("a/CartTest.java",)),
        (["a.py"], ()),
    ],
)
def test_files_of_tests_are_recognised_by_their_names(paths: list[str], hidden: tuple[str, ...] | None) -> None:
    assert places(paths) == (hidden if hidden is not None else ("a_test.py", "conftest.py", "test_a.py"))


def test_a_source_folder_is_not_hidden_even_if_the_manifest_names_it() -> None:
    assert places(["toolz/a.py", "toolz/tests/b.py", "checks.py"], ["toolz", "checks.py"]) == (
        "checks.py",
        "toolz/tests/",
    )


@pytest.mark.parametrize(
    ("files", "named", "hidden"),
    [
        (["unit_tests/test_a.py", "unit_tests/cases.py"], ["unit_tests/"], ("unit_tests/",)),
        (["shop/test-suite/deep/cases.py"], ["./shop/test-suite"], ("shop/test-suite/",)),
        (["unit_tests/test_a.py", "unit_tests/cases.py"], [], ("unit_tests/test_a.py",)),
        (["pytest_shop/a.py", "latest/b.py", "testing/c.py"], ["pytest_shop", "latest", "testing"], ()),
        (["checks/check_a.py", "checks/check_b.py"], ["checks", "checks/check_b.py"], ("checks/check_b.py",)),
    ],
)
def test_places_in_the_manifest_are_hidden_if_their_names_mark_tests(
    files: list[str], named: list[str], hidden: tuple[str, ...]
) -> None:
    assert places(["shop.py", *files], named) == hidden


def test_folders_with_only_tests_are_hidden_whatever_their_names() -> None:
    files = ["src/main/java/a/Cart.java", "src/spec/java/a/Fake.java", "src/test/java/a/CartTest.java"]
    assert places(files, folders=["src/spec/java", "src/test/java", "other"]) == ("src/spec/java/", "src/test/")
