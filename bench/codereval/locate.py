"""Finds the function of a CoderEval task in a repository's files. Pure.

CoderEval's records name files of commits that nobody listed, and some name the wrong file or line. So a function is
taken only if name, parameters and docstring are the record's; what does not fit is told, never guessed over.
"""

from __future__ import annotations

import builtins
import collections
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from posixpath import basename

from bench.codereval.functions import Placed, functions, parameters_of
from bench.codereval.records import EXACT, INHERITED, OTHER_FILE, Located, Missed, Record
from bench.types import Language

__all__ = ["EXACT", "INHERITED", "OTHER_FILE", "Located", "Missed", "Record", "locate"]

_IGNORED = {Language.PYTHON: re.compile(r"[\s\"'`\\]+"), Language.JAVA: re.compile(r"[^\w]+")}
"""What docstrings may differ in. Javadoc was printed anew by a parser, which moved its stars, blanks and breaks."""


def locate(record: Record, texts: Mapping[str, str], language: Language) -> Located | Missed:
    """Find a task's function.

    The file is the recorded path, with or without a leading ``src/``, or one that ends with it. There, or else in
    exactly one other file, a function of that name must have the same parameters and the same docstring; blanks
    and quotes are ignored. Java's files follow from class and package where the record has them.

    Args:
        record: what the benchmark says of the task.
        texts: the repository's source files by their paths.
        language: of the files.

    Returns:
        Where it stands, or why it was not found; what the record says of line and code is compared with what was
        found and told in `Located.remark`.
    """
    wanted = parameters_of(record.signature, language) if record.signature else None
    search = _Search(record, texts, language, wanted)
    named = _paths(record, texts, language)
    here = [(path, each) for path in named for each in search.of_name(path)]
    return search.chosen(named, here)


