"""Tests of the line sample checker: it accepts built samples and finds every kind of damage."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.home import Home
from ctxbench.bench.lines.build import build
from ctxbench.bench.repositories.manifest import load
from tests.helpers.trees import blind, write_tree
from tests.independent.line_samples import Tree, check, check_set

PYTHON = {
    "shop/__init__.py": "from .cart import Cart as Basket\nfrom . import rules\n",
    "shop/cart.py": """
        # -*- coding: latin-1 -*-
        from shop import Basket, rules

        class Cart:
            name = 'Körbchen'

            def add(self, count):
                return rules.round_up(count, self.name)

        def demo():
            from shop import Basket
            return Basket(1).add(2)
        """,
    "shop/rules.py": "def round_up(x, y=1):\n    return x\n\nRATE = 3\n",
    "shop/till.py": """
        import shop.rules
        from json import dumps
        from shop.cart import Cart
        from shop.rules import (
            RATE,
            round_up,
        )

        MARK = '\ufffd'

        @round_up
        def pay(Cart, price=RATE):
            return Cart(price, 1, 2)

        def take():
            total = [Cart(1), (shop
                .rules.round_up(2)), RATE]
            text = f'{RATE}' + dumps(total, indent=RATE)
            shop.rules.round_up(total, text)
            del Cart, total
            return '''
            Cart(1, 2, 3)
            '''
        """,
    "shop/stars.py": "from shop.rules import *\n\ndef pay():\n    price = round_up(RATE, 4)\n    return price\n",
    "shop/fast.py": """
        try:
            from shop._fast import round_up
        except ImportError:
            from shop.rules import round_up

        def pay(price):
            return round_up(price, 7)
        """,
    "shop/old.py": "from shop.rules import RATE\n\nprint 'costs', RATE + 2\n",
}
JAVA = {
    "pom.xml": "<project><project.build.sourceEncoding>ISO-8859-1</project.build.sourceEncoding></project>",
    "src/a/tax/Rules.java": """
        package a.tax;

        public class Rules {
            public static final int RATE = 3;
            public static int apply(int x) { return x; }
            public enum Kind { FULL, HALF(1) { int x() { return 1; } }; Kind() { } Kind(int x) { } }
            public static class Step { public static int next() { return 1; } }
        }
        """,
    "src/a/Till.java": """
        package a;

        import static a.tax.Rules.RATE;
        import static a.tax.Rules.apply;
        import static a.Till.Names.FIRST;

        import a.tax.Rules;
        import a.tax.Rules.Kind;
        import java.util.List;

        /** Pays by {@link Rules}. */
        class Till {
            static class Names { static final int FIRST = 1; }

            @SuppressWarnings("Rules.apply(1, 2)")
            int pay(List<Kind> kinds) {
                int straße = apply(FIRST) + Names.FIRST;
                int step = 2 + Rules.Step
                    .next() + 1;
                switch (step) { case RATE: return 1; default: }
                int rate = RATE + 2 * FIRST;
                Kind kind = Kind.HALF;
                String text = "a\ufffd" + Rules.apply(rate);
                return Rules.<Integer>apply(step) - kinds.size();
            }
        }
        """,
}


@pytest.fixture(scope="module", params=["python", "java"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home folder with a set called ``demo``."""
    folder = tmp_path_factory.mktemp("lines")
    files = PYTHON if request.param == "python" else JAVA
    write_tree(folder / "demo", files)
    declared = folder / "demo" / ("shop/cart.py" if request.param == "python" else "src/a/Till.java")
    declared.write_bytes(declared.read_bytes().decode("utf-8").replace("\ufffd", "?").encode("latin-1"))
    (folder / "demo.toml").write_text(
        f'name = "demo"\nlanguage = "{request.param}"\nlicense = "MIT"\nversion = "1"\n'
        '[[source]]\nkind = "local"\npath = "demo"\n'
    )
    home = Home(folder / "home")
    # The tiny files write imports in many ways that the current rules exclude.
    with blind():
        build([load(str(folder / "demo.toml"))], home, "demo", per_repo=1000)
    return home.root


def test_the_checker_accepts_built_samples(built: Path) -> None:
    assert check_set(built, "demo") == []
    texts = (built / "samples" / "demo" / "samples.jsonl").read_text("utf-8")
    assert len(texts.splitlines()) > 3 and '"masked": [[' in texts


