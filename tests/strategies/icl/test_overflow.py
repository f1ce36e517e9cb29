from __future__ import annotations

import pytest

from ctxbench.bench.code_tokens import count
from ctxbench.strategies.api import BlockKind, Prompt
from tests.strategies.icl.shop import Model, made, query

BOTH = query(docstring="Return the cart of a user. Add the tax to an amount.")
STEPS = "1. Return the cart of a user.\n2. Add the tax to an amount."
ANSWER = 1024


def trimmed(spec: str, tokens: int) -> Prompt:
    """Return the prompt of a model whose window holds so many tokens besides the answer."""
    name, _, rest = spec.partition("(")
    inner = ", ".join(one for one in (rest.removesuffix(")"), f"window={tokens + ANSWER}") if one)
    return made(f"{name}({inner})", BOTH, model=Model(STEPS))


def size(spec: str) -> int:
    return count(made(spec, BOTH, model=Model(STEPS)).text)


def code(prompt: Prompt) -> list[str]:
    return [block.text for block in prompt.blocks if block.kind is BlockKind.SIMILAR]


def test_what_fits_is_left_alone() -> None:
    whole = size("icl.infile_ragot_s")
    assert trimmed("icl.infile_ragot_s", whole).text == made("icl.infile_ragot_s", BOTH, model=Model(STEPS)).text
    assert trimmed("icl.infile_ragot_s", whole).flags == ()
    assert trimmed("icl.infile_ragot_s", whole - 1).flags == ("overflow_trimmed",)


def test_the_lowest_rank_goes_first() -> None:
    prompt = trimmed("icl.infile_ragot_s", size("icl.infile_ragot_s") - 1)
    assert [one.places[0].path for one in prompt.dropped] == ["shop/rules.py"]
    assert [one.reason for one in prompt.dropped] == ["budget"]
    whole = made("icl.infile_ragot_s", BOTH, model=Model(STEPS))
    assert [one.tokens for one in prompt.dropped] == [
        count(block.text) for block in whole.blocks if block.places and block.places[0].path == "shop/rules.py"
    ]
    assert len(code(prompt)) == 2 and "FILE 2\n" in prompt.text and "FILE 3" not in prompt.text


@pytest.mark.parametrize("spec", ["icl.filerag(trim_mode=around)", "icl.filerag(trim_mode=tail)"])
def test_the_last_block_is_cut_by_lines_to_the_window(spec: str) -> None:
    whole, least = size("icl.filerag"), size("icl.direct")
    sizes = set()
    for tokens in range(whole - 1, least + 60, -7):
        prompt = trimmed(spec, tokens)
        assert count(prompt.text) <= tokens and prompt.flags == ("overflow_trimmed",)
        [block] = [block for block in prompt.blocks if block.kind is BlockKind.SIMILAR]
        assert (block.cut and block.text in made("icl.filerag", BOTH).text) or "around" in spec
        sizes.add(len(block.text))
    assert len(sizes) > 1


def test_what_is_near_the_function_stays_longest() -> None:
    about = "icl.filerag(retrieve_from_current=no, k=1)"
    prompt = made(about, query(docstring="Add the tax to an amount."))
    room = count(prompt.text) - 1 + ANSWER
    cut = made(f"icl.filerag(window={room})", query(docstring="Add the tax to an amount."))
    [text] = code(cut)
    assert "def apply_tax" in text and "def apply_discount" not in text and "def step" in text
    [tail] = code(made(f"icl.filerag(window={room}, trim_mode=tail)", query(docstring="Add the tax to an amount.")))
    assert "def apply_discount" in tail and "percent / 100" not in tail


def test_the_current_file_is_cut_at_its_top_last() -> None:
    prompt = trimmed("icl.infile_rag", size("icl.infile") - 20)
    [text] = code(prompt)
    assert text.endswith("store.close()") and '"""Paying."""' not in text and len(prompt.dropped) == 1


@pytest.mark.parametrize("spec", ["icl.rag", "icl.infile", "icl.infile_ragot_s", "icl.fileragot", "icl.selfdoc"])
def test_instruction_steps_and_target_are_never_cut(spec: str) -> None:
    prompt = trimmed(spec, 1)
    assert prompt.flags == ("overflow_trimmed",) and not code(prompt)
    assert prompt.text.startswith("You are an expert developer.") and prompt.text.endswith('an amount.\n    """')
    assert ("Here are the steps" in prompt.text) == ("ragot" in spec)


def test_a_run_may_fail_instead() -> None:
    whole = made("icl.filerag", BOTH)
    failed = made(f"icl.filerag(overflow=fail, window={ANSWER + 10})", BOTH)
    assert failed.text == whole.text and failed.flags == ("overflow_failed",)
    assert made("icl.filerag(overflow=fail, window=9000)", BOTH) == whole
