"""Adds models to the user's table: a GGUF file, a folder that transformers reads, or entries of another table."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained, locked, read_text, sha256_file, write_atomic
from ctxbench.bench.repositories.manifest import toml_value
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.harness.generators import fim
from ctxbench.harness.generators.models import table
from ctxbench.harness.generators.models.table import FileSource, FolderSource, NamedModel, Source

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""GGUF's types of fixed size -> their `struct` formats."""
_TEXT, _LIST = 8, 9
_MOST_KEYS, _MOST_ITEMS, _MOST_TEXT = 10_000, 4_000_000, 16 << 20
_LICENSE = re.compile(r"^license:[ \t]*([\w.+-]+)[ \t]*$", re.MULTILINE)
_OTHER = "use a complete GGUF file of version 2 or 3"


def add(path: Path, *, name: str, license_name: str, chat: bool) -> tuple[NamedModel, ...]:
    """Add models to the user's table, and return the added models.

    Args:
        path: a GGUF file, a folder that transformers reads, or a TOML file of entries, for which the other arguments
            are ignored.
        name: name of the model; empty to derive it from the path.
        license_name: licence of the weights; empty to read it from the file or the folder's README.md.
        chat: whether prompts use the model's chat template.

    Raises:
        InputFault: if the path contains no model, an entry is invalid, a name is taken, or no licence is stated.
    """
    path, taken = path.expanduser().absolute(), table.names()
    if path.suffix == ".toml":
        added = table.parse(read_text(path), path, taken)
    else:
        name = name or re.sub(r"[^a-z0-9._-]+", "-", (path.name if path.is_dir() else path.stem).lower()).lstrip("._-")
        entry = _of_folder(path) if path.is_dir() else _of_file(path)
        entry |= {"name": name, "chat": chat} | ({"license": license_name} if license_name else {})
        if not entry.get("license"):
            what = "the model does not name the licence of its weights"
            raise InputFault(what, where=str(path), cure="look it up at the weights' source, and add --license NAME")
        added = (NamedModel(**entry),)
    with locked(table.home()):
        file = table.home() / table.FILE
        before = read_text(file) if file.exists() else ""
        text = before + "".join(f"\n[[model]]\n{line}" for line in map(_text_of, added))
        try:
            table.parse(text, file)
        except InputFault as error:
            cure = "use another --name, or add a TOML file with the entry (docs/first-model.md)"
            raise InputFault(error.what, where=str(path), cure=cure) from error
        write_atomic(file, text)
    return added


def _of_folder(path: Path) -> dict[str, Any]:
    from ctxbench.harness.generators.local import configured_window  # noqa: PLC0415 - it imports this package

    folder = weights.local(str(path), where="model")
    config = json.loads(read_text(folder / "config.json"))
    window = configured_window(folder)
    readme = folder / "README.md"
    license_line = _LICENSE.search(read_text(readme)) if readme.is_file() else None
    return {
        "license": license_line[1] if license_line else "",
        "window": window,
        "family": str(config.get("model_type") or ""),
        "sources": (FolderSource(path=folder),),
    }


def _of_file(path: Path) -> dict[str, Any]:
    with explained(path):
        facts = header(path)
        family = str(facts.get("general.architecture", ""))
        vocabulary = facts.get("tokenizer.ggml.tokens")
        return {
            "title": str(facts.get("general.name", "")),
            "file": path.name,
            "bytes": path.stat().st_size,
            "sha256": sha256_file(path),
            "license": str(facts.get("general.license", "")),
            "window": facts.get(f"{family}.context_length", 0),
            "family": family,
            "fim": _marks(vocabulary if isinstance(vocabulary, list) else []),
            "sources": (FileSource(path=path),),
        }


def _marks(vocabulary: list[str]) -> str:
    try:
        return fim.of_vocabulary(set(vocabulary), where="").name
    except InputFault:
        return ""


def header(path: Path) -> dict[str, Any]:
    """Return the metadata of a GGUF file: numbers, texts and lists of texts. Other lists become None.

    Raises:
        InputFault: if the file is not a GGUF file of version 2 or 3, or its metadata are incomplete or too large.
        OSError: if the file cannot be read.
    """
    with path.open("rb") as handle:
        try:
            if handle.read(4) != b"GGUF":
                raise ValueError("it does not begin with GGUF")
            version, _, count = _unpacked(handle, "IQQ")
            if version not in (2, 3):
                raise ValueError(f"its version is {version}, not 2 or 3")
            if count > _MOST_KEYS:
                raise ValueError(f"it has {count} metadata keys; the maximum is {_MOST_KEYS}")
            return {_text(handle): _value(handle, *_unpacked(handle, "I")) for _ in range(count)}
        except (ValueError, struct.error) as error:
            raise InputFault(f"the file is not a valid GGUF file ({error})", where=str(path), cure=_OTHER) from error


def _unpacked(handle: BinaryIO, form: str) -> tuple[Any, ...]:
    form = f"<{form}"
    return struct.unpack(form, handle.read(struct.calcsize(form)))


def _text(handle: BinaryIO) -> str:
    [size] = _unpacked(handle, "Q")
    if size > _MOST_TEXT or len(data := handle.read(size)) < size:
        raise ValueError(f"it contains a text of {size} bytes, longer than 16 MiB or than the rest of the file")
    return data.decode("utf-8", errors="replace")


def _value(handle: BinaryIO, kind: int) -> Any:
    if kind == _TEXT:
        return _text(handle)
    if kind == _LIST:
        kind, count = _unpacked(handle, "IQ")
        if count > _MOST_ITEMS:
            raise ValueError(f"it contains a list of {count} items; the maximum is 4000000")
        if kind == _TEXT:
            return [_text(handle) for _ in range(count)]
        handle.seek(count * struct.calcsize(f"<{_form(kind)}"), 1)
        return None
    return _unpacked(handle, _form(kind))[0]


def _form(kind: int) -> str:
    if kind not in _NUMBERS:
        raise ValueError(f"it contains a value of the unknown type {kind}")
    return _NUMBERS[kind]


def _text_of(model: NamedModel) -> str:
    sources = "".join(f"\n[[model.source]]\n{''.join(_lines(source))}" for source in model.sources)
    return "".join(_lines(model)) + sources


def _lines(item: NamedModel | Source) -> Iterator[str]:
    for key in fields(item):
        value = getattr(item, key.name)
        if key.name == "wheels":
            inner = "".join(
                f"    {{ wheel = {toml_value(p.wheel)}, member = {toml_value(p.member)} }},\n" for p in value
            )
            yield f"wheels = [\n{inner}]\n"
        elif key.name == "kind" or (value != key.default and key.name != "sources"):
            yield f"{key.name} = {value if type(value) is int else toml_value(value)}\n"
