"""Strict validation with pydantic: tables in TOML files (`Form`) and records in data files (`Strict`, `Own`)."""

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
"""An error in a table: its key, a description and a cure."""


class Form(BaseModel):
    """A table in a TOML file. Unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError(f"{value!r} is blank")
    return value


Filled = Annotated[str, AfterValidator(_text)]


def validated(form: type[T], data: Mapping[str, Any], prefix: str = "") -> tuple[T | None, list[Problem]]:
    """Validate a table. Return an instance of `form` and no errors, or None and all errors.

    Args:
        form: a `Form` or a dataclass. A field's description is the cure for a wrong value.
        prefix: text before the keys in messages.
    """
    try:
        if dataclasses.is_dataclass(form):
            # JSON mode turns lists into tuples. JSON has no dates, so dates must be quoted.
            return adapter(form).validate_json(json.dumps(data, default=lambda value: [str(value)])), []
        return adapter(form).validate_python(data), []
    except ValidationError as error:
        return None, list(_problems(error, form, prefix))


adapter: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)
"""Return pydantic's reader and writer for a type."""


def _problems(error: ValidationError, form: type[Any], prefix: str) -> Iterator[Problem]:
    for item in error.errors():
        place, keys, name = _place(form, item["loc"])
        key, cure = prefix + place, keys.get(name, _NO_KEY).cure
        match item["type"]:
            case "extra_forbidden" | "unexpected_keyword_argument":
                yield key, "is not a known key", _nearest(name, keys)
            case "missing":
                yield key, "is missing", cure
            case "model_type" | "dataclass_type":
                yield key, "is not a table", cure
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
    holds: Any
    cure: str


_NO_KEY = _Key(None, "")


def _place(form: type[Any], location: Sequence[str | int]) -> tuple[str, Mapping[str, _Key], str]:
    place, holds, keys, name = "", form, _keys(form), ""
    for part in location:
        tables = list(_tables(holds))
        if isinstance(part, int):
            place += f"[{part + 1}]"
        elif len(tables) > 1:
            # Several tables are possible here; pydantic tried the one of this kind.
            holds = next(table for table in tables if _kind(table) == part)
        else:
            keys, name = (_keys(tables[0]), part) if tables else (keys, name)
            place += f".{part}" if place else part
            holds = keys.get(part, _NO_KEY).holds
    return place, keys, name


def _keys(form: type[Any]) -> Mapping[str, _Key]:
    if dataclasses.is_dataclass(form):
        hints = get_type_hints(form, include_extras=True)
        return {
            field.metadata.get("alias", field.name): _Key(hints[field.name], field.metadata.get("description", ""))
            for field in dataclasses.fields(form)
        }
    return {name: _Key(info.annotation, info.description or "") for name, info in form.model_fields.items()}


def _tables(kind: Any) -> Iterator[type[Any]]:
    if isinstance(kind, type) and (issubclass(kind, Form) or dataclasses.is_dataclass(kind)):
        yield kind
    for inner in get_args(kind):
        yield from _tables(inner)


def _kind(table: Any) -> str:
    return str(table.__dataclass_fields__["kind"].default)


def _nearest(name: str, keys: Mapping[str, _Key]) -> str:
    near = difflib.get_close_matches(name, keys, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(keys)}"


_NEARLY = 0.8
"""Minimum similarity, from 0 to 1, of a misspelling to the correct name."""
_WORDS = {"missing": " is missing", "extra_forbidden": " is not known"}
_UNKNOWN = "field {key} is not known; did you mean {name}?"


class Strict(BaseModel):
    """A record with strict types: "3" is not a number. Unknown fields are ignored unless they look misspelt."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_misspelt(cls, record: Any) -> Any:
        """Reject an unknown field that resembles a missing one. Otherwise a typo could lose a verdict."""
        if isinstance(record, dict):
            names = {info.alias or name for name, info in cls.model_fields.items()}
            absent = {name.lower(): name for name in sorted(names - record.keys())}
            for key in record.keys() - names if absent else ():
                near = difflib.get_close_matches(str(key).lower(), absent, n=1, cutoff=_NEARLY)
                if near:
                    raise PydanticCustomError("misspelt", _UNKNOWN, {"key": repr(key), "name": absent[near[0]]})
        return record


class Own(Strict):
    """A record in ctxbench's own format. Unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


M = TypeVar("M", bound=BaseModel)


def checked(model: type[M], record: Mapping[str, Any], *, where: str, cure: str) -> M:
    """Validate a record, and return it as an instance of `model`.

    Raises:
        InputFault: if a field is missing, misspelt, forbidden or invalid. The message names the first such field.
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


class FieldError(Exception):
    """A field that contradicts another field or has an invalid value."""

    def __init__(self, field: str, what: str) -> None:
        super().__init__(what)
        self.field, self.what = field, what


@contextlib.contextmanager
def explained(where: str, cure: str) -> Iterator[None]:
    """Turn a `FieldError` in this context into an `InputFault`."""
    try:
        yield
    except FieldError as odd:
        raise InputFault(f"field {odd.field}: {odd.what}", where=where, cure=cure) from None


def inside(field: str, path: str) -> str:
    """Return a path unchanged if it is inside the repository.

    Raises:
        FieldError: if the path contains a backslash, or a part between slashes is empty, ``.`` or ``..``.
    """
    if any(part in ("", ".", "..") for part in path.split("/")) or "\\" in path:
        raise FieldError(field, f"{path!r} is not a path inside a repository")
    return path


def repository_path(field: str, parts: Sequence[str]) -> tuple[str, str]:
    """Split path parts into the repository's name, which is the first part, and the path inside the repository.

    Raises:
        FieldError: if a part is missing, empty, ``.``, ``..`` or contains a slash or backslash.
    """
    if len(parts) < 2 or any("/" in part for part in parts):
        raise FieldError(field, f"{parts} are not the parts of a path inside a repository")
    repo, _, path = inside(field, "/".join(parts)).partition("/")
    return repo, path


def language_of(path: str) -> Language | None:
    """Return a file's language by its suffix; None if the language is not supported."""
    return next((language for language in languages.every() if path.endswith(language.suffix)), None)


def storable(record: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a record unchanged if all its texts can be stored.

    Raises:
        InputFault: if a text is not valid Unicode or contains NUL.
    """
    fault = why_unstorable(record)
    if fault:
        raise InputFault(fault, where=where, cure="write the text as valid Unicode, without NUL")
    return record


def why_unstorable(value: object, field: str = "") -> str:
    """Return why a JSON value cannot be stored; empty if it can. `field` names the value in messages."""
    if isinstance(value, str):
        if "\0" in value:
            return f"field {field}: contains a NUL character"
        if not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                return f"field {field}: contains half of a surrogate pair"
        return ""
    inner: Iterator[tuple[str, object]] = iter(())
    if isinstance(value, Mapping):
        inner = ((str(key), member) for key, member in value.items())
    elif isinstance(value, list):
        inner = ((str(number), member) for number, member in enumerate(value))
    return next(filter(None, (why_unstorable(member, f"{field}.{key}" if field else key) for key, member in inner)), "")
