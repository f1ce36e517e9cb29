"""`hf`: runs a model's weights in this process with transformers and torch (the extra ``hf``)."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import logging
import math
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.retrieval.encoders.recipes import CURE
from ctxbench.bench.spec import Shorthand
from ctxbench.harness.generators import precision
from ctxbench.harness.generators.base import Request, Response, generator
from ctxbench.harness.generators.fim import strategy_prompt
from ctxbench.harness.generators.local import (
    AUTO,
    BatchSize,
    Local,
    LocalModel,
    LocalRequest,
    NumberFormat,
    UseOfTemplate,
    Window,
    configured_dtype,
    is_chat,
    model_digest,
    transformers_module,
    unreadable,
)
from ctxbench.harness.generators.prefill import Prefill, TokensRead
from ctxbench.strategies.api import Prompt

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_TELL_SECONDS = 10.0
_SORTED_FIRST = 1024
"""Number of likeliest tokens to sort first. They usually contain all the probability to draw from."""
_ROUNDING = 1e-9
PROTOCOL = "2"
"""Version of the decoding, incremented if a change gives some request another answer."""
_DEVICE = re.compile(r"auto|cpu|cuda(?::\d+)?")
Choose = Callable[[Any], int]
"""Logits of shape (vocabulary,) -> the chosen token."""


@generator("hf", machine=("device", "batch"), shorthand=Shorthand("MODEL", r"(?P<model>.+)"))
def hf(
    *,
    model: str,
    revision: str = "",
    device: str = AUTO,
    dtype: NumberFormat = "auto",
    batch: BatchSize = 8,
    window: Window = 0,
    chat: UseOfTemplate = "auto",
) -> HF:
    """Run a model's weights with transformers; short: hf:MODEL.

    Args:
        model: a name of `ctxbench model list`, a folder with the model, or a name on the Hugging Face hub, which is
            read from the hub's cache on this machine or fetched.
        revision: branch, tag or commit of a model on the hub.
        device: ``cpu``, ``cuda``, ``cuda:1``, or ``auto``: a GPU if the machine has one.
        dtype: ``float32``, ``bfloat16``, ``float16``, or ``auto``: the format of the stored weights, but float32 on a
            processor that is slower with 16 bits (measured once).
        batch: number of answers computed at once.
        window: maximum tokens of prompt and answer; 0 for the model's configured length.
        chat: whether prompts use the model's chat template: ``on``, ``off``, or ``auto``:
            as in `ctxbench model list`, or by the model's name (``…-Instruct``, ``…-chat``).
    """
    if not _DEVICE.fullmatch(device):
        raise InputFault(f"device={device} is invalid", where="hf", cure="use cpu, cuda, cuda:1 or auto")
    weights.need(("torch", "transformers"), where="hf", cure=CURE)
    settings = LocalModel(
        by="hf",
        model=model,
        revision=revision,
        dtype=dtype,
        batch=batch,
        window=window,
        chat=is_chat(chat, model),
    )
    return HF(settings, device=device)


class HF(Local):
    """A causal language model that transformers and torch run in this process."""

    def __init__(self, settings: LocalModel, *, device: str = AUTO) -> None:
        super().__init__(settings, batch_size=settings.batch)
        self._settings, self._wanted_device = settings, device
        self._lock = threading.Lock()
        self._read: Any = None
        self.counted = TokensRead()

    @functools.cached_property
    def version(self) -> str:  # type: ignore[override] # computed on first use
        """Version of the decoding, digest of the model's files, and the number format if this machine chose it."""
        chosen = "" if self._dtype == self._settings.dtype else f"-{self._dtype}"
        return f"{PROTOCOL}-{model_digest(self._folder)}{chosen}"

    @functools.cached_property
    def _dtype(self) -> str:
        stored = configured_dtype(self._folder) if self._settings.dtype == AUTO else ""
        # Check the device last, because importing torch and finding a GPU take seconds.
        if stored in precision.HALVES and self._wanted_device in (AUTO, "cpu") and not precision.is_fast(stored):
            return "float32" if self._device == "cpu" else AUTO
        return self._settings.dtype

    def generate(self, requests: Sequence[Request]) -> list[Response | MachineFault]:
        """Answer every request, in order. A request that is too long gets a fault instead of a response.

        Raises:
            InputFault: if the model cannot be loaded.
            MachineFault: if the computation fails.
        """
        with self._lock:
            fitting, faults = self._tokenized(requests)
            outcomes: dict[int, Response | MachineFault] = {**faults}

            def most(number: int) -> int:
                return fitting[number].most

            # All rows of a batch have the same limit, because a batch is computed until its longest row ends, and other
            # rows could exceed the window. Prompts with the same beginning follow each other.
            order = sorted(fitting, key=lambda number: (most(number), fitting[number].ids))
            work = functools.partial(self._answers, self._prefill())
            for _, group in itertools.groupby(order, most):
                for batch in batches(list(group), self._settings.batch):
                    answers = self._halving(work, [fitting[number] for number in batch])
                    outcomes |= dict(zip(batch, answers, strict=True))
        return [outcomes[number] for number in range(len(requests))]

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        """Return minus log2 of the probability of each text and a newline after its prompt; see `rolling_windows`.

        Raises:
            InputFault: if the model cannot be loaded.
            MachineFault: if the computation fails.
        """
        costs = [0.0] * len(prompts)
        with self._lock:
            prefill = self._prefill()
            for number, ids, count in sorted(self._reads(prompts, texts, self.window), key=lambda row: row[1]):
                [cost] = self._halving(lambda windows: [prefill.cost(*window) for window in windows], [(ids, count)])
                if not math.isfinite(cost):
                    cure = "set dtype=float32"
                    raise MachineFault("a log-likelihood is not finite", where=self._settings.where, cure=cure)
                costs[number] += cost
        return costs

    @property
    def remark(self) -> str:
        """Line for the user: the tokens that the model has read, also as a multiple of those needed; may be empty."""
        counted = self.counted
        ratio = counted.read / max(1, counted.needed)
        return f"{counted.read:,} tokens read, {ratio:.2f} times as many as needed" if counted.read else ""

    def close(self) -> None:
        """Release the weights."""
        with self._lock:
            if self._read is not None:
                self._read = None
                self._torch.cuda.empty_cache()

    @functools.cached_property
    def _torch(self) -> Any:
        try:
            return importlib.import_module("torch")
        except ImportError as error:
            raise InputFault(f"torch cannot be imported ({error})", where="hf", cure=CURE) from error

    @functools.cached_property
    def _device(self) -> str:
        there = self._torch.cuda.is_available()
        device = self._wanted_device
        if device.startswith("cuda") and not there:
            cure = "set device=cpu, or install torch for CUDA and the GPU's driver"
            raise InputFault("torch finds no GPU on this machine", where=self._settings.where, cure=cure)
        return device if device != AUTO else "cuda" if there else "cpu"

    @property
    def _network(self) -> Any:
        """The model, loaded without network access and without running code from its folder."""
        if self._read is None:
            torch, device = self._torch, self._device
            try:
                network = self._loaded().to(device).eval()
            except CtxbenchError:
                raise
            except torch.OutOfMemoryError as error:
                raise self._full() from error
            except Exception as error:
                # Both libraries raise many kinds of exceptions for an unusable folder.
                raise unreadable(self._settings, error) from error
            parameters = inspect.signature(network.forward).parameters
            if "past_key_values" not in parameters:
                # The model keeps a recurrent state, which padding would change.
                cure = "serve the model, and use openai:MODEL@URL"
                raise InputFault(
                    "the model caches no keys and values, so hf cannot run it", where=self._settings.where, cure=cure
                )
            self._keeps = "logits_to_keep" in parameters
            named = network.generation_config.eos_token_id
            self._ends = self._tokens.ends | set(named if isinstance(named, list) else [named])
            # The run sets the decoding parameters. The model's own file might, for example, penalise repetitions.
            network.generation_config = transformers_module().GenerationConfig()
            self._read = network
        return self._read

    def _loaded(self) -> Any:
        dtype = self._dtype
        network, report = transformers_module().AutoModelForCausalLM.from_pretrained(
            self._folder,
            local_files_only=True,
            dtype=dtype if dtype == AUTO else getattr(self._torch, dtype),
            output_loading_info=True,
        )
        # transformers initialises missing tensors at random.
        if missing := sorted(report["missing_keys"]):
            what = f"the model's files lack {len(missing)} tensors ({', '.join(missing[:3])})"
            raise InputFault(what, where=self._settings.where, cure="fetch the model again")
        return network

    def _prefill(self) -> Prefill:
        return Prefill(
            self._network,
            torch=self._torch,
            transformers=transformers_module(),
            counted=self.counted,
            keeps=self._keeps,
        )

    def _answers(self, prefill: Prefill, rows: Sequence[LocalRequest]) -> list[Response]:
        start, measuring = time.perf_counter(), 0.0
        self._told = start
        texts, costs = [], []
        for number, row in enumerate(rows):
            self._tell("%d of %d prompts read", number, len(rows))
            texts.append(prefill.text(row.ids[:-1]))
            began = time.perf_counter()
            costs.append(self._cost(prefill, row.request))
            measuring += time.perf_counter() - began
        decoded = self._decode(rows, prefill.merged(texts))
        seconds = (time.perf_counter() - start - measuring) / len(rows)
        return [
            replace(self._response(row, generated, stopped=stopped, seconds=seconds), bits=cost)
            for row, cost, (generated, stopped) in zip(rows, costs, decoded, strict=True)
        ]

    def _cost(self, prefill: Prefill, request: Request) -> float | None:
        if request.reference is None:
            return None
        windows = self._reads([strategy_prompt(request.prompt)], [request.reference], self.window)
        cost = sum(prefill.cost(ids, count) for _, ids, count in windows)
        return cost if math.isfinite(cost) else None

    def _decode(self, rows: Sequence[LocalRequest], cache: Any) -> list[tuple[list[int], bool]]:
        """Decode answers with the same limit. Return each answer's tokens, and whether it ended within the limit."""
        network, torch, most = self._network, self._torch, rows[0].most
        ids, mask = self._padded([row.ids for row in rows])
        width = ids.shape[1]
        choosers = [chooser(row.request) for row in rows]
        lengths: dict[int, int] = {}  # row -> tokens of its answer, once it has ended

        def choose(_: Any, scores: Any) -> Any:
            if bool(scores.isnan().any()):
                cure = "set dtype=float32 or bfloat16, because this model overflows the chosen format"
                raise MachineFault("the model computed NaN", where=self._settings.where, cure=cure)
            for at, choose_token in enumerate(choosers):
                if choose_token is not None:
                    token = choose_token(scores[at])
                    scores[at] = -math.inf
                    scores[at, token] = 0.0
            return scores

        def ended(tokens: Any, _: Any) -> Any:
            for at, row in enumerate(rows):
                if at not in lengths and self._ended(row, generated := tokens[at, width:].tolist()):
                    lengths[at] = len(generated)
            self._tell("%d prompts: %d of at most %d tokens written", len(rows), tokens.shape[1] - width, most)
            return torch.tensor([at in lengths for at in range(len(rows))], device=self._device)

        tokens = network.generate(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=cache,
            generation_config=transformers_module().GenerationConfig(
                do_sample=False, max_new_tokens=most, pad_token_id=0
            ),
            logits_processor=[choose],
            stopping_criteria=[ended],
        )
        answers = tokens[:, width:].tolist()
        decoded = [(answer[: lengths.get(at, most)], at in lengths) for at, answer in enumerate(answers)]
        self.counted.read += sum(map(len, answers))
        self.counted.needed += sum(len(answer) for answer, _ in decoded)
        return decoded

    def _tell(self, text: str, *values: int) -> None:
        now = time.perf_counter()
        if now - self._told >= _TELL_SECONDS:
            self._told = now
            _LOG.info(text, *values)

    def _ended(self, row: LocalRequest, generated: list[int]) -> bool:
        if generated[-1] in self._ends or generated[-1] in self._tokens.middle_ends(row.request):
            return True
        return bool(row.end) and row.end.find(self._tokens.text(row.ids, generated)) is not None

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        """Return tokens and attention mask of shape (rows, longest row), padded on the left."""
        width = max(map(len, rows))
        ids = [[0] * (width - len(row)) + list(row) for row in rows]
        mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
        return self._torch.tensor(ids, device=self._device), self._torch.tensor(mask, device=self._device)

    def _halving(self, work: Callable[[Any], list[T]], rows: Sequence[Any]) -> list[T]:
        torch = self._torch
        try:
            return work(rows)
        except torch.OutOfMemoryError as error:
            if len(rows) < 2:
                raise self._full() from error
        except RuntimeError as error:
            reason = str(error).strip().partition("\n")[0]
            cure = "run the same command again, or try device=cpu"
            raise MachineFault(f"the computation failed ({reason})", where=self._settings.where, cure=cure) from error
        torch.cuda.empty_cache()
        middle = len(rows) // 2
        return [*self._halving(work, rows[:middle]), *self._halving(work, rows[middle:])]

    def _full(self) -> MachineFault:
        cure = "set dtype=bfloat16 or a smaller window, or use a device with more memory"
        return MachineFault(f"{self._device} has too little memory", where=self._settings.where, cure=cure)


