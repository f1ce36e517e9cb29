"""`hf` or `vllm` compared with its library's own loop: `python -m benchmarks.reading FOLDER [FILES] [vllm]`.

Lines of the standard library are completed, and measured in bits after two prompts. The library's loop does less: it
measures only after the file alone. Each runs three times, in turn. The printed medians are wall and processor seconds;
the latter are more reliable on a busy machine.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from benchmarks.windows import library
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Kind
from ctxbench.harness.generators.base import Request, Response, Sampling
from ctxbench.harness.generators.hf import HF, hf
from ctxbench.harness.generators.local import transformers_module
from ctxbench.harness.generators.prefill import shared
from ctxbench.harness.generators.vllm import VLLM, vllm
from ctxbench.strategies.api import Block, BlockKind, Prompt

T = TypeVar("T")
MOST_TOKENS, ROUNDS = 32, 3
_LINES = 150
"""Lines of a file before the completed line."""


def main(folder: str, count: str = "6", engine: str = "hf") -> None:
    model = vllm(model=folder, chat="off", window=4096) if engine == "vllm" else hf(model=folder, chat="off")
    asked, files = _asked(int(count))
    texts = [str(request.reference) for request in asked]
    loop = VLLMLoop(folder) if isinstance(model, VLLM) else Loop(folder)
    our_times, own_times, reads = [], [], []
    for _ in range(ROUNDS):
        before = loop.begin(model)
        (answers, _), seconds = _timed(lambda: (_answers(model, asked), model.bits(files, texts, PYTHON)))
        our_times.append(seconds)
        reads.append(_read(model) - before)
        written = [answer.tokens_out for answer in answers]
        loop.begin(model)
        own, seconds = _timed(functools.partial(loop.run, asked, written, files, texts))
        own_times.append(seconds)
    wall, cpu = map(statistics.median, zip(*our_times, strict=True))
    own_wall, own_cpu = map(statistics.median, zip(*own_times, strict=True))
    sizes = sorted(answer.tokens_in for answer in answers)
    print(f"{len(asked)} prompts of {sizes[0]} to {sizes[-1]} tokens answered, {len(files)} more priced")
    print(f"seconds: {engine} {wall:.1f}, the loop {own_wall:.1f}: ratio {wall / own_wall:.2f}")
    print(f"processor seconds: {engine} {cpu:.1f}, the loop {own_cpu:.1f}: ratio {cpu / own_cpu:.2f}")
    needed = loop.needed(asked, files, texts) + sum(answer.tokens_out for answer in answers)
    read = statistics.median(reads)
    print(f"tokens: {read:,.0f} read, {needed:,} needed: ratio {read / needed:.3f}")
    same = [theirs.startswith(ours.text) for theirs, ours in zip(own, answers, strict=True)]
    print(f"same answers: {sum(same)} of {len(same)}")
    model.close()


def _read(model: HF | VLLM) -> int:
    return model.read if isinstance(model, VLLM) else model.counted.read


def _asked(count: int) -> tuple[list[Request], list[Prompt]]:
    """Return requests with their references, and the in-file prompts."""
    sources = [text.split("\n") for text in library()[0].values() if text.count("\n") > 2 * _LINES][: count + 1]
    requests, files = [], []
    for lines, others in itertools.pairwise(sources):
        for extra in (0, 20):
            at = next(at for at in range(_LINES + extra, len(lines)) if len(lines[at].strip()) > 10)
            reference = lines[at].lstrip()
            before = "\n".join(lines[:at]) + "\n" + lines[at][: -len(reference)]
            context = "\n".join(f"# {line}" for line in others[:40]) + "\n"
            blocks = (Block(kind=BlockKind.TEXT, text=context), Block(kind=BlockKind.INFILE, text=before))
            sampling = Sampling(max_tokens=MOST_TOKENS)
            requests.append(
                Request(
                    prompt=Prompt(blocks=blocks),
                    language=PYTHON,
                    kind=Kind.LINE,
                    sampling=sampling,
                    one_line=True,
                    reference=reference,
                )
            )
            files.append(Prompt(blocks=blocks[1:]))
    return requests, files


def _answers(model: HF | VLLM, asked: Sequence[Request]) -> list[Response]:
    return [answer for answer in model.generate(asked) if isinstance(answer, Response)]


def _timed(work: Callable[[], T]) -> tuple[T, tuple[float, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    outcome = work()
    return outcome, (time.perf_counter() - wall, time.process_time() - cpu)


class Loop:
    """The library's usual loop: one prompt after the other."""

    def __init__(self, folder: str) -> None:
        self._tokenizer = transformers_module().AutoTokenizer.from_pretrained(folder)
        self._folder = folder

    def begin(self, model: HF | VLLM) -> int:
        """Clear the cache. Return the number of tokens that the model has read so far."""
        self._network.train(False)
        return _read(model)

    @functools.cached_property
    def _network(self) -> Any:
        return transformers_module().AutoModelForCausalLM.from_pretrained(self._folder, dtype="auto")

    def run(
        self, asked: Sequence[Request], written: Sequence[int], files: Sequence[Prompt], texts: Sequence[str]
    ) -> list[str]:
        """Write `written` tokens after each prompt, and measure the texts after the files. Return the completions."""
        # Without the extra for models, the type checker does not find torch.
        torch: Any = importlib.import_module("torch")
        answers = []
        with torch.inference_mode():
            for request, count in zip(asked, written, strict=True):
                ids = torch.tensor([self._ids(request.prompt.text)])
                made = self._network.generate(
                    ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=count
                )
                answers.append(str(self._tokenizer.decode(made[0, ids.shape[1] :])))
            for prompt, text in zip(files, texts, strict=True):
                ids = torch.tensor([self._ids(f"{prompt.text}{text}\n")])
                kept = len(self._ids(text)) + 2
                self._network(ids, logits_to_keep=kept).logits.float().log_softmax(dim=-1)
        return answers

    def needed(self, asked: Sequence[Request], files: Sequence[Prompt], texts: Sequence[str]) -> int:
        """Return the number of tokens of prompts and measured texts, counting shared prefixes once."""
        prompts = [*(request.prompt for request in asked), *files]
        read = sorted(
            self._ids(f"{prompt.text}{text}\n")[:-1] for prompt, text in zip(prompts, [*texts, *texts], strict=True)
        )
        return sum(len(ids) - shared(before, ids) for before, ids in zip([[], *read], read, strict=False))

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text)["input_ids"]
        return ids


