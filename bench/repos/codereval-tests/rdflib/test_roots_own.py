# mypy: ignore-errors
"""Tests of our own for rdflib 6.1.1. Expectations: the docstring, and the package."""

import itertools

import pytest
from rdflib import RDFS, Graph, URIRef
from rdflib.util import find_roots

A, B, C, D, E, F = (URIRef(f"http://example.org/{name}") for name in "abcdef")


def graph(*pairs, prop=RDFS.subClassOf):
    made = Graph()
    for child, parent in pairs:
        made.add((child, prop, parent))
    return made


@pytest.mark.parametrize(
    ("pairs", "roots"),
    [
        ([], set()),
        ([(A, B)], {B}),
        ([(A, B), (B, C)], {C}),
        ([(A, B), (C, B)], {B}),
        ([(A, B), (A, C)], {B, C}),
        ([(A, B), (C, D), (D, E)], {B, E}),
        ([(A, B), (B, A)], set()),
        ([(A, A)], set()),
        ([(A, B), (B, C), (C, D), (E, D), (F, B)], {D}),
    ],
)
def test_find_roots(pairs, roots):
    assert find_roots(graph(*pairs), RDFS.subClassOf) == roots


def test_other_properties_do_not_count():
    made = graph((A, B))
    made.add((B, RDFS.seeAlso, C))
    assert find_roots(made, RDFS.subClassOf) == {B}
    assert find_roots(made, RDFS.seeAlso) == {C}
    assert find_roots(made, RDFS.label) == set()


def test_roots_go_on_from_those_given():
    given = {A, F}
    made = find_roots(graph((A, B)), RDFS.subClassOf, given)
    assert made == {B, F}
    assert find_roots(graph((A, B)), RDFS.subClassOf, roots=set()) == {B}


class Ordered:
    """A graph whose pairs come in an order that is known."""

    def __init__(self, pairs):
        self.pairs = pairs

    def subject_objects(self, prop):
        return iter(self.pairs)


def test_the_order_of_the_triples_changes_nothing():
    for pairs in itertools.permutations([(A, B), (B, C), (D, B), (C, E)]):
        assert find_roots(Ordered(pairs), RDFS.subClassOf) == {E}
