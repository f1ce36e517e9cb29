"""Guesses a repository's language, licence, version and tests from its files."""

from __future__ import annotations

import contextlib
import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from posixpath import basename

from ctxbench.bench.adoption import python
from ctxbench.bench.adoption.declared import DeclaredRequirements, declared
from ctxbench.bench.adoption.python import SuiteGuess
from ctxbench.bench.errors import InputFault
from ctxbench.bench.judging.java.layout import MAIN, TEST, Poms, layout
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.bench.repositories.snapshot import VENDORED
from ctxbench.bench.retrieval.encoders import weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A guessed manifest, before any test is run."""

    language: Language
    license: str
    version: str
    source_dir: str = ""
    exclude: tuple[str, ...] = ()
    tests: TestSuite | None = None
    """How to run the tests; None if the repository has no usable tests."""
    doubts: tuple[str, ...] = ()
    declared: DeclaredRequirements = field(default_factory=DeclaredRequirements)


def guess(tree: Mapping[str, bytes], *, where: str, wheel: bool = False) -> Guess:
    """Guess a repository's manifest from its files.

    Args:
        tree: path -> content.
        where: the source that the user named, for messages.
        wheel: whether to assume that PyPI has a wheel of the project.

    Raises:
        InputFault: if the repository has no source file in a supported language.
    """
    sizes = {language: _size(tree, language) for language in (PYTHON, JAVA)}
    language = max(sizes, key=lambda language: sizes[language])
    if not sizes[language]:
        cure = "choose a folder or source with such files; files in .gitignore do not count"
        raise InputFault("the source contains neither Python nor Java files", where=where, cure=cure)
    texts = {path: content.decode("utf-8", "replace") for path, content in tree.items() if not path.endswith(".java")}
    requirements = declared(texts)
    spdx, doubt = licence(texts, requirements.licences)
    doubts = [doubt] if doubt else []
    smaller = min(sizes.values())
    if smaller > sizes[language] // 5:
        other = next(language_ for language_, size in sizes.items() if size == smaller)
        doubts.append(f"{MIXED}{other.label}; the repository is treated as {language.label}")
    exclude = tuple(f"**/{name}/*" for name in VENDORED if any(f"/{name}/" in f"/{path}" for path in tree))
    if language == JAVA:
        requirements, suite = DeclaredRequirements(version=_pom_version(tree)), java_guess(tree)
    else:
        sources = {path: text for path, text in texts.items() if path.endswith(PYTHON.suffix)}
        suite = python.guess(sources, texts, requirements, wheel=wheel)
    return Guess(
        language=language,
        license=spdx,
        version=requirements.version,
        source_dir=suite.source_dir,
        exclude=exclude,
        tests=suite.tests,
        doubts=(*doubts, *suite.doubts),
        declared=requirements,
    )


def _size(tree: Mapping[str, bytes], language: Language) -> int:
    return sum(
        len(content)
        for path, content in tree.items()
        if path.endswith(language.suffix) and basename(path) not in ("setup.py", "conf.py", "noxfile.py")
    )


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+|\d+(?:\.[1-9]\d*)*", text.lower())


UNKNOWN = "LicenseRef-unknown"
MIXED = "some files are "
_LICENCE_FILE = re.compile(
    r"(?!.*header)(((un)?licen[cs]es?|copying|[\w-]+[_-]licen[cs]e)([._-][^/]*)?|licen[cs]es?/[^/]+)", re.IGNORECASE
)
_TERMS_FILE = re.compile(
    r"licen[cs]es?/[^/]+|(docs?/)?[^/]*(licen|copying|eula|commons.?clause|notice)[^/]*", re.IGNORECASE
)
_TERMS_IN_DATA = re.compile(r"(licen[cs]es?|copying|eula)\.[^/]+(?<!\.py)", re.IGNORECASE)
_RESTRICTS = re.compile(
    r"\b(no[tnr]?|may|must|shall|us(e|ed|es|ing)|only|for|if|un(til|less)|free(?! software)"
    r"|exce(pt|ption)s?|without|subject|pa(y|id|ys)|fees?|s[eo]l[dl]|sales?"
    r"|(forbid|prohibit|restrict|permi|grant|licen|commerc|exclusiv|evaluat|propriet|confiden|intern|priva|expir)\w*)\b",
    re.IGNORECASE,
)
_LIBRARIES = ("license_expression", "licenseclassifier", "licenselynx")
_NO_TEXT = (".py", ".xml", ".toml", ".cfg", ".ini", ".in", ".kt", ".groovy")
_MARK = re.compile(r"\W*(portions )?(copyright\b(?! (holder|notice|owner))|©|\(c\))", re.IGNORECASE)
_OWNER = re.compile(
    r"(copyright|\(c\)|©|[\[<{](year|yyyy|xxxx|owner( organization)?|copyright holders?|name of author)[\]>}]"
    r"|[\[<{]name of copyright owner[\]>}]"
    r"|<?\b(https?://|[\w.+-]+@)[\w./~-]+>?|(19|20)\d\d(-present\b)?|all rights reserved\.?$)",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"\(?\"?([A-Z][\w'’&-]*(\.(?=\w)[\w'’&-]+)*|([A-Z]\.-?)+|(Inc|Ltd|Corp|Co|Jr)\.|[-–&]"
    r"|and|by|of|the|de|van|von|der|et|al|contributors?|authors?|developers|holders?|owners?|team|project|its|others|inc)\"?\)?,?"
)
_TITLES = {
    "BSD-2": "simplified",
    "BSD-3": "new revised modified",
    "BSD-3-Clause-Clear": "clear",
    "BSD-4": "original",
    "MIT-0": "no attribution",
    "Apache": "software",
    "PSF": "python software foundation",
    "ZPL": "zope public",
    "MPL": "mozilla public",
    "EPL": "eclipse public",
    "GPL": "gnu general public",
    "LGPL": "gnu lesser library general public",
    "AGPL": "gnu affero general public",
}
"""Start of licences' identifiers -> words that only the names of these licences contain."""
_TITLE = frozenset(_words("a the licence license licenses licensed under version v"))
_BSD = (
    "with or without",
    "redistribution and use in source and binary forms with or without modification are permitted provided that the "
    "following conditions are met",
)
_RIGHTS = {
    "MIT-0": (
        "and/or sell",
        "free of charge to any person obtaining a copy of this software and associated documentation files the "
        "software to deal in the software without restriction including without limitation the rights to use",
        "distribute sublicense and/or sell copies",
    ),
    "BSD-2-Clause": _BSD,
    "BSD-3-Clause": _BSD,
}
_RIGHTS["MIT"] = (
    *_RIGHTS["MIT-0"],
    "subject to the following conditions the above copyright notice and this permission notice",
)
"""Phrases that a licence's text must contain. The library also accepts texts that lack or change the phrases."""
_HOLDERS = re.compile(
    r"\b(?:shall (?!be )(.{,300}?) be liable|provided by (.{,300}?) as is|nor the names of (.{,300}?) may be)\b"
)
_HOLDER = frozenset(
    _words(
        "the copyright holder holders owner owners author authors contributor contributors and or regents foundation"
    )
) | frozenset(_words("its their project isc licensor party parties apache software any other s name names of"))
_HIDDEN = re.compile(r"<[a-z/!][^<>]*>|&#?\w+;", re.IGNORECASE)
_PLACE = re.compile(
    r"<((https?|mailto):[^\s<>]+|years?|owner|copyright holders?|name of (author|copyright holder)|program( name)?"
    r"|organization|signature of Ty Coon"
    r"|one line to give the (program|library)'s name and a brief idea of what it does\.)>",
    re.IGNORECASE,
)
_GNU = re.compile(r"[AL]?GPL-\d\.\d")
_ADVICE = "How to Apply These Terms to Your New Programs"
_ADVICE_DIGEST = "983ed54e8e0f0a1c"
"""Digest of the words after GPL-3.0's terms, without addresses. The library misses some versions of these words."""
_VAGUE = re.compile(
    r"[-\s](like|style|type|based|derived|variant|similar|compatible)\b|(?<![:/])/(?!/)(?!.*\.)", re.IGNORECASE
)
MOST_OF_LINE = 500
MOST_OF_TEXT = 200_000
MOST_WORDS = 14
MOST_TITLES = 20
_EXTENT = re.compile(r"-(only|or-later)$")


