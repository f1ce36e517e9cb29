"""Which files are tests."""

from __future__ import annotations

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
def test_tests_are_known_by_their_names(paths: list[str], hidden: tuple[str, ...] | None) -> None:
    assert places(paths) == (hidden if hidden is not None else ("a_test.py", "conftest.py", "test_a.py"))


def test_a_folder_of_sources_is_not_hidden_though_the_manifest_looks_for_tests_there() -> None:
    assert places(["toolz/a.py", "toolz/tests/b.py", "checks.py"], ["toolz", "checks.py"]) == (
        "checks.py",
        "toolz/tests/",
    )
