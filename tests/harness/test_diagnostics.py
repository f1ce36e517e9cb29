"""Diagnostics: names in completions are checked in their files, and retrieved blocks are compared with the target."""

import dataclasses
from typing import Any

import pytest

from ctxbench.bench.code_tokens import count
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.repository import view
from ctxbench.bench.types import Cursor, Kind, Place, Sample, Use
from ctxbench.harness.definitions import Definition, definition_scores
from ctxbench.harness.diagnostics import (
    HALLUCINATED,
    MADE_UP,
    RECALL,
    WASTE,
    Diagnostics,
    api_recall,
    closed,
    context_waste,
)
from ctxbench.strategies.api import Block, BlockKind, Dropped, Prompt
from tests.helpers.samples import make_sample

TAX = "RATE = 1\ndef apply_tax(amount):\n    return amount\n"
PAY = """from shop import tax
from shop.tax import (
    RATE,
)
def helper(tax):
    return tax
class Pay:
    class Inner:
        def go(self, x):
            y = tax.apply_tax(x)
            return y
    LIMIT = tax.RATE
print(tax.RATE)
"""
JAVA = """package shop;
import shop.tax.Rules;
public class Pay {
    private int sum;
    void go(int x) {
        sum = Rules.round(x);
    }
}
"""
RULES = "package shop.tax;\npublic class Rules {\n    public static int round(int x) { return x; }\n}\n"


def snapshot(language: Language, **texts: str) -> Snapshot:
    return Snapshot(name="demo", language=language, digest="d", texts=texts, dropped={})


PYTHON = snapshot(PYTHON_LANGUAGE, **{"shop/__init__.py": "", "shop/pay.py": PAY, "shop/tax.py": TAX})
SHOP = snapshot(JAVA_LANGUAGE, **{"shop/Pay.java": JAVA, "shop/tax/Rules.java": RULES})


def cut(text: str, marker: str, *, path: str, language: Language = PYTHON_LANGUAGE, **changes: Any) -> Sample:
    """Return a sample whose cursor is at the beginning of `marker`."""
    prefix = text[: text.index(marker)]
    line = prefix.count("\n")
    column = len(prefix.rpartition("\n")[2])
    return make_sample(path=path, prefix=prefix, language=language, cursor=Cursor(line=line, column=column), **changes)


def names(sample: Sample, text: str, *, target: str = "x", shots: Snapshot = PYTHON) -> dict[str, bool] | None:
    found = Diagnostics(lambda: {"demo": shots}).readings(sample, text, target)
    return None if found is None else {one.name: one.known for one in found}


@pytest.mark.parametrize(
    ("marker", "text", "found"),
    [
        ("tax.apply_tax(x)", "tax.apply_tax(RATE)", {"tax.apply_tax": True, "RATE": True}),
        ("tax.apply_tax(x)", "tax.wrong(self.go, self.no)", {"tax.wrong": False, "self.go": True, "self.no": False}),
        ("tax.apply_tax(x)", "tax.wrong([self.no,", {"tax.wrong": False, "self.no": False}),
        ("tax.apply_tax(x)", "1\n            tax.wrong", {}),
        ("tax.RATE\nprint", "tax.wrong", {"tax.wrong": False}),
        ("tax.RATE)", "tax.wrong)", {"tax.wrong": False}),
        ("tax\nclass", "tax.wrong", {}),
    ],
)
def test_names_in_a_python_line_are_checked(marker: str, text: str, found: dict[str, bool]) -> None:
    assert names(cut(PAY, marker, path="shop/pay.py"), text) == found


def test_names_of_masked_imports_are_not_judged() -> None:
    marker = "tax.apply_tax(x)"
    sample = cut(PAY, marker, path="shop/pay.py", masked=((0, 1),))
    assert names(sample, "tax.wrong(RATE)") == {"RATE": True}


