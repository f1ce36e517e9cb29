"""Test `vllm` on a stand-in package with one token per character: arguments, cuts, token counts and faults."""

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.types import Kind
from ctxbench.harness.generators import base
from ctxbench.harness.generators import vllm as package
from ctxbench.harness.generators.base import Request, Response, TooLong
from ctxbench.harness.generators.conformance import check
from ctxbench.harness.generators.fim import Template
from ctxbench.harness.generators.vllm import VLLM
from tests.helpers.requests import answers, make_request
from tests.helpers.vllm_fake import FakeVLLM

WINDOW = 400
END = 3
"""The token that ends texts."""
BLANKS = 0x110000
"""A token of several characters: two line ends and four blanks."""


class Words:
    """A tokenizer with one token per character and one token of six characters."""

    begin = 2

    @property
    def template(self) -> Template:
        raise InputFault("its vocabulary has no marks")

    def prompt(self, request: Request) -> list[int]:
        return self.plain(request.prompt.text)

    def plain(self, text: str) -> list[int]:
        return [self.begin, *map(ord, text)]

    def text(self, _: Sequence[int], made: Sequence[int]) -> str:
        return "".join("\n\n    " if one == BLANKS else chr(one) for one in made if one not in (END, self.begin))

    def answer(self, _: Request, before: Sequence[int], made: Sequence[int]) -> str:
        return self.text(before, made)

    def middle_ends(self, request: Request) -> frozenset[int]:
        return frozenset([7, 5]) if request.sampling.fim else frozenset()


def scripted(answers: dict[str, list[int]]) -> Callable[[list[int], int | None], int]:
    """Return a function that continues each prompt with its answer. Other continuations depend on the tokens so far."""

    def following(ids: list[int], seed: int | None) -> int:
        for prompt, answer in answers.items():
            begin = [Words.begin, *map(ord, prompt)]
            if ids[: len(begin)] == begin and len(ids) - len(begin) < len(answer):
                return answer[len(ids) - len(begin)]
        return ord("abcdef"[(len(ids) + (seed or 0)) % 6]) if len(ids) % 11 else END

    return following


def tokens(text: str) -> list[int]:
    return [BLANKS if one == "¤" else END if one == "$" else ord(one) for one in text]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "need", lambda *_, **__: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "m"
    made.mkdir()
    (made / "config.json").write_text(json.dumps({"max_position_embeddings": WINDOW}))
    (made / "model.safetensors").write_bytes(bytes(range(256)) * 1024)
    return made


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeVLLM:
    made = FakeVLLM(scripted({}), Words().text, ends=[END])
    made.install(monkeypatch)
    return made


@pytest.fixture
def model(folder: Path, fake: FakeVLLM) -> Iterator[VLLM]:
    made = opened(folder)
    yield made
    made.close()
    assert fake.alive == 0


def opened(folder: Path, **given: Any) -> VLLM:
    made = package.vllm(model=str(folder), **given)
    made._words = Words()  # type: ignore[assignment]
    return made


def request(text: str, *, line: bool = False, **changes: Any) -> Request:
    kind = Kind.LINE if line else Kind.FUNCTION
    return make_request(text, kind=kind, one_line=line, **{"max_tokens": 24, **changes})


# Specs


def test_the_short_spec_resolves_and_machine_parameters_are_not_canonical() -> None:
    spec = "vllm:/models/m-Instruct(tensor_parallel=2, gpu_memory=0.5, batch=8, dtype=bfloat16)"
    assert base.canonical(spec) == "vllm(dtype=bfloat16, model=/models/m-Instruct)"
    made = base.resolve(spec)
    assert made.capabilities.batch_size == 8 and made.capabilities.instructs and made.capabilities.log_likelihoods
    made.close()


def test_a_missing_extra_is_reported_with_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: None if name == "vllm" else name)
    with pytest.raises(InputFault, match=r"^vllm: vllm must be installed; pip install 'ctxbench\[vllm\]'"):
        package.vllm(model="m")


