"""What the files of a Java project tell of its module and its tests. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ctxbench.bench.errors import InputFault
from ctxbench.bench.judging.java.layout import MAIN, TEST, Poms, layout
from ctxbench.bench.repositories.manifest import TestSuite

_DECLARES_TEST = re.compile(rb"@(Test|ParameterizedTest)\b|extends \w*TestCase\b")


@dataclass(frozen=True, slots=True)
class JavaGuess:
    """How a Java project is tested, and what of that is doubtful."""

    tests: TestSuite | None
    """None: it has none that can be run here."""
    source_dir: str = ""
    doubts: tuple[str, ...] = ()


def guess(tree: Mapping[str, bytes]) -> JavaGuess:
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


def version(tree: Mapping[str, bytes]) -> str:
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
