"""Tokens of a served model: prompts cut to the window, the minimum token count, and servers that read less."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as texts

from ctxbench.bench import code_tokens
from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.harness.generators import conformance, openai
from ctxbench.harness.generators.base import CutShort, Request, Response, Sampling, TooLong
from ctxbench.harness.generators.fitting import fitted
from ctxbench.harness.generators.openai import OpenAI
from ctxbench.harness.generators.openai.likelihood import TEMPLATE, least_tokens
from ctxbench.strategies.api import BlockKind
from tests.helpers.cli import run_cli
from tests.helpers.openai_server import LLAMA_CPP, bits_of, serving
from tests.helpers.requests import make_request

CODE = "".join(f"item_{number} = {number}\n" for number in range(60)) + "total = "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a tokenizer of letters and digits that adds a start token."""
    made = tokenizers.ByteLevelBPETokenizer()
    made.train_from_iterator(["item = 1\n"], vocab_size=260, special_tokens=["<s>"], show_progress=False)
    made._tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", made.token_to_id("<s>"))]
    )
    made.enable_truncation(8)
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def ask(text: str = CODE, **changes: Any) -> Request:
    return make_request(text, max_tokens=16, **changes)


def model(folder: Path | str = "", **changes: Any) -> OpenAI:
    return openai.openai(**{"model": "tiny", "url": "http://127.0.0.1:1", "tokenizer": str(folder), **changes})


def test_a_prompt_is_counted_with_the_models_tokenizer(folder: Path) -> None:
    made = model(folder, window=200)
    # 30 letters and the start token. The file's own limit of 8 tokens is ignored.
    assert made.capabilities.counts and made.window == 200 and made.count(ask("q" * 30)) == 31
    assert made.count(ask("half \ud800")) == 7
    assert model(folder / "tokenizer.json", window=200).count(ask("q" * 30)) == 31


def test_the_count_of_a_chat_prompt_includes_its_template(folder: Path) -> None:
    made = model(folder, window=900, endpoint="chat")
    assert made.count(ask("q" * 30, block=BlockKind.TEXT)) == 31 + TEMPLATE


def test_a_prompt_is_cut_to_the_window_before_it_is_sent(folder: Path) -> None:
    count = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    count.no_truncation()
    with (
        serving(count=lambda text: len(count.encode(text).ids)) as server,
        closing(model(folder, window=200, url=server.url)) as made,
    ):
        cut = fitted(made, ask())
        [found] = made.generate([cut])
    assert isinstance(found, Response) and CODE.endswith(server.calls[0]["prompt"])
    assert "overflow_trimmed" in cut.prompt.flags and 100 < made.count(cut) <= 200 - 16
    assert fitted(made, ask("total = ")).prompt.text == "total = "


def test_an_answer_is_limited_to_the_rest_of_the_window(folder: Path) -> None:
    long = replace(ask(), sampling=Sampling(max_tokens=300))
    with (
        serving(count=lambda text: len(text) + 1, answer=lambda prompt, body: "x " * 400) as server,
        closing(model(folder, window=400, url=server.url)) as made,
        closing(model(window=400, url=server.url)) as blind,
    ):
        cut = fitted(made, long)
        room = 400 - made.count(cut)
        [answer], [short] = made.generate([cut]), made.generate([ask("x = ")])
        [over] = blind.generate([cut])
    assert 200 <= room < 300 and isinstance(answer, Response) and isinstance(short, Response)
    assert (answer.finish, answer.tokens_out) == ("length", room) and short.tokens_out == 16
    assert [call["max_tokens"] for call in server.calls] == [room, 16, 300]
    assert isinstance(over, TooLong), "without a tokenizer nobody can say how long it may be"


def test_thinking_tokens_are_added_to_the_answers_limit(folder: Path) -> None:
    with serving(count=len) as server, closing(model(folder, window=900, thinking=300, url=server.url)) as made:
        made.generate([replace(fitted(made, ask()), sampling=Sampling(max_tokens=700))])
    [call] = server.calls
    assert call["max_tokens"] + made.count(fitted(made, ask())) == 900 + 300


