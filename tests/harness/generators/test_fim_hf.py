"""Fill in the middle by `hf`: marks are tokens of their own, in a tiny model with random weights that has them."""

import importlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.harness.generators import fim
from ctxbench.harness.generators.answers import end_of
from ctxbench.harness.generators.base import Request, Response, Sampling
from ctxbench.harness.generators.hf import HF, hf
from ctxbench.harness.generators.local import LocalRequest
from ctxbench.strategies.api import Block, BlockKind
from tests.helpers.extras import needed
from tests.helpers.requests import make_request
from tests.helpers.tiny_llama import VOCABULARY, tiny_llama

torch = needed("torch", "hf")
needed("transformers", "hf")

pytestmark = [
    pytest.mark.slow,
    # Both libraries warn of themselves.
    pytest.mark.filterwarnings("ignore"),
]
MARKS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
PREFIX, SUFFIX, MIDDLE, PAD = range(VOCABULARY, VOCABULARY + 4)
BEFORE, BEHIND = "import os\nx = ", "\nprint(x)\n"


@pytest.fixture(scope="module")
def plain(request: pytest.FixtureRequest) -> Path:
    assert request.config.cache is not None
    return tiny_llama(request.config.cache.mkdir("tiny-llama"))


@pytest.fixture(scope="module")
def model(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HF]:
    """Return a model whose tokenizer has the marks, as tokens that are not special, like Qwen2.5-Coder's."""
    library = importlib.import_module("transformers")
    folder = tmp_path_factory.mktemp("marked")
    tokenizer = library.AutoTokenizer.from_pretrained(plain)
    assert tokenizer.add_tokens([*MARKS, "<|fim_pad|>"]) == 4
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = library.AutoConfig.from_pretrained(plain)
    config.vocab_size, config.hidden_size, config.intermediate_size, config.num_hidden_layers = (
        VOCABULARY + 4,
        32,
        48,
        1,
    )
    config.head_dim = 8
    library.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    made = hf(model=str(folder))
    yield made
    made.close()


def asked(before: str = BEFORE, behind: str = BEHIND) -> tuple[Request, Block]:
    return make_request(before, max_tokens=12, fim=True), Block(kind=BlockKind.AFTER, text=behind)


def test_marks_are_tokens_and_the_texts_between_them_are_read_alone(model: HF) -> None:
    filled = fim.filled(model, *asked())
    assert model.infilling().name == "qwen" and filled.prompt.text == f"{MARKS[0]}{BEFORE}{MARKS[1]}{BEHIND}{MARKS[2]}"
    words = model._tokens
    begin, *before = words.plain(BEFORE)
    assert words.prompt(filled) == [begin, PREFIX, *before, SUFFIX, *words.plain(BEHIND)[1:], MIDDLE]
    assert model.count(filled) == len(words.prompt(filled))
    [found] = model.generate([filled])
    assert isinstance(found, Response) and found.tokens_in == model.count(filled) and found.tokens_out <= 12


def test_a_text_that_spells_a_mark_is_none(model: HF) -> None:
    ids = model._tokens.prompt(fim.filled(model, *asked(f"stop = '{MARKS[2]}'\n", f"'{MARKS[0]}'")))
    assert [ids.count(mark) for mark in (PREFIX, SUFFIX, MIDDLE)] == [1, 1, 1]


def test_an_answer_ends_with_a_mark_which_is_no_part_of_it(model: HF) -> None:
    filled = fim.filled(model, *asked())
    row = LocalRequest(request=filled, ids=[0], most=9, end=end_of(filled, chat=False))
    made = model._tokens.plain("y")[1:]
    assert model._network is not None
    assert not model._ended(row, made) and model._ended(row, [*made, PAD]) and model._ended(row, [*made, SUFFIX])
    assert model._tokens.answer(filled, [0], [*made, PAD]) == "y"
    without = replace(filled, sampling=Sampling())
    assert model._tokens.answer(without, [0], [*made, PAD]) == "y<|fim_pad|>"


def test_a_model_without_marks_or_with_a_chat_says_so(plain: Path, model: HF) -> None:
    with pytest.raises(InputFault, match="no tokens for fill in the middle"):
        fim.filled(hf(model=str(plain)), *asked())
    with pytest.raises(InputFault, match=r"chat model.*chat=off"):
        fim.filled(hf(model=model._settings.model, chat="on"), *asked())
