"""Encoders' weights: found on this machine, never downloaded, and loaded with torch. A model's own code never runs."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxbench.bench.errors import CtxbenchError, InputFault
from ctxbench.bench.files import explained

if TYPE_CHECKING:
    from ctxbench.bench.retrieval.encoders import Floats
    from ctxbench.bench.retrieval.encoders.recipes import EncoderRecipe

_TEXTS = (".json", ".txt", ".model")
WEIGHTS = (".safetensors", ".bin")


def need(packages: tuple[str, ...], *, where: str, cure: str) -> None:
    """Check that packages are installed, without importing them.

    Raises:
        InputFault: if a package is missing.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise InputFault(f"{' and '.join(missing)} must be installed", where=where, cure=cure)


def local(path: str, *, where: str) -> Path:
    """Return the absolute path of a model's folder, given the path that the user wrote.

    Raises:
        InputFault: if the path is not a folder with a model.
    """
    folder = Path(path).expanduser().absolute()
    if not (folder / "config.json").is_file() or not weight_files(folder):
        raise InputFault(
            f"{path} does not contain a model",
            where=where,
            cure="give the folder with config.json, the weights and the tokenizer",
        )
    return folder


def from_hub(model: str, *, revision: str, where: str) -> Path:
    """Return the folder of a Hugging Face model in the hub's cache on this machine.

    Raises:
        InputFault: if the cache lacks the model.
    """
    hub: Any = importlib.import_module("huggingface_hub")
    with contextlib.suppress(OSError, ValueError):
        folder = Path(hub.snapshot_download(model, local_files_only=True, revision=revision or None))
        if weight_files(folder):
            return folder
    cure = f"fetch them with `hf download {model}`, or name their folder: {where}(path=…)"
    raise InputFault(f"the weights of {model} are not on this machine", where=where, cure=cure)


def digest(folder: Path) -> str:
    """Return a digest of everything that determines a model's vectors: configuration, tokenizer, weights."""
    whole = hashlib.sha256()
    with explained(folder):
        for path in _deciding(folder):
            with path.open("rb") as handle:
                whole.update(path.name.encode() + b"\0" + hashlib.file_digest(handle, "sha256").digest())
    return whole.hexdigest()[:12]