def test_the_version_depends_on_the_model(folder: Path, fake: FakeVLLM) -> None:
    before = package.vllm(model=str(folder))
    assert before.version.startswith("3-") and "vllm" in before.version
    (folder / "config.json").write_text("{}")
    assert package.vllm(model=str(folder)).version != before.version
    assert before.window == 0 and fake.started == []


# Arguments of the engine


def test_the_engine_starts_once_on_demand_in_its_own_thread(model: VLLM, fake: FakeVLLM, folder: Path) -> None:
    assert model.window == WINDOW and model.capabilities.counts and model.count(request("abc")) == 4
    assert fake.started == []
    answers(model, request("a"), request("b"))
    model.bits([request("a").prompt], ["b"], PYTHON)
    assert len(fake.started) == 1 and [name.partition("_")[0] for name in fake.threads] == ["vllm"]
    assert fake.mains == {"ctxbench.__main__"}, "its workers would run the caller's script"
    assert vars(fake.started[0]) == {
        "model": str(folder),
        "dtype": "auto",
        "quantization": None,
        "max_model_len": WINDOW,
        "seed": 0,
        "tensor_parallel_size": 1,
        "gpu_memory_utilization": 0.9,
        "enable_prefix_caching": True,
        "generation_config": "vllm",
        "trust_remote_code": False,
        "disable_log_stats": True,
    }


def test_on_a_cpu_nothing_is_compiled_and_memory_is_bounded(
    model: VLLM, fake: FakeVLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "7")
    # monkeypatch then removes the variable at the end, even if the engine sets it.
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "")
    monkeypatch.delenv("TORCHDYNAMO_DISABLE")
    fake.gpu, fake.cpu = False, True
    answers(model, request("a"))
    assert fake.started[0].enforce_eager is True and fake.started[0].block_size == 32
    assert (os.environ["TORCHDYNAMO_DISABLE"], os.environ["VLLM_CPU_KVCACHE_SPACE"]) == ("1", "7")


def test_parameters_of_the_spec_reach_the_engine(folder: Path, fake: FakeVLLM) -> None:
    made = opened(folder, quantization="fp8", tensor_parallel=4)
    answers(made, request("a"))
    assert (fake.started[0].quantization, fake.started[0].tensor_parallel_size) == ("fp8", 4)
    made.close()


def test_a_batch_is_one_call_and_each_request_has_its_own_parameters(model: VLLM, fake: FakeVLLM) -> None:
    greedy = request("a", stop=("", "#"), max_tokens=5)
    drawn = [request("b", temperature=0.8, top_p=0.9, seed=7, index=index) for index in range(2)]
    answers(model, greedy, *drawn)
    [[one, two, three]] = fake.calls
    assert vars(one) == {
        "max_tokens": 5,
        "temperature": 0.0,
        "top_p": 1.0,
        "seed": None,
        "stop": ["#"],
        "stop_token_ids": [],
    }
    assert (two.temperature, two.top_p) == (0.8, 0.9) and two.seed != three.seed
    assert two.stop == []


# Answers


def test_vllm_passes_all_generator_checks(model: VLLM, fake: FakeVLLM) -> None:
    fake.log = lambda _, token: math.log(0.5 if token < 128 else 1e-9)
    findings = check(model)
    assert len(findings) >= 8 and [one for one in findings if not one.passed] == []


@pytest.mark.parametrize(
    ("made", "text", "finish", "count"),
    [
        ("x + 1\nmore", "x + 1", "stop", 6),
        ("\n\n    y = 2\nmore", "\n\n    y = 2", "stop", 21),  # continues after the blank lines and is cut
        ("¤z\nmore", "\n\n    z", "stop", 10),
        ("\n\n\n\n\nz\nmore", "\n\n\n\n\nz", "stop", 21),
        ("  $", "  ", "stop", 3),
        ("\n$", "\n", "stop", 2),
        ("abc" * 8, "abc" * 8, "length", 24),
        ("\n" * 24, "\n" * 24, "length", 24),
    ],
)
def test_an_answer_of_one_line_ends_after_its_first_nonblank_line(
    model: VLLM, fake: FakeVLLM, made: str, text: str, finish: str, count: int
) -> None:
    fake.following = scripted({"p": tokens(made)})
    [found] = answers(model, request("p", line=True))
    assert (found.text, found.finish, found.tokens_in, found.tokens_out) == (text, finish, 2, count)


