"""The closed encoding: exact round trips, and nothing but plain values out of any bytes."""

from __future__ import annotations

import collections
import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.sandbox.guest.oracle import values

_HASHABLE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.binary(max_size=20)
    | st.complex_numbers()
)
_KEYS = st.recursive(
    _HASHABLE, lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3), max_leaves=5
)
_PLAIN = st.recursive(
    _KEYS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4) | st.sets(_KEYS, max_size=4),
    max_leaves=20,
)


def same(one: object, other: object) -> bool:
    """Whether two plain values are alike to the last bit and type."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return struct.pack(">d", one) == struct.pack(">d", other)
    if isinstance(one, complex):
        return same([one.real, one.imag], [other.real, other.imag])
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, (set, frozenset)):
        return len(one) == len(other) and all(any(same(held, its) for its in other) for held in one)
    return one == other


@pytest.mark.slow
@given(_PLAIN)
def test_what_is_sent_arrives_exactly(value):
    assert same(values.decode(values.encode(value)), value)


@pytest.mark.parametrize(
    "value",
    [-0.0, math.inf, -math.inf, math.nan, 3**9000, -(2**4000), "\udc80", "\0", b"\xff", True, range(3, -9, -2)],
    ids=lambda value: type(value).__name__,
)
def test_values_that_others_lose_arrive_exactly(value):
    assert same(values.decode(values.encode(value)), value)


class _Liar(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize(
    "value",
    [_Liar(3), object(), len, lambda: 1, type("D", (dict,), {})(), bytearray(b"x"), {1: object()}, [(_Liar(1),)], int],
)
def test_no_subclass_and_no_object_is_sent(value):
    with pytest.raises(values.NotPlain, match="of type"):
        values.encode(value)


def test_dictionaries_of_the_library_arrive_as_plain_ones():
    for value in (
        collections.Counter("aab"),
        collections.OrderedDict(a=2, b=1),
        collections.defaultdict(int, a=2, b=1),
    ):
        arrived = values.decode(values.encode(value))
        assert type(arrived) is dict
        assert arrived == {"a": 2, "b": 1}


def test_a_dictionary_is_read_past_its_own_methods():
    value = collections.Counter("a")
    value.items = lambda: [("a", 2)]  # type: ignore[method-assign, assignment, return-value]
    assert values.decode(values.encode(value)) == {"a": 1}


def test_an_iterator_arrives_as_an_iterator_over_its_items():
    arrived = values.decode(values.encode(x * x for x in range(4)))
    assert next(arrived) == 0
    assert list(arrived) == [1, 4, 9]


@pytest.mark.slow
def test_an_endless_iterator_is_refused():
    import itertools

    with pytest.raises(values.NotPlain, match="parts"):
        values.encode(itertools.count())


def test_what_an_iterator_raises_comes_through():
    with pytest.raises(ZeroDivisionError):
        values.encode(1 / x for x in (1, 0))


def test_limits_hold_on_both_ends(monkeypatch):
    deep: list[object] = []
    for _ in range(values.DEPTH):
        deep = [deep]
    with pytest.raises(values.NotPlain, match="deeper"):
        values.encode(deep)
    ring: list[object] = []
    ring.append(ring)
    with pytest.raises(values.NotPlain, match="deeper"):
        values.encode(ring)
    with pytest.raises(values.NotPlain, match="bytes"):
        values.encode("x" * (values.LIMIT + 1))
    with pytest.raises(values.MalformedValue, match="deep"):
        values.decode(b"l\0\0\0\1" * 200 + b"N")
    big, many = values.encode(b"x" * 1000), values.encode([None] * 1000)
    monkeypatch.setattr(values, "LIMIT", 100)
    with pytest.raises(values.MalformedValue, match="more than"):
        values.decode(big)
    monkeypatch.undo()
    monkeypatch.setattr(values, "ITEMS", 100)
    with pytest.raises(values.MalformedValue, match="many"):
        values.decode(many)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"NN",
        b"i\0\0\0\5\1",
        b"l\xff\xff\xff\xffN",
        b"d\0\0\0\1l\0\0\0\0N",  # an unhashable key
        b"d\0\0\0\2NNNN",  # a key that comes twice
        b"S\0\0\0\2NN",
        b"s\0\0\0\1\xff",
        b"r" + b"i\0\0\0\1\0"[1:] * 3,  # a range with step 0
        b"f\0",
    ],
)
def test_bytes_that_are_no_value_are_refused(data):
    with pytest.raises(values.MalformedValue):
        values.decode(data)


@pytest.mark.slow
@settings(max_examples=500)
@given(st.binary(max_size=200), _PLAIN, st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3))
def test_any_bytes_are_a_plain_value_or_refused(noise, value, changes):
    mutated = bytearray(values.encode(value))
    for at, byte in changes:
        mutated[at % len(mutated)] = byte
    for data in (noise, bytes(mutated)):
        try:
            assert type(values.decode(data)).__module__ == "builtins"
        except values.MalformedValue:
            continue
