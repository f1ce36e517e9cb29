"""Mutants: faulty versions of a Python function."""

import ast

import pytest

from ctxbench.bench.functions.certificates import Mutants
from ctxbench.bench.functions.choose import Draft, count_mutants, in_turns
from ctxbench.bench.functions.python.mutants import mutants
from ctxbench.bench.types import Reference, Sample
from tests.helpers.samples import make_sample

RECURSE = '''def recurse(self, parts, depth=1):
    """Put the parts, and theirs, into one list."""
    while depth < 10:
        depth += 1
    if parts and depth:
        for part in parts:
            self.put(part)
        return [self.recurse(part) for part in parts]
    return f"{parts!r} none" == "x"
'''


def test_each_mutant_changes_only_the_body_of_the_function() -> None:
    found = mutants(RECURSE, 100)
    assert len(found) == len(set(found)) > 8
    own = ast.dump(ast.parse(RECURSE))
    for text in found:
        [function] = ast.parse(text).body
        assert isinstance(function, ast.FunctionDef) and function.name == "recurse"
        assert ast.dump(ast.parse(text)) != own
        assert ast.get_docstring(function) == "Put the parts, and theirs, into one list."
        assert ast.unparse(function.args) == "self, parts, depth=1"


@pytest.mark.parametrize(
    "holds", ["[part for part in parts]", "if not (parts and depth):", "parts or depth", "return None", "!= 'x'"]
)
def test_mutants_include_gross_faults(holds: str) -> None:
    assert any(holds in text for text in mutants(RECURSE, 100))


def test_mutants_do_not_make_a_loop_endless() -> None:
    for text in mutants(RECURSE, 100):
        assert "while depth < 1" in text and "depth += " in text


def test_fewer_mutants_are_a_prefix_of_more_in_a_fixed_order() -> None:
    every = mutants(RECURSE, 100)
    assert [mutants(RECURSE, most) for most in range(5)] == [every[:most] for most in range(5)]
    assert mutants(RECURSE, 100) == every


def test_kinds_of_faults_take_turns() -> None:
    found = list(in_turns([(kind, kind) for kind in "aaabbc"], "seed"))
    assert [sorted(turn) for turn in (found[:3], found[3:5], found[5:])] == [["a", "b", "c"], ["a", "b"], ["a"]]


@pytest.mark.parametrize("text", ["", "x = 1", "def f(:", 'def f():\n    """Doc."""\n    pass\n'])
def test_an_invalid_or_empty_function_has_no_mutants(text: str) -> None:
    assert mutants(text, 5) == ()


class Answers:
    """Returns one given answer per mutant, in turn."""

    def __init__(self, *noticed: frozenset[str] | None) -> None:
        self._noticed = iter(noticed)

    def failing(self, sample: Sample, reference: Reference, text: str) -> frozenset[str] | None:
        return next(self._noticed)


def test_a_mutant_that_no_test_ran_with_does_not_count() -> None:
    sample = make_sample()
    draft = Draft(
        sample=sample,
        reference=Reference(id=sample.id, target="t", tests=("a",)),
        ranked=("a",),
        others=("b",),
        blank="",
        mutants=lambda most: ("one", "two")[:most],
    )
    assert count_mutants(draft, ("a",), Answers(None, frozenset("b"))) == Mutants(tried=1, killed=0, killed_by_all=1)
    assert count_mutants(draft, ("a",), Answers(None, None)) == Mutants()
