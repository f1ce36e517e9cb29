"""The names that files give to their own things, in both languages, and texts under other names."""

from __future__ import annotations

import pytest

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.naming import own_names, renamed
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.syntax import Source

_PYTHON = """
import os
from shop import tax as rules, Cart
class Till(Cart):
    RATE = 3
    def __init__(self, first: int = 1, *rest, code, last=None, **more) -> float:
        a, (b, *c) = 1, (2, 3)
        self.stock = [item.name for item in more]
        other.count = d["key"] = 1
        with open(a) as file, g() as (left, right): pass
        try: scale: int = f"{first} first"
        except OSError as error: print(lambda u, v=2: u)
        path = os.path
        if (size := 3): return rules.apply(amount=size, first=os.getcwd(a))  # first
        for k, v in more.items(): str(id)
"""
_JAVA = """
import java.util.List;
import shop.Tax;
public class Till<T> extends Cart {
    private final int rate = 3, other;
    enum Size { SMALL, LARGE }
    record Pair(int left, String right) {}
    interface Shop { void open(); }
    @Override public double total(final List<Tax> taxes, String... names) throws IOException {
        for (Tax tax : taxes) { this.rate += tax.apply(rate); }
        try (var in = open()) { Fn f = (p, q) -> p.x + q; Fn g = t -> t.go("rate"); }
        catch (IOException error) { if (error instanceof Deep deep) return deep; }
        return Tax.of(names[0])::foo; // rate
    }
    public String toString() { return ""; }
}
"""


@pytest.mark.parametrize(
    ("language", "text", "names"),
    [
        (
            PYTHON,
            _PYTHON,
            "Till RATE first rest code last more a b c stock item file left right scale error u v size k",
        ),
        (
            JAVA,
            _JAVA,
            "Till rate other Size SMALL LARGE Pair left right Shop total taxes names tax f p q g t error deep",
        ),
    ],
    ids=["python", "java"],
)
def test_own_names_are_those_that_the_file_gives(language: Language, text: str, names: str) -> None:
    own = own_names(Source(text, language), language)
    # `open` is of Python's library, `in` is no word of Java's: both files bind them.
    assert own - {"open", "in"} == set(names.split())
    half = Source(text[: text.index("Exception" if language == JAVA else "self.stock")], language)
    assert {"Till", "rest" if language == PYTHON else "taxes"} <= own_names(half, language), "cut off anywhere"


def test_names_that_are_needed_count_although_they_are_imported() -> None:
    source = Source(_PYTHON, PYTHON)
    assert "rules" not in own_names(source, PYTHON)
    assert {"rules", "apply"} <= own_names(source, PYTHON, {"rules", "apply", "strip"})
    assert "strip" not in own_names(source, PYTHON, {"strip"}), "a method of str stays, whoever has one too"


def test_a_part_is_renamed_everywhere_but_in_strings_and_comments() -> None:
    source = Source(_PYTHON, PYTHON)
    start = source.data.index(b"try:")
    text = renamed(source, start, len(source.data), {"first": "third", "size": "bulk", "more": "heap", "FIRST": "no"})
    assert 'f"{third} first"' in text and "(bulk := 3)" in text and "amount=bulk, third=os.getcwd(a))  # first" in text
    assert renamed(source, start, start + 7, {"try": "x"}) == "try: sc", "a name that the end cuts stays"
    java = Source('String é = rate + "rate"; // rate', JAVA)
    assert renamed(java, 0, len(java.data), {"rate": "toll", "é": "è"}) == 'String è = toll + "rate"; // rate'
