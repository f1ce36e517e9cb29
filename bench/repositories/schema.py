"""The form of a manifest file: its keys, what each may hold, and what cures a wrong one.

A field's description is the cure shown for a wrong value. Imported only when a manifest is read (pydantic).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from ctxbench.bench import languages
from ctxbench.bench.checking import Filled, Form, Problem, matches, validated
from ctxbench.bench.dates import read_date
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories.manifest import RepoManifest, TestSuite
from ctxbench.bench.repositories.sources import DebianSource, GitSource, LocalSource, PypiSource, Source

_SPDX_WORD = r"\(*[A-Za-z0-9][A-Za-z0-9.+-]*\)*"


def _inside(value: str) -> str:
    if PurePosixPath(value).is_absolute() or ".." in PurePosixPath(value).parts or "\\" in value or not value:
        raise ValueError(f"{value!r} is not a path inside the repository")
    return value


def _day(value: str) -> str:
    read_date(value)
    return value


Name = Annotated[str, matches(r"[a-z0-9][a-z0-9._-]{0,99}", "a name of lower-case letters, digits, '.', '_' and '-'")]
Version = Annotated[str, matches(r"[A-Za-z0-9][A-Za-z0-9.+!~_-]{0,99}", "a version")]
Hash = Annotated[str, matches(r"[0-9a-f]{64}", "a sha256")]
Commit = Annotated[str, matches(r"[0-9a-f]{40}", "a full commit")]
Url = Annotated[str, matches(r"(https?|ssh|git|file)://(?![^/]*:[^/@]*@)\S+", "a repository's URL without password")]
Licence = Annotated[str, matches(rf"{_SPDX_WORD}( (AND|OR|WITH) {_SPDX_WORD})*", "an SPDX expression")]
Slug = Annotated[str, matches(r"\w[\w.-]*(/\w[\w.-]*)?", "a project as owner/repository, or a folder's name")]
Project = Annotated[str, matches(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", "a project name")]
Package = Annotated[str, matches(r"[a-z0-9][a-z0-9+.-]+", "a Debian source package")]
Jar = Annotated[str, matches(r"[A-Za-z0-9][A-Za-z0-9._-]*\.jar", "a jar's file name")]
Pinned = Annotated[str, matches(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!_]*", "a name==version")]
Release = Annotated[str, matches(r"[1-9][0-9]?", "a Java version")]
Encoding = Annotated[str, matches(r"[A-Za-z0-9][A-Za-z0-9_-]*", "an encoding")]
Day = Annotated[str, AfterValidator(_day)]
Inside = Annotated[str, AfterValidator(_inside)]

_COMMIT = "give its 40 hexadecimal digits; `git ls-remote URL REF` shows those of a tag or branch"
_HASH = "give the 64 hexadecimal digits that `sha256sum FILE` prints"


class _Copy(Form):
    kind: str


class _Git(_Copy):
    url: Url = Field(description="give an https, ssh, git or file URL; passwords belong in no manifest")
    commit: Commit = Field(description=_COMMIT)


class _Pypi(_Copy):
    name: Project = Field(description="give the project's name on the package index")
    version: Version | None = Field(None, description="leave it out: it is the manifest's version")
    sha256: Hash = Field(description=_HASH + " for the sdist")


class _Debian(_Copy):
    package: Package = Field(description="give the name of the source package, as `apt-cache showsrc NAME` knows it")
    version: Version | None = Field(None, description="leave it out: it is the manifest's version")
    sha256: Hash = Field(description=_HASH + " for the .orig.tar file")


class _Local(_Copy):
    path: Filled = Field(description="give a folder or an archive, relative to the manifest's folder")
    sha256: Hash | None = Field(None, description=_HASH + " for an archive, or leave it out")


class _Tests(Form):
    requirements: list[Filled] = Field([], description='give a list of pip requirements, e.g. ["attrs", "pyyaml"]')
    pythonpath: Inside = Field(".", description='give the folder that is put on the import path, e.g. "src"')
    paths: list[Inside] = Field([], description='give a list of folders or files, e.g. ["tests"]')
    arguments: list[Filled] = Field([], description='give a list of arguments, e.g. ["-o", "addopts="]')
    deselect: list[Inside] = Field([], description='give a list of test files or tests, e.g. ["tests/test_cli.py"]')
    notes: str = Field("", description="give a text")
    jars: list[Jar] = Field([], description='give a list of files of /usr/share/java, e.g. ["commons-lang3.jar"]')
    release: Release = Field("", description='give a Java version, e.g. "8" or "17"', validate_default=False)
    wheel: bool = Field(True, description="give false if the index has no wheel of the project")
    lock: list[Pinned] = Field([], description='give a list of versions, e.g. ["attrs==25.4.0"], or leave it out')
    added: Filled | None = Field(None, description="give a folder of Python tests, relative to the manifest's folder")
    encoding: Encoding = Field("", description='give an encoding, e.g. "ISO-8859-1"', validate_default=False)


class _Manifest(Form):
    name: Name = Field(description="give the file's name without .toml")
    language: Language = Field(description="give " + " or ".join(f'"{name}"' for name in languages.names()))
    license: Licence = Field(description='give an SPDX expression, e.g. "MIT" or "BSD-3-Clause"')
    version: Version = Field(description='give the version that every source holds, e.g. "1.2.0"')
    released: Day | None = Field(None, description='give the day it was published, in quotes, e.g. "2024-06-01"')
    source: list[dict[str, Any]] = Field(description="give at least one [[source]] table", min_length=1)
    source_dir: Inside = Field(
        "", description='give a folder inside the repository, e.g. "src"', validate_default=False
    )
    exclude: list[Inside] = Field([], description='give a list of globs, e.g. ["docs/*", "**/_vendor/*"]')
    sets: list[Name] = Field([], description='give a list of names, e.g. ["recent"]')
    codereval: list[Slug] = Field([], description='give a list of projects, e.g. ["pexip/os-python-cachetools"]')
    tests: _Tests | None = Field(None, description="give a [tests] table")


_KINDS: Mapping[str, type[_Copy]] = {"git": _Git, "pypi": _Pypi, "debian": _Debian, "local": _Local}


def check(data: Mapping[str, Any], path: Path) -> tuple[RepoManifest | None, list[Problem]]:
    """Return the manifest, or None and everything that is wrong with it, in the order of the keys.

    Args:
        data: the parsed file.
        path: where it lies; its name must be the manifest's, and local paths are relative to its folder.
    """
    table, problems = validated(_Manifest, data)
    name = data.get("name")
    if isinstance(name, str) and name != path.stem and not any(key == "name" for key, _, _ in problems):
        problems.append(("name", f"{name!r} is not the file's name {path.stem!r}", "make the two equal"))
    sources: list[_Copy] = []
    raw = data.get("source")
    for number, item in enumerate(raw if isinstance(raw, list) else [], 1):
        if isinstance(item, dict):
            source, more = _source(item, f"source[{number}]", data.get("version"))
            problems += more
            sources += [source] if source is not None else []
    tests = _suite(table.tests, path.parent) if table is not None and table.tests is not None else None
    problems += _added(tests, data.get("language"))
    if problems or table is None:
        return None, problems
    return _manifest(table, tests, [_built(source, table.version, path) for source in sources]), []


def _added(tests: TestSuite | None, language: object) -> Iterator[Problem]:
    """Yield the problems of the folder of added tests."""
    cure = _Tests.model_fields["added"].description or ""
    if tests is None or tests.added is None:
        return
    if language != PYTHON:
        yield "tests.added", "is for Python only", "leave it out"
    elif not tests.added.is_dir():
        yield "tests.added", f"there is no folder {str(tests.added)!r}", cure


def _manifest(table: _Manifest, tests: TestSuite | None, sources: list[Source]) -> RepoManifest:
    return RepoManifest(
        name=table.name,
        language=table.language,
        license=table.license,
        version=table.version,
        released=None if table.released is None else read_date(table.released),
        sources=tuple(sources),
        source_dir=table.source_dir,
        exclude=tuple(table.exclude),
        sets=tuple(table.sets),
        codereval=tuple(table.codereval),
        tests=tests,
    )


def _suite(table: _Tests, folder: Path) -> TestSuite:
    return TestSuite(
        requirements=tuple(table.requirements),
        pythonpath=table.pythonpath,
        paths=tuple(table.paths),
        arguments=tuple(table.arguments),
        deselect=tuple(table.deselect),
        notes=table.notes,
        jars=tuple(table.jars),
        release=table.release,
        encoding=table.encoding,
        wheel=table.wheel,
        lock=tuple(table.lock),
        added=(folder / Path(table.added).expanduser()).resolve() if table.added else None,
    )


def _source(item: Mapping[str, Any], key: str, version: object) -> tuple[_Copy | None, list[Problem]]:
    kind = item.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        what = "is missing" if kind is None else f"{kind!r} is no kind of source"
        return None, [(f"{key}.kind", what, f"give one of {', '.join(_KINDS)}")]
    table, problems = validated(_KINDS[kind], item, f"{key}.")
    own = item.get("version")
    if isinstance(own, str) and isinstance(version, str) and own != version:
        what = f"{own!r} is not the manifest's version {version!r}"
        problems.append((f"{key}.version", what, "all sources of a manifest hold one version; leave it out here"))
    return table, problems


def _built(table: _Copy, version: str, path: Path) -> Source:
    match table:
        case _Git():
            return GitSource(url=table.url, commit=table.commit)
        case _Pypi():
            return PypiSource(name=table.name, version=version, sha256=table.sha256)
        case _Debian():
            return DebianSource(package=table.package, version=version, sha256=table.sha256)
        case _Local():
            place = (path.parent / Path(table.path).expanduser()).resolve()
            return LocalSource(path=place, sha256=table.sha256 or "")
    raise AssertionError(table)