def test_only_answers_that_begin_with_a_blank_line_are_continued(model: VLLM, fake: FakeVLLM) -> None:
    fake.following = scripted({"p": tokens("\nx = 1\n"), "q": tokens("y\n")})
    one, two, three = answers(model, request("p", line=True), request("q", line=True), request("p"))
    assert (one.text, two.text) == ("\nx = 1", "y") and three.text.startswith("\nx = 1\n")
    [first, second] = fake.calls
    assert [how.stop for how in first] == [["\n"], ["\n"], []] and [how.stop for how in second] == [[]]
    assert second[0].max_tokens == 23 and one.tokens_out > 7


def test_continued_samples_use_a_new_seed(model: VLLM, fake: FakeVLLM) -> None:
    fake.following = scripted({"p": tokens("\n")})
    answers(model, request("p", line=True, temperature=0.5, seed=3))
    [[first], [second]] = fake.calls
    assert first.seed != second.seed and None not in (first.seed, second.seed)


def test_stop_texts_and_half_characters_are_removed(model: VLLM, fake: FakeVLLM) -> None:
    fake.following = scripted({"p": tokens("ab#c"), "q": tokens("ab\ufffd")})
    one, two = answers(model, request("p", stop=("#",)), request("q", max_tokens=3))
    assert (one.text, one.finish, two.text, two.finish) == ("ab", "stop", "ab", "length")


def test_cached_tokens_are_counted_once(model: VLLM, fake: FakeVLLM) -> None:
    fake.following = scripted({"value = ": tokens("\nx\n")})
    [first] = answers(model, request("value = "))
    [again] = answers(model, request("value = 1", line=True))
    [line] = answers(model, request("value = ", line=True))
    assert (first.cached, again.cached) == (0, 8) and line.cached == 8 < line.tokens_in


def test_a_long_prompt_fails_alone_and_the_window_bounds_the_answer(model: VLLM) -> None:
    long, near = model.generate([request("a" * WINDOW), request("a" * (WINDOW - 4))])
    assert isinstance(long, TooLong) and f"window has {WINDOW}" in str(long)
    assert isinstance(near, Response) and near.tokens_in + near.tokens_out <= WINDOW
    assert all(isinstance(one, TooLong) for one in model.generate([request("a" * WINDOW)]))


# Bits


def test_bits_are_the_sum_over_the_texts_tokens(model: VLLM, fake: FakeVLLM) -> None:
    fake.log = lambda _, token: math.log(0.25 if token == ord("y") else 0.5)
    assert model.bits([request("x = ").prompt] * 2, ["xyx", "x"], PYTHON) == pytest.approx([5.0, 2.0])
    reading, how = fake.calls[0][:2]
    assert vars(reading) == {"max_tokens": 1, "temperature": 0.0, "detokenize": False}
    assert vars(how) == {**vars(reading), "prompt_logprobs": 0, "skip_reading_prefix_cache": False}
    assert model.bits([], [], PYTHON) == []


def test_a_references_bits_come_from_the_prefill_for_its_answer(model: VLLM, fake: FakeVLLM) -> None:
    fake.log = lambda _, token: math.log(0.25 if token == ord("y") else 0.5)
    fake.following = scripted({"value = ": tokens("yx\n")})
    one, two = answers(model, replace(request("value = ", line=True), reference="yx"), request("other"))
    assert (one.text, one.bits, one.cached) == ("yx", pytest.approx(4.0), 0) and two.bits is None
    # The calls read 8 tokens, then the last with the 3 to price, then the last for the answer. Each writes a token.
    assert len(fake.calls) == 2 and model.at_hand == 16
    assert model.read == (8 + 1) + (4 + 1) + (1 + one.tokens_out) + two.tokens_in + two.tokens_out
    assert model.remark == f"{model.read} tokens read, 16 more taken from the cache"


