"""The independent fault generator for Java, and the whole suite of a small project, which notices real faults."""

import shutil
from pathlib import Path

import pytest

from ctxbench.sandbox.types import Sandbox
from tests.helpers.extras import missing
from tests.helpers.java_shop import PATH, TOTAL, TOTAL_REFERENCE, TREE, total
from tests.helpers.sandboxes import bubblewrap_sandbox
from tests.helpers.trees import write_tree
from tests.independent.java_suite import JavaSuite
from tests.independent.mutants_java import mutants

__all__ = ["bubblewrap_sandbox"]
PRICE = """\
static int price(final List<Integer> parts, int rate) {
    int cost = 0; // + or -
    if (parts.isEmpty() && rate > 4) {
        cost = Math.max(price(parts, 1), rate + 2);
        say("a + b");
    }
    return cost;
}"""


def test_faults_are_in_the_body_and_all_differ() -> None:
    found = mutants(PRICE, "price")
    assert len(found) == len(set(found)) > 8
    assert all(text.startswith(PRICE.partition("\n")[0]) and text.endswith("}") for text in found)
    assert all("// + or -" in text for text in found if "int cost = 0" in text)
    for holds in (
        "max((parts, 1)",
        "if (!(",
        "return 0;",
        "|| rate",
        "rate <= 4",
        "rate - 2",
        "rate + 3",
        "\n        ;\n",
    ):
        assert any(holds in text for text in found), holds
    assert mutants(PRICE, "price") == found != mutants(PRICE, "price", seed=1)


def test_lines_of_a_method_with_a_loop_are_not_removed() -> None:
    looping = "void run(int a) {\n    while (a < 3) {\n        a += 1;\n    }\n}"
    assert mutants(looping, "run") == ["void run(int a) {\n    while (a < 3) {\n        a += 2;\n    }\n}"]


@pytest.mark.long
@pytest.mark.slow
def test_the_whole_suite_notices_wrong_code_that_compiles(tmp_path: Path, bubblewrap_sandbox: Sandbox) -> None:
    if shutil.which("javac") is None:
        missing("javac is not there: install openjdk-17-jdk-headless")
    write_tree(tmp_path / "root", TREE)
    (tmp_path / "work").mkdir()
    suite = JavaSuite(tmp_path / "root", {}, tmp_path / "work")
    span = TOTAL.span or (0, 0)
    assert suite.compiles(PATH, span, TOTAL_REFERENCE.target)
    assert not suite.notices(PATH, span, TOTAL_REFERENCE.target)
    assert suite.notices(PATH, span, total("return 0;"))
    assert not suite.compiles(PATH, span, total("return null;"))
