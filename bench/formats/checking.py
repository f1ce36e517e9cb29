"""What the shapes share: strict records whose first fault names its field. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from bench.errors import InputFault
from bench.types import Language


class Strict(BaseModel):
    """A record: "3" is no number, unknown fields are passed over."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


M = TypeVar("M", bound=BaseModel)


def checked(model: type[M], record: Mapping[str, Any], *, where: str, cure: str) -> M:
    """Return a record as its model.

    Raises:
        InputFault: at the first field that is missing or of a wrong type, naming it.
    """
    try:
        return model.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        name = ".".join(str(part) for part in first["loc"]) or "text"
        raise InputFault(f"field {name}: {first['msg'].lower()}", where=where, cure=cure) from None


class Odd(Exception):
    """A field at odds with another, or with what it is for."""

    def __init__(self, field: str, what: str) -> None:
        """Say what is wrong with a field (dotted name)."""
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
    return next((language for language in Language if path.endswith(language.suffix)), None)


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
        inner = ((str(key), each) for key, each in value.items())
    elif isinstance(value, list):
        inner = ((str(number), each) for number, each in enumerate(value))
    return next(filter(None, (unfit(each, f"{field}.{key}" if field else key) for key, each in inner)), "")