def test_a_text_within_a_longer_prompt_is_priced_first(model: VLLM, fake: FakeVLLM) -> None:
    long, short = request("a = 1\nbcdefghi = 2\ncd").prompt, request("a = 1\n").prompt
    assert model.bits([long, short], ["x", "bcdefghi = 2"], PYTHON) == pytest.approx([2.0, 13.0])
    assert len(fake.calls) == 1


def test_cached_tokens_are_read_again_for_bits(model: VLLM, fake: FakeVLLM) -> None:
    answers(model, request("a = bcdefghijklm"))
    assert model.bits([request("a = ").prompt], ["bcdefghijkl"], PYTHON) == pytest.approx([12.0])
    assert fake.calls[-1][0].skip_reading_prefix_cache is True


def test_an_answer_is_kept_when_its_reference_has_no_bits(model: VLLM, fake: FakeVLLM) -> None:
    fake.log = lambda *_: -math.inf
    [answer] = answers(model, replace(request("x"), reference="y"))
    assert answer.bits is None


def test_long_texts_are_priced_in_pieces_that_fit(model: VLLM, fake: FakeVLLM) -> None:
    assert model.bits([request("x" * 900).prompt], ["y" * 700], PYTHON) == pytest.approx([701.0])
    assert len(fake.calls[0]) > 1


def test_infinite_bits_are_a_fault(model: VLLM, fake: FakeVLLM) -> None:
    fake.log = lambda *_: -math.inf
    with pytest.raises(MachineFault, match="not finite"):
        model.bits([request("x").prompt], ["y"], PYTHON)


# Faults


def test_a_missing_gpu_is_reported_in_one_line(model: VLLM, fake: FakeVLLM) -> None:
    fake.gpu = False
    with pytest.raises(InputFault, match=r"no GPU.*openai:MODEL@URL") as caught:
        model.generate([request("a")])
    assert "\n" not in str(caught.value)


class OutOfMemoryError(RuntimeError):
    """An error with the name that torch uses."""


@pytest.mark.parametrize(
    ("error", "fault", "said"),
    [
        (OutOfMemoryError("CUDA out of memory.\nTried"), MachineFault, r"did not start \(OutOfMemory.*smaller window"),
        (ValueError("model's max seq len needs more KV cache memory"), MachineFault, "smaller window"),
        (
            ValueError("1 validation error\nValue error, dtype is odd"),
            InputFault,
            "Value error, dtype is odd.*correct the spec",
        ),
        (RuntimeError("Engine core initialization failed."), MachineFault, "run the same command again"),
    ],
)
def test_an_engine_that_does_not_start_reports_the_reason(
    model: VLLM, fake: FakeVLLM, error: Exception, fault: type[Exception], said: str
) -> None:
    fake.broken = [error]
    with pytest.raises(fault, match=said) as caught:
        model.generate([request("a")])
    assert "\n" not in str(caught.value)
    answers(model, request("a"))


def test_an_engine_that_died_is_started_again(model: VLLM, fake: FakeVLLM) -> None:
    answers(model, request("a"))
    fake.broken = [RuntimeError("EngineCore encountered an issue.")]
    with pytest.raises(MachineFault, match="returned no answer"):
        model.generate([request("a")])
    assert fake.alive == 0
    answers(model, request("a"))
    assert len(fake.started) == 2 and fake.alive == 1


def test_an_error_at_shutdown_does_not_hide_the_fault(
    model: VLLM, fake: FakeVLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shutdown() -> None:
        fake.alive -= 1
        raise OSError("broken pipe")

    monkeypatch.setattr(fake, "_shutdown", shutdown)
    answers(model, request("a"))
    fake.broken = [RuntimeError("EngineCore encountered an issue.")]
    with pytest.raises(MachineFault, match="EngineCore encountered an issue"):
        model.generate([request("a")])


# Fill in the middle


def test_fim_marks_end_an_answer(model: VLLM, fake: FakeVLLM) -> None:
    answers(model, request("a", line=True, fim=True))
    assert fake.calls[0][0].stop_token_ids == [5, 7]