def test_texts_priced_in_bits_are_cut_to_the_window(folder: Path) -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()

    def split(text: str) -> list[str]:
        offsets = tokenizer.encode(text, add_special_tokens=False).offsets
        return [text[begin:end] for begin, end in offsets]

    pairs = [("total = ", "f(x)"), (CODE, "f(x)"), (CODE, "f(x)" * 60), ("x", "f(x)" * 60)]
    with (
        serving(count=lambda text: 1 + len(split(text)), split=split, window=200, costs=lambda *_: -1.0) as server,
        closing(model(folder, window=200, url=server.url, bits=True, concurrency=1)) as made,
    ):
        costs = made.bits([ask(prompt).prompt for prompt, _ in pairs], [text for _, text in pairs], PYTHON)
    assert costs == pytest.approx([bits_of(*[-1.0] * tokens) for tokens in (5, 5, 241, 241)])
    small, cut, *pieces = [call["prompt"] for call in server.calls]
    assert small == "total = f(x)\n" and f"{CODE}f(x)\n".endswith(cut)
    assert len(pieces) == 6 and {text in f"{CODE}{'f(x)' * 60}\n" for text in pieces[:3]} == {True}
    assert all(170 < len(split(text)) < 199 for text in (cut, *pieces[:3]))


def test_a_server_that_reads_less_than_the_tokenizer_counts_is_a_fault(folder: Path) -> None:
    counted = serving(count=lambda text: len(text) + 1, cuts=160)
    with counted as server, closing(model(folder, window=999, url=server.url)) as made:
        found = made.generate([ask("q" * 170), ask("q" * 180)])
    assert isinstance(found[0], Response) and isinstance(found[1], CutShort)
    assert "it read 160 of at least 164 tokens" in str(found[1])


def test_prompts_are_not_cut_without_a_tokenizer() -> None:
    assert model(window=20).window == 0 and fitted(model(window=20), ask()).prompt.text == CODE


def test_an_uncounted_prompt_is_too_long_only_by_the_minimum_count() -> None:
    # The first prompt is too long by ctxbench's count, but may fit by another tokenizer's.
    with serving(usage=False) as server, closing(model(window=300, url=server.url)) as made:
        fits, long = made.generate([ask(), ask(CODE * 2)])
    assert made.count(ask()) > 300 and isinstance(fits, Response) and not fits.counted
    assert isinstance(long, TooLong) and "prompt and answer have at least" in str(long)


def test_the_tokenizer_file_and_the_revision_change_the_version(folder: Path) -> None:
    versions = {model().version, model(folder, window=9).version}
    with (folder / "tokenizer.json").open("a") as handle:
        handle.write("\n")
    assert len(versions | {model(folder, window=9).version, model(folder, window=9, revision="r1").version}) == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"folder": "/no/such"}, "/no/such is neither a file nor a folder with tokenizer.json"),
        ({"window": 0}, "set window=TOKENS"),
    ],
)
def test_a_missing_tokenizer_file_or_window_is_refused(folder: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputFault, match=words):
        model(**{"folder": folder, "window": 9, **changes})


def test_a_broken_tokenizer_file_is_reported_in_one_line(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    made = model(folder, window=9)
    with pytest.raises(InputFault, match=r"tokenizer\.json cannot be read") as caught:
        made.count(ask())
    assert "\n" not in str(caught.value)


_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
RULES = {
    "gpt-2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama-3": rf"{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}",
    "qwen-2": rf"{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}",
    "gpt-4o": (
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SHORT}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SHORT}?"
        rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_REST}"
    ),
    "deepseek": (
        r"""\p{N}{1,3}|[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}\p{N}]?[\p{L}\p{M}]+"""
        rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_REST}"
    ),
}
"""For each tokenizer, the pieces that it never joins. A piece is at least one token."""


def pieces(rule: str) -> Callable[[str], int]:
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(RULES[rule]), "isolated")
    return lambda text: len(split.pre_tokenize_str(text))


