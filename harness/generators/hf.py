"""`hf`: a model whose weights are on this machine, run by transformers and torch (the extra ``hf``)."""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.retrieval.encoders.recipes import CURE
from ctxbench.bench.spec import Shorthand
from ctxbench.harness.generators.base import Request, Response
from ctxbench.harness.generators.local import AUTO, Local, LocalModel, LocalRequest, checked, is_chat, model_digest
from ctxbench.harness.generators.registry import generator
from ctxbench.harness.generators.tokens import transformers_module, unreadable
from ctxbench.strategies.api import Prompt

T = TypeVar("T")
PROTOCOL = "2"
"""Incremented when the same request would be answered differently."""
_SORTED = 4
"""Batches to ask for at once, so that rows of similar length go together."""
_DEVICE = re.compile(r"auto|cpu|cuda(?::\d+)?")
Choose = Callable[[Any], int]
"""A row's logits (a tensor of shape (vocabulary,)) -> the token chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HFSettings(LocalModel):
    """One model, and how it is run."""

    device: str


@generator("hf", machine=("device",), shorthand=Shorthand("MODEL", r"(?P<model>.+)"))
def hf(
    *,
    model: str,
    revision: str = "",
    device: str = AUTO,
    dtype: str = AUTO,
    batch: int = 8,
    window: int = 0,
    chat: str = AUTO,
) -> HF:
    """Run a model's weights by transformers; short: hf:MODEL.

    Args:
        model: a folder with the model, or its name on the hub: then from the hub's cache on this machine, or fetched.
        revision: of a hub's model: branch, tag or commit.
        device: ``cpu``, ``cuda``, ``cuda:1``, or ``auto``: a GPU if there is one.
        dtype: ``float32``, ``bfloat16``, ``float16``, or ``auto``: as the weights are stored.
        batch: answers made at once.
        window: tokens of prompt and answer; 0: as the model's configuration says.
        chat: whether the model follows instructions and is asked by its chat template: ``on``, ``off``, or ``auto``:
            if its name says so (``…-Instruct``, ``…-chat``).
    """
    checked("hf", model=model, dtype=dtype, batch=batch, window=window, chat=chat)
    if not _DEVICE.fullmatch(device):
        raise InputFault(f"device={device} does not fit", where="hf", cure="give cpu, cuda, cuda:1 or auto")
    weights.need(("torch", "transformers"), where="hf", cure=CURE)
    settings = HFSettings(
        model=model,
        revision=revision,
        device=device,
        dtype=dtype,
        batch=batch,
        window=window,
        chat=is_chat(chat, model),
    )
    return HF(settings)


class HF(Local):
    """A causal language model, read by transformers and computed by torch in this process."""

    def __init__(self, settings: HFSettings) -> None:
        """Prepare; files are found when the version is needed, and read with the first request."""
        super().__init__(settings, batch_size=settings.batch * _SORTED)
        self._settings = settings
        self._lock = threading.Lock()
        self._read: TorchNetwork | None = None

    @functools.cached_property
    def version(self) -> str:  # type: ignore[override] # found when first asked for
        """Digest of configuration, tokenizer and weights, see `model_digest`."""
        return f"{PROTOCOL}-{model_digest(self._folder)}"

    def generate(self, requests: Sequence[Request]) -> list[Response | MachineFault]:
        """Answer every request, in order; one that is too long has its fault in its place.

        Raises:
            InputFault: if the model cannot be read.
            MachineFault: if it cannot be computed.
        """
        with self._lock:
            fitting, faults = self._tokenized(requests)
            outcomes: dict[int, Response | MachineFault] = {**faults}
            rows = {number: self._row(tokenized) for number, tokenized in fitting.items()}
            # The longest first: a lack of memory shows at once.
            for batch in batches(sorted(rows, key=lambda number: -len(rows[number].ids)), self._settings.batch):
                start = time.perf_counter()
                self._network.decode([rows[number] for number in batch])
                seconds = (time.perf_counter() - start) / len(batch)
                for number in batch:
                    row = rows[number]
                    outcomes[number] = self._response(
                        fitting[number], row.generated, stopped=row.stopped, seconds=seconds
                    )
        return [outcomes[number] for number in range(len(requests))]

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        """Return minus log2 of the probability of each text and a line end after its prompt; see `priced_pieces`.

        Raises:
            InputFault: if the model cannot be read.
            MachineFault: if it cannot be computed.
        """
        costs = [0.0] * len(prompts)
        with self._lock:
            pieces = sorted(self._priced(prompts, texts, self.window), key=lambda piece: -len(piece[1]))
            for batch in batches(pieces, self._settings.batch):
                batch_costs = self._network.costs([(ids, count) for _, ids, count in batch])
                for (number, _, _), cost in zip(batch, batch_costs, strict=True):
                    costs[number] += cost
        return costs

    def close(self) -> None:
        """Release the weights."""
        with self._lock:
            if self._read is not None:
                self._read.close()
                self._read = None

    @property
    def _network(self) -> TorchNetwork:
        if self._read is None:
            self._read = TorchNetwork(self._folder, self._settings, self._tokens.ends)
        return self._read

    def _row(self, tokenized: LocalRequest) -> DecodedRow:
        ids, end, marks = tokenized.ids, tokenized.end, self._tokens.middle_ends(tokenized.request)

        def ended(generated: list[int]) -> bool:
            return generated[-1] in marks or (bool(end) and end.find(self._tokens.text(ids, generated)) is not None)

        return DecodedRow(
            ids=ids, most=tokenized.most, chooser=functools.partial(chooser, tokenized.request), ended=ended
        )


@dataclass(slots=True, kw_only=True)
class DecodedRow:
    """One answer that is being decoded."""

    ids: list[int]
    """The prompt; at least one token."""
    most: int
    """Tokens of the answer at most; at least one."""
    chooser: Callable[[], Choose | None]
    """Returns what draws the tokens of an answer that begins; None for the likeliest each time."""
    ended: Callable[[list[int]], bool]
    """Whether the answer so far is complete."""
    choose: Choose | None = None
    """Draws the next token; None for the likeliest."""
    generated: list[int] = field(default_factory=list)
    """The answer so far, the model's own mark of an end included."""
    stopped: bool = False
    """Whether it came to an end before `most`, or with it."""

    def begin(self) -> None:
        """Begin the answer, anew if a lack of memory has ended it: with its first random number."""
        self.choose, self.generated, self.stopped = self.chooser(), [], False


