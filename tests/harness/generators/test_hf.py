"""`hf` with tiny models, compared with transformers' own decoding and plain sums of log-probabilities."""

import functools
import json
import math
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Kind
from ctxbench.harness.generators import fim
from ctxbench.harness.generators.answers import end_of
from ctxbench.harness.generators.base import Request, Response, Sampling, TooLong
from ctxbench.harness.generators.conformance import check
from ctxbench.harness.generators.fitting import fit
from ctxbench.harness.generators.hf import HF, draw, hf
from ctxbench.harness.generators.local import LocalRequest
from ctxbench.strategies.api import Block, BlockKind, Prompt
from tests.helpers.extras import needed
from tests.helpers.requests import answers, make_request
from tests.helpers.tiny_llama import VOCABULARY, WINDOW, tiny_llama

torch = needed("torch", "hf")
transformers = needed("transformers", "hf")

pytestmark = [
    pytest.mark.slow,
    # Both libraries print warnings.
    pytest.mark.filterwarnings("ignore"),
]
CODE = [
    "import os\n\n\ndef main():\n    parser = argparse.",
    "x",
    "class Cart:\n    def __init__(self, name):\n        self.name = ",
    "# fill\n" * 150 + "for item in ",
    "if isinstance(value, ",
    "def test_all(self):\n    self.assert",
    "raise ValueError('",
    "    def é(a, b):\n        return ",
]
LONGEST = 24


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Use one thread, because threads that wait for each other at every step are slow for a tiny model."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest) -> Path:
    assert request.config.cache is not None
    return tiny_llama(request.config.cache.mkdir("tiny-llama"))


@pytest.fixture(scope="module")
def model(folder: Path) -> Iterator[HF]:
    made = hf(model=str(folder))
    yield made
    made.close()