def test_names_in_a_python_function_are_checked() -> None:
    line = PAY.count("\n", 0, PAY.index("        def go"))
    sample = cut(PAY, "            y =", path="shop/pay.py", kind=Kind.FUNCTION, span=(line, line + 3), name="go")
    text = "        def go(self, x):\n            import shop.tax\n            return tax.wrong(self.go, shop.tax.no)\n"
    assert names(sample, text) == {"shop.tax": True, "tax.wrong": False, "self.go": True, "shop.tax.no": False}


def test_java_names_are_not_judged() -> None:
    sample = cut(JAVA, "Rules.round", path="shop/Pay.java", language=JAVA_LANGUAGE)
    assert names(sample, "Rules.floor(this.sum)", shots=SHOP) is None


@pytest.mark.parametrize(
    "sample",
    [
        cut(PAY.replace("y = ", "why = "), "tax.apply_tax(x)", path="shop/pay.py"),
        cut(PAY, "tax.apply_tax(x)", path="shop/other.py"),
        cut(PAY, "tax.apply_tax(x)", path="shop/pay.py", repo="unknown"),
        make_sample(path="shop/pay.py", cursor=Cursor(line=99, column=0)),
    ],
)
def test_names_are_not_judged_without_the_target_file(sample: Sample) -> None:
    assert names(sample, "tax.wrong") is None
    values = Diagnostics(lambda: {"demo": PYTHON}).of_completion(sample, "tax.wrong", "x")
    assert values == {HALLUCINATED: None, MADE_UP: None}


def test_unknown_names_are_reported_as_share_and_count() -> None:
    sample = cut(PAY, "tax.apply_tax(x)", path="shop/pay.py")
    measure = Diagnostics(lambda: {"demo": PYTHON}).of_completion
    assert measure(sample, "tax.wrong(tax.apply_tax, tax.RATE, tax.no)", "x") == {HALLUCINATED: 0.5, MADE_UP: 2.0}
    assert measure(sample, "x + y", "x") == {HALLUCINATED: None, MADE_UP: 0.0}
    assert measure(sample, "", "x") == {HALLUCINATED: None, MADE_UP: 0.0}


@pytest.mark.parametrize("shown", ["# def apply_tax(amount):\n", "# taxed(total)\n", "# nothing\n"])
def test_api_recall_accepts_the_original_name_of_an_import_with_an_alias(shown: str) -> None:
    text = "from shop.tax import (\n    RATE,\n    apply_tax as taxed,\n)\nwith RATE as nothing:\n    total = "
    sample = cut(f"{text}taxed(1)\n", "taxed(1)", path="shop/pay.py")
    sample = dataclasses.replace(sample, uses=(Use(name="taxed", module="shop.tax", kind="function"),))
    shots = snapshot(PYTHON_LANGUAGE, **{"shop/pay.py": f"{text}taxed(1)\n", "shop/tax.py": TAX})
    prompt = Prompt(blocks=(Block(kind=BlockKind.SIMILAR, text=shown),))
    assert Diagnostics(lambda: {"demo": shots}).of_prompt(sample, prompt, "taxed(1)")[RECALL] == ("tax" in shown)


def test_a_dropped_block_after_the_body_counts_lines_of_the_view() -> None:
    lines = ["def pay(x):", "    cart = load(x)", "    return cart", "def due(x):", "    return x"]
    text = "".join(f"{line}\n" for line in lines)
    sample = make_sample(
        path="shop/pay.py",
        kind=Kind.FUNCTION,
        cursor=Cursor(line=1, column=0),
        prefix=f"{lines[0]}\n",
        suffix="".join(f"{line}\n" for line in lines[3:]),
        span=(0, 3),
    )
    repo = snapshot(PYTHON_LANGUAGE, **{"shop/pay.py": text})
    [hit] = view(repo, sample.query()).search("due", unit="function", ranker="bm25")
    useful = Block(kind=BlockKind.SIMILAR, text="# cart\n")
    dropped = Dropped(kind=BlockKind.SIMILAR, places=(hit.place,), score=None, reason="budget")
    scores = Diagnostics(lambda: {"demo": repo}).of_prompt(
        sample, Prompt(blocks=(useful,), dropped=(dropped,)), "\n".join(lines[1:3])
    )
    tokens = count("# def due(x):\n#     return x\n")
    assert scores[WASTE] == pytest.approx(tokens / (tokens + count(useful.text)))