class TorchNetwork:
    """The layers of one model on one device."""

    def __init__(self, folder: Path, settings: HFSettings, ends: frozenset[int]) -> None:
        """Read the weights; nothing is fetched, and no code that the folder brings along is run.

        Args:
            folder: the model's.
            settings: device and number format.
            ends: tokens that end a text, besides those that the model's own settings name.

        Raises:
            InputFault: if transformers cannot read them as a model for text generation, or tensors are missing.
            MachineFault: if the device has too little memory.
        """
        try:
            self.torch: Any = importlib.import_module("torch")
        except ImportError as error:
            raise InputFault(f"torch cannot be imported ({error})", where="hf", cure=CURE) from error
        self._settings = settings
        self._device = self._chosen_device()
        try:
            self._model: Any = self._read(folder)
        except CtxbenchError:
            raise
        except self.torch.OutOfMemoryError as error:
            raise self._full() from error
        except Exception as error:
            # Both libraries raise all kinds of exceptions for a wrong folder.
            raise unreadable(settings, error) from error
        named = self._model.generation_config.eos_token_id
        self._ends = ends | frozenset(named if isinstance(named, list) else [] if named is None else [named])
        parameters = inspect.signature(self._model.forward).parameters
        self._takes = {name for name in ("position_ids", "logits_to_keep") if name in parameters}

    def decode(self, rows: Sequence[DecodedRow]) -> None:
        """Decode the answers of rows, side by side; a finished row leaves the batch.

        Raises:
            MachineFault: if the model computes no numbers, or one row alone is too large for the device.
        """
        self._halving(self._decode, rows)

    def costs(self, pieces: Sequence[tuple[list[int], int]]) -> list[float]:
        """Return the cost of the last n tokens of each piece after those before them: minus log2 of the probability.

        Args:
            pieces: tokens, and n, which is less than their number.

        Raises:
            MachineFault: as `decode`.
        """
        return self._halving(self._costs, pieces)

    def close(self) -> None:
        """Release the memory."""
        self._model = None
        if self._device.startswith("cuda"):
            self.torch.cuda.empty_cache()

    def _chosen_device(self) -> str:
        there = self.torch.cuda.is_available()
        device = self._settings.device
        if device.startswith("cuda") and not there:
            cure = "give device=cpu, or install a torch for CUDA and its driver"
            raise InputFault("torch sees no GPU here", where=self._settings.where, cure=cure)
        return device if device != AUTO else "cuda" if there else "cpu"

    def _read(self, folder: Path) -> Any:
        dtype = self._settings.dtype
        model, report = transformers_module().AutoModelForCausalLM.from_pretrained(
            folder,
            local_files_only=True,
            dtype=dtype if dtype == AUTO else getattr(self.torch, dtype),
            output_loading_info=True,
        )
        # The library draws random numbers for a tensor that is not there.
        if missing := sorted(report["missing_keys"]):
            what = f"lacks {len(missing)} tensors ({', '.join(missing[:3])})"
            raise InputFault(what, where=self._settings.where, cure="fetch the model again")
        return model.to(self._device).eval()

    def _decode(self, rows: Sequence[DecodedRow]) -> list[None]:
        torch = self.torch
        for row in rows:
            row.begin()
        alive = list(rows)
        with torch.inference_mode():
            ids, mask = self._padded([row.ids for row in alive])
            cache: Any = None
            while True:
                logits, cache = self._forward(ids, mask, cache, keep=1)
                tokens = self._next_tokens(logits[:, -1], alive)
                going_on = [at for at, row in enumerate(alive) if not self._append(row, tokens[at])]
                if not going_on:
                    return [None] * len(rows)
                if len(going_on) < len(alive):
                    where = torch.tensor(going_on, device=self._device)
                    cache.batch_select_indices(where)
                    mask, alive = mask[where], [alive[at] for at in going_on]
                ids = torch.tensor([[row.generated[-1]] for row in alive], device=self._device)
                mask = torch.cat([mask, torch.ones_like(ids)], dim=1)

    def _next_tokens(self, logits: Any, rows: Sequence[DecodedRow]) -> list[int]:
        """Return the next token of each row."""
        if bool(logits.isnan().any()):
            cure = "give dtype=float32 or bfloat16: numbers of the given format overflow in this model"
            raise MachineFault("the model's numbers are none (NaN)", where=self._settings.where, cure=cure)
        likeliest: list[int] = logits.argmax(dim=-1).tolist()
        return [likeliest[at] if row.choose is None else row.choose(logits[at].float()) for at, row in enumerate(rows)]

    def _append(self, row: DecodedRow, token: int) -> bool:
        row.generated.append(token)
        row.stopped = token in self._ends or row.ended(row.generated)
        return row.stopped or len(row.generated) >= row.most

    def _costs(self, pieces: Sequence[tuple[list[int], int]]) -> list[float]:
        longest = max(count for _, count in pieces)
        costs = []
        with self.torch.inference_mode():
            ids, mask = self._padded([piece for piece, _ in pieces])
            logits, _ = self._forward(ids, mask, None, keep=longest + 1)
            for at, (_, count) in enumerate(pieces):
                # Row by row: the probabilities of a whole vocabulary are the largest thing here.
                logs = logits[at, -count - 1 : -1].float().log_softmax(dim=-1)
                nats = -logs.gather(1, ids[at, -count:, None]).double().sum()
                costs.append(float(nats) / math.log(2))
        if not all(map(math.isfinite, costs)):
            raise MachineFault("a text's price is no number", where=self._settings.where, cure="give dtype=float32")
        return costs

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        """Return tokens and mask, both of shape (rows, longest); rows end together."""
        torch = self.torch
        width = max(map(len, rows))
        ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows], device=self._device)
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=self._device)
        return ids, mask

    def _forward(self, ids: Any, mask: Any, cache: Any, *, keep: int) -> tuple[Any, Any]:
        """Return the logits of at least the last `keep` tokens, and the keys and values of the tokens read."""
        more: dict[str, Any] = {"logits_to_keep": keep}
        # Padding does not count: a row's first token is at 0 whatever stands beside it.
        more["position_ids"] = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        arguments = {name: value for name, value in more.items() if name in self._takes}
        output = self._model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True, **arguments)
        keys_and_values = getattr(output, "past_key_values", None)
        if keys_and_values is None:
            cure = "serve it, and use openai:MODEL@URL"
            raise InputFault(
                "keeps no keys and values: hf runs transformers only", where=self._settings.where, cure=cure
            )
        return output.logits, keys_and_values

    def _halving(self, work: Callable[[Any], list[Any]], rows: Sequence[Any]) -> list[Any]:
        """Do the work on all rows at once, or by halves if the device's memory does not hold them."""
        try:
            return work(rows)
        except self.torch.OutOfMemoryError as error:
            if len(rows) < 2:
                raise self._full() from error
        except RuntimeError as error:
            reason = str(error).strip().partition("\n")[0]
            cure = "run the same command again, or try device=cpu"
            raise MachineFault(f"cannot be computed ({reason})", where=self._settings.where, cure=cure) from error
        self.torch.cuda.empty_cache()
        middle = len(rows) // 2
        return [*self._halving(work, rows[:middle]), *self._halving(work, rows[middle:])]

    def _full(self) -> MachineFault:
        cure = "give dtype=bfloat16, a smaller window, or a device with more memory"
        return MachineFault(f"{self._device} has too little memory", where=self._settings.where, cure=cure)


