"""Compare `vllm` with `hf`, with vLLM's real engine and no GPU: ``python -m scripts.check_vllm FOLDER``.

Run it where vLLM is installed beside a torch for processors. Everything of the engine works but its layers, which
transformers computes (`tests/helpers/vllm_worker.py`). Prints a line a request; ends with exit code 1 if a text, an
end, a count of the prompt or a price differs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Kind
from ctxbench.harness.generators.base import Request, Response, Sampling
from ctxbench.harness.generators.hf import hf
from ctxbench.harness.generators.vllm import engine, vllm
from ctxbench.strategies.api import Block, BlockKind, Prompt

PROMPTS = [
    "import os\n\n\ndef main():\n    parser = argparse.",
    "class Cart:\n    def __init__(self, name):\n        self.name = ",
    "for item in ",
    "if value:\n    pass\n",
    "x = 1\n\n",
    "    def é(a, b):\n        return ",
    "import os\n" * 60 + "x = ",
]
TEXT, LONGEST, CLOSE = "self.name", 20, 1e-3


def requests() -> list[Request]:
    """Return lines and functions after every prompt, and one with a stop text."""
    batch = [_request(text, line) for text in PROMPTS for line in (True, False)]
    return [*batch, _request(PROMPTS[1], False, stop=("self",))]


def _request(text: str, line: bool, **how: Any) -> Request:
    prompt = Prompt(blocks=(Block(kind=BlockKind.INFILE, text=text),))
    kind, sampling = Kind.LINE if line else Kind.FUNCTION, Sampling(max_tokens=LONGEST, **how)
    return Request(prompt=prompt, language=PYTHON, kind=kind, sampling=sampling, one_line=line)


def main(arguments: Sequence[str]) -> int:
    """Compare; return the exit code."""
    [folder] = arguments
    os.environ.setdefault("VLLM_TARGET_DEVICE", "cpu")
    started = engine.arguments

    def by_our_worker(*arguments: Any, **named: Any) -> dict[str, Any]:
        return {
            **started(*arguments, **named),
            "worker_cls": "tests.helpers.vllm_worker.Worker",
            "async_scheduling": False,
        }

    engine.arguments = by_our_worker
    under_test, reference = vllm(model=folder, dtype="float32"), hf(model=folder, dtype="float32")
    try:
        batch = requests()
        differ = 0
        for request, answer, expected in zip(batch, under_test.generate(batch), reference.generate(batch), strict=True):
            if not isinstance(answer, Response) or not isinstance(expected, Response):
                raise SystemExit(f"{answer!r} {expected!r}")
            same = (answer.text, answer.finish, answer.tokens_in) == (
                expected.text,
                expected.finish,
                expected.tokens_in,
            )
            differ += not same
            print("same" if same else "DIFFERS", request.one_line, repr(answer.text), answer.tokens_out, answer.cached)
        prompts, texts = [request.prompt for request in batch], [TEXT] * len(batch)
        pairs = zip(*(model.bits(prompts, texts, PYTHON) for model in (under_test, reference)), strict=True)
        apart = max(abs(a - b) for a, b in pairs)
        print(f"{differ} of {len(batch)} answers differ; prices differ by {apart:.2g} bits at most")
    finally:
        under_test.close()
        reference.close()
    return 1 if differ or apart > CLOSE else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
