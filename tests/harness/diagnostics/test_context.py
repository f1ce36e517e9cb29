"""What retrieved blocks have to do with the target: planted cases of each definition."""

from __future__ import annotations

import pytest

from ctxbench.bench.code_tokens import count
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Place, Use
from ctxbench.harness.diagnostics.measures import api_recall, context_waste
from ctxbench.strategies.api import Block, BlockKind, Dropped, Prompt

INFILE = Block(kind=BlockKind.INFILE, text="total = ")


def use(name: str, kind: str = "function") -> Use:
    return Use(name=name, module="shop", kind=kind)


def prompt(*blocks: tuple[BlockKind, str], dropped: tuple[Dropped, ...] = ()) -> Prompt:
    return Prompt(blocks=(*(Block(kind=kind, text=text) for kind, text in blocks), INFILE), dropped=dropped)


SIMILAR, API, TEXT = BlockKind.SIMILAR, BlockKind.API, BlockKind.TEXT


@pytest.mark.parametrize(
    ("uses", "blocks", "share"),
    [
        ((), ((SIMILAR, "apply_tax"),), None),
        ((use("apply_tax"),), (), 0.0),
        ((use("apply_tax"),), ((SIMILAR, "# x = apply_tax(y)\n"),), 1.0),
        ((use("apply_tax"),), ((API, "# def apply_tax(x)\n"),), 1.0),
        ((use("apply_tax"),), ((TEXT, "apply_tax"),), 0.0),
        ((use("tax"),), ((SIMILAR, "# apply_tax(y)\n"),), 0.0),
        ((use("rules", "module"), use("rules.round_up"), use("Cart", "class")), ((API, "# rules, round_up\n"),), 0.5),
    ],
)
def test_recall(uses: tuple[Use, ...], blocks: tuple[tuple[BlockKind, str], ...], share: float | None) -> None:
    assert api_recall(uses, prompt(*blocks), {}) == share


def test_what_only_the_file_shows_is_not_recalled() -> None:
    shown = Prompt(blocks=(Block(kind=BlockKind.INFILE, text="apply_tax"),))
    assert api_recall((use("apply_tax"),), shown, {}) == 0.0


def measured(shown: Prompt, target: str = "apply_tax(total, rate)") -> float | None:
    lines = {Place(path="a.py", start=0, end=2): ["one", "two"]}
    return context_waste(shown, target, PYTHON, lambda place: lines.get(place, ()))


def test_waste_is_measured_in_tokens() -> None:
    useful, useless = "# apply_tax(cart)\n", "# nothing here that helps at all\n"
    shown = prompt((SIMILAR, useful), (SIMILAR, useless))
    assert measured(shown) == pytest.approx(count(useless) / (count(useful) + count(useless)))
    assert measured(prompt((SIMILAR, useful))) == 0.0
    assert measured(prompt((API, useless))) == 1.0


def test_names_that_the_file_has_are_no_use() -> None:
    assert measured(prompt((SIMILAR, "# total = 1\n"))) == 1.0
    assert measured(prompt((TEXT, "apply_tax rate"), (SIMILAR, "# apply_tax\n"))) is None, "nothing is left to name"


def test_nothing_retrieved_wastes_nothing() -> None:
    assert measured(prompt((TEXT, "# header\n"))) is None
    assert measured(prompt((SIMILAR, "# apply_tax\n")), target="1 + 'apply_tax'") is None


def test_what_is_dropped_is_waste() -> None:
    def dropped(kind: BlockKind, *places: Place) -> Dropped:
        return Dropped(kind=kind, places=places, score=None, reason="budget")

    place, useful = Place(path="a.py", start=0, end=2), "# apply_tax(cart)\n"
    lines = count("# one\n# two\n")
    assert measured(prompt((SIMILAR, useful), dropped=(dropped(SIMILAR, place),))) == pytest.approx(
        lines / (lines + count(useful))
    )
    assert measured(prompt(dropped=(dropped(SIMILAR, place),))) == 1.0
    assert measured(prompt((API, useful), dropped=(dropped(API, place),))) == pytest.approx(0.5), "as the mean API"
    assert measured(prompt((SIMILAR, useful), dropped=(dropped(TEXT, place),))) == 0.0
    assert measured(prompt((SIMILAR, useful), dropped=(dropped(SIMILAR),))) == 0.0, "no place, no tokens"


@pytest.mark.parametrize("places", [(), (Place(path="a.py", start=0, end=2), Place(path="a.py", start=3, end=9))])
@pytest.mark.parametrize("kind", [SIMILAR, API])
def test_a_dropped_block_counts_with_all_its_text_wherever_it_stands(
    kind: BlockKind, places: tuple[Place, ...]
) -> None:
    useful, useless = "# apply_tax(cart)\n", "# one\n# two\n# three = four\n"
    gone = Dropped.of(Block(kind=kind, text=useless, places=places))
    shown = prompt((kind, useful), dropped=(gone,))
    assert measured(shown) == pytest.approx(count(useless) / (count(useful) + count(useless)))
