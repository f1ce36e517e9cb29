"""Presets: names for strategies with parameters."""

import pytest

from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.harness.papers.presets import encoders_of, presets, spec_of, with_encoder
from ctxbench.strategies import resolve


@pytest.mark.parametrize(
    ("preset", "spec"),
    [
        ("icl-t1-rag", "icl.rag(encoder=codet5p-110m)"),
        (" icl-t1-rag ", "icl.rag(encoder=codet5p-110m)"),
        ("icl-t1-selfdoc-plus2", "icl.selfdoc(encoder=codet5p-110m, extra_files=2)"),
        ("icl-t2-bm25-filerag", "icl.filerag(encoder=bm25)"),
        ("icl-t3-llama3.2-1b-direct", "icl.direct"),
        ("ic-t3-projbench-py-starcoder2-7b-repocoder", "lc.repocoder(empty_header=true)"),
        ("ic-t4-cceval-java-uer", "lc.infercom(encoder=unixcoder, fsr=false, uer=true)"),
        (
            "ic-t5-projbench-py-repofuse-aim",
            "aim(encoder=unixcoder, inner=lc.repofuse(encoder=unixcoder, query_tokens=512, unmasked=true))",
        ),
        ("icl-t1-rag(k=3)", "icl.rag(encoder=codet5p-110m, k=3)"),
        ("icl-t1-rag(encoder=minilm)", "icl.rag(encoder=minilm)"),
        (
            "ic-t5-projbench-py-repofuse-aim(encoder=minilm)",
            "aim(encoder=minilm, inner=lc.repofuse(encoder=minilm, unmasked=true))",
        ),
        ("lc.infile", "lc.infile"),
        ("some/where/ic-t3.py@mine(limit=3)", "some/where/ic-t3.py@mine(limit=3)"),
        ("not a spec (", "not a spec ("),
    ],
)
def test_a_preset_becomes_its_spec_and_other_text_is_unchanged(preset: str, spec: str) -> None:
    assert spec_of(preset) == spec


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        ("icl-t1-ragg", "did you mean icl-t1-rag"),
        ("icl-t3-codegen-350m", "external row"),
        ("icl-t1-rag+leaky", "did you mean icl-t1-rag"),
        ("icl-t1-rag(k=", "key=value"),
    ],
)
def test_an_invalid_preset_is_a_one_line_error(preset: str, words: str) -> None:
    with pytest.raises(InputFault, match=words) as caught:
        spec_of(preset)
    assert "\n" not in str(caught.value)


def test_an_unknown_preset_names_the_command_that_lists_them() -> None:
    with pytest.raises(UnknownName, match="ctxbench strategy list --presets"):
        spec_of("ic-t9-nothing-of-the-kind")


def test_encoders_in_wrapped_strategies_are_replaced_and_lexical_ones_can_be_kept() -> None:
    spec = specs.parse("aim(encoder=unixcoder, inner=lc.repofuse(encoder=mpnet, query_tokens=512))")
    assert encoders_of(spec) == ("unixcoder", "mpnet")
    assert str(with_encoder(spec, "hashed")) == "aim(encoder=hashed, inner=lc.repofuse(encoder=hashed))"
    lexical = specs.parse("icl.filerag(encoder=bm25)")
    assert encoders_of(lexical) == ()
    assert with_encoder(lexical, "hashed", keep=("bm25",)) == lexical


@pytest.mark.parametrize("preset", [name for name, row in presets().items() if row.strategy])
def test_every_preset_resolves_to_a_strategy_that_takes_its_parameters(preset: str) -> None:
    row, bound = presets()[preset], resolve(spec_of(preset))
    kind = "function" if row.benchmark == "CoderEval" else "line"
    assert kind in bound.kinds
    taken = {parameter.name for parameter in bound.strategy.parameters}
    assert set(specs.parse(row.strategy).arguments) <= taken