class _Search:
    """One task's search."""

    def __init__(
        self, record: Record, texts: Mapping[str, str], language: Language, wanted: tuple[str, ...] | None
    ) -> None:
        self.record, self.texts, self.language, self.wanted = record, texts, language, wanted
        self.word = re.compile(rf"\b{re.escape(record.name)}\s*\(")

    def of_name(self, path: str) -> list[Placed]:
        text = self.texts[path]
        if not self.word.search(text):
            return []
        return [each for each in functions(text, self.language) if each.leaf == self.record.name]

    def chosen(self, named: Sequence[str], here: Sequence[tuple[str, Placed]]) -> Located | Missed:
        fitting = [(path, each) for path, each in here if self.fits(each)]
        exact = [(path, each) for path, each in fitting if self.documented(each)]
        if exact:
            return self.one(exact, EXACT)
        if self.language is Language.PYTHON:
            inherited = [(path, each) for path, each in fitting if not each.docstring and self.inherits(each)]
            if inherited:
                return self.one(inherited, INHERITED)
        elsewhere = self.elsewhere(named)
        if elsewhere:
            return self.one(elsewhere, OTHER_FILE if self.record.path else EXACT)
        return self.missed(named, here, fitting)

    def elsewhere(self, named: Sequence[str]) -> list[tuple[str, Placed]]:
        """Return the functions of other files that are exactly the one wanted."""
        others = sorted(self.texts.keys() - set(named))
        return [
            (path, each)
            for path in others
            for each in self.of_name(path)
            if self.fits(each) and self.documented(each) and each.docstring
        ]

    def fits(self, each: Placed) -> bool:
        owner = not self.record.class_name or self.language is Language.PYTHON or self.record.class_name in each.owners
        return owner and (self.wanted is None or each.parameters == self.wanted)

    def documented(self, each: Placed) -> bool:
        return self.bare(each.docstring) == self.bare(self.record.docstring)

    def bare(self, docstring: str) -> str:
        return _IGNORED[self.language].sub("", docstring)

    def inherits(self, each: Placed) -> bool:
        """Say whether the recorded docstring is one that a method of that name may inherit."""
        wanted = self.bare(self.record.docstring)
        if not each.owners or not wanted:
            return False
        inside = (other.docstring for path in sorted(self.texts) for other in self.of_name(path))
        return any(self.bare(doc) == wanted for doc in (*_of_builtins(self.record.name), *inside))

    def one(self, found: Sequence[tuple[str, Placed]], how: str) -> Located | Missed:
        """Return the only one of several, or the one that stands at the recorded line or is the recorded code."""
        if len(found) > 1:
            found = [one for one in found if self.has_code(*one)] or found
        if len(found) > 1:
            found = [one for one in found if self.has_line(one[1])] or found
        if len(found) > 1:
            places = ", ".join(f"{path}:{each.start + 1}" for path, each in found[:3])
            return Missed("ambiguous", f"{len(found)} functions fit: {places}")
        path, each = found[0]
        if not each.alone:
            return Missed("shares_line", f"{path}:{each.start + 1} has other code on the function's first or last line")
        return Located(
            path=path,
            name=each.name,
            start=each.start,
            cursor=each.cursor,
            end=each.end,
            tail=each.tail,
            signature=each.signature,
            docstring=each.docstring,
            how=how,
            remark=self.remark(path, each),
        )

    def has_line(self, each: Placed) -> bool:
        return self.record.lineno is not None and each.first <= self.record.lineno - 1 <= each.start

    def has_code(self, path: str, each: Placed) -> bool:
        return bool(self.record.code) and self.code(path, each, self.record.code)

    def code(self, path: str, each: Placed, code: str) -> bool:
        lines = "".join("".join(self.texts[path].split("\n")[each.first : each.end]).split())
        return lines.endswith("".join(code.split()))

    def remark(self, path: str, each: Placed) -> str:
        """Say what of the record the file contradicts."""
        said = []
        if self.record.lineno is not None and not self.has_line(each):
            said.append(f"it begins on line {each.start + 1}, not {self.record.lineno}")
        if self.record.code and not self.has_code(path, each):
            said.append("its code is not the recorded one")
        return "; ".join(said)

    def missed(
        self, named: Sequence[str], here: Sequence[tuple[str, Placed]], fitting: Sequence[tuple[str, Placed]]
    ) -> Missed:
        if not named:
            said = f"no file {self.record.path}, and no other" if self.record.path else "no"
            return Missed("no_file", f"{said} file has the function {self.record.name}")
        shown = ", ".join(named[:3])
        if not here:
            return Missed("no_function", f"{shown} has no function {self.record.name}")
        if not fitting:
            return Missed("other_signature", f"{shown}: {self.record.name} has other parameters than the record's")
        return Missed("other_docstring", f"{shown}: {self.record.name} has another docstring than the record's")


def _paths(record: Record, texts: Mapping[str, str], language: Language) -> list[str]:
    """Return the files that the record may name: the path itself, or else those that end with it."""
    if language is Language.JAVA and not record.path:
        return _java_paths(record, texts)
    bare = record.path.removeprefix("src/")
    for path in (record.path, bare, f"src/{bare}"):
        if path in texts:
            return [path]
    ending = sorted(path for path in texts if path.endswith(f"/{bare}"))
    if ending:
        return ending
    # What is read may be a folder of the recorded repository: its paths then lack a beginning.
    parts = bare.split("/")
    inner = ("/".join(parts[begin:]) for begin in range(1, len(parts) - 1))
    return [path for path in inner if path in texts][:1]


def _java_paths(record: Record, texts: Mapping[str, str]) -> list[str]:
    if not record.class_name:
        return []
    package = re.compile(rf"^\s*package\s+{re.escape(record.package)}\s*;", re.MULTILINE)
    return sorted(
        path
        for path, text in texts.items()
        if basename(path) == f"{record.class_name}.java" and (not record.package or package.search(text))
    )


def _of_builtins(name: str) -> Iterator[str]:
    """Yield the docstrings of built-in methods of a name, of this Python."""
    modules = (builtins, collections, collections.abc)
    kinds = {id(one): one for module in modules for one in vars(module).values() if isinstance(one, type)}
    for kind in kinds.values():
        doc = inspect.getdoc(vars(kind)[name]) if name in vars(kind) else None
        if doc:
            yield doc
