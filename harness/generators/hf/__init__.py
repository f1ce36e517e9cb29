"""`hf`: a model whose weights are on this machine, run by transformers and torch (the extra ``hf``)."""

from __future__ import annotations

import functools
import re
import threading
import time
from collections.abc import Sequence
from typing import TypeVar

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.retrieval.encoders.recipes import CURE
from ctxbench.bench.spec import Shorthand
from ctxbench.harness.generators.base import Request, Response
from ctxbench.harness.generators.hf.network import DecodedRow, HFSettings, TorchNetwork, chooser
from ctxbench.harness.generators.local import AUTO, Local, LocalRequest, checked, is_chat, model_digest
from ctxbench.harness.generators.registry import generator
from ctxbench.strategies.api import Prompt

T = TypeVar("T")
PROTOCOL = "1"
"""Incremented when the same request would be answered differently."""
_SORTED = 4
"""Batches to ask for at once, so that rows of similar length go together."""
_DEVICE = re.compile(r"auto|cpu|cuda(?::\d+)?")


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
            rows = {number: self._row(asked) for number, asked in fitting.items()}
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

    def _row(self, asked: LocalRequest) -> DecodedRow:
        ids, end, marks = asked.ids, asked.end, self._tokens.middle_ends(asked.request)

        def ended(generated: list[int]) -> bool:
            return generated[-1] in marks or (bool(end) and end.find(self._tokens.text(ids, generated)) is not None)

        return DecodedRow(ids=ids, most=asked.most, choose=chooser(asked.request), ended=ended)


def batches(items: Sequence[T], most: int) -> list[Sequence[T]]:
    """Return the items in order, `most` at a time."""
    return [items[start : start + most] for start in range(0, len(items), most)]