@pytest.mark.parametrize(
    ("code", "whole"),
    [
        ("f(a, [b", "f(a, [b])"),
        ("if x:", "if x: pass"),
        ("if f(x", "if f(x)"),
        ("x = '('", "x = '('"),
        ("x) # (", "x) # ("),
    ],
)
def test_open_brackets_and_blocks_are_closed(code: str, whole: str) -> None:
    assert closed(code) == whole


INFILE = Block(kind=BlockKind.INFILE, text="total = ")


def use(name: str, kind: str = "function") -> Use:
    return Use(name=name, module="shop", kind=kind)


def prompt(*blocks: tuple[BlockKind, str], dropped: tuple[Dropped, ...] = ()) -> Prompt:
    return Prompt(blocks=(*(Block(kind=kind, text=text) for kind, text in blocks), INFILE), dropped=dropped)


SIMILAR, API, TEXT = BlockKind.SIMILAR, BlockKind.API, BlockKind.TEXT


@pytest.mark.parametrize(
    ("uses", "blocks", "share"),
    [
        ((), ((SIMILAR, "apply_tax"),), None),
        ((use("apply_tax"),), (), 0.0),
        ((use("apply_tax"),), ((SIMILAR, "# x = apply_tax(y)\n"),), 1.0),
        ((use("apply_tax"),), ((API, "# def apply_tax(x)\n"),), 1.0),
        ((use("apply_tax"),), ((TEXT, "apply_tax"),), 0.0),
        ((use("tax"),), ((SIMILAR, "# apply_tax(y)\n"),), 0.0),
        ((use("rules", "module"), use("rules.round_up"), use("Cart", "class")), ((API, "# rules, round_up\n"),), 0.5),
    ],
)
def test_api_recall_is_the_share_of_used_names_in_retrieved_blocks(
    uses: tuple[Use, ...], blocks: tuple[tuple[BlockKind, str], ...], share: float | None
) -> None:
    assert api_recall(uses, prompt(*blocks), {}) == share


def test_names_shown_only_by_the_target_file_are_not_recalled() -> None:
    shown = Prompt(blocks=(Block(kind=BlockKind.INFILE, text="apply_tax"),))
    assert api_recall((use("apply_tax"),), shown, {}) == 0.0


def measured(shown: Prompt, target: str = "apply_tax(total, rate)") -> float | None:
    lines = {Place(path="a.py", start=0, end=2): ["one", "two"]}
    return context_waste(shown, target, PYTHON_LANGUAGE, lambda place: lines.get(place, ()))


def test_waste_is_measured_in_tokens() -> None:
    useful, useless = "# apply_tax(cart)\n", "# nothing here that helps at all\n"
    shown = prompt((SIMILAR, useful), (SIMILAR, useless))
    assert measured(shown) == pytest.approx(count(useless) / (count(useful) + count(useless)))
    assert measured(prompt((SIMILAR, useful))) == 0.0
    assert measured(prompt((API, useless))) == 1.0


def test_blocks_are_waste_if_the_target_file_has_their_names() -> None:
    assert measured(prompt((SIMILAR, "# total = 1\n"))) == 1.0
    assert measured(prompt((TEXT, "apply_tax rate"), (SIMILAR, "# apply_tax\n"))) is None, "nothing is left to name"


def test_waste_is_undefined_without_retrieved_blocks_or_target_names() -> None:
    assert measured(prompt((TEXT, "# header\n"))) is None
    assert measured(prompt((SIMILAR, "# apply_tax\n")), target="1 + 'apply_tax'") is None


