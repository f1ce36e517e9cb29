import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE
from ctxbench.bench.retrieval.rankers import words
from ctxbench.bench.retrieval.units import cutter, units

PYTHON = '''\
"""Prices."""
import os

if os.name:

    @cached
    # The usual one.
    def rate(region):
        """The rate."""
        def inner(x):
            return x
        return inner(region)


class Cart:
    def __init__(self, user):
        self.user = user

    class Line:
        @property
        def sum(self):
            return 1


try:
    import fast
except ImportError:
    def fast(x): return x
LIMIT = lambda x: x
'''
JAVA = """\
package shop;

public interface Store {
    int size();

    /** Whether it is empty. */
    default boolean empty() {
        return size() == 0;
    }

    abstract class Base implements Store {
        Base(int limit) {
            this.limit = limit;
        }

        abstract void clear();

        static class Inner {
            @Override
            public String toString() {
                return new Object() { public String toString() { return "x"; } }.toString();
            }
        }
    }
}
"""


def _named(text: str, language: Language) -> dict[str, tuple[int, int]]:
    return {unit.name: (unit.place.start, unit.place.end) for unit in units("a", text, language, "function")}


def test_functions_of_a_python_file_are_units() -> None:
    assert _named(PYTHON, PYTHON_LANGUAGE) == {
        "rate": (5, 12),
        "Cart.__init__": (15, 17),
        "Cart.Line.sum": (19, 22),
        "fast": (27, 28),
    }
    first = units("a", PYTHON, PYTHON_LANGUAGE, "function")[0]
    assert first.text == "\n".join(PYTHON.split("\n")[5:12]) and first.text.startswith("    @cached\n")


def test_functions_of_a_java_file_are_units() -> None:
    assert _named(JAVA, JAVA_LANGUAGE) == {
        "Store.empty": (5, 9),
        "Store.Base.Base": (11, 14),
        "Store.Base.Inner.toString": (18, 22),
    }


def test_chunks_are_consecutive_nonblank_lines() -> None:
    text = "a\n\nb\n  \nc\nd\ne\n\n"
    found = units("f.py", text, PYTHON_LANGUAGE, "chunk(lines=2)")
    assert [(unit.text, unit.place.start, unit.place.end) for unit in found] == [
        ("a\nb", 0, 3),
        ("c\nd", 4, 6),
        ("e", 6, 7),
    ]
    long = "".join(f"x{i}\n" for i in range(25))
    assert [unit.place.end for unit in units("f.py", long, PYTHON_LANGUAGE, "chunk")] == [10, 20, 25]


def test_mini_blocks_join_small_adjacent_blocks() -> None:
    text = "a\nb\n\nc\n\nd\n\n\ne\nf\ng\n"
    found = units("f.py", text, PYTHON_LANGUAGE, "mini-block(lines=4)")
    assert [(unit.text, unit.place.start, unit.place.end) for unit in found] == [
        ("a\nb\nc\nd", 0, 6),
        ("e\nf\ng", 8, 11),
    ]
    found = units("f.py", text, PYTHON_LANGUAGE, "mini-block(lines=3)")
    assert [unit.text for unit in found] == ["a\nb\nc", "d", "e\nf\ng"]


def test_a_block_that_is_too_long_for_a_mini_block_is_split() -> None:
    found = units("f.py", "".join(f"x{i}\n" for i in range(32)), PYTHON_LANGUAGE, "mini-block")
    assert [(unit.place.start, unit.place.end) for unit in found] == [(0, 15), (15, 30), (30, 32)]


def test_mini_blocks_end_at_line_5000() -> None:
    found = units("f.py", "x\n\n" * 3000, PYTHON_LANGUAGE, "mini-block(lines=1)")
    assert len(found) == 2500 and found[-1].place.end == 4999


def test_word_units_keep_the_text_between_words() -> None:
    text = "  def f(a):\n      return a\n\nx  =  1\n"
    found = units("f.py", text, PYTHON_LANGUAGE, "words(count=3)")
    assert [(unit.text, unit.place.start, unit.place.end) for unit in found] == [
        ("  def f(a):\n      return", 0, 2),
        ("a\n\nx  =", 1, 4),
        ("1", 3, 4),
    ]


@pytest.mark.parametrize("spec", ["function", "chunk", "mini-block", "words", "usage", "summary"])
@pytest.mark.parametrize("text", ["", "\n", "  \n\t\n"])
def test_an_empty_file_has_no_units(spec: str, text: str) -> None:
    assert units("f.py", text, PYTHON_LANGUAGE, spec) == ()
    assert units("f.java", text, JAVA_LANGUAGE, spec) == ()


def test_usage_units_accept_the_quirks_option() -> None:
    text = "DEFAULT = 1\ndef load(path, rate=DEFAULT):\n    pass\n"
    [plain] = units("f.py", text, PYTHON_LANGUAGE, "usage")
    [odd] = units("f.py", text, PYTHON_LANGUAGE, "usage(quirks=on)")
    assert plain.keys[0] == "load(path, rate)" and odd.keys[0] == "load(path, rate, DEFAULT)"
    assert cutter("usage(quirks=true)").spec == cutter("usage(quirks=on)").spec != cutter("usage").spec


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("functon", "did you mean function"),
        ("function(lines=3)", "known parameters: none"),
        ("chunk(line=3)", "known parameters: lines"),
        ("chunk(lines=0)", "whole number from 1"),
        ("chunk(lines=on)", "whole number from 1"),
        ("words(count=2.5)", "whole number from 1"),
        ("usage(quirks=3)", "true or false"),
        ("usage(quirks=maybe)", "true or false"),
        ("chunk(", "write it as"),
    ],
)
def test_an_invalid_unit_is_reported_in_one_line(spec: str, words: str) -> None:
    with pytest.raises(InputFault) as caught:
        cutter(spec)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_words_are_split_into_their_parts() -> None:
    assert words("loadCart(HTTPServer2, _x, MAX_SIZE)") == [
        *("loadcart", "load", "cart"),
        *("httpserver2", "http", "server2"),
        *("_x", "x"),
        *("max_size", "max", "size"),
    ]
    assert words("über a.b ___ 12") == ["ber", "a", "b", "___", "12"]