def chooser(request: Request) -> Choose | None:
    """Return the function that draws the tokens of a request's answer; None for greedy decoding.

    The random numbers depend only on the request (seed, index, prompt), not on other rows in its batch.
    """
    how = request.sampling
    if how.temperature <= 0:
        return None
    numbers = random.Random(f"{how.seed} {request.index} {request.prompt.digest}")  # noqa: S311 - no secret

    def choose(logits: Any) -> int:
        return draw(logits, how.temperature, how.top_p, numbers.random())

    return choose


def draw(logits: Any, temperature: float, top_p: float, number: float) -> int:
    """Return the token at the quantile `number` of the next token's distribution, likeliest tokens first.

    Args:
        logits: shape (vocabulary,).
        temperature: above 0.
        top_p: share of probability to draw from; at least one token qualifies.
        number: the quantile, in [0, 1).
    """
    chances = (logits.double() / temperature).softmax(0)
    # A few tokens usually have nearly all the probability, and sorting a large vocabulary is slow.
    few = chances >= chances.topk(min(_SORTED_FIRST, len(chances))).values[-1]
    if float(chances[few].sum()) <= top_p + _ROUNDING:
        few = chances >= 0
    likely, order = chances[few].sort(descending=True, stable=True)
    tokens = few.nonzero()[:, 0][order]
    mass = likely.cumsum(0)
    candidates = max(1, int((mass - likely < top_p).sum()))
    at = int((mass[:candidates] <= number * mass[candidates - 1]).sum())
    return int(tokens[min(at, candidates - 1)])


def batches(items: Sequence[T], most: int) -> list[Sequence[T]]:
    """Split the items into consecutive lists of at most `most` items."""
    return [items[start : start + most] for start in range(0, len(items), most)]