def test_dropped_blocks_count_as_waste() -> None:
    def dropped(kind: BlockKind, *places: Place) -> Dropped:
        return Dropped(kind=kind, places=places, score=None, reason="budget")

    place, useful = Place(path="a.py", start=0, end=2), "# apply_tax(cart)\n"
    lines = count("# one\n# two\n")
    assert measured(prompt((SIMILAR, useful), dropped=(dropped(SIMILAR, place),))) == pytest.approx(
        lines / (lines + count(useful))
    )
    assert measured(prompt(dropped=(dropped(SIMILAR, place),))) == 1.0
    assert measured(prompt((API, useful), dropped=(dropped(API, place),))) == pytest.approx(0.5), "as the mean API"
    assert measured(prompt((SIMILAR, useful), dropped=(dropped(TEXT, place),))) == 0.0
    assert measured(prompt((SIMILAR, useful), dropped=(dropped(SIMILAR),))) == 0.0, "no place, no tokens"


@pytest.mark.parametrize("places", [(), (Place(path="a.py", start=0, end=2), Place(path="a.py", start=3, end=9))])
@pytest.mark.parametrize("kind", [SIMILAR, API])
def test_a_dropped_block_counts_with_its_whole_text_at_any_place(kind: BlockKind, places: tuple[Place, ...]) -> None:
    useful, useless = "# apply_tax(cart)\n", "# one\n# two\n# three = four\n"
    gone = Dropped.of(Block(kind=kind, text=useless, places=places))
    shown = prompt((kind, useful), dropped=(gone,))
    assert measured(shown) == pytest.approx(count(useless) / (count(useful) + count(useless)))


USER = "from shop.rules import round_up as up, Cart\nfrom shop import rules\ndef here():\n    return 1\n"
RULES_PY = """A = LIMIT = 3
def helper():
    LIMIT = 4
class Cart:
    LIMIT = 5
    def __init__(self, x):
        self.x = x
    class Inner:
        pass
if A:
    @cached
    def round_up(x):
        return x
else:
    def round_up(x, y=1):
        return y
RATE: int = 2
"""
OUTER = """package shop.tax;
/** LIMIT, Inner */
public class Outer {
    static final int LIMIT = 1, MORE = LIMIT;
    enum Kind { LOW(1), HIGH(2); }
    public Outer() {}
    @Override
    public int add(int a) { int LOW = 2; return a; }
    int add(int a, int b) { return b; }
    static class Inner {
        int LIMIT = 2;
    }
}
"""
DEFINED = snapshot(
    PYTHON_LANGUAGE,
    **{
        "pkg/__init__.py": "from shop.rules import round_up as ceiling, gone as gone\n",
        "shop/user.py": USER,
        "shop/rules.py": RULES_PY,
        "lib/shop/rules.py": "def other():\n  pass\n",
    },
)
OUTERS = snapshot(JAVA_LANGUAGE, **{"src/shop/tax/Outer.java": OUTER, "src/shop/Pay.java": "package shop;\n"})


def internal(name: str, kind: str, module: str = "shop.rules") -> Use:
    return Use(name=name, kind=kind, module=module)


@pytest.mark.parametrize(
    ("used", "rows"),
    [
        (internal("Cart", "class"), [3, 5]),
        (internal("rules.round_up", "function"), [11, 14]),
        (internal("up", "function"), [11, 14]),
        (internal("LIMIT", "variable"), [0]),
        (internal("rules.RATE", "variable"), [16]),
        (internal("other", "function"), [0]),
        (internal("rules", "module"), None),
        (internal("gone", "unknown"), None),
        (internal("pkg.ceiling", "function"), [11, 14]),
        (internal("here", "function", "shop.user"), None),
        (internal("nothing", "function", "os.path"), None),
        (internal("Outer", "class", "shop.tax.Outer"), [2, 5]),
        (internal("Outer.add", "function", "shop.tax.Outer"), [7, 8]),
        (internal("LIMIT", "variable", "shop.tax.Outer"), [3]),
        (internal("MORE", "variable", "shop.tax.Outer"), [3]),
        (internal("Outer.Inner", "class", "shop.tax.Outer.Inner"), [9]),
        (internal("Inner.LIMIT", "variable", "shop.tax.Outer.Inner"), [10]),
        (internal("Kind.LOW", "variable", "shop.tax.Outer.Kind"), [4]),
    ],
)
def test_uses_are_resolved_to_the_lines_that_name_definitions(used: Use, rows: list[int] | None) -> None:
    shots, path = (OUTERS, "src/shop/Pay.java") if ".tax." in used.module else (DEFINED, "shop/user.py")
    diagnostics = Diagnostics(lambda: {"demo": shots})
    definitions = diagnostics.definitions(make_sample(path=path, language=shots.language, uses=(used, used)))
    assert [[row for row, _ in definition.lines] for definition in definitions] == ([rows] if rows else [])
    hidden = make_sample(path=path, language=shots.language, uses=(used,), hidden=("shop/", "lib/", "src/shop/tax/"))
    assert diagnostics.definitions(hidden) == ()


