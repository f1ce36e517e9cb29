"""Parameters of specs follow the signature of the registered function, with equal rules in all registries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxbench.bench import spec
from ctxbench.bench.errors import InputFault
from ctxbench.bench.parameters import AtLeast, AtMost, Parameter, bind, check_keyword_only, parameters_of
from ctxbench.bench.registry import Factories
from ctxbench.bench.retrieval import encoders, units
from ctxbench.bench.spec import Shorthand, Spec
from ctxbench.harness.generators import base as generators
from ctxbench.strategies import registry as strategies

if TYPE_CHECKING:
    from nowhere import Missing

COMMAND = "ctxbench things"


def factory(
    *,
    model: str,
    top: int = 3,
    weight: float = 1.0,
    fold: bool = False,
    mode: Literal["fast", "slow"] = "fast",
    limit: int | None = None,
    share: Annotated[float, AtLeast(0), AtMost(1)] = 0.5,
    kind: object = None,
    other: Missing = None,
) -> None:
    """Accept every supported type of parameter."""


def given_(text: str) -> dict[str, object]:
    return dict(bind(parameters_of(factory, "thing x"), spec.parse(text), command=COMMAND))


def test_defaults_are_omitted_and_values_are_converted_to_the_declared_type() -> None:
    assert given_("x(model=a, top=3, weight=1, fold=off, mode=fast, limit=none, share=0.5)") == {"model": "a"}
    arguments = given_("x(12, top=4, weight=2, fold=on, mode=slow, limit=7, share=1)")
    assert arguments == {
        "model": "12",
        "top": 4,
        "weight": 2.0,
        "fold": True,
        "mode": "slow",
        "limit": 7,
        "share": 1.0,
    }
    assert type(arguments["weight"]) is float and type(arguments["share"]) is float


@pytest.mark.parametrize("word", ["on", "yes", "true", "True", "ON"])
def test_a_boolean_accepts_all_usual_spellings(word: str) -> None:
    assert given_(f"x(a, fold={word})")["fold"] is True


def test_values_with_other_annotations_are_passed_unchecked() -> None:
    assert given_("x(model=a, kind=[1, 2], other=3)") == {"model": "a", "kind": (1, 2), "other": 3}


def mistakes(name: str, *, see: str) -> list[tuple[str, str]]:
    """Return texts with one mistake each, and their messages, for the parameters of `like_units`."""
    return [
        (f"{name}(size=1)", f"{name} has no parameter 'size'; known parameters: lines, fold{see}"),
        (f"{name}(lines=true)", f"{name}: lines=true is invalid; give a whole number from 1 to 100000"),
        (f"{name}(lines=1.5)", f"{name}: lines=1.5 is invalid; give a whole number from 1 to 100000"),
        (f"{name}(lines=0)", f"{name}: lines=0 is invalid; give a whole number from 1 to 100000"),
        (f"{name}(lines=many)", f"{name}: lines=many is invalid; give a whole number from 1 to 100000"),
        (f"{name}(fold=1)", f"{name}: fold=1 is invalid; give true or false"),
        (f"{name}(fold=maybe)", f"{name}: fold=maybe is invalid; give true or false"),
        (f"{name}(3, lines=4)", f"{name} sets 'lines' twice; keep one of them"),
        (f"{name}(lines=3, lines=4)", f"'{name}(lines=3, lines=4)' sets 'lines' twice; keep one of them"),
        (
            f"{name}(lines={{1,2}})",
            f"the braces in '{name}(lines={{1,2}})' stand for several specs; write a single spec here",
        ),
        (
            f"{name}(lines=sk-abcdefghijklmnop1234)",
            f"{name}: the value of lines looks like a key or a password; put it into an environment variable, "
            "since specs are stored and displayed",
        ),
        (
            f"{name}(",
            f"'{name}(' is not a spec; write it as name(key=value, …), for example lc.repocoder(iterations=2)",
        ),
    ]


def like_units(*, lines: Annotated[int, AtLeast(1), AtMost(100_000)] = 10, fold: bool = False) -> Any:
    """Act as a factory in a registry."""
    return lines, fold


def like_a_strategy(query: object, repo: object, *, lines: units.Size = 10, fold: bool = False) -> Any:
    """Act as a strategy in a registry."""


def cut_alike(path: str, text: str, language: object, *, lines: units.Size = 10, fold: bool = False) -> tuple[()]:
    """Act as a kind of unit in a registry."""
    return ()


def readers(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Callable[[str], object], str]]:
    """Register `alike` in each registry. Return each registry's reader and the end of its messages."""
    # Messages in other tests of this process must not suggest `alike`.
    for registry in (generators, encoders, strategies):
        monkeypatch.setattr(registry._REGISTRY, "_items", dict(registry._REGISTRY._items))
    generators.generator("alike")(like_units)
    encoders.encoder("alike")(like_units)
    strategies.strategy("alike")(like_a_strategy)
    monkeypatch.setitem(units._CUTTERS, "alike", cut_alike)  # type: ignore[index]
    return {
        "generators": (generators.canonical, ", cutoff (see `ctxbench generator list`)"),
        "encoders": (encoders.get, " (see `ctxbench doctor`)"),
        "strategies": (lambda text: strategies.resolve(text).spec, " (see `ctxbench strategy show alike`)"),
        "units": (units.cutter, ""),
    }


