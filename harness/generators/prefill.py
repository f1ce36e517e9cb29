"""`Prefill`: reads texts with a transformer, and reuses its cache for the common beginning of consecutive texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class TokensRead:
    """Counts of the tokens that a model has read."""

    read: int = 0
    needed: int = 0
    """Tokens that had to be read: no padding, and no beginning that a text shares with the previous text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadText:
    """The attention keys and values of a text, and its length in tokens."""

    length: int
    layers: tuple[tuple[Any, Any], ...]
    """Keys and values per layer, of shape (1, heads, tokens, head size). Sliding attention keeps fewer tokens."""


class Prefill:
    """A reader of texts with one model, for a single thread. It keeps the attention cache of the last text."""

    def __init__(self, network: Any, *, torch: Any, transformers: Any, counted: TokensRead, keeps: bool) -> None:
        """Start with an empty cache. `keeps` is true if the network accepts `logits_to_keep`."""
        self._network, self._torch, self._transformers = network, torch, transformers
        self._counted, self._keeps = counted, keeps
        self._ids: list[int] = []
        self._cache: Any = None

    def text(self, ids: Sequence[int]) -> ReadText:
        """Read a text's tokens, which may be empty, and return the text's attention keys and values."""
        if not ids:
            return ReadText(length=0, layers=())
        self._logits(ids, 1)
        # Later reading replaces these tensors instead of changing them.
        layers = tuple((layer.keys, layer.values) for layer in self._cache.layers)
        return ReadText(length=len(ids), layers=layers)

    def cost(self, ids: Sequence[int], count: int) -> float:
        """Return minus log2 of the probability of a text's last `count` tokens, which must be fewer than all."""
        # Use 32 bits, because the sum is over a whole vocabulary.
        logs = self._logits(ids[:-1], count).float().log_softmax(dim=-1)
        targets = self._torch.tensor(ids[-count:], device=logs.device)[:, None]
        return float(-logs.gather(1, targets).double().sum()) / math.log(2)

    def _logits(self, ids: Sequence[int], last: int) -> Any:
        common = shared(self._ids, ids)
        kept = self._back_to(min(common, len(ids) - last))
        new = self._torch.tensor([list(ids[kept:])], device=self._network.device)
        self._ids = []  # the cache's content is unknown if the next line fails
        more = {"logits_to_keep": last} if self._keeps else {}
        with self._torch.no_grad():
            logits = self._network(input_ids=new, past_key_values=self._cache, use_cache=True, **more).logits
        self._ids = list(ids)
        self._counted.read += len(ids) - kept
        self._counted.needed += len(ids) - common
        return logits[0, -last:]

    def _back_to(self, length: int) -> int:
        """Drop all but the first `length` cached tokens. Return how many are left: 0 if a layer cannot go back."""
        gone = len(self._ids) - length
        if length and not (gone and any(map(_has_slid, self._cache.layers))):
            if gone:
                self._cache.crop(-gone)
            return length
        self._cache = self._transformers.DynamicCache(config=self._network.config)
        return 0

    def merged(self, texts: Sequence[ReadText]) -> Any:
        """Return an attention cache with a row for each text, padded on the left; None if all texts are empty."""
        longest = max(texts, key=lambda text: text.length)
        if not longest.length:
            return None
        cache = self._transformers.DynamicCache(config=self._network.config)
        for at, pair in enumerate(longest.layers):
            rows = [text.layers[at] if text.length else [part[..., :0, :] for part in pair] for text in texts]
            keys, values = zip(*rows, strict=True)
            width = pair[0].shape[-2]
            cache.update(self._padded(keys, width), self._padded(values, width), at)
            if cache.layers[at].is_sliding:
                cache.layers[at].cumulative_length = longest.length
        return cache

    def _padded(self, parts: Sequence[Any], width: int) -> Any:
        pad = self._torch.nn.functional.pad
        return self._torch.cat([pad(part, (0, 0, width - part.shape[-2], 0)) for part in parts])


def _has_slid(layer: Any) -> bool:
    return bool(layer.is_sliding and layer.get_seq_length() >= layer.sliding_window)


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common prefix of two token sequences."""
    both = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, yours) in both if mine != yours), min(len(one), len(other)))
