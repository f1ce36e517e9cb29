"""Parameters of a factory: what a spec may give, checked against the signature."""

from __future__ import annotations

import pytest

from ctxbench.bench import spec
from ctxbench.bench.errors import InputFault
from ctxbench.bench.factories import arguments, check_signature


def factory(*, model: str, top: int = 3, weight: float = 1.0, fold: bool = False, kind: object = None) -> None:
    """Stand for anyone's factory."""


def given(text: str) -> dict[str, object]:
    return dict(arguments(factory, spec.parse(text), command="ctxbench things"))


def test_defaults_are_left_out_and_values_take_the_parameters_type() -> None:
    assert given("x(model=a, top=3, weight=1, fold=off)") == {"model": "a"}
    assert given("x(model=12, top=4, weight=2, fold=on)") == {"model": "12", "top": 4, "weight": 2.0, "fold": True}
    assert type(given("x(model=a, weight=2)")["weight"]) is float


def test_other_annotations_are_the_factorys_business() -> None:
    assert given("x(model=a, kind=[1, 2])") == {"model": "a", "kind": (1, 2)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x", "x needs the parameter 'model'; write x(model=…)"),
        (
            "x(model=a, size=1)",
            "x has no parameter 'size'; it has model, top, weight, fold, kind (see `ctxbench things`)",
        ),
        ("x(model=a, top=true)", "x: top=true does not fit; give a whole number"),
        ("x(model=a, top=1.5)", "x: top=1.5 does not fit; give a whole number"),
        ("x(model=a, weight=much)", "x: weight=much does not fit; give a number"),
        ("x(model=a, fold=1)", "x: fold=1 does not fit; give on or off"),
        ("x(model=none)", "x: model=none does not fit; give text"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(text: str, says: str) -> None:
    with pytest.raises(InputFault) as caught:
        given(text)
    assert str(caught.value) == says


def test_a_factory_takes_keywords_only() -> None:
    check_signature(factory, "thing x")
    with pytest.raises(InputFault, match="thing y: the parameter 'model' is not keyword-only"):
        check_signature(lambda model: None, "thing y")
