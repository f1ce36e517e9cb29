"""Find an encoder's weights on this machine, and digest them. Nothing is downloaded unasked."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import explained

_TEXTS = (".json", ".txt", ".model")
_WEIGHTS = (".safetensors", ".bin")
"""Of a model that has both, the first kind is read."""


def need(packages: tuple[str, ...], *, where: str, cure: str) -> None:
    """See that packages are installed, without importing them.

    Raises:
        InputFault: naming those that are not.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise InputFault(f"needs {' and '.join(missing)}, not installed here", where=where, cure=cure)


def local(path: str, *, where: str) -> Path:
    """Return the folder of a model that the user named.

    Raises:
        InputFault: if it is no folder with a model.
    """
    folder = Path(path).expanduser().absolute()
    if not (folder / "config.json").is_file() or not _files(folder):
        raise InputFault(
            f"{path} holds no model",
            where=where,
            cure="give the folder with config.json, the weights and the tokenizer",
        )
    return folder


def from_hub(model: str, *, revision: str, download: bool, where: str) -> Path:
    """Return the folder of a hub's model: from the hub's cache on this machine, or fetched if `download` says so.

    Raises:
        InputFault: if it is not in the cache and may not be downloaded.
        MachineFault: if the download fails.
    """
    hub: Any = importlib.import_module("huggingface_hub")
    options: dict[str, Any] = {"revision": revision or None}
    patterns = ["*.json", "*.txt", "*.model", "*.safetensors"]
    try:
        folder = Path(hub.snapshot_download(model, local_files_only=True, **options))
        if _files(folder):
            return folder
    except (OSError, ValueError):
        pass
    if not download:
        raise InputFault(
            f"the weights of {model} are not on this machine",
            where=where,
            cure=f"fetch them where the hub can be reached (`hf download {model}`, or download=on), "
            f"or give their folder: {where}(path=…)",
        )
    try:
        folder = Path(hub.snapshot_download(model, allow_patterns=patterns, **options))
        if not _files(folder):
            folder = Path(hub.snapshot_download(model, allow_patterns=[*patterns, "*.bin"], **options))
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        reason = str(error).partition("\n")[0]
        raise MachineFault(
            f"{model} cannot be downloaded ({reason})", where=where, cure="try again, or give path=…"
        ) from error
    return local(str(folder), where=where)


def digest(folder: Path) -> str:
    """Return a digest of all that decides a model's vectors: configuration, tokenizer and weights."""
    whole = hashlib.sha256()
    with explained(folder):
        for path in _deciding(folder):
            with path.open("rb") as handle:
                whole.update(path.name.encode() + b"\0" + hashlib.file_digest(handle, "sha256").digest())
    return whole.hexdigest()[:12]


def state(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return names, sizes and times of the files that `digest` reads: as cheap as it is not.

    Raises:
        OSError: if one is gone.
    """
    return tuple((path.name, stat.st_size, stat.st_mtime_ns) for path in _deciding(folder) for stat in [path.stat()])


def _deciding(folder: Path) -> list[Path]:
    return [*sorted(path for path in folder.iterdir() if path.suffix in _TEXTS), *_files(folder)]


def _files(folder: Path) -> list[Path]:
    """Return the files with the weights."""
    for suffix in _WEIGHTS:
        if files := sorted(folder.glob(f"*{suffix}")):
            return files
    return []