@dataclass(frozen=True, slots=True)
class _LicenceText:
    path: str
    identifiers: frozenset[str]
    deviation: str
    """What the text adds or lacks; empty for an exact SPDX text."""

    def __str__(self) -> str:
        names = " and ".join(sorted(self.identifiers)) or "not a licence that SPDX lists"
        return f"{self.path} is {names}{self.deviation}"


def licence(files: Mapping[str, str], stated: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return a project's licence in SPDX's syntax and an empty text, or `UNKNOWN` and a doubt for a person to check.

    Licence files are compared in full with SPDX's texts, and the metadata must agree with the files.

    Args:
        files: path -> text.
        stated: (file, licence that the file states). The licence is an expression, a name, or the last part of a
            classifier.
    """
    claims = [(file, text) for file, text in stated if text.lower() not in ("unknown", "osi approved")]
    first = {text: file for file, text in claims[::-1]}
    statements = [f"{file} states {text!r}" for text, file in first.items()][::-1]
    try:
        weights.need(
            _LIBRARIES,
            where="licence",
            cure="run `pip install 'ctxbench[licences]'`, then repeat the command with --force",
        )
    except InputFault as fault:
        return UNKNOWN, "; ".join([f"the licence was not read: {fault}", *statements])
    paths = _licence_files(files)
    texts = [_compared(path, files[path]) for path in paths]
    others = _other_terms(files, paths)
    statements = [*(f"{path} states other terms" for path in others), *statements]
    if not claims and not texts and not others:
        return UNKNOWN, "no file names a recognised licence; write the licence's SPDX expression"
    readings = {text: _expression(text) for text in first}
    expressions = {expression for expression in readings.values() if expression}
    names = frozenset(_EXTENT.sub("", name) for text in texts for name in text.identifiers)
    # LGPL-3.0 extends GPL-3.0, so the text of GPL-3.0 is beside it.
    names = (names - {"GPL-3.0"} if "LGPL-3.0" in names else names) or _parts(max(expressions, key=len, default=""))
    agreed = all(_parts(spdx) <= names if spdx else _akin(name, names) for name, spdx in readings.items())
    options = {spdx for spdx in expressions if _parts(spdx) == names and not _GNU.fullmatch(spdx)}
    for name in names if len(names) == 1 else ():
        options |= _extents(name, texts) if _GNU.fullmatch(name) else names
    if agreed and len(options) == 1 and not others and not any(text.deviation for text in texts):
        return options.pop(), ""
    if agreed and not options and _GNU.fullmatch(" ".join(names)):
        statements.append("no file states whether later versions are allowed")
        options = {f"{name}-{extent}" for name in names for extent in ("only", "or-later")}
    candidates = sorted(options | ({*expressions, *names} if not agreed else set()))
    cure = " or ".join(f'license = "{spdx}"' for spdx in candidates if not _GNU.fullmatch(spdx))
    line = f"write {cure}" if cure else "write the licence's SPDX expression"
    if cure and any(text.deviation for text in texts):
        line = f"if the deviation restricts nothing, write {cure}"
    return UNKNOWN, f"the licence is uncertain: {'; '.join([*map(str, texts), *statements])}: {line}"


def _licence_files(files: Mapping[str, str]) -> list[str]:
    paths = [path for path in sorted(files) if _LICENCE_FILE.fullmatch(path) and not path.endswith(_NO_TEXT)]
    return [path for path in paths if "/" not in path] or paths


def _other_terms(files: Mapping[str, str], read: Sequence[str]) -> list[str]:
    texts = [_words(files[path]) for path in read]
    others = []
    for path in sorted(files):
        name = basename(path).lower()
        is_data = path.endswith(_NO_TEXT) and not _TERMS_IN_DATA.fullmatch(path)
        if path in read or is_data or not _TERMS_FILE.fullmatch(path):
            continue
        words = _words(re.sub(r"\.\. (literal)?include:: \S+", "", files[path]))
        usual = name.startswith("notice") and files[path].isascii() and not _RESTRICTS.search(files[path])
        if not usual and words not in texts and not (words and _TITLE.issuperset(words)):
            others.append(path)
    return others


def _is_notice(line: str) -> bool:
    words = _words(line)
    if not words or line.strip(" .\t").isdecimal() or words == ["all", "rights", "reserved"]:
        return True
    plain = "".join(char for char in unicodedata.normalize("NFKD", line) if not unicodedata.combining(char))
    if len(line) > MOST_OF_LINE or not _MARK.match(line) or not plain.replace("©", "").replace("–", "").isascii():
        return False
    # An address counts as a word: a line with an address after a full stop is not a notice.
    plain = _OWNER.sub(
        lambda match: " & " if re.search("//|@", match[0]) else " ",
        re.sub(r"^\W*portions ", "", plain.strip(), flags=re.IGNORECASE),
    )
    tokens = [token for token in plain.split() if re.search(r"\w|&", token)]
    tokens[-1:] = [token.rstrip(".") for token in tokens[-1:]]
    return len(tokens) <= MOST_WORDS and not _RESTRICTS.search(plain) and all(map(_NAME.fullmatch, tokens))


def _compared(path: str, text: str) -> _LicenceText:
    from licenseclassifier import identify_license  # noqa: PLC0415 - an extra

    if len(text) > MOST_OF_TEXT or not re.search(r"[a-zA-Z]", text):
        return _LicenceText(path, frozenset(), ": it is empty, too large or cannot be read")
    terms, heading, advice = text.partition(_ADVICE)
    addressless = re.sub(r"https?://\S+", "", f"{heading}{advice}".lower())
    digest = hashlib.sha256(" ".join(re.findall(r"[a-z]+", addressless)).encode()).hexdigest()
    if digest.startswith(_ADVICE_DIGEST) and "GNU GENERAL PUBLIC LICENSE" in terms:
        text = terms
    names: set[str] = set()
    titles: list[str] = []
    bodies: list[str] = []
    end = 0
    for region in identify_license(text, 0):
        # The library counts everything between a line with "copyright" and a licence as part of the licence.
        lines = text[region.start : region.end].splitlines(keepends=True)
        head = [*takewhile(lambda line: _is_notice(line) or re.match(r"\W*copyright", line, re.IGNORECASE), lines)]
        body = "".join(lines[len(head) :])
        inner = next((match for match in identify_license(body, 0) if match.id == region.id), None)
        if inner is not None and not body.startswith("http"):
            titles += "\n".join([text[end : region.start], *head, body[: inner.start]]).splitlines()
            bodies.append(body[inner.start :])
            names.add(region.id)
            end = region.end
    titles = [*dict.fromkeys(line for line in titles if not _is_notice(line))]
    lines = [line for line in titles if len(titles) > MOST_TITLES or not _is_title(line, names)]
    lines += [line for line in text[end:].splitlines() if not _is_notice(line)]
    for body in bodies:
        lines += [tag.group() for tag in _HIDDEN.finditer(body) if not _PLACE.fullmatch(tag.group())]
    lines += [line for line in text.splitlines() if _is_foreign(line) and not _is_notice(line)]
    words = " ".join(dict.fromkeys(lines)).split()
    plain = " ".join(_words(text)).replace("and or", "and/or")
    lacking = [right for name in sorted(names) for right in _RIGHTS.get(name, ()) if right not in plain]
    deviation = f", but lacks {lacking[0]!r}" if lacking else ""
    strange = [word for match in _HOLDERS.findall(plain) for word in _words(" ".join(match)) if word not in _HOLDER]
    if strange and not names.isdisjoint((*_RIGHTS, "ISC")):
        deviation = deviation or f", but names {strange[0]!r} as a copyright holder"
    if words:
        deviation = f"{', but also contains' if names else ' and begins with'} {' '.join(words[:12])[:300]!r}"
    return _LicenceText(path, frozenset(names), deviation)


def _is_foreign(line: str) -> bool:
    return any(char in "\0\ufffd" or (char.isalnum() and not char.isascii()) for char in line)


def _usual(names: Iterable[str]) -> frozenset[str]:
    words = {word for name in names for word in _words(name)}
    return _TITLE.union(
        words, *(_words(text) for start, text in _TITLES.items() if any(name.startswith(start) for name in names))
    )


def _is_title(line: str, names: set[str]) -> bool:
    words = _words(line)
    if len(words) > MOST_WORDS or not _usual(names).issuperset(words):
        return False
    if "MIT-0" in names and "mit" in words and not {"0", "attribution"} & {*words}:
        return False
    return _expression(line.strip(" #*=\t")) in ("", *names)


def _expression(name: str) -> str:
    """Return a licence name's SPDX expression; empty if unknown. GNU names get ``-only`` only if they state it."""
    from license_expression import ExpressionError, get_spdx_licensing  # noqa: PLC0415 - an extra
    from licenselynx.licenselynx import LicenseLynx  # noqa: PLC0415 - an extra

    licensing = get_spdx_licensing()
    # The library also maps names of merely similar texts, such as "BSD-style".
    mapped = None if _VAGUE.search(name) else LicenseLynx.map(name)
    for text in (name, mapped.id if mapped else ""):
        with contextlib.suppress(ExpressionError):
            # The parser replaces deprecated identifiers, and reads an empty text as None.
            expression = str(licensing.parse(text, validate=True))
            if sorted(_words(expression)) == sorted(_words(text)):
                vague = _GNU.match(expression) and expression.endswith("-only") and "only" not in name.lower()
                return _EXTENT.sub("", expression) if vague else expression
    return ""


def _parts(expression: str) -> frozenset[str]:
    keys = re.findall(r"[^\s()]+", re.sub(r" WITH [^\s()]+", "", expression))
    return frozenset(_EXTENT.sub("", key) for key in keys if key not in ("AND", "OR"))


def _akin(name: str, names: frozenset[str]) -> bool:
    own = any(_usual([identifier]).issuperset(_words(name)) for identifier in names)
    return own and not _TITLE.issuperset(_words(name)) and bool(re.fullmatch(r"[\w\s.,()'\":-]+", name))


def _extents(name: str, texts: Sequence[_LicenceText]) -> set[str]:
    """Return the forms (``-only``, ``-or-later``) of a GNU licence that files state outside the licence's text."""
    keys = {key for text in texts for key in text.identifiers if name not in text.identifiers or key.endswith("-only")}
    return keys & {f"{name}-only", f"{name}-or-later"}


_DECLARES_TEST = re.compile(
    rb"\A(?!.*import org\.testng\.).*(@(Test|ParameterizedTest)\b|extends \w*TestCase\b)", re.DOTALL
)


def java_guess(tree: Mapping[str, bytes]) -> SuiteGuess:
    """Guess how a Java project's tests run. If the root has no tests, choose the module with the most test files."""
    is_testng = any(b"import org.testng." in content for content in tree.values())
    doubts = ["TestNG tests are not run; ctxbench runs only JUnit tests"] if is_testng else []
    source_dir = ""
    modules = _modules(tree)
    if "" not in modules and modules:
        source_dir = max(modules, key=lambda module: (modules[module], -len(module)))
        if len(modules) > 1:
            others = ", ".join(sorted(module for module in modules if module != source_dir)[:5])
            doubts.append(f"several modules have tests; {source_dir} has the most and is used (the others: {others})")
    suite = TestSuite()
    try:
        where = layout(suite, tree, source_dir)
    except InputFault as fault:
        return SuiteGuess(None, (*doubts, str(fault)), source_dir)
    folders = tuple(f"{folder}/" for folder in where.test)
    if not any(_DECLARES_TEST.search(tree[path]) for path in tree if path.startswith(folders)):
        return SuiteGuess(None, (*doubts, "no test file declares a JUnit test"), source_dir)
    return SuiteGuess(suite, tuple(doubts), source_dir)


def _pom_version(tree: Mapping[str, bytes]) -> str:
    text = re.sub(rb"<parent>.*?</parent>|<!--.*?-->|<dependencies>.*", b"", tree.get("pom.xml", b""), flags=re.DOTALL)
    match = re.search(rb"<version>\s*([\w.+-]+)\s*</version>", text)
    return match.group(1).decode() if match else ""


def _modules(tree: Mapping[str, bytes]) -> Counter[str]:
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
