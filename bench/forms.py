"""`Form`: the form of a table in a TOML file: its keys, what each may hold, and what cures a wrong one.

A field's description is the cure shown for a wrong value. Imported only when such a file is read (pydantic).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

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
