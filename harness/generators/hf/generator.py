"""`HF`: answer requests and price texts with a model in this process."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Sequence
from typing import TypeVar

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.base import Request, Response
from ctxbench.harness.generators.hf import files, pricing
from ctxbench.harness.generators.hf.choosing import chooser
from ctxbench.harness.generators.hf.local import Local
from ctxbench.harness.generators.hf.network import DecodedRow, TorchNetwork
from ctxbench.harness.generators.hf.settings import HFSettings
from ctxbench.harness.generators.hf.stopping import End, end_of
from ctxbench.harness.generators.openai import lines
from ctxbench.strategies.api import Prompt

T = TypeVar("T")
PROTOCOL = "1"
"""Incremented when the same request would be answered differently."""
_SORTED = 4
"""Batches to ask for at once, so that rows of similar length go together."""


class HF(Local):
    """A causal language model, read by transformers and computed by torch."""

    def __init__(self, settings: HFSettings) -> None:
        """Prepare; files are found when the version is needed, and read with the first request."""
        super().__init__(settings)
        self._settings = settings
        self._lock = threading.Lock()
        self._read: TorchNetwork | None = None
        self.instructs = settings.chat
        self.batch_size = settings.batch * _SORTED

    @functools.cached_property
    def version(self) -> str:
        """Digest of configuration, tokenizer and weights, see `files.digest`."""
        return f"{PROTOCOL}-{files.digest(self._folder)}"

    def generate(self, requests: Sequence[Request]) -> list[Response | MachineFault]:
        """Answer every request, in order; one that is too long has its fault in its place.

        Raises:
            InputFault: if the model cannot be read.
            MachineFault: if it cannot be computed.
        """
        outcomes: dict[int, Response | MachineFault] = {}
        with self._lock:
            prompts = [self._tokens.prompt(request) for request in requests]
            rows: dict[int, tuple[DecodedRow, End]] = {}
            for number, (request, ids) in enumerate(zip(requests, prompts, strict=True)):
                room = self.window - len(ids) if self.window else request.sampling.max_tokens
                if room < 1:
                    outcomes[number] = self._too_long(len(ids))
                else:
                    rows[number] = self._row(request, ids, min(room, max(1, request.sampling.max_tokens)))
            # The longest first: a lack of memory shows at once.
            order = sorted(rows, key=lambda number: -len(prompts[number]))
            for batch in batches(order, self._settings.batch):
                start = time.perf_counter()
                self._network.decode([rows[number][0] for number in batch])
                seconds = (time.perf_counter() - start) / len(batch)
                for number in batch:
                    outcomes[number] = self._response(requests[number], *rows[number], seconds)
        return [outcomes[number] for number in range(len(requests))]

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        """Return minus log2 of the probability of each text and a line end after its prompt; see `pricing`.

        Chat models read the bare prompt too: the code is priced, not the talk around it.

        Raises:
            InputFault: if the model cannot be read.
            MachineFault: if it cannot be computed.
        """
        costs = [0.0] * len(prompts)
        with self._lock:
            pieces = [
                (number, *piece)
                for number, (prompt, text) in enumerate(zip(prompts, texts, strict=True))
                for piece in pricing.pieces(
                    *pricing.tokens(prompt.text, text, self._tokens.plain, self._tokens.begin), self.window
                )
            ]
            pieces.sort(key=lambda piece: -len(piece[1]))
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

    def _row(self, request: Request, ids: list[int], most: int) -> tuple[DecodedRow, End]:
        end, marks = end_of(request, chat=self._settings.chat), self._tokens.middle_ends(request)

        def ended(generated: list[int]) -> bool:
            return generated[-1] in marks or (bool(end) and end.find(self._tokens.text(ids, generated)) is not None)

        return DecodedRow(ids=ids, most=most, choose=chooser(request), ended=ended), end

    def _response(self, request: Request, row: DecodedRow, end: End, seconds: float) -> Response:
        text = self._tokens.answer(request, row.ids, row.generated)
        text = text[: end.find(text)]
        if not row.stopped:
            # The limit may fall between the tokens of one character.
            text = text.rstrip("\ufffd")
        return Response(
            text=lines.answer(request, text) if self._settings.chat else text,
            finish="stop" if row.stopped else "length",
            tokens_in=len(row.ids),
            tokens_out=len(row.generated),
            seconds=seconds,
        )


def batches(items: Sequence[T], most: int) -> list[Sequence[T]]:
    """Return the items in order, `most` at a time."""
    return [items[start : start + most] for start in range(0, len(items), most)]
