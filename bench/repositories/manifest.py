"""Manifests of repositories: TOML files that ship with ctxbench (``bench/repos/``) or that a user wrote."""

from __future__ import annotations

import fnmatch
import functools
import json
import shlex
import textwrap
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from ctxbench.bench.dates import read_date
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.files import read_text
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories.sources import (
    STRICT,
    Check,
    Filled,
    GitSource,
    LocalSource,
    OfKind,
    Place,
    Source,
    Version,
    cure,
    matches,
)

_WIDTH = 118
BUILTIN = Path(__file__).parents[1] / "repos"


_SPDX_WORD = r"\(*[A-Za-z0-9][A-Za-z0-9.+-]*\)*"


def _inside(value: str) -> str:
    if PurePosixPath(value).is_absolute() or ".." in PurePosixPath(value).parts or "\\" in value or not value:
        raise ValueError(f"{value!r} is not a path inside the repository")
    return value


def _day(value: object) -> object:
    return read_date(value) if isinstance(value, str) else value


def _some(values: tuple[Source, ...]) -> tuple[Source, ...]:
    if not values:
        raise ValueError("is empty")
    return values


_Name = Annotated[str, matches(r"[a-z0-9][a-z0-9._-]{0,99}", "a name of lower-case letters, digits, '.', '_' and '-'")]
_Licence = Annotated[str, matches(rf"{_SPDX_WORD}( (AND|OR|WITH) {_SPDX_WORD})*", "an SPDX expression")]
_Slug = Annotated[str, matches(r"\w[\w.-]*(/\w[\w.-]*)?", "a project as owner/repository, or a folder's name")]
_Jar = Annotated[str, matches(r"[A-Za-z0-9][A-Za-z0-9._-]*\.jar", "a jar's file name")]
_Pinned = Annotated[str, matches(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!_]*", "a name==version")]
_Release = Annotated[str, matches(r"[1-9][0-9]?", "a Java version")]
_Encoding = Annotated[str, matches(r"[A-Za-z0-9][A-Za-z0-9_-]*", "an encoding")]
_Day = Annotated[date, Check(_day, first=True)]
_Inside = Annotated[str, Check(_inside)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSuite:
    """A repository's own tests and how to run them, for function samples."""

    __test__ = False  # because of its name, pytest would collect the class
    __pydantic_config__ = STRICT

    requirements: tuple[Filled, ...] = field(
        default=(), metadata=cure('write a list of pip requirements, e.g. ["attrs", "pyyaml"]')
    )
    """pip requirements of the tests, without the package itself; for Java, Debian packages."""
    pythonpath: _Inside = field(default=".", metadata=cure('write the folder to put on the import path, e.g. "src"'))
    paths: tuple[_Inside, ...] = field(default=(), metadata=cure('write a list of folders or files, e.g. ["tests"]'))
    """Test folders and files; empty if the test runner finds them."""
    arguments: tuple[Filled, ...] = field(
        default=(), metadata=cure('write a list of arguments, e.g. ["-o", "addopts="]')
    )
    """Additional arguments for the test runner; for Java, for the virtual machine."""
    deselect: tuple[_Inside, ...] = field(
        default=(), metadata=cure('write a list of test files or tests, e.g. ["tests/test_cli.py"]')
    )
    notes: str = field(default="", metadata=cure("write a string"))
    jars: tuple[_Jar, ...] = field(
        default=(), metadata=cure('write a list of files of /usr/share/java, e.g. ["commons-lang3.jar"]')
    )
    """Java: files of ``/usr/share/java`` that the required packages install."""
    release: _Release = field(default="", metadata=cure('write a Java version, e.g. "8" or "17"'))
    """Java: value of ``javac --release``; empty for the value in ``pom.xml``."""
    encoding: _Encoding = field(default="", metadata=cure('write an encoding, e.g. "ISO-8859-1"'))
    """Java: encoding of the source files; empty for the one in ``pom.xml``."""
    wheel: bool = field(default=True, metadata=cure("write false if the index has no wheel of the project"))
    """Python: whether PyPI has a wheel of the project. If not, add the project's requirements to `requirements`."""
    lock: tuple[_Pinned, ...] = field(
        default=(), metadata=cure('write a list of versions, e.g. ["attrs==25.4.0"], or leave it out')
    )
    """Python: exact versions to install, as ``name==version``; empty for the newest allowed versions."""
    added: Place | None = field(
        default=None, metadata=cure("write a folder of Python tests, relative to the manifest's folder")
    )
    """Python: folder of additional tests, copied into the repository as ``ctxbench_tests/``; None for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoManifest:
    """A repository's manifest: the sources of one version, the files that samples come from, and the tests."""

    __pydantic_config__ = STRICT

    name: _Name = field(metadata=cure("write the file's name without .toml"))
    language: Language = field(metadata=cure('write the language of its source files, e.g. "python"'))
    license: _Licence = field(metadata=cure('write an SPDX expression, e.g. "MIT" or "BSD-3-Clause"'))
    version: Version = field(metadata=cure('write the version of every source, e.g. "1.2.0"'))
    sources: Annotated[tuple[Annotated[Source, OfKind()], ...], Check(_some)] = field(
        metadata={"alias": "source", **cure("write at least one [[source]] table")}
    )
    """Sources of this version of the repository, in the order to try."""
    released: _Day | None = field(
        default=None, metadata=cure('write the day this version was published, in quotes, e.g. "2024-06-01"')
    )
    """Day in UTC on which this version was published; None if unknown."""
    source_dir: _Inside = field(default="", metadata=cure('write a folder inside the repository, e.g. "src"'))
    """The only folder to read; empty for all folders."""
    exclude: tuple[_Inside, ...] = field(
        default=(), metadata=cure('write a list of globs, e.g. ["docs/*", "**/_vendor/*"]')
    )
    """Globs of files from which no samples are drawn. ``*`` also matches ``/``."""
    sets: tuple[_Name, ...] = field(default=(), metadata=cure('write a list of set names, e.g. ["recent"]'))
    codereval: tuple[_Slug, ...] = field(
        default=(), metadata=cure('write a list of projects, e.g. ["pexip/os-python-cachetools"]')
    )
    """CoderEval projects whose tasks are rebuilt here: ``owner/repository`` or, for Java, the project's folder name."""
    tests: TestSuite | None = field(default=None, metadata=cure("write a [tests] table"))

    def account(self) -> dict[str, str]:
        """Return part of the repository's entry in a sample set's manifest: licence, version, release day if known."""
        dated = {} if self.released is None else {"released": self.released.isoformat()}
        return {"license": self.license, "version": self.version, **dated}

    def excludes(self, path: str) -> bool:
        """Return whether a file is excluded from samples."""
        return any(
            fnmatch.fnmatchcase(path, glob) or (glob.startswith("**/") and fnmatch.fnmatchcase(path, glob[3:]))
            for glob in self.exclude
        )


@dataclass(frozen=True, slots=True)
class ManifestProblem:
    """An error in a manifest."""

    where: str
    what: str
    cure: str

    def __str__(self) -> str:
        return " ".join(f"{self.where}: {self.what}; {self.cure}".split())


class ManifestFault(InputFault):
    """Raised when a manifest is invalid; `faults` lists all errors."""

    def __init__(self, faults: Sequence[ManifestProblem]) -> None:
        self.faults = tuple(faults)
        super().__init__(" | ".join(str(fault) for fault in self.faults))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the errors, so that worker processes can raise the fault."""
        return ManifestFault, (self.faults,)


def builtin_names() -> tuple[str, ...]:
    """Return the names of the shipped manifests, sorted."""
    return tuple(sorted(path.stem for path in BUILTIN.glob("*.toml")))


def load(ref: str) -> RepoManifest:
    """Return a manifest, given the name of a shipped one or the path of a ``.toml`` file.

    Raises:
        UnknownName: if no shipped manifest has this name.
        ManifestFault: if the file is not a valid manifest.
        InputFault: if the file cannot be read.
    """
    if ref.endswith(".toml") or "/" in ref:
        path = Path(ref).expanduser().absolute()
        if path.is_dir():
            cure = f"write the folder's manifest with `ctxbench repo add {shlex.quote(ref)}`, and give its path"
            raise InputFault("the path is a folder, not a manifest", where=ref, cure=cure)
        return _read(path, ref)
    if ref not in builtin_names():
        raise UnknownName("repository", ref, builtin_names(), command="ctxbench repo list")
    return _builtin(ref)


def in_set(name: str) -> tuple[RepoManifest, ...]:
    """Return the shipped manifests of a set, sorted by name.

    Raises:
        UnknownName: if no shipped manifest names this set.
    """
    manifests = [load(builtin) for builtin in builtin_names()]
    members = tuple(manifest for manifest in manifests if name in manifest.sets)
    if not members:
        set_names = {set_name for manifest in manifests for set_name in manifest.sets}
        raise UnknownName("repository set", name, set_names, command="ctxbench repo list")
    return members


@functools.cache
def _builtin(name: str) -> RepoManifest:
    path = BUILTIN / f"{name}.toml"
    return _read(path, path.name)


def _read(path: Path, label: str) -> RepoManifest:
    return parse(read_text(path), path, label)


def parse(text: str, path: Path, label: str) -> RepoManifest:
    """Parse a manifest.

    Args:
        path: the manifest's file, which need not exist. Local sources are relative to its folder.
        label: file name in messages.

    Raises:
        ManifestFault: if the text is not a valid manifest.
    """
    # Imported late: pydantic costs every command a tenth of a second, and few commands read a manifest.
    from ctxbench.bench.checking import validated  # noqa: PLC0415

    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # invalid TOML, a number of thousands of digits, deeply nested lists
        raise ManifestFault(
            [
                ManifestProblem(
                    label,
                    f"the file is not valid TOML: {error}",
                    "compare the file with the output of `ctxbench repo sample`",
                )
            ]
        ) from None
    manifest, problems = validated(RepoManifest, data)
    wrong = {key for key, _, _ in problems}
    problems += [problem for problem in _contradictions(data, path) if problem[0] not in wrong]
    if problems or manifest is None:
        raise ManifestFault([ManifestProblem(f"{label}: {key}", what, cure) for key, what, cure in problems])
    tests = manifest.tests
    if tests is not None and tests.added is not None:
        tests = replace(tests, added=_resolved(tests.added, path))
    return replace(
        manifest, sources=tuple(_placed(source, manifest.version, path) for source in manifest.sources), tests=tests
    )


def _contradictions(data: Mapping[str, Any], path: Path) -> Iterator[tuple[str, str, str]]:
    name, version, tests, sources = (data.get(key) for key in ("name", "version", "tests", "source"))
    if isinstance(name, str) and name != path.stem:
        yield "name", f"{name!r} is not the file's name {path.stem!r}", "rename the file, or correct `name`"
    for number, source in enumerate(sources if isinstance(sources, list) else [], 1):
        own = source.get("version") if isinstance(source, dict) else None
        if isinstance(own, str) and isinstance(version, str) and own != version:
            what = f"{own!r} is not the manifest's version {version!r}"
            yield (
                f"source[{number}].version",
                what,
                "leave `version` out of the source; all sources use the manifest's version",
            )
    added = tests.get("added") if isinstance(tests, dict) else None
    if isinstance(added, str):
        if data.get("language") != PYTHON:
            yield "tests.added", "is for Python only", "leave `added` out"
        elif not (folder := _resolved(Path(added), path)).is_dir():
            cure = TestSuite.__dataclass_fields__["added"].metadata["description"]
            yield "tests.added", f"there is no folder {str(folder)!r}", cure


def _resolved(place: Path, path: Path) -> Path:
    return (path.parent / place.expanduser()).resolve()


def _placed(source: Source, version: str, path: Path) -> Source:
    match source:
        case LocalSource():
            return replace(source, path=_resolved(source.path, path))
        case GitSource():
            return source
    return replace(source, version=version)


def text_of(
    manifest: RepoManifest,
    remarks: Sequence[str] = (),
    doubts: Sequence[str] = (),
    untried: TestSuite | None = None,
) -> str:
    """Return a manifest as TOML. `parse` reads it back to an equal manifest.

    Args:
        remarks: observations, written as comments.
        doubts: points for a person to check, written as comments.
        untried: tests that could not be run, written as a comment.
    """
    lines = [*_comment(remarks, "# ", "# ")]
    if doubts:
        lines += ["#", "# To check:", *_comment(doubts, "# - ", "#   ")]
    lines += ["", *_entries(manifest, leave_out=("sources", "tests"))]
    for source in manifest.sources:
        lines += ["", "[[source]]", f"kind = {toml_value(source.kind)}", *_entries(source, leave_out=("version",))]
    if manifest.tests is not None:
        lines += ["", "[tests]", *_entries(manifest.tests)]
    if untried is not None:
        lines += ["", "# [tests]", *(f"# {line}" for entry in _entries(untried) for line in entry.splitlines())]
    return "\n".join(lines) + "\n"


def _entries(table: RepoManifest | Source | TestSuite, leave_out: Collection[str] = ()) -> Iterator[str]:
    for key in fields(table):
        value = getattr(table, key.name)
        if key.name not in leave_out and value != key.default:
            yield f"{key.name} = {toml_value(value)}"


def _comment(texts: Iterable[str], first: str, further: str) -> Iterator[str]:
    for text in texts:
        plain = "".join(character if character.isprintable() else " " for character in text)
        # Names and addresses stay whole.
        yield from textwrap.wrap(
            plain,
            _WIDTH,
            initial_indent=first,
            subsequent_indent=further,
            break_on_hyphens=False,
            break_long_words=False,
        )


def toml_value(value: float | str | date | Path | Sequence[str] | Sequence[float]) -> str:
    """Return a value as TOML. Days and paths become strings; long lists have one item per line."""
    if isinstance(value, int | float):
        return json.dumps(value)
    if isinstance(value, str | date | Path):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    items = [toml_value(item) for item in value]
    line = f"[{', '.join(items)}]"
    return line if len(line) < _WIDTH else "[\n" + "".join(f"    {item},\n" for item in items) + "]"
