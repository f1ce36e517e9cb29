"""Models by name: a table of weights files. Each file is fetched once, and converted once for `hf` and `vllm`."""

from __future__ import annotations

import functools
import importlib
import json
import logging
import shutil
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.bench.files import explained
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.retrieval.encoders.recipes import CURE
from ctxbench.harness.generators.models.table import NamedModel, find, gguf, known, names
from ctxbench.sandbox.ownership import LOCKED, PART, abandoned, once

__all__ = ["NamedModel", "find", "folder", "gguf", "known", "names", "need_space"]

_CONVERTED = "bfloat16"
_GROWTH = 4
"""Maximum ratio of a model's size in bfloat16 to the size of its quantized file."""
_WRITTEN_BY = ("transformers_version", "_name_or_path", "_model_name_or_path", "is_local", "local_files_only")
_logger = logging.getLogger(__name__)


def folder(name: str) -> Path:
    """Return the folder of a model for transformers and vLLM. The first call converts a model that is a GGUF file.

    Raises:
        InputFault: if the model is unknown or not on this machine, transformers cannot read it, or packages are
            missing.
        MachineFault: if the disk has too little space.
    """
    if (model := find(name)).is_folder:
        return weights.local(str(model.place), where=f"model {name}")
    source = gguf(name)
    target = source.parent / _CONVERTED
    if target.is_dir():
        return target
    where = f"model {name}"
    weights.need(("torch", "transformers", "gguf", "accelerate"), where=where, cure=CURE)
    need_space(source.parent, source.stat().st_size * _GROWTH, where=where)
    with explained(source.parent):
        return once(target, lambda made: _convert(source, made, where))


def need_space(place: Path, needed: int, *, where: str) -> None:
    """Remove leftovers of killed processes in the folder `place`, and check that its disk has `needed` bytes free.

    Raises:
        MachineFault: if the disk has too little space.
    """
    for left in place.glob(f"{LOCKED}*{PART}"):
        if abandoned(left):
            shutil.rmtree(left, ignore_errors=True)
    free = shutil.disk_usage(place).free
    if free < needed:
        what = f"the model needs {needed / 1e9:.1f} GB in {place}, where {free / 1e9:.1f} GB are free"
        raise MachineFault(what, where=where, cure="free some space, or name another folder: CTXBENCH_MODELS=FOLDER")


def _convert(source: Path, target: Path, where: str) -> None:
    from ctxbench.harness.generators.local import transformers_module  # noqa: PLC0415 - it imports this package

    _logger.info("%s: converting %s to bfloat16 once; this takes a minute or two", where, source.name)
    module = transformers_module()
    _bar_on_terminals()
    options: dict[str, Any] = {"gguf_file": source.name, "local_files_only": True}
    try:
        network, report = module.AutoModelForCausalLM.from_pretrained(
            source.parent, dtype="bfloat16", output_loading_info=True, **options
        )
        _complete(report, where)
        network.hf_quantizer = None
        if hasattr(network.config, "quantization_config"):
            del network.config.quantization_config
        network.save_pretrained(target)
        module.AutoTokenizer.from_pretrained(source.parent, **options).save_pretrained(target)
        for path in target.glob("*config.json"):
            config = json.loads(path.read_text(encoding="utf-8"))
            kept = {key: value for key, value in config.items() if key not in _WRITTEN_BY}
            path.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        for path in target.iterdir():
            path.chmod(0o644)
        _, report = module.AutoModelForCausalLM.from_pretrained(target, local_files_only=True, output_loading_info=True)
        _complete(report, where)
    except CtxbenchError:
        raise
    except OSError as error:
        if error.errno is not None:
            raise
        raise _unreadable(error, where) from error
    except Exception as error:
        # The libraries raise many kinds of exceptions for an unknown file.
        raise _unreadable(error, where) from error


def _bar_on_terminals() -> None:
    """Make transformers show the progress bar of its conversion only on a terminal."""
    gguf = importlib.import_module("transformers.modeling_gguf_pytorch_utils")
    vars(gguf)["tqdm"] = functools.partial(gguf.tqdm, disable=None)


def _complete(report: dict[str, Any], where: str) -> None:
    if missing := sorted(report["missing_keys"]):
        what = f"the file cannot be converted: {len(missing)} tensors are missing ({', '.join(missing[:3])})"
        raise InputFault(what, where=where, cure="run the file with llama.cpp: --generator serve:MODEL")


def _unreadable(error: Exception, where: str) -> InputFault:
    reason = str(error).strip().partition("\n")[0][:300]
    what = f"transformers cannot convert the file ({type(error).__name__}: {reason})"
    return InputFault(what, where=where, cure="run the file with llama.cpp: --generator serve:MODEL")