class VLLMLoop(Loop):
    """The engine's usual loop: all requests at once, in the engine that `vllm` started."""

    def begin(self, model: HF | VLLM) -> int:
        """Start the engine and clear its cache. Return the number of tokens that it has read so far."""
        assert isinstance(model, VLLM)
        self._package = importlib.import_module("vllm")
        model.bits([Prompt(blocks=())], ["warm"], PYTHON)
        self._engine: Any = model._started
        assert self._engine.reset_prefix_cache()
        return _read(model)

    def run(
        self, asked: Sequence[Request], written: Sequence[int], files: Sequence[Prompt], texts: Sequence[str]
    ) -> list[str]:
        """Do the same work as `Loop.run`."""
        answers = self._made([request.prompt.text for request in asked], [{"max_tokens": count} for count in written])
        priced = [f"{prompt.text}{text}\n" for prompt, text in zip(files, texts, strict=True)]
        self._made(priced, [{"max_tokens": 1, "prompt_logprobs": 0}] * len(priced))
        return answers

    def _made(self, prompts: Sequence[str], how: Sequence[dict[str, int]]) -> list[str]:
        tokens = [self._package.TokensPrompt(prompt_token_ids=self._ids(prompt)) for prompt in prompts]
        parameters = [self._package.SamplingParams(temperature=0.0, **one) for one in how]
        outputs = self._engine.generate(tokens, parameters, use_tqdm=False)
        return [str(output.outputs[0].text) for output in outputs]


if __name__ == "__main__":
    main(*sys.argv[1:])
