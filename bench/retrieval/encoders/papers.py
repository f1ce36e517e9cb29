"""The encoders that the two papers name, read from this machine by torch (the extra ``hf``).

Where a paper prints a model's name only, the checkpoint, the pooling or the similarity is our choice:

| name | paper | from the paper | ours |
|---|---|---|---|
| `codet5p-110m` | ICL-strategies | name and size | the ``-embedding`` checkpoint |
| `unixcoder` | both | name | ``<encoder-only>`` form and mean as InferCom's later release |
| `contriever` | ICL-strategies | name | checkpoint, mean, cosine |
| `mpnet` | ICL-strategies | name | checkpoint |
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ctxbench.bench.errors import InputFault
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.retrieval.encoders.recipes import CURE, EncoderRecipe, RecipeEncoder, torch_encoder
from ctxbench.bench.retrieval.encoders.registry import encoder

BATCH = 1
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


def _encoder(
    name: str, recipe: EncoderRecipe, path: str, download: bool, revision: str, device: str, batch: int
) -> RecipeEncoder:
    # Said before a gigabyte is fetched.
    weights.need(("torch", "transformers"), where=name, cure=CURE)
    if path:
        folder: Path = weights.local(path, where=name)
    else:
        folder = weights.from_hub(recipe.model, revision=revision, download=download, where=name)
    return torch_encoder(name, recipe, folder, device=device, batch=batch)


@encoder("codet5p-110m")
def codet5p(
    *, path: str = "", download: bool = False, revision: str = "", device: str = "auto", batch: int = BATCH
) -> RecipeEncoder:
    """CodeT5+ 110M embedding: 512 tokens, the projected first vector (256 numbers); ICL-strategies paper.

    Args:
        path: the model's folder; empty: the hub's cache on this machine.
        download: fetch it from the hub if it is not there.
        revision: the hub's revision; empty: its newest, or the one in the cache.
        device: ``cpu``, ``cuda`` or ``auto``.
        batch: texts at a time; with more than 1, which is quicker on a GPU, a vector may differ by some 1e-7
            with what is encoded beside it.
    """
    return _encoder("codet5p-110m", CODET5P, path, download, revision, device, batch)


@encoder("unixcoder")
def unixcoder(
    *,
    path: str = "",
    download: bool = False,
    revision: str = "",
    device: str = "auto",
    batch: int = BATCH,
    pooling: Literal["mean", "first"] = "mean",
) -> RecipeEncoder:
    """UniXcoder base in its encoder-only form: 512 tokens, mean (768 numbers); both papers.

    Args:
        path: the model's folder; empty: the hub's cache on this machine.
        download: fetch it from the hub if it is not there.
        revision: the hub's revision; empty: its newest, or the one in the cache.
        device: ``cpu``, ``cuda`` or ``auto``.
        batch: texts at a time; with more than 1, which is quicker on a GPU, a vector may differ by some 1e-7
            with what is encoded beside it.
        pooling: ``mean``, or ``first`` as InferCom's first release has it.
    """
    if pooling not in ("mean", "first"):
        raise InputFault(f"pooling={pooling} does not fit", where="unixcoder", cure="give mean or first")
    recipe = EncoderRecipe(
        model=UNIXCODER.model,
        limit=UNIXCODER.limit,
        architecture=UNIXCODER.architecture,
        mode=UNIXCODER.mode,
        pooling=pooling,
    )
    return _encoder("unixcoder", recipe, path, download, revision, device, batch)


@encoder("contriever")
def contriever(
    *, path: str = "", download: bool = False, revision: str = "", device: str = "auto", batch: int = BATCH
) -> RecipeEncoder:
    """Contriever: 512 tokens, mean (768 numbers); ICL-strategies paper.

    Args:
        path: the model's folder; empty: the hub's cache on this machine.
        download: fetch it from the hub if it is not there.
        revision: the hub's revision; empty: its newest, or the one in the cache.
        device: ``cpu``, ``cuda`` or ``auto``.
        batch: texts at a time; with more than 1, which is quicker on a GPU, a vector may differ by some 1e-7
            with what is encoded beside it.
    """
    return _encoder("contriever", CONTRIEVER, path, download, revision, device, batch)


@encoder("mpnet")
def mpnet(
    *, path: str = "", download: bool = False, revision: str = "", device: str = "auto", batch: int = BATCH
) -> RecipeEncoder:
    """all-mpnet-base-v2: 384 tokens, mean (768 numbers); ICL-strategies paper.

    Args:
        path: the model's folder; empty: the hub's cache on this machine.
        download: fetch it from the hub if it is not there.
        revision: the hub's revision; empty: its newest, or the one in the cache.
        device: ``cpu``, ``cuda`` or ``auto``.
        batch: texts at a time; with more than 1, which is quicker on a GPU, a vector may differ by some 1e-7
            with what is encoded beside it.
    """
    return _encoder("mpnet", MPNET, path, download, revision, device, batch)
