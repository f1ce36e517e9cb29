"""Strict checks by pydantic, which is imported only with this module. Pure.

`Strict` is a record of a file, `checked` names its first fault. `Form` is a table of a TOML file, `validated` lists all
that is wrong with one; a field's description is the cure shown for a wrong value.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from ctxbench.bench import languages
from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.base import Language

T = TypeVar("T")
Problem = tuple[str, str, str]
"""Key, what is wrong, cure."""


class Form(BaseModel):
    """The base of all forms: no other keys, and no value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError(f"{value!r} is not a text")
    return value


Filled = Annotated[str, AfterValidator(_text)]


def validated(form: type[T], data: Mapping[str, Any], prefix: str = "") -> tuple[T | None, list[Problem]]:
    """Return a table as its form has it, or None and everything that is wrong with it, in the order of the keys.

    Args:
        form: what the table must be like: a `Form`, or a dataclass whose fields have a ``description``.
        data: the parsed table.
        prefix: what stands before its keys in messages.
    """
    try:
        if dataclasses.is_dataclass(form):
            # In JSON mode lists become tuples. Dates, which JSON has not, belong in quotes.
            return _adapter(form).validate_json(json.dumps(data, default=lambda value: [str(value)])), []
        return _adapter(form).validate_python(data), []
    except ValidationError as error:
        return None, list(_problems(error, form, prefix))


_adapter: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)


def _problems(error: ValidationError, form: type[Any], prefix: str) -> Iterator[Problem]:
    for item in error.errors():
        place, keys, name = _place(form, item["loc"])
        key, cure = prefix + place, keys.get(name, _NO_KEY).cure
        match item["type"]:
            case "extra_forbidden" | "unexpected_keyword_argument":
                yield key, "is no key here", _nearest(name, keys)
            case "missing":
                yield key, "is missing", cure
            case "model_type" | "dataclass_type":
                yield key, "is no table", cure
            case "value_error":
                yield key, item["msg"].removeprefix("Value error, "), cure
            case "string_pattern_mismatch":
                yield key, f"{item['input']!r} is not supported", cure
            case "language":
                yield key, f"{item['input']!r} is not supported", f"give {item['ctx']['options']}".replace("'", '"')
            case "union_tag_not_found" | "union_tag_invalid":
                kinds = ", ".join(map(_kind, _tables(keys[name].holds)))
                what = f"{item['ctx']['tag']!r} is not known" if "tag" in item["ctx"] else "is missing"
                yield f"{key}.kind", what, f"give one of {kinds}"
            case _:
                yield key, item["msg"].lower(), cure


class _Key(NamedTuple):
    """A key of a table."""

    holds: Any
    """The type of its value."""
    cure: str


_NO_KEY = _Key(None, "")


def _place(form: type[Any], location: Sequence[str | int]) -> tuple[str, Mapping[str, _Key], str]:
    """Return how messages call the place of a fault, the keys of the table that it is in, and its own key there."""
    place, holds, keys, name = "", form, _keys(form), ""
    for part in location:
        tables = list(_tables(holds))
        if isinstance(part, int):
            place += f"[{part + 1}]"
        elif len(tables) > 1:
            # Of the tables that may stand here, the one of this kind was tried.
            holds = next(table for table in tables if _kind(table) == part)
        else:
            keys, name = (_keys(tables[0]), part) if tables else (keys, name)
            place += f".{part}" if place else part
            holds = keys.get(part, _NO_KEY).holds
    return place, keys, name


def _keys(form: type[Any]) -> Mapping[str, _Key]:
    """Return the keys of a table."""
    if dataclasses.is_dataclass(form):
        hints = get_type_hints(form, include_extras=True)
        return {
            field.metadata.get("alias", field.name): _Key(hints[field.name], field.metadata.get("description", ""))
            for field in dataclasses.fields(form)
        }
    return {name: _Key(info.annotation, info.description or "") for name, info in form.model_fields.items()}


def _tables(kind: Any) -> Iterator[type[Any]]:
    """Yield the forms of the tables that a field of this type holds."""
    if isinstance(kind, type) and (issubclass(kind, Form) or dataclasses.is_dataclass(kind)):
        yield kind
    for inner in get_args(kind):
        yield from _tables(inner)


def _kind(table: Any) -> str:
    """Return what a table of this form has as its ``kind``."""
    return str(table.__dataclass_fields__["kind"].default)


def _nearest(name: str, keys: Mapping[str, _Key]) -> str:
    near = difflib.get_close_matches(name, keys, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(keys)}"


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


def repository_path(field: str, parts: Sequence[str]) -> tuple[str, str]:
    """Return the repository and the path inside of it that a list says, the repository's folder first.

    Raises:
        Odd: if the parts are not those of a path inside a repository.
    """
    if any("/" in part for part in parts):
        raise Odd(field, f"{parts} are not the parts of a path inside a repository")
    repo, _, path = inside(field, "/".join(parts)).partition("/")
    return repo, path


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