ADD = Definition("add", "a.py", ((3, "def add(x):"),))
SUB = Definition("sub", "b.py", ((0, "def sub(x):"), (9, "def sub(y):")))
FILLER = "value = 1\n" * 200


def block(text: str, *places: tuple[str, int, int], kind: BlockKind = BlockKind.SIMILAR, **fields: Any) -> Block:
    return Block(kind=kind, text=text, places=tuple(Place(path=p, start=s, end=e) for p, s, e in places), **fields)


@pytest.mark.parametrize(
    ("blocks", "recall", "first"),
    [
        pytest.param([], {256: 0, 4096: 0}, 0, id="nothing"),
        pytest.param([block("def add(x):", ("a.py", 3, 4))], {256: 0.5}, 1, id="a line"),
        pytest.param([block(f"{FILLER}def add(x):\n{FILLER}", ("a.py", 0, 999))], {512: 0, 1024: 0.5}, 1, id="a file"),
        pytest.param([block("def add(x):"), block("def sub(y):")], {4096: 0}, 0, id="no places"),
        pytest.param([block("x", ("a.py", 0, 99), ("b.py", 0, 99))], {4096: 0}, 0, id="places whose text is not shown"),
        pytest.param([block("def add(x):", ("a.py", 4, 9))], {4096: 0}, 0, id="the text of other lines"),
        pytest.param([block("# def add(x):", ("a.py", 0, 9))] * 3, {256: 0.5}, 1, id="duplicates"),
        pytest.param(
            [block("y", ("a.py", 0, 3)), block("y\ndef add(x):", ("a.py", 2, 4))], {256: 0.5}, 1 / 2, id="overlapping"
        ),
        pytest.param(
            [block("def add( x )", ("a.py", 3, 6), kind=BlockKind.API), block("def sub(y):", ("b.py", 9, 10))],
            {256: 1},
            1,
            id="a signature written anew, one of two overloads",
        ),
        pytest.param([block("def added(x)", ("a.py", 3, 6), kind=BlockKind.API)], {4096: 0}, 0, id="another name"),
        pytest.param(
            [block(FILLER, score=0.1), block(f"{FILLER}def add(x):", ("a.py", 0, 9), score=0.9, cut=True)],
            {512: 0, 1024: 0.5},
            1,
            id="the best last",
        ),
        pytest.param([block("def add(x):", ("a.py", 3, 4), kind=BlockKind.INFILE)], {4096: 0}, 0, id="not retrieved"),
    ],
)
def test_definition_scores_follow_the_order_of_blocks(
    blocks: list[Block], recall: dict[int, float], first: float
) -> None:
    scores = definition_scores((ADD, SUB), Prompt(blocks=tuple(blocks)))
    assert {budget: scores[f"definition_recall@{budget}"] for budget in recall} == recall
    assert scores["definition_mrr"] == first
    shown = sum(count(one.text) for one in blocks if one.kind is not BlockKind.INFILE)
    for budget, share in recall.items():
        per_thousand = 2 * share * 1000 / min(shown, budget) if shown else None
        assert scores[f"definition_precision@{budget}"] == per_thousand
    assert set(definition_scores((), Prompt(blocks=tuple(blocks))).values()) == {None}