@pytest.mark.parametrize("registry", ["generators", "encoders", "strategies", "units"])
def test_all_registries_report_a_mistake_with_equal_messages(registry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read, see = readers(monkeypatch)[registry]
    for text, message in mistakes("alike", see=see):
        with pytest.raises(InputFault) as caught:
            read(text)
        assert str(caught.value) == message


@pytest.mark.parametrize("registry", ["generators", "encoders", "strategies", "units"])
@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("alike(20, fold=yes)", "alike(lines=20, fold=true)"),
        ("alike(fold=on, lines=20)", "alike(lines=20, fold=true)"),
        ("alike( fold = True )", "alike(lines=10, fold=true)"),
        ("alike(10, fold=off)", "alike"),
    ],
)
def test_all_registries_read_equivalent_spellings_alike(
    registry: str, text: str, plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, _ = readers(monkeypatch)[registry]
    assert read(text) == read(plain) != read("alike(7)")


def test_missing_and_invalid_values_are_reported_in_one_line() -> None:
    for text, message in (
        ("x", "x needs the parameter 'model'; write x(model=…)"),
        ("x(model=none)", "x: model=none is invalid; give text"),
        ("x(a, weight=much)", "x: weight=much is invalid; give a number"),
        ("x(a, mode=idle)", "x: mode=idle is invalid; give fast or slow"),
        ("x(a, limit=much)", "x: limit=much is invalid; give a whole number, or none"),
        ("x(a, share=1.5)", "x: share=1.5 is invalid; give a number from 0 to 1"),
    ):
        with pytest.raises(InputFault) as caught:
            given_(text)
        assert str(caught.value) == message
    with pytest.raises(InputFault, match=r"^y takes no arguments; known parameters: none$"):
        bind((), spec.parse("y(3)"))


def test_a_factory_takes_keywords_only() -> None:
    check_keyword_only(factory, "thing x")
    with pytest.raises(InputFault, match="thing y: the parameter 'model' is not keyword-only"):
        check_keyword_only(lambda model: None, "thing y")


def test_a_partial_function_has_only_its_remaining_parameters() -> None:
    def cut(by: str, *, lines: Annotated[int, AtLeast(1)] = 3) -> None:
        """Act as a function whose first argument is bound."""

    [lines] = parameters_of(partial(cut, "usage"), "thing x")
    assert lines == Parameter(name="lines", kind=int, default=3, least=1)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)  # a busy machine draws slowly
@given(
    model=st.text(max_size=8),
    top=st.integers(),
    weight=st.floats(allow_nan=False, allow_infinity=False),
    fold=st.booleans(),
    mode=st.sampled_from(["fast", "slow"]),
    limit=st.none() | st.integers(),
)
def test_a_printed_spec_is_read_back_unchanged(**arguments: Any) -> None:
    text = str(Spec("x", arguments))
    bound = given_(text)
    assert given_(str(Spec("x", bound))) == bound  # type: ignore[arg-type]
    defaults = {parameter.name: parameter.default for parameter in parameters_of(factory, "thing x")}
    assert {**{name: defaults[name] for name in arguments}, **bound} == arguments


# Short spellings


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("openai:org/m-7B@http://h:8000/v1", "openai(model=org/m-7B, url=http://h:8000/v1)"),
        ("openai:m@https://h(endpoint=chat)", "openai(endpoint=chat, model=m, url=https://h)"),
        ("openai:gpt-4o-mini", "openai(model=gpt-4o-mini)"),
        ("openai:m@rev@http://h", "openai(model=m@rev, url=http://h)"),
        ("hf:org/m-7B", "hf(model=org/m-7B)"),
        ("hf:./m@rev(dtype=bfloat16)", "hf(dtype=bfloat16, model=./m@rev)"),
        ("hf:C:\\x", "hf(model=C:\\x)"),
        ("vllm:org/m-7B", "vllm(model=org/m-7B)"),
        ("hfx:m", "hfx:m"),
        ("scripted:m", "scripted:m"),
    ],
)
def test_a_short_spelling_is_expanded(text: str, canonical: str) -> None:
    assert str(generators.read(text)) == canonical
    assert generators.read(canonical) == generators.read(text)


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("openai:", "write it as openai:MODEL@URL"),
        ("openai:@http://h", "write it as openai:MODEL@URL"),
        ("openai:m@http://", "write it as openai:MODEL@URL"),
        ("openai:m(model=x)", "keep one of them"),
        ("hf:", "write it as hf:MODEL"),
        ("hf:m(model=x)", "keep one of them"),
    ],
)
def test_an_invalid_short_spelling_is_a_fault_with_a_fix(text: str, cure: str) -> None:
    with pytest.raises(InputFault) as caught:
        generators.read(text)
    assert caught.value.cure == cure


def test_a_plug_in_can_register_a_short_spelling() -> None:
    things: Factories[object] = Factories("thing", group="ctxbench.no_such_group", command=COMMAND)

    def make(*, model: str, speed: int = 1) -> tuple[str, int]:
        return model, speed

    things.register("mine", make, machine=["speed"], shorthand=Shorthand("MODEL", "(?P<model>.+)"))
    assert things.make("mine:m(speed=2)") == things.make("mine(model=m, speed=2)") == ("m", 2)
    assert things.canonical("mine:m(speed=2)") == "mine(model=m)"
    with pytest.raises(InputFault, match=r"thing other: the factory has no parameter 'size'; correct shorthand="):
        things.register("other", make, shorthand=Shorthand("SIZE", "(?P<size>.+)"))
