"""The schemas of engines' TOML files, one for each protocol. This module imports pydantic."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from ctxbench.bench.checking import Filled, Form, Problem, validated


def _plain(value: object) -> object:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError(f"{value} cannot be sent as JSON") from None
    return value


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


def _file_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError(f"{value!r} is not the plain name of a file in the same folder")
    return value


def _expression(group: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        try:
            groups = re.compile(value).groupindex
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"{value!r} is not a valid regular expression ({error})") from None
        if group not in groups:
            raise ValueError(f"{value!r} has no group (?P<{group}>…)")
        return value

    return check


Arguments = dict[str, Annotated[Any, AfterValidator(_plain)]]
_ARGUMENTS = 'give a table, e.g. { pattern = "{name}", limit = 50 }; write dates in quotes'
_CALLS = 'write [[start]] or [[update]] with tool = "…" and arguments = { … } below it, once per call'


class _File(Form):
    summary: str = Field("", description="give a string")
    protocol: str = "mcp"


class _Elsewhere(_File):
    url: Any = None


class _Program(_File):
    command: list[str] = Field(description='give the program and its arguments, e.g. ["my-engine", "-v"]', min_length=1)
    requires: list[Filled] = Field([], description='give a list of pip requirements, e.g. ["my-engine==1.0"]')
    programs: list[Filled] = Field([], description='give a list of Debian packages, e.g. ["ripgrep"]')
    files: list[Annotated[str, AfterValidator(_file_name)]] = Field(
        [], description='give a list of files beside this one, e.g. ["server.py"]', max_length=100
    )


class _Call(Form):
    tool: Filled = Field(description="give the name of the server's tool")
    arguments: Arguments = Field({}, description=_ARGUMENTS)


class _Search(_Call):
    each: Literal["name"] | None = Field(None, description='give each = "name", or leave it out')
    ranked: bool = Field(False, description="give true if the answer lists the best place first")
    names: int = Field(12, description="give the maximum number of identifiers to search for", ge=1)
    lines: int = Field(20, description="give the number of last lines to take identifiers from", ge=1)


class _Places(Form):
    path: str = Field("path", description="give the name of the field with a path")
    line: str = Field("line", description="give the name of the field with a line")
    end: str = Field("", description="give the name of the field with the last line")
    file: Annotated[str, AfterValidator(_expression("path"))] = Field(
        "",
        description="give a regular expression for rows that name the file of the next rows, with a group (?P<path>…)",
    )
    pattern: Annotated[str, AfterValidator(_expression("line"))] = Field(
        "", description="give a regular expression for rows with a place, e.g. '(?P<path>[^:]+):(?P<line>\\d+):'"
    )
    base: int = Field(1, description="give the number of a file's first line, 0 or 1")
    before: int = Field(2, description="give the number of lines that a place includes before its line")
    after: int = Field(12, description="give the number of lines that a place includes after its line")

    @field_validator("pattern")
    @classmethod
    def _has_path(cls, value: str, info: ValidationInfo) -> str:
        # An invalid `file` is missing from the data.
        if info.data.get("file") == "":
            _expression("path")(value)
        return value


class _Server(_Program):
    index: list[Filled] = Field(
        [], description='give the program that indexes {root} before the server starts, e.g. ["my-engine", "index"]'
    )
    variables: dict[str, str] = Field({}, description='give a table of strings, e.g. { HOME = "/tmp" }')
    start: list[_Call] = Field([], description=_CALLS)
    update: list[_Call] = Field([], description=_CALLS)
    search: _Search = Field(description='write [search] with tool = "…" and arguments = { … } below it')
    places: _Places | None = Field(None, description="write [places] with the names of the answer's fields below it")


FORMS: Mapping[str, type[_File]] = {"mcp": _Server, "lines": _Program, "http": _Elsewhere}


def problems(config: Mapping[str, Any], protocol: str) -> list[Problem]:
    """Return all errors in an engine's TOML file that its protocol's schema detects."""
    return validated(FORMS[protocol], config)[1]