def chooser(request: Request) -> Choose | None:
    """Return the function that draws a request's tokens; None for the likeliest each time.

    The random numbers follow from the request alone (seed, index, prompt), never from other rows of its batch.
    """
    how = request.sampling
    if how.temperature <= 0:
        return None
    numbers = random.Random(f"{how.seed} {request.index} {request.prompt.digest}")  # noqa: S311 - no secret

    def choose(logits: Any) -> int:
        return draw(logits, how.temperature, how.top_p, numbers.random())

    return choose


def draw(logits: Any, temperature: float, top_p: float, number: float) -> int:
    """Return the token at `number` of the distribution's mass, likeliest tokens first.

    Args:
        logits: shape (vocabulary,).
        temperature: above 0; below 1 sharpens.
        top_p: only the likeliest tokens that together have this much of the mass; at least one.
        number: from [0, 1).
    """
    likely, tokens = (logits.double() / temperature).softmax(0).sort(descending=True, stable=True)
    mass = likely.cumsum(0)
    candidates = max(1, int((mass - likely < top_p).sum()))
    at = int((mass[:candidates] <= number * mass[candidates - 1]).sum())
    return int(tokens[min(at, candidates - 1)])


def batches(items: Sequence[T], most: int) -> list[Sequence[T]]:
    """Return the items in order, `most` at a time."""
    return [items[start : start + most] for start in range(0, len(items), most)]