@pytest.fixture(scope="module")
def single(folder: Path) -> Iterator[HF]:
    made = hf(model=str(folder), batch=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def oracle(folder: Path) -> tuple[Any, Any]:
    """Return transformers' own tokenizer and model."""
    own = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    return transformers.AutoTokenizer.from_pretrained(folder), own


def request(text: str, kind: Kind = Kind.FUNCTION, **changes: Any) -> Request:
    return make_request(text, kind=kind, one_line=kind is Kind.LINE, **{"max_tokens": LONGEST, **changes})


def price(made: HF, *pairs: tuple[str, str]) -> list[float]:
    return made.bits([request(one).prompt for one, _ in pairs], [text for _, text in pairs], PYTHON)


def test_hf_passes_the_conformance_checks(model: HF) -> None:
    findings = check(model)
    assert len(findings) == 11 and [one for one in findings if not one.passed] == []


# Decoding


def test_greedy_answers_equal_those_of_transformers(model: HF, oracle: tuple[Any, Any]) -> None:
    tokenizer, own = oracle
    for text, found in zip(CODE, answers(model, *(request(text) for text in CODE)), strict=True):
        ids = tokenizer(text, return_tensors="pt")
        made = own.generate(**ids, do_sample=False, max_new_tokens=LONGEST)[0, ids["input_ids"].shape[1] :]
        assert found.text == tokenizer.decode(made, skip_special_tokens=True).rstrip("\ufffd")
        assert (found.tokens_in, found.tokens_out) == (ids["input_ids"].shape[1], len(made))
        assert found.finish == ("stop" if int(made[-1]) == tokenizer.eos_token_id else "length")


def test_an_answer_does_not_depend_on_the_rest_of_its_batch(model: HF, single: HF) -> None:
    greedy = [request(text, max_tokens=8 + 4 * number) for number, text in enumerate(CODE)]
    drawn = [request(text, temperature=0.8, top_p=0.95, seed=7) for text in CODE[:4]]
    alone = [one.text for one in answers(single, *(greedy + drawn))]
    assert [one.text for one in answers(model, *(greedy + drawn))] == alone
    assert [one.text for one in answers(model, *reversed(drawn), *greedy[:2])] == [*reversed(alone[8:]), *alone[:2]]


def test_drawn_answers_depend_only_on_seed_and_index(model: HF) -> None:
    def drawn(index: int = 0, **how: Any) -> str:
        return answers(model, request(CODE[0], index=index, max_tokens=12, temperature=1.0, **how))[0].text

    assert drawn(seed=1) == drawn(seed=1)
    assert len({drawn(seed=1), drawn(seed=2), drawn(seed=1, index=1)}) == 3
    assert drawn(seed=1, top_p=1e-9) == answers(model, request(CODE[0], max_tokens=12))[0].text


def test_tokens_are_drawn_in_proportion_to_their_probability() -> None:
    logits = torch.tensor([0.0, 3.0, 1.0, 2.0])
    shares = [draw(logits, 2.0, 1.0, (number + 0.5) / 1000) for number in range(1000)]
    likely = (logits / 2).softmax(0)
    assert [shares.count(token) / 1000 for token in range(4)] == pytest.approx(likely.tolist(), abs=2e-3)
    assert {draw(logits, 1.0, 0.7, number / 10) for number in range(10)} == {1, 3}
    assert draw(logits, 1.0, 0.0, 0.999999) == 1 and draw(logits, 1.0, 1.0, 1 - 2**-53) == 0


@pytest.mark.parametrize("top_p", [0.5, 0.95, 1.0])
@pytest.mark.parametrize("scale", [0.0, 1.0, 6.0])
def test_a_large_vocabulary_is_drawn_from_as_if_fully_sorted(scale: float, top_p: float) -> None:
    logits = (torch.arange(5000) * 0.37).sin().round(decimals=1) * scale
    likely, tokens = logits.double().softmax(0).sort(descending=True, stable=True)
    mass = likely.cumsum(0)
    for number in (0.0, 0.3, 0.999):
        whole = mass[int((mass - likely < top_p).sum()) - 1]
        place = int((mass <= number * whole).sum())
        assert draw(logits, 1.0, top_p, number) == tokens[place]


def test_line_answers_end_with_their_line_and_others_continue(folder: Path, model: HF) -> None:
    whole = answers(model, *(request(text) for text in CODE))
    lines = answers(model, *(request(text, Kind.LINE) for text in CODE))
    for one, line in zip(whole, lines, strict=True):
        assert one.text.startswith(line.text) and "\n" not in line.text.lstrip()
        assert line.finish == one.finish == "length" or line.tokens_out < one.tokens_out
    assert {one.finish for one in lines} >= {"stop"}


def test_stop_texts_end_answers(model: HF) -> None:
    [whole] = answers(model, request(CODE[2]))
    [cut] = answers(model, request(CODE[2], stop=("never\0", "self")))
    assert "self" in whole.text and cut.text == whole.text.partition("self")[0]
    assert cut.finish == "stop" and cut.tokens_out < whole.tokens_out == LONGEST


def test_a_finished_row_does_not_exceed_the_window(folder: Path, tmp_path: Path) -> None:
    """A model with learnt positions has none beyond its window."""
    random_model(folder, tmp_path, transformers.GPT2Config(**SMALL, n_embd=32, n_layer=2, n_head=4, n_positions=32))
    found = answers(hf(model=str(tmp_path)), request("a = " * 14), request("x"))
    assert found[0].tokens_in + found[0].tokens_out == 32 and found[1].tokens_out == LONGEST


def test_a_lack_of_memory_halves_the_batch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, most = HF._answers, 2

    def some(self: HF, prefill: Any, rows: Sequence[Any]) -> Any:
        if len(rows) > most:
            raise torch.OutOfMemoryError("full")
        return real(self, prefill, rows)

    monkeypatch.setattr(HF, "_answers", some)
    made = hf(model=str(folder))
    assert len(answers(made, *(request(text, max_tokens=2) for text in CODE[:5]))) == 5
    most = 0
    with pytest.raises(MachineFault, match="too little memory"):
        made.generate([request(CODE[0])])


def test_a_lack_of_memory_does_not_change_drawn_answers(model: HF, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [request(text, temperature=1.0, seed=7) for text in CODE[:4]]
    whole = [one.text for one in answers(model, *drawn)]
    network = model._network
    real, steps = network.forward, 0

    @functools.wraps(real)
    def forward(*given: Any, **more: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 3:
            raise torch.OutOfMemoryError("full")
        return real(*given, **more)

    monkeypatch.setattr(network, "forward", forward)
    assert [one.text for one in answers(model, *drawn)] == whole and steps > LONGEST


def test_numbers_that_are_not_finite_are_a_machine_fault(folder: Path) -> None:
    made = hf(model=str(folder))
    answers(made, request("x", max_tokens=1))
    with torch.no_grad():
        made._network.model.norm.weight.fill_(math.nan)
    with pytest.raises(MachineFault, match="NaN"):
        made.generate([request("x")])
    with pytest.raises(MachineFault, match="not finite"):
        price(made, ("x", "y"))


# Other architectures, with random weights

SMALL = {"vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 1, "initializer_range": 0.4}
LAYERS = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}


def random_model(folder: Path, to: Path, config: Any) -> Any:
    """Save a model with random weights and the tiny model's tokenizer; return it."""
    torch.manual_seed(0)
    made = transformers.AutoModelForCausalLM.from_config(config).eval()
    made.save_pretrained(to)
    for path in folder.glob("tokenizer*"):
        shutil.copy(path, to)
    return made


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("GPT2Config", {"n_embd": 32, "n_layer": 2, "n_head": 4}),  # with learnt positions
        ("BloomConfig", {"hidden_size": 32, "n_layer": 2, "n_head": 4}),  # with positions as distances
        ("Starcoder2Config", {**LAYERS, "num_key_value_heads": 2, "sliding_window": 16}),
    ],
)
def test_padding_does_not_change_answers_of_any_architecture(
    folder: Path, tmp_path: Path, oracle: tuple[Any, Any], kind: str, more: dict[str, Any]
) -> None:
    own = random_model(folder, tmp_path, getattr(transformers, kind)(**SMALL, **more))
    requests = [request(text, max_tokens=12 if number % 2 else 5) for number, text in enumerate(CODE)]
    for one, found in zip(requests, answers(hf(model=str(tmp_path)), *requests), strict=True):
        ids = oracle[0](one.prompt.text, return_tensors="pt")
        made = own.generate(**ids, do_sample=False, max_new_tokens=one.sampling.max_tokens)[0].tolist()
        assert oracle[0].decode(made, skip_special_tokens=True).startswith(one.prompt.text + found.text)
        assert len(made) == found.tokens_in + found.tokens_out


def test_models_without_a_key_value_cache_are_refused(folder: Path, tmp_path: Path) -> None:
    random_model(folder, tmp_path, transformers.MambaConfig(**SMALL, hidden_size=32, num_hidden_layers=2))
    with pytest.raises(InputFault, match="caches no keys and values"):
        hf(model=str(tmp_path)).generate([request("x")])


# The window


def test_a_prompt_over_the_window_fails_only_its_own_request(model: HF) -> None:
    long, short = model.generate([request("x = 1\n" * WINDOW), request("x = ", max_tokens=2)])
    assert isinstance(long, TooLong) and f"window has {WINDOW}" in str(long) and isinstance(short, Response)


def test_prompts_are_counted_while_answers_are_generated(model: HF) -> None:
    with model._lock, ThreadPoolExecutor(4) as threads:
        counts = list(threads.map(model.count, [request("x = 1\n" * 50)] * 40, timeout=60))
    assert len(set(counts)) == 1 and counts[0] > 50


def test_an_answer_uses_the_window_that_the_prompt_leaves(folder: Path) -> None:
    made = hf(model=str(folder), window=40)
    [found] = answers(made, request(CODE[2]))
    assert found.tokens_in == made.count(request(CODE[2])) and found.tokens_in + found.tokens_out <= 40


def test_a_fitted_prompt_is_answered(folder: Path) -> None:
    made = hf(model=str(folder), window=128)
    long = request("".join(f"value_{number} = {number}\n" for number in range(80)) + "total = ", Kind.LINE)
    assert isinstance(made.generate([long])[0], TooLong)

    def count(prompt: Prompt) -> int:
        return made.count(Request(prompt=prompt, language=long.language))

    prompt = fit(long.prompt, count, made.window, 32, Kind.LINE)
    assert prompt.flags == ("overflow_trimmed",) and 80 < count(prompt) <= 96
    answers(made, request(prompt.text, Kind.LINE, max_tokens=32))


# Bits


def test_bits_are_the_models_own_log_probabilities(model: HF, oracle: tuple[Any, Any]) -> None:
    tokenizer, own = oracle
    pairs = [(text, "self.name") for text in CODE] + [("", "import os")]
    for (prompt, text), found in zip(pairs, price(model, *pairs), strict=True):
        before, ids = (tokenizer(part)["input_ids"] for part in (prompt, f"{prompt}{text}\n"))
        start = next((at for at, (one, two) in enumerate(zip(before, ids, strict=False)) if one != two), len(before))
        with torch.no_grad():
            logs = own(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        wanted = -sum(float(logs[at - 1, ids[at]]) for at in range(start, len(ids))) / math.log(2)
        assert found == pytest.approx(wanted, rel=1e-4)


def test_bits_do_not_depend_on_the_rest_of_their_batch(model: HF, single: HF) -> None:
    pairs = [(text, "x.append(item)" * (1 + number)) for number, text in enumerate(CODE)]
    assert price(model, *pairs) == pytest.approx(price(single, *pairs), rel=1e-4)


def test_a_prompt_is_read_once_for_answer_and_bits(folder: Path, model: HF) -> None:
    asked = [request(text, Kind.LINE) for text in (*CODE, CODE[0] + "ArgumentParser()", CODE[0])]
    made = hf(model=str(folder))
    priced = answers(made, *(replace(one, reference="self.name") for one in asked))
    costs = price(model, *[(one.prompt.text, "self.name") for one in asked])
    assert [one.bits for one in priced] == [pytest.approx(cost, rel=1e-4) for cost in costs]
    plain = answers(model, *asked)
    assert [(one.text, one.finish, one.tokens_out) for one in plain] == [
        (one.text, one.finish, one.tokens_out) for one in priced
    ]
    assert {one.bits for one in plain} == {None}
    prompts = sum(one.tokens_in for one in priced[:9]) - priced[0].tokens_in
    written = sum(one.tokens_out for one in priced)
    assert made.counted.needed < prompts + written + 12 * len(asked)
    # The rest are tokens of rows that had ended while their batch continued.
    left_over = max(one.tokens_out for one in priced) * len(asked) - written
    assert made.counted.read <= made.counted.needed + left_over and "tokens read" in made.remark


def test_long_texts_are_measured_in_pieces(folder: Path, model: HF) -> None:
    small = hf(model=str(folder), window=64)
    [whole] = price(model, (CODE[3], "item = 1\n" * 30))
    [pieces] = price(small, (CODE[3], "item = 1\n" * 30))
    assert pieces == pytest.approx(whole, rel=0.25)
    assert price(small, ("y = 2\n" * 500 + CODE[2], "x")) == price(
        small, ("y = 3\n" * 500 + "y = 2\n" * 20 + CODE[2], "x")
    )


# Chat


def test_a_chat_models_prompt_is_one_message_in_its_template(folder: Path) -> None:
    made = hf(model=str(folder), chat="on")
    asked = request("Write a function.\n")
    shown = "<|user|>\nWrite a function.\n\n<|assistant|>\n"
    ids = made._tokens.prompt(asked)
    assert made._tokens.text([], ids) == shown and made.count(asked) == len(ids)
    line = made._tokens.text([], made._tokens.prompt(request("x = ", Kind.LINE)))
    assert "<output_start>" in line and "x = " in line and line.startswith("<|user|>\n")
    [found] = answers(made, asked)
    assert made.capabilities.instructs and found.tokens_in == len(ids)


def changed(folder: Path, to: Path, **files: str | None) -> str:
    shutil.copytree(folder, to)
    for name, content in files.items():
        path = to / name.replace("__", ".")
        path.unlink() if content is None else path.write_text(content, encoding="utf-8")
    return str(to)


def test_templates_see_a_fixed_date(folder: Path, tmp_path: Path) -> None:
    dated = changed(folder, tmp_path / "m", chat_template__jinja="{{ date_string }}: {{ messages[0].content }}")
    made = hf(model=dated, chat="on")
    assert made._tokens.text([], made._tokens.prompt(request("hi"))) == "26 Jul 2024: hi"


@pytest.mark.parametrize("template", [None, "{{ raise_exception('system first') }}"])
def test_a_model_without_a_usable_chat_template_is_refused(folder: Path, tmp_path: Path, template: str | None) -> None:
    made = hf(model=changed(folder, tmp_path / "m", chat_template__jinja=template), chat="on")
    with pytest.raises(InputFault, match="chat=off" if template is None else "system first"):
        made.generate([request("hi")])


# Files that cannot be read


def test_a_model_with_missing_tensors_is_refused(folder: Path, tmp_path: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    deeper = json.dumps({**config, "num_hidden_layers": 5})
    with pytest.raises(InputFault, match=r"lack 9 tensors \(model\.layers\.4"):
        hf(model=changed(folder, tmp_path / "m", config__json=deeper)).generate([request("x")])


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_broken_file_is_a_one_line_fault(folder: Path, tmp_path: Path, name: str) -> None:
    made = hf(model=changed(folder, tmp_path / "m", **{name.replace(".", "__"): "{"}))
    with pytest.raises(InputFault) as caught:
        made.generate([request("x")])
    assert "\n" not in str(caught.value) and "cannot be read" in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_named(folder: Path) -> None:
    with pytest.raises(InputFault, match=r"no GPU.*device=cpu"):
        hf(model=str(folder), device="cuda").generate([request("x")])


MARKS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
PREFIX, SUFFIX, MIDDLE, PAD = range(VOCABULARY, VOCABULARY + 4)
BEFORE, BEHIND = "import os\nx = ", "\nprint(x)\n"


@pytest.fixture(scope="module")
def marked(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HF]:
    """Return a model whose tokenizer has the marks as ordinary tokens, as Qwen2.5-Coder has."""
    to = tmp_path_factory.mktemp("marked")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer.add_tokens([*MARKS, "<|fim_pad|>"]) == 4
    tokenizer.save_pretrained(to)
    torch.manual_seed(0)
    config = transformers.AutoConfig.from_pretrained(folder)
    config.vocab_size, config.hidden_size, config.intermediate_size = VOCABULARY + 4, 32, 48
    config.num_hidden_layers, config.head_dim = 1, 8
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(to)
    made = hf(model=str(to))
    yield made
    made.close()


def to_fill(before: str = BEFORE, behind: str = BEHIND) -> tuple[Request, Block]:
    return make_request(before, max_tokens=12, fim=True), Block(kind=BlockKind.AFTER, text=behind)


def test_marks_are_tokens_and_texts_between_them_are_encoded_separately(marked: HF) -> None:
    filled = fim.filled(marked, *to_fill())
    assert marked.infilling().name == "qwen" and filled.prompt.text == f"{MARKS[0]}{BEFORE}{MARKS[1]}{BEHIND}{MARKS[2]}"
    words = marked._tokens
    begin, *before = words.plain(BEFORE)
    assert words.prompt(filled) == [begin, PREFIX, *before, SUFFIX, *words.plain(BEHIND)[1:], MIDDLE]
    assert marked.count(filled) == len(words.prompt(filled))
    [found] = marked.generate([filled])
    assert isinstance(found, Response) and found.tokens_in == marked.count(filled) and found.tokens_out <= 12


def test_a_text_that_spells_a_mark_does_not_become_one(marked: HF) -> None:
    ids = marked._tokens.prompt(fim.filled(marked, *to_fill(f"stop = '{MARKS[2]}'\n", f"'{MARKS[0]}'")))
    assert [ids.count(mark) for mark in (PREFIX, SUFFIX, MIDDLE)] == [1, 1, 1]


def test_an_answer_ends_before_the_first_mark(marked: HF) -> None:
    filled = fim.filled(marked, *to_fill())
    row = LocalRequest(request=filled, ids=[0], most=9, end=end_of(filled, chat=False))
    made = marked._tokens.plain("y")[1:]
    assert marked._network is not None
    assert not marked._ended(row, made) and marked._ended(row, [*made, PAD]) and marked._ended(row, [*made, SUFFIX])
    assert marked._tokens.answer(filled, [0], [*made, PAD]) == "y"
    without = replace(filled, sampling=Sampling())
    assert marked._tokens.answer(without, [0], [*made, PAD]) == "y<|fim_pad|>"


def test_a_model_without_marks_and_a_chat_model_cannot_fill(folder: Path, marked: HF) -> None:
    with pytest.raises(InputFault, match="no fill-in-the-middle tokens"):
        fim.filled(hf(model=str(folder)), *to_fill())
    with pytest.raises(InputFault, match=r"chat model.*chat=off"):
        fim.filled(hf(model=marked._settings.model, chat="on"), *to_fill())
