"""What the files of a repository tell: language, licence, version, tests, and what of that is doubtful. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from posixpath import basename

from ctxbench.bench.adoption import java, python
from ctxbench.bench.adoption.declared import DeclaredRequirements, declared
from ctxbench.bench.adoption.licences import UNKNOWN, licence
from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.bench.repositories.snapshot import VENDORED


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """What a manifest would say of a repository, before anything was tried."""

    language: Language
    license: str
    version: str
    """Empty if nothing tells."""
    source_dir: str = ""
    exclude: tuple[str, ...] = ()
    tests: TestSuite | None = None
    """None: nothing that can be run was seen."""
    doubts: tuple[str, ...] = ()
    declared: DeclaredRequirements = field(default_factory=DeclaredRequirements)
    """Python: what it says that it needs."""


def guess(tree: Mapping[str, bytes], *, wheel: bool = False) -> Guess:
    """Return what the files of a repository tell.

    Args:
        tree: path -> content; of files that hold no text nothing is read.
        wheel: Python: whether the package index has a wheel of it.

    Raises:
        InputFault: if it holds no source file of a language that is supported.
    """
    sizes = {language: _size(tree, language) for language in (PYTHON, JAVA)}
    language = max(sizes, key=lambda language: sizes[language])
    if not sizes[language]:
        raise InputFault("it holds neither Python nor Java", cure="choose a repository in one of these languages")
    texts = {path: content.decode("utf-8", "replace") for path, content in tree.items() if not path.endswith(".java")}
    spdx = licence(texts)
    doubts = [] if spdx != UNKNOWN else ["its files name no licence that is recognised: write its SPDX expression"]
    smaller = min(sizes.values())
    if smaller > sizes[language] // 5:
        other = next(language_ for language_, size in sizes.items() if size == smaller)
        doubts.append(f"a part of it is {other.label}: it was taken for a repository in {language.label}")
    exclude = tuple(f"**/{name}/*" for name in VENDORED if any(f"/{name}/" in f"/{path}" for path in tree))
    if language == JAVA:
        java_guess = java.guess(tree)
        return Guess(
            language=JAVA,
            license=spdx,
            version=java.version(tree),
            source_dir=java_guess.source_dir,
            exclude=exclude,
            tests=java_guess.tests,
            doubts=(*doubts, *java_guess.doubts),
        )
    sources = {path: text for path, text in texts.items() if path.endswith(PYTHON.suffix)}
    requirements = declared(texts)
    python_guess = python.guess(sources, texts, requirements, wheel=wheel)
    return Guess(
        language=PYTHON,
        license=spdx,
        version=requirements.version,
        exclude=exclude,
        tests=python_guess.tests,
        doubts=(*doubts, *python_guess.doubts),
        declared=requirements,
    )


def _size(tree: Mapping[str, bytes], language: Language) -> int:
    return sum(
        len(content)
        for path, content in tree.items()
        if path.endswith(language.suffix) and basename(path) not in ("setup.py", "conf.py", "noxfile.py")
    )
