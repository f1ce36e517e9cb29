"""Lines whose answer is visible elsewhere in a repository are dropped and counted."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.lines.build import BuiltSamples, build_samples
from ctxbench.bench.repositories.snapshot import load
from tests.helpers.trees import blind, make_snapshot, write_tree
from tests.independent import in_sight

PY_LINE = "due = apply_tax(cart.total, rate=0.2)"
PY = {
    "shop/__init__.py": "",
    "shop/tax.py": "def apply_tax(amount, rate):\n    return amount * (1 + rate)\n",
    "shop/pay.py": f"from shop.tax import apply_tax\n\n\ndef pay(cart):\n    {PY_LINE}  # both parts\n    return due\n",
    "shop/other.py": "from shop.tax import apply_tax\n\n\ndef rest(cart):\n    paid = apply_tax(cart.rest, rate=0.1)\n",
}
JAVA_LINE = "int due = Tax.apply(cart.total(), rate);"
JAVA_ROOT = "src/main/java/shop"
JAVA_FILES = {
    f"{JAVA_ROOT}/tax/Tax.java": "package shop.tax;\nclass Tax {\n  static int apply(int a, int b) { return a; }\n}\n",
    f"{JAVA_ROOT}/Pay.java": "package shop;\n\nimport shop.tax.Tax;\n\nclass Pay {\n  int pay(Cart cart, int rate) {\n"
    f"    {JAVA_LINE}\n    return due;\n  }}\n}}\n",
    f"{JAVA_ROOT}/Rest.java": "package shop;\n\nimport shop.tax.Tax;\n\nclass Rest {\n  int rest(Cart cart) {\n"
    "    int paid = Tax.apply(cart.rest(), 2);\n    return paid;\n  }\n}\n",
}
LINES = {
    "a doctest": (PYTHON, {"shop/help.py": f'"""Help.\n\n>>> {PY_LINE}\n>>> due\n"""\n'}),
    "a doctest of two lines": (
        PYTHON,
        {"shop/help.py": '"""Help.\n\n>>> due = apply_tax(\n...     cart.total,\n...     rate=0.2)\n"""\n'},
    ),
    "a comment": (PYTHON, {"shop/old.py": f"def old():\n    # {PY_LINE}\n    pass\n"}),
    "a comment behind code": (PYTHON, {"shop/old.py": f"x = 1  # {PY_LINE}\n"}),
    "a string in docs/conf.py": (PYTHON, {"docs/conf.py": f"example = '{PY_LINE}'\n"}),
    "a string of several lines": (PYTHON, {"docs/conf.py": f'example = "import shop\\n{PY_LINE}\\nprint(due)"\n'}),
    "a vendored copy": (PYTHON, {"shop/_vendor/pay.py": f"def pay(cart):\n    {PY_LINE}  # noqa: E501\n"}),
    "a reformatted copy": (
        PYTHON,
        {"build/lib/pay.py": "def pay(cart):\n    due = apply_tax(\n        cart.total,\n        rate=0.2,\n    )\n"},
    ),
    "tabs": (PYTHON, {"shop/tabs.py": "def pay(cart):\n\tdue\t=\tapply_tax(cart.total,rate=0.2)\n"}),
    "a def of one line": (PYTHON, {"shop/short.py": f"def pay(cart): {PY_LINE}\n"}),
    "two statements of one line": (PYTHON, {"shop/short.py": f"def pay(cart):\n    rate = 1; {PY_LINE}; print(due)\n"}),
    "Javadoc": (
        JAVA,
        {f"{JAVA_ROOT}/Help.java": f"package shop;\n/**\n * <pre>\n * {JAVA_LINE}\n * </pre>\n */\nclass Help {{}}\n"},
    ),
    "Javadoc of one line": (
        JAVA,
        {f"{JAVA_ROOT}/Help.java": f"package shop;\n/** Use <pre>{JAVA_LINE}</pre>. */\nclass Help {{}}\n"},
    ),
    "target/generated-sources": (
        JAVA,
        {"target/generated-sources/Pay.java": f"class Pay {{\n int pay() {{\n  {JAVA_LINE} return 1;\n }}\n}}\n"},
    ),
    "a Java comment": (JAVA, {f"{JAVA_ROOT}/Old.java": f"class Old {{\n  // {JAVA_LINE}\n}}\n"}),
    "a Java method of one line": (JAVA, {f"{JAVA_ROOT}/Old.java": f"class Old {{ int pay() {{ {JAVA_LINE} }} }}\n"}),
}


def built(root: Path, language: Language, extra: dict[str, str], *, seeing: bool = True) -> BuiltSamples:
    files = {**(PY if language == PYTHON else JAVA_FILES), **extra}
    read = make_snapshot(root, files, language=language)
    with nullcontext() if seeing else blind():
        return build_samples([read], per_repo=100, seed=0)


def paths(made: BuiltSamples) -> set[str]:
    return {sample.path for sample in made.samples}


@pytest.mark.parametrize(("language", "extra"), LINES.values(), ids=LINES)
def test_a_line_with_a_copy_in_another_file_is_dropped(
    tmp_path: Path, language: Language, extra: dict[str, str]
) -> None:
    target = next(path for path in (PY if language == PYTHON else JAVA_FILES) if path.endswith(("pay.py", "Pay.java")))
    before = built(tmp_path / "before", language, extra, seeing=False)
    assert target in paths(before), "the place shows nothing that text alone would not"
    assert in_sight.found(before.samples, before.references, load("demo", tmp_path / "before", language).texts)
    made = built(tmp_path / "after", language, extra)
    assert target not in paths(made) and paths(made), "the other line stays"
    assert made.counts["demo"]["drops"]["in_sight"] == 1
    assert not in_sight.found(made.samples, made.references, load("demo", tmp_path / "after", language).texts)
    assert target in paths(built(tmp_path / "plain", language, {}))


IMPORTS = {
    "a second alias": (PYTHON, "from shop.tax import apply_tax as taxed\n", ""),
    "a relative alias": (PYTHON, "from .tax import (\n    apply_tax as taxed,\n)\n", ""),
    "the module": (PYTHON, "import shop.tax\n", ""),
    "the module by its package": (PYTHON, "from shop import tax\n", ""),
    "importlib": (PYTHON, 'import importlib\n\nTAX = importlib.import_module("shop.tax")\n', ""),
    "importlib behind the cursor": (PYTHON, "", '\n\ndef late():\n    return patch("shop.tax.apply_tax")\n'),
    "a Java wildcard": (JAVA, "import shop.tax.*;\n", ""),
    "a static import": (JAVA, "import static shop.tax.Tax.apply;\n", ""),
    "a qualified name": (JAVA, "", "\nclass Late { int late() { return shop.tax.Tax.apply(1, 2); } }\n"),
}


@pytest.mark.parametrize(("language", "before", "after"), IMPORTS.values(), ids=IMPORTS)
def test_a_line_whose_masked_import_is_still_visible_is_dropped(
    tmp_path: Path, language: Language, before: str, after: str
) -> None:
    path = "shop/pay.py" if language == PYTHON else f"{JAVA_ROOT}/Pay.java"
    text = (PY if language == PYTHON else JAVA_FILES)[path]
    statement = "from shop.tax import apply_tax\n" if language == PYTHON else "import shop.tax.Tax;\n"
    extra = {path: text.replace(statement, before + statement) + after}
    assert path in paths(built(tmp_path / "before", language, extra, seeing=False))
    made = built(tmp_path / "after", language, extra)
    assert path not in paths(made) and made.counts["demo"]["drops"]["import_in_sight"] == 1


def test_importing_another_name_of_the_module_drops_no_line(tmp_path: Path) -> None:
    extra = {"shop/pay.py": "from shop.tax import other\nimport shopping\n" + PY["shop/pay.py"]}
    assert "shop/pay.py" in paths(built(tmp_path, PYTHON, extra))


@pytest.mark.parametrize(
    "line",
    [
        "due = apply_tax(cart.total, rate=0.25)",
        "due += apply_tax(cart.total, rate=0.2)",
        "due = apply_tax(cart, total, rate=0.2)",
        "overdue = apply_tax(cart.total, rate=0.2)",
    ],
)
def test_similar_code_does_not_count_as_a_copy(tmp_path: Path, line: str) -> None:
    extra = {"shop/like.py": f"def like(cart):\n    {line}\n"}
    assert "shop/pay.py" in paths(built(tmp_path, PYTHON, extra))


def test_build_outputs_are_ignored_but_packages_named_build_are_read(tmp_path: Path) -> None:
    copies = {f"{folder}/pay.py": "x = 1\n" for folder in ("build/lib/shop", "dist/shop-1", "build/lib.linux/shop")}
    root = write_tree(tmp_path / "made", {**PY, **copies, "setup.py": ""})
    assert set(load("demo", root, PYTHON).files) == {*PY, "setup.py"}
    sources = {"build/__init__.py": "", "build/lib/pay.py": "x = 1\n", "shop/dist/one/two.py": "x = 1\n"}
    root = write_tree(tmp_path / "sources", {**PY, **sources, "setup.py": ""})
    assert set(load("demo", root, PYTHON).files) == {*PY, *sources, "setup.py"}
    java = {"target/generated-sources/A.java": "class A {}\n", "pom.xml": "<project/>"}
    root = write_tree(tmp_path / "java", {**JAVA_FILES, **java})
    assert set(load("demo", root, JAVA).files) == set(JAVA_FILES)