Record = dict[str, Any]


def _unmask(sample: Record, answer: Record) -> None:
    sample["masked"], answer["original_import"] = [], None


def _mask(sample: Record, answer: Record) -> None:
    sample["masked"] = [[0, 1]]


def _other_use(sample: Record, answer: Record) -> None:
    sample["uses"] = [{"name": "Cart.add", "module": "shop.nowhere", "kind": "function"}]


def _move(sample: Record, answer: Record) -> None:
    sample["cursor"] = {"line": sample["cursor"]["line"] + 1, "column": sample["cursor"]["column"]}


SPOILED: dict[str, tuple[Callable[[Record, Record], None], str]] = {
    "answer": (lambda _, answer: answer.update(target=answer["target"] + ";"), "target"),
    "prefix": (lambda sample, _: sample.update(prefix=sample["prefix"] + " "), "prefix"),
    "suffix": (lambda sample, _: sample.update(suffix=sample["suffix"][:-1]), "suffix"),
    "id": (lambda sample, _: sample.update(repo="other"), "id"),
    "file": (lambda sample, _: sample.update(path="no/such.py"), "file"),
    "subkind": (lambda sample, _: sample.update(subkind="next-word"), "subkind"),
    "import left": (_unmask, "masked"),
    "import blanked": (_mask, "masked"),
    "use": (_other_use, "use"),
    "definition": (_other_use, "definition"),
    "another line": (_move, "target"),
    "inside a token": (lambda sample, _: sample["cursor"].update(column=sample["cursor"]["column"] + 1), "cursor"),
}


@pytest.mark.parametrize(("spoil", "expected"), SPOILED.values(), ids=SPOILED)
def test_the_checker_finds_damaged_samples(built: Path, spoil: Callable[[Record, Record], None], expected: str) -> None:
    folder = built / "samples" / "demo"
    samples = [json.loads(line) for line in (folder / "samples.jsonl").read_text("utf-8").splitlines()]
    answers = {
        item["id"]: item for item in map(json.loads, (folder / "references.jsonl").read_text("utf-8").splitlines())
    }
    about = json.loads((folder / "manifest.json").read_text("utf-8"))["repositories"]["demo"]
    tree = Tree(built / "repos" / about["checkout"], about["language"])
    # Most cases damage a sample whose import is masked.
    sample = next(item for item in samples if bool(item["masked"]) == (expected != "masked" or spoil is _unmask))
    spoil(sample, answers[sample["id"]])
    assert expected in {finding.check for finding in check(tree, about["language"], [sample], answers)}


LINES = {
    "no use of the project": ("from json import dumps\n\nx = dumps(1, 2)\n", 2, "no project API"),
    "a local variable": ("from shop import rules\n\ndef f(rules):\n    return rules.apply(1)\n", 3, "no project API"),
    "a header": ("from shop import rules\n\ndef f(x=rules.RATE): ...\n", 2, "barred"),
    "a string of several lines": ("from shop import rules\n\nx = rules.y('''\n''', 1)\n", 2, "barred"),
    "too short": ("from shop import rules\n\nrules\n", 2, "tokens"),
    "no Python": ("from shop import rules\n\nprint rules.RATE + 1\n", 2, "parses"),
    "a line that recurs": ("from shop import rules\n\nx = f(rules)\nx = f(rules)\n", 2, "leak"),
}


@pytest.mark.parametrize(("text", "line", "expected"), LINES.values(), ids=LINES)
def test_the_checker_finds_lines_that_cannot_be_samples(tmp_path: Path, text: str, line: int, expected: str) -> None:
    write_tree(tmp_path, {"shop/__init__.py": "", "shop/rules.py": "RATE = 1\n", "app.py": text})
    lines = text.split("\n")
    sample = {
        "id": f"demo/app.py#L{line}C0",
        "repo": "demo",
        "path": "app.py",
        "subkind": "next-line",
        "cursor": {"line": line, "column": 0},
        "masked": [[0, 1]],
        "prefix": "\n" * line,
        "suffix": "\n".join(lines[line + 1 :]),
        "uses": [],
    }
    answer = {"target": lines[line], "original_import": lines[0]}
    found = check(Tree(tmp_path, "python"), "python", [sample], {sample["id"]: answer})
    assert expected in {finding.check for finding in found}