@pytest.mark.parametrize("rule", RULES)
def test_code_never_has_fewer_tokens_than_the_minimum(rule: str) -> None:
    root = Path(__file__).parents[3]
    files = [
        *sorted(root.glob("harness/*/*.py"))[:30],
        *sorted(root.glob("tests/**/*.java"))[:20],
        *root.glob("docs/f*.md"),
    ]
    count = pieces(rule)
    assert len(files) > 30
    for file in files:
        text = file.read_text()
        assert least_tokens(text) <= count(text), file
        # The minimum is high enough that a prompt cut in half is noticed.
        assert len(text) < 2000 or least_tokens(text) > 0.4 * code_tokens.count(text), file


@pytest.mark.slow
@given(texts.text(texts.sampled_from("aB9 _.'st<|>é漢→²\n\r\t\u0301/\u00a0-"), max_size=40))
def test_no_text_has_fewer_tokens_than_the_minimum(text: str) -> None:
    for rule in RULES:
        assert least_tokens(text) <= pieces(rule)(text), rule


@pytest.mark.parametrize("text", ["漢" * 50_000, "<" + "a" * 50_000, "<" * 50_000, "_" * 50_000, "\n" * 50_000])
def test_long_repetitive_texts_are_counted_quickly(text: str) -> None:
    """In quadratic time, each text would take minutes."""
    assert least_tokens(text) <= 1


def findings(*, endpoint: str = "completions", whole: bool = True, **server: Any) -> dict[str, tuple[bool, str]]:
    with (
        serving(**server) as running,
        closing(openai.openai(model="tiny", url=running.url, endpoint=endpoint, whole=whole, retries=0)) as made,
    ):
        found = {name: (passed, words) for name, passed, words in conformance.reading_checks(made)}
        assert len(running.calls) == 3
    return found


def test_a_server_that_reads_whole_prompts_passes_the_checks() -> None:
    found = findings(template=1)
    assert found == {
        "reads prompts whole": (True, "7,841 tokens"),
        "continues the text": (True, "tokens around a prompt: 1"),
    }


@pytest.mark.parametrize("cuts", [2050, 4096, 7600])
@pytest.mark.parametrize("endpoint", ["completions", "chat"])
def test_a_server_that_cuts_prompts_silently_fails_the_check(cuts: int, endpoint: str) -> None:
    passed, words = findings(cuts=cuts, endpoint=endpoint)["reads prompts whole"]
    # The smaller counts are below the minimum of every tokenizer, so the request fails at once.
    assert not passed and f" read {cuts} of" in words.replace(",", "")
    assert "silently" in words or "without an error" in words


def test_silent_cuts_are_found_with_whole_off() -> None:
    passed, words = findings(cuts=4096, whole=False)["reads prompts whole"]
    assert not passed and words == "the model read 4,096 of 7,840 tokens, without an error"


def test_a_server_that_refuses_long_prompts_passes_the_check() -> None:
    passed, words = findings(window=4096, shape=LLAMA_CPP)["reads prompts whole"]
    assert passed and words.startswith("the prompt is too long for the model (status 400): the request exceeds the")


def test_a_server_that_treats_code_as_a_message_fails_the_check() -> None:
    passed, words = findings(template=30)["continues the text"]
    assert not passed and words == "tokens around a prompt: 30, as around a chat's message"
    assert "continues the text" not in findings(template=30, endpoint="chat")


def test_a_server_that_repeats_the_prompt_fails_the_check() -> None:
    passed, words = findings(answer=lambda prompt, _: prompt)["continues the text"]
    assert not passed and words == "the model repeats the prompt before its answer"


def test_a_server_that_counts_no_tokens_passes_as_unknown() -> None:
    assert findings(usage=False) == {"reads prompts whole": (True, "unknown: the server does not report token counts")}


def test_generator_check_reports_silent_cuts_and_fails() -> None:
    with serving(cuts=4096) as server:
        result = run_cli("generator", "check", f"openai:tiny@{server.url}(whole=off)")
    assert result.code == 1 and "FAIL  reads prompts whole" in result.out and "10 of 11 checks passed" in result.out
