"""Specs such as `name(key=value)`: parsed, printed, and read back."""

import ast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxbench.bench.concurrency import TREE_LOCK
from ctxbench.bench.errors import InputFault
from ctxbench.bench.spec import Spec, expand, parse


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("lc.infile", "lc.infile"),
        (" lc.repocoder( iterations = 2 ) ", "lc.repocoder(iterations=2)"),
        ("x(b=1, a=2)", "x(a=2, b=1)"),
        ("x(mode=auto)", "x(mode=auto)"),
        ("x(flag=True, other=none)", "x(flag=true, other=none)"),
        ('x(text="a, b)")', "x(text='a, b)')"),
        ("x(values=[1, 'a'])", "x(values=[1, 'a'])"),
        ("aim(inner=lc.repocoder(iterations=1), k=4)", "aim(inner=lc.repocoder(iterations=1), k=4)"),
        ("dir/file.py@name(limit=3)", "dir/file.py@name(limit=3)"),
        ("x(n='1')", "x(n='1')"),
        ("x()", "x"),
        ("x(a=1,)", "x(a=1)"),
        ("aim(lc.infile)", "aim(lc.infile)"),
        ("aim( lc.repocoder(iterations=1) , k=4)", "aim(lc.repocoder(iterations=1), k=4)"),
        ("x(4096)", "x(4096)"),
        ("x('a=b')", "x('a=b')"),
        ("hfx:m", "hfx:m"),
    ],
)
def test_a_spec_has_one_canonical_spelling(text: str, canonical: str) -> None:
    spec = parse(text)
    assert str(spec) == canonical
    assert parse(canonical) == spec


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(a=1)",
        "x(a=1, b)",
        "x(a=1",
        "x(a=1))",
        "x(a=1, a=2)",
        "x a",
        "x(1=2)",
        "x(a='b)",
        "x(a=;)",
        "x(a={1,2})",
        "x{,(a=1)}",
    ],
)
def test_an_invalid_spec_is_a_fault_with_a_fix(text: str) -> None:
    with pytest.raises(InputFault) as caught:
        parse(text)
    assert caught.value.cure
    assert "\n" not in str(caught.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3).map(tuple),
    max_leaves=4,
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)  # a busy machine draws slowly
@given(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True), VALUES, max_size=4))
def test_every_value_is_read_back_unchanged(arguments: dict[str, object]) -> None:
    spec = Spec("name", arguments)  # type: ignore[arg-type]
    assert parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("x(k={1,2})", ["x(k=1)", "x(k=2)"]),
        ("x(a={1,2}, b={on,off})", ["x(a=1, b=on)", "x(a=1, b=off)", "x(a=2, b=on)", "x(a=2, b=off)"]),
        ("aim(a.{b,c(d={1,2})})", ["aim(a.b)", "aim(a.c(d=1))", "aim(a.c(d=2))"]),
        ("x(k={[1,2],[3]})", ["x(k=[1,2])", "x(k=[3])"]),
        ("x(k={f(a=1,b=2),g})", ["x(k=f(a=1,b=2))", "x(k=g)"]),
        ("x(k={'a,b}',c})", ["x(k='a,b}')", "x(k=c)"]),
        ("x{,(k=1)}", ["x", "x(k=1)"]),
        ("x(k={1})", ["x(k=1)"]),
        ("""x(extra='{"a": 1, "b": 2}')""", ["""x(extra='{"a": 1, "b": 2}')"""]),
    ],
)
def test_braces_expand_to_several_specs(text: str, specs: list[str]) -> None:
    assert list(expand(text)) == specs
    for spec in specs:
        assert expand(spec) == (spec,)
        parse(spec)


@pytest.mark.parametrize("text", ["x(k={1,2)", "x(k=1,2})", "x(k={{1,2})", "x(k={1,2}})"])
def test_braces_that_do_not_match_are_refused(text: str) -> None:
    with pytest.raises(InputFault, match="braces .* do not match; write them as"):
        expand(text)


def test_a_single_spec_cannot_contain_braces() -> None:
    with pytest.raises(InputFault, match="stand for several specs; write a single spec here"):
        parse("x(k={1,2})")


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=3), st.lists(VALUES, min_size=1, max_size=3))
def test_braces_expand_to_every_combination(firsts: list[object], seconds: list[object]) -> None:
    spellings = [[str(Spec("x", {"k": value}))[4:-1] for value in values] for values in (firsts, seconds)]  # type: ignore[dict-item]
    first, second = (",".join(values) for values in spellings)
    specs = [parse(text) for text in expand(f"name(a={{{first}}}, b={{{second}}})")]
    assert specs == [Spec("name", {"a": a, "b": b}) for a in firsts for b in seconds]  # type: ignore[dict-item]


def test_values_are_parsed_under_the_tree_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    locked: list[bool] = []
    read = ast.literal_eval

    def literal_eval(text: str) -> object:
        locked.append(TREE_LOCK.locked())
        return read(text)

    monkeypatch.setattr(ast, "literal_eval", literal_eval)
    assert str(parse("x(limit=3, text='auto')")) == "x(limit=3, text=auto)"
    assert locked == [True] * len(locked) != []
