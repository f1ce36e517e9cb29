"""Strict checks by pydantic, which is imported only with this module. Pure.

`Strict` is a record of a file, `checked` names its first fault. `Form` is a table of a TOML file, `validated` lists all
that is wrong with one; a field's description is the cure shown for a wrong value.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from ctxbench.bench import languages
from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.base import Language

T = TypeVar("T", bound="Form")
Problem = tuple[str, str, str]
"""Key, what is wrong, cure."""


class Form(BaseModel):
    """The base of all forms: no other keys, and no value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True)


def matches(pattern: str, what: str) -> AfterValidator:
    """Return the check that a text is one that a regular expression matches whole."""
    expression = re.compile(pattern)

    def check(value: str) -> str:
        if not expression.fullmatch(value):
            raise ValueError(f"{value!r} is not {what}")
        return value

    return AfterValidator(check)


Filled = Annotated[str, matches(r"(?s).*\S.*", "a text")]


def validated(form: type[T], data: Mapping[str, Any], prefix: str = "") -> tuple[T | None, list[Problem]]:
    """Return a table as its form has it, or None and everything that is wrong with it, in the order of the keys.

    Args:
        form: what the table must be like.
        data: the parsed table.
        prefix: what stands before its keys in messages.
    """
    try:
        return form.model_validate(data), []
    except ValidationError as error:
        return None, list(_problems(error, form, prefix))


def _problems(error: ValidationError, form: type[Form], prefix: str) -> Iterator[Problem]:
    for item in error.errors():
        place = [str(part) if isinstance(part, str) else f"[{part + 1}]" for part in item["loc"]]
        key = prefix + ".".join(place).replace(".[", "[")
        owner, name = _owner(form, [part for part in item["loc"] if isinstance(part, str)])
        field_info = owner.model_fields.get(name)
        cure = (field_info.description if field_info else None) or ""
        if item["type"] == "extra_forbidden":
            yield key, "is no key here", _nearest(name, owner)
        elif item["type"] == "missing":
            yield key, "is missing", cure
        elif item["type"] == "model_type":
            yield key, "is no table", cure
        elif item["type"] == "value_error":
            yield key, item["msg"].removeprefix("Value error, "), cure
        elif item["type"] in ("string_pattern_mismatch", "language"):
            yield key, f"{item['input']!r} is not supported", cure
        else:
            yield key, item["msg"].lower(), cure


def _owner(form: type[Form], names: Sequence[str]) -> tuple[type[Form], str]:
    """Return the form, this or one inside of it, that has or lacks the key to which names lead, and that key."""
    name, *others = names
    field_info = form.model_fields.get(name)
    inner = _inner(field_info.annotation) if field_info and others else None
    return _owner(inner, others) if inner else (form, name)


def _inner(kind: Any) -> type[Form] | None:
    """Return the form of the tables that a field of this type holds."""
    if isinstance(kind, type) and issubclass(kind, Form):
        return kind
    return next(filter(None, map(_inner, get_args(kind))), None)


def _nearest(name: str, form: type[Form]) -> str:
    near = difflib.get_close_matches(name, form.model_fields, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(form.model_fields)}"


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
