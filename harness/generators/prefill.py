"""`Prefill`: reads texts with a transformer, and reads what two in a row have in common at their beginning once.

Each text is read alone, without padding: on a processor a padded token costs as much as any other. What a text leaves
behind, its keys and values, is where an answer is decoded from; `merged` puts those of several texts side by side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class TokensRead:
    """A count of tokens that went through a model."""

    read: int = 0
    needed: int = 0
    """Those that had to: the same without a text's beginning that the text before it had, and without padding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadText:
    """The keys and values of a text."""

    length: int
    """In tokens."""
    layers: tuple[tuple[Any, Any], ...]
    """Of each layer two tensors of shape (1, heads, tokens, size), fewer tokens where a layer forgets."""


class Prefill:
    """One model's reading; not for several threads."""

    def __init__(self, network: Any, *, torch: Any, transformers: Any, counted: TokensRead, keeps: bool) -> None:
        """Begin with nothing read.

        Args:
            network: a causal language model of transformers.
            torch: the module.
            transformers: the module.
            counted: where tokens are counted.
            keeps: whether the network takes `logits_to_keep`.
        """
        self._network, self._torch, self._transformers = network, torch, transformers
        self._counted, self._keeps = counted, keeps
        self._ids: list[int] = []
        self._cache: Any = None

    def text(self, ids: Sequence[int]) -> ReadText:
        """Read a text, which may be empty."""
        if not ids:
            return ReadText(length=0, layers=())
        self._logits(ids, 1)
        # Tensors that later reading replaces and never changes.
        layers = tuple((layer.keys, layer.values) for layer in self._cache.layers)
        return ReadText(length=len(ids), layers=layers)

    def cost(self, ids: Sequence[int], count: int) -> float:
        """Return minus log2 of the probability of a text's last `count` tokens, which are fewer than all."""
        # In 32 bits whatever the model computes in: the sum is over a whole vocabulary.
        logs = self._logits(ids[:-1], count).float().log_softmax(dim=-1)
        priced = self._torch.tensor(ids[-count:], device=logs.device)[:, None]
        return float(-logs.gather(1, priced).double().sum()) / math.log(2)

    def _logits(self, ids: Sequence[int], last: int) -> Any:
        """Read a text; return the numbers that come after each of its last tokens, shape (last, vocabulary)."""
        common = shared(self._ids, ids)
        kept = self._back_to(min(common, len(ids) - last))
        new = self._torch.tensor([list(ids[kept:])], device=self._network.device)
        self._ids = []  # unknown, if the next line fails
        more = {"logits_to_keep": last} if self._keeps else {}
        with self._torch.no_grad():
            logits = self._network(input_ids=new, past_key_values=self._cache, use_cache=True, **more).logits
        self._ids = list(ids)
        self._counted.read += len(ids) - kept
        self._counted.needed += len(ids) - common
        return logits[0, -last:]

    def _back_to(self, length: int) -> int:
        """Forget all but the first tokens; return how many are left, none where a layer cannot go back."""
        gone = len(self._ids) - length
        if length and not (gone and any(map(_has_slid, self._cache.layers))):
            if gone:
                self._cache.crop(-gone)
            return length
        self._cache = self._transformers.DynamicCache(config=self._network.config)
        return 0

    def merged(self, texts: Sequence[ReadText]) -> Any:
        """Return a cache with a row for each text, padded on the left; None if all are empty."""
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
    """Return whether a layer has forgotten the beginning of what was read."""
    return bool(layer.is_sliding and layer.get_seq_length() >= layer.sliding_window)


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two texts have in common at their beginning."""
    both = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, yours) in both if mine != yours), min(len(one), len(other)))
