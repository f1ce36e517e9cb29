"""Prompts cut to a window: what is cut first, what always stays, and how a cut is recorded."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.bench import code_tokens
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Cursor, Kind, Place, Query
from ctxbench.harness.generators.fitting import fit
from ctxbench.strategies.api import Block, BlockKind, Prompt, text_block
from ctxbench.strategies.icl.prompts import CONTEXT, render
from ctxbench.strategies.layout import framed

QUERY = Query(
    id="q",
    benchmark="ctxbench",
    language=PYTHON,
    kind=Kind.FUNCTION,
    subkind="self_contained",
    repo="r",
    path="shop/cart.py",
    cursor=Cursor(line=9, column=4),
    prefix="",
    signature="def total(self):",
    docstring="Return the sum of all prices.",
)


def words(prompt: Prompt) -> int:
    """Count tokens as a model does that has one token per word and line end."""
    return sum(len(line.split()) + 1 for line in prompt.text.splitlines())


def ours(prompt: Prompt) -> int:
    return code_tokens.count(prompt.text)


def code(name: str, lines: int) -> str:
    return "".join(f"{name}{number} = {number}\n" for number in range(lines))


def found(name: str, score: float | None, lines: int = 5, kind: BlockKind = BlockKind.SIMILAR) -> Block:
    places = (Place(path=f"{name}.py", start=0, end=lines),)
    return Block(kind=kind, text=code(name, lines), places=places, score=score)


def here(lines: int, rest: str = "value = ") -> Block:
    place = Place(path="shop/cart.py", start=0, end=lines + 1)
    return Block(kind=BlockKind.INFILE, text=code("here", lines) + rest, places=(place,))


def line_prompt(*blocks: Block, lines: int = 10) -> Prompt:
    return Prompt(blocks=(*framed(blocks), here(lines)))


def icl_prompt(*retrieved: Block, current: int = 10, style: str = "paper") -> Prompt:
    sections = [*retrieved, found("own", None, current)] if current else retrieved
    return render(QUERY, sections, instruction="B", steps=("**Add**: add the prices.",), style=style)


def names(prompt: Prompt) -> list[str]:
    return [place.path for block in prompt.blocks for place in block.places]


def fixed(prompt: Prompt) -> str:
    """Return the instruction, the steps and the target section."""
    return prompt.blocks[0].text + "".join(block.text for block in prompt.blocks[-3:])


def test_a_prompt_that_fits_does_not_change() -> None:
    prompt = line_prompt(found("a", 0.5))
    assert fit(prompt, words, words(prompt) + 16, 16, Kind.LINE) is prompt
    assert fit(prompt, words, 0, 16, Kind.LINE) is prompt
    assert fit(prompt, words, words(prompt) + 15, 16, Kind.LINE) is not prompt


def test_function_prompts_lose_the_lowest_score_first() -> None:
    prompt = icl_prompt(found("best", 0.9), found("worst", 0.1), found("middle", 0.5))
    made = fit(prompt, words, words(prompt) - 1 + 64, 64, Kind.FUNCTION)
    assert names(made) == ["best.py", "middle.py", "own.py"]
    [gone] = made.dropped
    assert (gone.kind, gone.score, gone.reason, gone.places[0].path) == ("similar", 0.1, "window", "worst.py")
    assert made.flags == ("overflow_trimmed",)
    assert fixed(made) == fixed(prompt)
    whole = "".join(block.text for block in prompt.blocks)
    section = f"#####\nFILE 2\n#####\n{code('worst', 5)}\n\n"
    assert section in whole and made.text == whole.replace(section, ""), "its frame goes with it"


def test_the_last_retrieved_block_is_cut_at_its_end_by_whole_lines() -> None:
    prompt = icl_prompt(found("best", 0.9, 30), found("worst", 0.1))
    room = words(icl_prompt(found("best", 0.9, 7)))
    made = fit(prompt, words, room + 64, 64, Kind.FUNCTION)
    assert names(made) == ["best.py", "own.py"] and [one.score for one in made.dropped] == [0.1]
    [best] = [block for block in made.blocks if block.score == 0.9]
    assert best.text == code("best", 7) and best.cut
    own = next(block for block in made.blocks if block.places and block.places[0].path == "own.py")
    assert own.text == code("own", 10) and not own.cut


def test_function_prompts_cut_the_top_of_the_current_file_last() -> None:
    prompt = icl_prompt(found("best", 0.9), current=40)
    room = words(icl_prompt(current=4))
    made = fit(prompt, words, room + 64, 64, Kind.FUNCTION)
    assert names(made) == ["own.py"] and [one.score for one in made.dropped] == [0.9]
    own = next(block for block in made.blocks if block.places)
    assert own.text == "".join(code("own", 40).splitlines(keepends=True)[-4:]) and own.cut
    assert fixed(made) == fixed(prompt) and words(made) <= room


def test_a_function_prompt_that_ends_at_the_cursor_is_cut_like_a_file() -> None:
    prompt = Prompt(blocks=(*framed([found("a", 0.5)]), here(30, "def f():\n    ")))
    made = fit(prompt, words, 40, 20, Kind.FUNCTION)
    assert names(made) == ["shop/cart.py"] and made.text.endswith("def f():\n    ") and words(made) <= 20
    assert made.blocks[0].kind is BlockKind.INFILE, "an empty section leaves no heading"


def test_line_prompts_cut_the_file_first_but_keep_half_the_window_for_it() -> None:
    prompt = line_prompt(found("a", 0.2, 5), found("b", 0.4, 5), lines=100)
    made = fit(prompt, words, 178, 28, Kind.LINE)
    assert names(made) == ["a.py", "b.py", "shop/cart.py"] and not made.dropped
    assert 146 < words(made) <= 150 < words(prompt) and made.blocks[-1].text.endswith("\nvalue = ")
    assert made.blocks[-1].cut and made.flags == ("overflow_trimmed",)
    place = made.blocks[-1].places[0]
    assert (place.end, place.end - place.start) == (101, made.blocks[-1].text.count("\n") + 1)


def test_line_prompts_then_lose_retrieved_blocks() -> None:
    prompt = line_prompt(found("a", 0.2, 20), found("b", 0.4, 20), found("c", 0.6, 10), lines=100)
    made = fit(prompt, words, 164, 64, Kind.LINE)
    file = words(Prompt(blocks=made.blocks[-1:]))
    assert [one.score for one in made.dropped] == [0.2, 0.4] and 50 <= file <= 54
    assert words(made) <= 100 and names(made) == ["c.py", "shop/cart.py"]
    [kept] = [block for block in made.blocks if block.score == 0.6]
    assert kept.cut and code("c", 10).startswith(kept.text)


def test_a_line_longer_than_the_window_is_cut_at_its_beginning() -> None:
    prompt = Prompt(blocks=(here(3, "value = f(" + "a, " * 200),))
    made = fit(prompt, ours, 40, 10, Kind.LINE)
    assert ours(made) <= 30 and made.text and prompt.text.endswith(made.text) and "\n" not in made.text
    assert made.flags == ("overflow_trimmed",) and made.blocks[0].places[0].start == 3


def test_the_later_of_two_unscored_blocks_is_dropped_first() -> None:
    prompt = line_prompt(found("a", None), found("b", None), found("c", 0.0), lines=3)
    made = fit(prompt, words, words(prompt) - 1 + 16, 16, Kind.LINE)
    assert [one.places[0].path for one in made.dropped] == ["b.py"]


def test_a_heading_stays_while_its_section_has_a_block() -> None:
    prompt = line_prompt(found("a", 0.2), found("b", 0.4), lines=3)
    made = fit(prompt, words, words(prompt) - 1 + 16, 16, Kind.LINE)
    assert made.blocks[0] == prompt.blocks[0] and names(made) == ["b.py", "shop/cart.py"]
    instruction = Block(kind=BlockKind.TEXT, text="Complete the code.\n")
    bare = Prompt(blocks=(instruction, found("a", 0.2), here(3)))
    assert fit(bare, words, 24, 4, Kind.LINE).blocks[0] == instruction


def test_a_heading_that_begins_with_blank_lines_is_dropped_with_its_block() -> None:
    heads = [text_block(f"{gap}# file path: {name}\n") for gap, name in (("", "a"), ("\n\n", "b"), ("\n\n", "own"))]
    pieces = [found("a", 0.9), found("b", 0.1)]
    prompt = Prompt(blocks=(heads[0], pieces[0], heads[1], pieces[1], heads[2], here(3)))
    made = fit(prompt, words, words(prompt) - 1 + 16, 16, Kind.FUNCTION)
    assert made.blocks == (heads[0], pieces[0], heads[2], here(3)) and len(made.dropped) == 1


def test_flags_and_earlier_dropped_blocks_stay() -> None:
    prompt = dataclasses.replace(line_prompt(lines=40), flags=("no_candidates", "overflow_trimmed"))
    first = fit(prompt, words, 60, 10, Kind.LINE)
    assert first.flags == ("no_candidates", "overflow_trimmed")
    assert fit(first, words, 60, 10, Kind.LINE) is first
    icl = icl_prompt(found("a", 0.2), found("b", 0.3), found("c", 0.4))
    once = fit(icl, words, words(icl) + 9, 10, Kind.FUNCTION)
    twice = fit(once, words, words(once) + 9, 10, Kind.FUNCTION)
    assert [one.score for one in twice.dropped] == [0.2, 0.3] and CONTEXT in twice.text


@given(
    scores=st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=5),
    sizes=st.lists(st.integers(1, 12), min_size=5, max_size=5),
    lines=st.integers(0, 40),
    window=st.integers(2, 200),
    kind=st.sampled_from(Kind),
)
def test_a_cut_prompt_fits_or_is_flagged(
    scores: list[float | None], sizes: list[int], lines: int, window: int, kind: Kind
) -> None:
    blocks = [found("abcde"[at], score, sizes[at]) for at, score in enumerate(scores)]
    prompt = line_prompt(*blocks, lines=lines) if kind is Kind.LINE else icl_prompt(*blocks, current=lines)
    made = fit(prompt, ours, window, 1, kind)
    assert (ours(made) <= max(window - 1, 1)) == ("overflow_failed" not in made.flags)
    assert fit(made, ours, window, 1, kind).text == made.text
    if kind is Kind.FUNCTION:
        assert made.blocks[0] == prompt.blocks[0] and made.blocks[-3:] == prompt.blocks[-3:]
    shown = set(names(made)) | {one.places[0].path for one in made.dropped}
    assert shown == set(names(prompt)), "what is not shown is said to be gone"
