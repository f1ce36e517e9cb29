"""What the files of a repository tell: language, licence, version, tests, and what of that is doubtful. Pure."""

from __future__ import annotations

import email
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from posixpath import basename

from ctxbench.bench.adoption import python
from ctxbench.bench.adoption.declared import DeclaredRequirements, declared
from ctxbench.bench.errors import InputFault
from ctxbench.bench.judging.java.layout import MAIN, TEST, Poms, layout
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
        of_java = java_guess(tree)
        return Guess(
            language=JAVA,
            license=spdx,
            version=_pom_version(tree),
            source_dir=of_java.source_dir,
            exclude=exclude,
            tests=of_java.tests,
            doubts=(*doubts, *of_java.doubts),
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


UNKNOWN = "LicenseRef-unknown"
_VERSIONED = r"BSD-\d-Clause(-[A-Za-z-]+)?|[A-Za-z][A-Za-z0-9-]*-\d+(\.\d+)+[a-c]?(\+|-[A-Za-z-]+)?"
"""Identifiers of SPDX with a version; people write such ones otherwise: ``GPLv3``, ``Apache2``, ``BSD-3``."""
_IDENTIFIER = rf"(MIT(-0)?|ISC|Unlicense|0BSD|Zlib|X11|W3C|{_VERSIONED})( WITH [A-Za-z0-9.-]+)?"
_SPDX = re.compile(rf"{_IDENTIFIER}( (AND|OR) {_IDENTIFIER})*")
_FILE = re.compile(r"(licen[cs]e|copying|unlicense|notice)([._-].*)?$", re.IGNORECASE)
_NAMES = (
    ("Apache-2.0", r"apache.{0,40}(2|$)|^asl"),
    ("AGPL-3.0-or-later", r"affero|agpl"),
    ("LGPL-3.0-or-later", r"(lesser|library) general public.*3|lgpl.{0,4}3"),
    ("LGPL-2.1-or-later", r"(lesser|library) general public|lgpl"),
    ("GPL-2.0-or-later", r"general public.{0,60}\b(version )?2|gpl.{0,4}2"),
    ("GPL-3.0-or-later", r"general public|gpl"),
    ("MPL-2.0", r"mozilla public|mpl"),
    ("EPL-2.0", r"eclipse public.*2|epl.?2"),
    ("EPL-1.0", r"eclipse public|epl"),
    ("BSD-2-Clause", r"bsd.{0,4}2|simplified bsd|2.clause"),
    ("BSD-3-Clause", r"bsd"),
    ("MIT", r"\bmit\b|expat"),
    ("ISC", r"\bisc\b"),
    ("PSF-2.0", r"python software foundation|psf"),
    ("Unlicense", r"unlicense"),
    ("ZPL-2.1", r"zope public"),
    ("CC0-1.0", r"cc0"),
)
"""SPDX identifier -> what a name of that licence matches, the narrow ones first."""
_TEXTS = (
    ("Apache-2.0", r"apache license.{0,200}version 2\.0"),
    ("AGPL-3.0-or-later", r"gnu affero general public license"),
    ("LGPL-3.0-or-later", r"gnu lesser general public license.{0,60}version 3"),
    ("LGPL-2.1-or-later", r"gnu lesser general public license"),
    ("GPL-2.0-or-later", r"gnu general public license.{0,60}version 2"),
    ("GPL-3.0-or-later", r"gnu general public license"),
    ("MPL-2.0", r"mozilla public license.{0,30}2\.0"),
    ("EPL-2.0", r"eclipse public license.{0,10}v? ?2\.0"),
    ("EPL-1.0", r"eclipse public license"),
    ("BSD-3-Clause", r"redistribution and use in source and binary forms.*(neither the name|names? of)"),
    ("BSD-2-Clause", r"redistribution and use in source and binary forms"),
    ("MIT", r"permission is hereby granted, free of charge"),
    ("ISC", r"permission to use, copy, modify,? and/?(or)? distribute this software"),
    ("Unlicense", r"free and unencumbered software released into the public domain"),
    ("PSF-2.0", r"python software foundation license"),
)


def licence(files: Mapping[str, str]) -> str:
    """Return the SPDX expression of a project's licence, `UNKNOWN` if nothing tells.

    Args:
        files: path -> text of its metadata and licence files.
    """
    names = [*_stated(files)]
    for name in names:
        if _SPDX.fullmatch(re.sub("[()]", "", name)) and name.count("(") == name.count(")"):
            return name
    for name in names:
        identifier = _named(name)
        if identifier:
            return identifier
    for path in sorted(files, key=lambda path: (path.count("/"), path)):
        if _FILE.match(basename(path)) and path.count("/") < 2:
            text = " ".join(files[path].lower().split())
            identifier = next((spdx for spdx, form in _TEXTS if re.search(form, text[:20_000])), "")
            if identifier:
                return identifier
    return UNKNOWN


def _stated(files: Mapping[str, str]) -> list[str]:
    """Return the names of licences that metadata state, the most exact first."""
    names: list[str] = []
    try:
        data = tomllib.loads(files.get("pyproject.toml", ""))
    except (ValueError, RecursionError):
        data = {}
    tool = data.get("tool")
    for table in (data.get("project"), tool.get("poetry") if isinstance(tool, dict) else None):
        if not isinstance(table, dict):
            continue
        stated = table.get("license")
        text = stated.get("text") if isinstance(stated, dict) else stated
        names += [text] if isinstance(text, str) else []
        classifiers = table.get("classifiers")
        listed = classifiers if isinstance(classifiers, list) else []
        names += [str(item) for item in listed if str(item).startswith("License ::")]
    message = email.message_from_string(files.get("PKG-INFO", ""))
    names += [str(value) for key in ("License-Expression", "License") for value in message.get_all(key, [])]
    names += [str(item) for item in message.get_all("Classifier", []) if str(item).startswith("License ::")]
    match = re.search(r"<licenses>.*?<name>\s*([^<]+?)\s*</name>", files.get("pom.xml", ""), re.DOTALL)
    names += [match.group(1)] if match else []
    for path in ("setup.cfg", "setup.py"):
        names += re.findall(r"""(?:^|[\s,(])license\s*=\s*["']?([^"'\n,)]+)""", files.get(path, ""), re.MULTILINE)
        names += re.findall(r"License ::[^\"'\n]+", files.get(path, ""))
    return [name.strip() for name in names if len(name) < 200]


def _named(name: str) -> str:
    last = name.rpartition("::")[2].strip().lower()
    return next((identifier for identifier, form in _NAMES if re.search(form, last)), "")


_DECLARES_TEST = re.compile(rb"@(Test|ParameterizedTest)\b|extends \w*TestCase\b")


@dataclass(frozen=True, slots=True)
class JavaGuess:
    """How a Java project is tested, and what of that is doubtful."""

    tests: TestSuite | None
    """None: it has none that can be run here."""
    source_dir: str = ""
    doubts: tuple[str, ...] = ()


def java_guess(tree: Mapping[str, bytes]) -> JavaGuess:
    """Return how a project is tested: of several modules, the one that has the most tests beside its sources.

    Args:
        tree: path -> content of its files.
    """
    doubts: list[str] = []
    source_dir = ""
    modules = _modules(tree)
    if "" not in modules and modules:
        source_dir = max(modules, key=lambda module: (modules[module], -len(module)))
        if len(modules) > 1:
            others = ", ".join(sorted(module for module in modules if module != source_dir)[:5])
            doubts.append(f"it has several modules with tests; {source_dir} has the most, others are {others}")
    suite = TestSuite()
    try:
        where = layout(suite, tree, source_dir)
    except InputFault as fault:
        return JavaGuess(None, source_dir, (str(fault),))
    encoding = _encoding(tree, (*where.main, *where.test), where.encoding)
    if encoding:
        doubts.append(f"some files are no {where.encoding}, which the pom names or nothing does: read as {encoding}")
    if not any(_DECLARES_TEST.search(tree[path]) for path in tree if path.startswith(tuple(_slashed(where.test)))):
        return JavaGuess(None, source_dir, (*doubts, "none of its test files declares a test of JUnit"))
    return JavaGuess(replace(suite, encoding=encoding), source_dir, tuple(doubts))


def _pom_version(tree: Mapping[str, bytes]) -> str:
    """Return the version that the outermost ``pom.xml`` says; empty if it says none."""
    text = re.sub(rb"<parent>.*?</parent>|<!--.*?-->|<dependencies>.*", b"", tree.get("pom.xml", b""), flags=re.DOTALL)
    match = re.search(rb"<version>\s*([\w.+-]+)\s*</version>", text)
    return match.group(1).decode() if match else ""


def _modules(tree: Mapping[str, bytes]) -> Counter[str]:
    """Return the modules that have sources and tests -> how many test files declare a test."""
    poms = Poms(tree)
    modules: Counter[str] = Counter()
    for path, content in tree.items():
        match = re.match(rf"(.*?)/?{TEST.usual}/.*\.java$", path)
        if match and _DECLARES_TEST.search(content):
            modules[match.group(1)] += 1
    if poms.setting("", TEST.setting) and poms.setting("", MAIN.setting):
        modules[""] += 1
    mains = {match.group(1) for path in tree if (match := re.match(rf"(.*?)/?{MAIN.usual}/.*\.java$", path))}
    return Counter({module: count for module, count in modules.items() if module in mains or not module})


def _slashed(folders: Sequence[str]) -> list[str]:
    return [f"{folder}/" for folder in folders]


def _encoding(tree: Mapping[str, bytes], folders: Sequence[str], stated: str) -> str:
    """Return the encoding of files that are not in the stated one; empty if all are."""
    contents = [tree[path] for path in tree if path.endswith(".java") and path.startswith(tuple(_slashed(folders)))]
    for encoding in (stated, "UTF-8", "ISO-8859-1"):
        try:
            for content in contents:
                content.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
        return "" if encoding == stated else encoding
    return ""
