"""The Java language, and functions that blank strings and comments in Java code."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxbench.bench.files import UTF8, Decoded, decode, explained
from ctxbench.bench.languages import register
from ctxbench.bench.languages.base import ApiStyle, DefinitionName, InternalLoad, Language, Lexing
from ctxbench.bench.languages.outline import Outline

if TYPE_CHECKING:
    from ctxbench.bench.functions.mining import Miner
    from ctxbench.bench.judging.suites import Testing
    from ctxbench.bench.languages.answers import AnswerReader
    from ctxbench.bench.languages.java.reader import JavaFile


COMMENT_OR_LITERAL = (
    r'"""(?:\\.|[^\\])*?(?:"""|\Z)|"(?:\\.|[^"\\\n])*(?:"|\Z)'
    r"|'(?:\\[^\n]?[^'\n]*|[^'\\\n])(?:'|\Z)|//(?P<comment>[^\n]*)|(?P<remark>/\*.*?(?:\*/|\Z))"
)
"""Matches a string, character or comment. Groups: ``comment`` (after ``//``), ``remark`` (block). Needs `re.DOTALL`."""
_SKIPPED = re.compile(COMMENT_OR_LITERAL, re.DOTALL)
_PROPERTIES = re.compile(r"<(project\.build\.sourceEncoding|encoding)>\s*([^<\s]+)\s*</\1>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LARGEST_POM = 1 << 20
_MAIN = re.compile(r"\bstatic\s+void\s+main\s*\(")
_RESERVED = (
    "_ abstract assert boolean break byte case catch char class const continue default do double else enum extends "
    "false final finally float for goto if implements import instanceof int interface long native new null package "
    "private protected public return short static strictfp super switch synchronized this throw throws transient "
    "true try void volatile while"
)


def hide(text: str) -> str:
    """Replace strings and comments with spaces. Newlines and the positions of other code do not change."""
    return _SKIPPED.sub(lambda match: blank(match[0]), text)


def blank(text: str) -> str:
    """Replace all characters except newlines with spaces."""
    return re.sub(r"[^\n]", " ", text)


class Java(Language):
    """Java, as its tree-sitter grammar parses it."""

    label = "Java"
    suffix = ".java"
    qualified_types = True
    reserved = frozenset(_RESERVED.split())
    function_nodes = frozenset({"method_declaration", "constructor_declaration", "compact_constructor_declaration"})
    import_line = re.compile(r"\s*(?:package|import)\s")
    lexing = Lexing.of("//", r"/\*", r"\"\"\"|\"|'", "", r"(?:[^\W\d]|\$)[\w$]*", r"[^\"'/]++")

    def grammar(self) -> object:
        """Return the tree-sitter grammar of Java."""
        import tree_sitter_java

        return tree_sitter_java.language()

    def analyse(self, path: str, text: str) -> JavaFile:
        """Return a Java file's package, imports, types and used names."""
        from ctxbench.bench.languages.java.uses import analyse

        return analyse(path, text)

    def resolve(self, files: Mapping[str, Any]) -> dict[str, tuple[InternalLoad, ...]]:
        """Return each Java file's uses of project-internal imports, by path."""
        from ctxbench.bench.languages.java.uses import resolve

        return resolve(files)

    def decoder(self, root: Path) -> Callable[[bytes, Path], Decoded]:
        """Return a function that decodes files as UTF-8 or, if that fails, as the nearest ``pom.xml`` declares."""
        declared_in = functools.cache(declared_encoding)

        def read(raw: bytes, path: Path) -> Decoded:
            as_utf8 = decode(raw, UTF8)
            declared = "" if as_utf8.whole else declared_in(path.parent, root)
            return decode(raw, declared) if declared else as_utf8

        return read

    def is_harness(self, name: str, text: str, beside: Callable[[str], str]) -> bool:
        """Return whether CoderEval left ``<File>_<method>.java``: it has `main`, and ``<File>.java`` has the method."""
        stem, _, suffix = name.rpartition(".")
        # Check the name first: reading the text of every file would take a third of the time for a snapshot.
        if suffix != "java" or "_" not in stem or _MAIN.search(text) is None:
            return False
        parts = [
            (stem[:at], stem[at + 1 :]) for at, letter in enumerate(stem) if letter == "_" and 0 < at < len(stem) - 1
        ]
        return any(re.search(rf"\b{re.escape(method)}\s*\(", beside(f"{file}.java")) for file, method in parts)

    def outline(self, text: str) -> Outline:
        """Return a file's functions and classes. The file may end at the cursor."""
        from ctxbench.bench.languages.java.outline import outline

        return outline(text)

    def referred(self, path: str, line: int, texts: Mapping[str, str]) -> Iterable[DefinitionName]:
        """Yield the definitions that a Java file imports, whatever the `line`. Some may not exist."""
        from ctxbench.bench.languages.java.uses import referred

        return referred(path, texts)

    @property
    def apis(self) -> ApiStyle:
        """The `ApiStyle` for Java."""
        from ctxbench.bench.languages.java import apis

        return apis

    @property
    def answers(self) -> AnswerReader:
        """The `AnswerReader` for Java."""
        from ctxbench.bench.languages.java import answers

        return answers

    def shift(self, lines: list[str], to: str) -> list[str]:
        """Move a function's lines to the indentation `to`."""
        from ctxbench.bench.judging.java.text import shift_code

        return shift_code(lines, to)

    def testing(self) -> Testing:
        """Return the module that builds a repository's `Suite`."""
        from ctxbench.bench.judging import java

        return java

    def miner(self) -> Miner:
        """Return the module that finds functions covered by tests."""
        from ctxbench.bench.functions import java

        return java


def declared_encoding(folder: Path, root: Path) -> str:
    """Return the encoding that the nearest ``pom.xml`` declares, from a folder up to `root`; empty if none does."""
    for place in (folder, *folder.parents):
        pom = place / "pom.xml"
        if pom.is_file() and not pom.is_symlink():
            with explained(pom), pom.open("rb") as file:
                text = file.read(_LARGEST_POM).decode(UTF8, "replace")
            names = dict(reversed(_PROPERTIES.findall(_COMMENT.sub("", text))))
            encoding = names.get("project.build.sourceEncoding") or names.get("encoding") or ""
            if encoding and "$" not in encoding:
                return str(encoding)
        if place == root:
            break
    return ""


JAVA = register(Java("java"))