def state(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return name, size and modification time of each file that `digest` reads. This is much faster than `digest`.

    Raises:
        OSError: if a file no longer exists.
    """
    return tuple((path.name, stat.st_size, stat.st_mtime_ns) for path in _deciding(folder) for stat in [path.stat()])


def _deciding(folder: Path) -> list[Path]:
    return [*sorted(path for path in folder.iterdir() if path.suffix in _TEXTS), *weight_files(folder)]


def weight_files(folder: Path) -> list[Path]:
    """Return a folder's ``.safetensors`` files or, without any, its ``.bin`` files, sorted."""
    for suffix in WEIGHTS:
        if files := sorted(folder.glob(f"*{suffix}")):
            return files
    return []


class TorchModel:
    """A model's tokenizer and layers."""

    def __init__(self, name: str, recipe: EncoderRecipe, folder: Path, *, device: str) -> None:
        """Load a model. Nothing is downloaded.

        Raises:
            InputFault: if the folder has no model that transformers can load, or the device does not exist.
        """
        # transformers and torch have no types, and are optional.
        self._torch: Any = importlib.import_module("torch")
        self._transformers: Any = importlib.import_module("transformers")
        # Silence progress bars, and warnings about tensors that an encoder does not need (the pooler's).
        self._transformers.utils.logging.disable_progress_bar()
        self._transformers.utils.logging.set_verbosity_error()
        try:
            self._tokenizer: Any = self._read_tokenizer(recipe, folder)
            self._model, self._projection = self._read_model(recipe, folder)
            self._device = device if device != "auto" else "cuda" if self._torch.cuda.is_available() else "cpu"
            for part in (self._model, self._projection):
                if part is not None:
                    part.to(self._device).eval()
        except CtxbenchError:
            raise
        except Exception as error:
            # Both libraries raise arbitrary exceptions for an invalid folder or device.
            reason = str(error).strip().partition("\n")[0]
            raise InputFault(
                f"the model cannot be loaded ({type(error).__name__}: {reason})",
                where=f"{name} at {folder}",
                cure=f"give the folder of {recipe.model} and an existing device",
            ) from error

    def tokens(self, text: str) -> list[int]:
        """Return a text's token ids, without special tokens."""
        ids: list[int] = self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    def special(self, name: str) -> int:
        """Return the id of ``first``, ``last`` or another special token; -1 if the model lacks it."""
        tokenizer = self._tokenizer
        if name in ("first", "last"):
            token_id = tokenizer.cls_token_id if name == "first" else tokenizer.sep_token_id
        else:
            token_id = tokenizer.convert_tokens_to_ids(name)
            token_id = None if token_id == tokenizer.unk_token_id else token_id
        return -1 if token_id is None else int(token_id)

    def pooled(self, batch: Sequence[Sequence[int]], pooling: str) -> Floats:
        """Return one vector per text of a batch. Texts are lists of token ids, and must have the same length."""
        torch = self._torch
        with torch.inference_mode(), self._one_thread():
            ids = torch.tensor([list(text) for text in batch], device=self._device)
            hidden = self._model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
            vectors = hidden.mean(dim=1) if pooling == "mean" else hidden[:, 0]
            if self._projection is not None:
                vectors = self._projection(vectors)
            pooled_vectors: Floats = vectors.float().cpu().numpy()
        return pooled_vectors

    @contextlib.contextmanager
    def _one_thread(self) -> Iterator[None]:
        """Compute in one thread: several can be ten times slower on a busy machine."""
        before = self._torch.get_num_threads()
        self._torch.set_num_threads(1)
        try:
            yield
        finally:
            self._torch.set_num_threads(before)

    def _read_tokenizer(self, recipe: EncoderRecipe, folder: Path) -> Any:
        # A projected model's configuration names a class of its own code, which must not run.
        kind = "RobertaTokenizer" if recipe.architecture in ("RobertaModel", "T5EncoderModel") else "AutoTokenizer"
        return getattr(self._transformers, kind).from_pretrained(folder, local_files_only=True)

    def _read_model(self, recipe: EncoderRecipe, folder: Path) -> tuple[Any, Any]:
        kind = getattr(self._transformers, recipe.architecture)
        if not recipe.projected:
            model, report = kind.from_pretrained(
                folder, local_files_only=True, add_pooling_layer=False, output_loading_info=True
            )
            _complete(report["missing_keys"], folder)
            return model, None
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        weights = self._weights(folder)
        projection = self._torch.nn.Linear(*reversed(weights["proj.weight"].shape))
        projection.load_state_dict({part: weights.pop(f"proj.{part}") for part in ("weight", "bias")})
        config.pop("auto_map", None)
        config.pop("model_type", None)
        model = kind(self._transformers.T5Config(**config))
        loaded = model.load_state_dict(weights, strict=False)
        _complete([key for key in loaded.missing_keys if not key.endswith("embed_tokens.weight")], folder)
        return model, projection

    def _weights(self, folder: Path) -> dict[str, Any]:
        file = folder / "model.safetensors"
        if file.is_file():
            tensors: dict[str, Any] = importlib.import_module("safetensors.torch").load_file(file)
        else:
            # Load only tensors: such a file may contain arbitrary pickled code.
            tensors = self._torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
        return tensors


def _complete(missing: Collection[str], folder: Path) -> None:
    """Check that no tensor is missing: the libraries would fill it with random numbers."""
    if missing:
        listed = ", ".join(sorted(missing)[:3])
        raise InputFault(
            f"the model lacks {len(missing)} tensors ({listed})", where=str(folder), cure="fetch the model again"
        )
