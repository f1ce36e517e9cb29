"""Strict checks of records, shared by the formats: the first fault names its field. Pure."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from ctxbench.bench import languages
from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.base import Language

_NEARLY = 0.8
"""How alike two names are, from 0 to 1, for the one to be a misspelt other."""
_WORDS = {"missing": " is missing", "extra_forbidden": " is not known"}
"""What is wrong with a field, by pydantic's name of the fault, where that says it better than pydantic's message."""
_UNKNOWN = "field {key} is not known; did you mean {name}?"


class Strict(BaseModel):
    """A record: "3" is no number; fields of others are passed over, but not one that is nearly the name of ours."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_misspelt(cls, record: Any) -> Any:
        """Refuse a field that is nearly one which is absent: a verdict must not get lost by a slip of the pen."""
        if isinstance(record, dict):
            names = {info.alias or name for name, info in cls.model_fields.items()}
            absent = {name.lower(): name for name in sorted(names - record.keys())}
            for key in record.keys() - names if absent else ():
                near = difflib.get_close_matches(str(key).lower(), absent, n=1, cutoff=_NEARLY)
                if near:
                    raise PydanticCustomError("misspelt", _UNKNOWN, {"key": repr(key), "name": absent[near[0]]})
        return record


class Own(Strict):
    """A record of our own shape: a field that is not known is refused."""

    model_config = ConfigDict(extra="forbid")


M = TypeVar("M", bound=BaseModel)


def checked(model: type[M], record: Mapping[str, Any], *, where: str, cure: str) -> M:
    """Return a record as its model.

    Raises:
        InputFault: at the first field that is missing, misspelt or of a wrong type, naming it.
    """
    try:
        return model.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "misspelt":
            raise InputFault(f"{first['msg']}{f' (in {name})' if name else ''}", where=where, cure=cure) from None
        what = _WORDS.get(first["type"]) or f": {first['msg'].lower()}"
        raise InputFault(f"field {name or 'text'}{what}", where=where, cure=cure) from None


class Odd(Exception):
    """A field at odds with another, or with what it is for."""

    def __init__(self, field: str, what: str) -> None:
        """Take the field (a dotted name) and what is wrong with it."""
        super().__init__(what)
        self.field, self.what = field, what


@contextlib.contextmanager
def explained(where: str, cure: str) -> Iterator[None]:
    """Turn an `Odd` into the fault that names file, line, field and cure."""
    try:
        yield
    except Odd as odd:
        raise InputFault(f"field {odd.field}: {odd.what}", where=where, cure=cure) from None


def inside(field: str, path: str) -> str:
    """Return a path if it is one inside a repository.

    Raises:
        Odd: if it is empty, absolute, or leaves the repository.
    """
    if any(part in ("", ".", "..") for part in path.split("/")) or "\\" in path:
        raise Odd(field, f"{path!r} is not a path inside a repository")
    return path


def language_of(path: str) -> Language | None:
    """Return the language of a file by its name; None for another than ours."""
    return next((language for language in languages.every() if path.endswith(language.suffix)), None)


def storable(record: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a record whose texts can all be stored.

    Raises:
        InputFault: if one holds what UTF-8 or a database cannot.
    """
    fault = unfit(record)
    if fault:
        raise InputFault(fault, where=where, cure="write the text as valid Unicode, without NUL")
    return record


def unfit(value: object, field: str = "") -> str:
    """Return what makes a JSON value no text that can be stored, naming its field; empty if nothing does.

    JSON can write half of a surrogate pair, which UTF-8 cannot hold, and NUL, which databases refuse.
    """
    if isinstance(value, str):
        if "\0" in value:
            return f"field {field}: holds a NUL character"
        if not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                return f"field {field}: holds half of a surrogate pair"
        return ""
    inner: Iterator[tuple[str, object]] = iter(())
    if isinstance(value, Mapping):
        inner = ((str(key), member) for key, member in value.items())
    elif isinstance(value, list):
        inner = ((str(number), member) for number, member in enumerate(value))
    return next(filter(None, (unfit(member, f"{field}.{key}" if field else key) for key, member in inner)), "")
