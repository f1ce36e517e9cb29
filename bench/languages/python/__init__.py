"""The Python language, and the decoding of its source files."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxbench.bench.files import Decoded, decode
from ctxbench.bench.languages import register
from ctxbench.bench.languages.base import ApiStyle, DefinitionName, InternalLoad, Language, Lexing, ProjectNames
from ctxbench.bench.languages.outline import Outline

if TYPE_CHECKING:
    from ctxbench.bench.functions.mining import Miner
    from ctxbench.bench.judging.suites import Testing
    from ctxbench.bench.languages.answers import AnswerReader
    from ctxbench.bench.languages.python.modules import PythonFile

_RESERVED = (
    "False None True and as assert async await break class continue def del elif else except finally for from "
    "global if import in is lambda nonlocal not or pass raise return try while with yield"
)
_PREFIX = r"(?i:[rbuft]|[bft]r|r[bft])?"


class Python(Language):
    """Python, as its tree-sitter grammar and the running interpreter parse it."""

    label = "Python"
    suffix = ".py"
    comment = "#"
    indented = True
    reserved = frozenset(_RESERVED.split())
    function_nodes = frozenset({"function_definition"})
    import_line = re.compile(r"\s*(?:from\s+[\w.]+\s+import\b|import\s+\w)")
    lexing = Lexing.of("\\#", "", r"\"\"\"|'''|\"|'", _PREFIX, r"[^\W\d]\w*", r"(?:[^\"'#\w]++|\w++(?![\"']))++")

    def grammar(self) -> object:
        """Return the tree-sitter grammar of Python."""
        import tree_sitter_python

        return tree_sitter_python.language()

    def analyse(self, path: str, text: str) -> PythonFile:
        """Return a Python file's imports, definitions and used names."""
        from ctxbench.bench.languages.python.uses import analyse

        return analyse(path, text)

    def resolve(self, files: Mapping[str, Any]) -> dict[str, tuple[InternalLoad, ...]]:
        """Return each Python file's uses of project-internal imports, by path."""
        from ctxbench.bench.languages.python.uses import resolve

        return resolve(files)

    def parses(self, text: str) -> bool:
        """Return whether the running Python can parse a text. The tree-sitter grammar also accepts some Python 2."""
        from ctxbench.bench.languages.python import asts

        return asts.parse(text) is not None

    def decoder(self, root: Path) -> Callable[[bytes, Path], Decoded]:
        """Return a function that decodes files in the encoding that they declare (PEP 263)."""
        return lambda raw, _: decode(raw, declared_encoding(raw))

    def is_harness(self, name: str, text: str, beside: Callable[[str], str]) -> bool:
        """Return whether a file's name marks it as a copy with a solution, left by CoderEval's harness."""
        stem, dot, suffix = name.rpartition(".")
        _, mark, digits = stem.rpartition("_passk_validte")
        return bool(dot and mark) and suffix == "py" and (not digits or digits.isdigit())

    def module_of(self, path: str) -> str:
        """Return a file's dotted module name, relative to the repository's root."""
        return super().module_of(path.removesuffix("/__init__.py"))

    def outline(self, text: str) -> Outline:
        """Return a file's functions and classes. The file may end at the cursor."""
        from ctxbench.bench.languages.python.outline import outline

        return outline(text)

    def project(self, texts: Mapping[str, str]) -> ProjectNames:
        """Return an object that finds the project's names, given its texts by path."""
        from ctxbench.bench.languages.python.members import PythonProject

        return PythonProject(texts)

    def referred(self, path: str, line: int, texts: Mapping[str, str]) -> Iterable[DefinitionName]:
        """Yield the definitions that a Python file's imports, and its names up to a 0-based line, refer to."""
        from ctxbench.bench.languages.python.members import referred

        return referred(path, line, texts)

    @property
    def apis(self) -> ApiStyle:
        """The `ApiStyle` for Python."""
        from ctxbench.bench.languages.python import apis

        return apis

    @property
    def answers(self) -> AnswerReader:
        """The `AnswerReader` for Python."""
        from ctxbench.bench.languages.python import answers

        return answers

    def shift(self, lines: list[str], to: str) -> list[str]:
        """Move a function's lines to the indentation `to`."""
        from ctxbench.bench.judging.python.text import shift

        return shift(lines, to)

    def testing(self) -> Testing:
        """Return the module that builds a repository's `Suite`."""
        from ctxbench.bench.judging import python

        return python

    def miner(self) -> Miner:
        """Return the module that finds functions covered by tests."""
        from ctxbench.bench.functions import python

        return python


def declared_encoding(raw: bytes) -> str | None:
    """Return a Python file's encoding: as declared (PEP 263), or UTF-8; None if Python cannot determine it."""
    try:
        return tokenize.detect_encoding(io.BytesIO(raw).readline)[0]
    except SyntaxError:
        return None


PYTHON = register(Python("python"))
