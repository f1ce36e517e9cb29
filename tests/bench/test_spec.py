"""`name(key=value)`: read, written, and read back."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxbench.bench.errors import InputFault
from ctxbench.bench.spec import Spec, parse


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
        ("openai:org/m-7B@http://h:8000/v1", "openai(model=org/m-7B, url=http://h:8000/v1)"),
        ("openai:m@https://h(endpoint=chat)", "openai(endpoint=chat, model=m, url=https://h)"),
        ("openai:gpt-4o-mini", "openai(model=gpt-4o-mini)"),
        ("openai:m@rev@http://h", "openai(model=m@rev, url=http://h)"),
        ("hf:org/m-7B", "hf(model=org/m-7B)"),
        ("hf:./m@rev(dtype=bfloat16)", "hf(dtype=bfloat16, model=./m@rev)"),
        ("hf:C:\\x", "hf(model=C:\\x)"),
        ("hfx:m", "hfx:m"),
    ],
)
def test_canonical_spelling(text: str, canonical: str) -> None:
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
        "openai:",
        "openai:@http://h",
        "openai:m@http://",
        "openai:m(model=x)",
        "hf:",
        "hf:m(model=x)",
    ],
)
def test_fault_names_the_cure(text: str) -> None:
    with pytest.raises(InputFault) as caught:
        parse(text)
    assert caught.value.cure
    assert "\n" not in str(caught.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3).map(tuple),
    max_leaves=4,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)  # a busy machine draws slowly
@given(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True), VALUES, max_size=4))
def test_every_value_reads_back(arguments: dict[str, object]) -> None:
    spec = Spec("name", arguments)  # type: ignore[arg-type]
    assert parse(str(spec)) == spec
