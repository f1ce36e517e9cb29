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

from ctxbench.bench.codereval.functions import Placed, functions, parameters_of
from ctxbench.bench.codereval.records import EXACT, INHERITED, OTHER_FILE, Located, Missed, Record
from ctxbench.bench.functions.python.definitions import parse
from ctxbench.bench.types import Language

__all__ = ["EXACT", "INHERITED", "OTHER_FILE", "Located", "Missed", "Record", "locate"]

_IGNORED = {Language.PYTHON: re.compile(r"[\s\"'`\\]+"), Language.JAVA: re.compile(r"[^\w]+")}
"""What docstrings may differ in. Javadoc was printed anew by a parser, which moved its stars, blanks and breaks."""
_DECLARED = {Language.PYTHON: r"\bdef\s+{}\b", Language.JAVA: r"[\w\]>]\s+{}\s*\("}
"""What a file with a function's declaration holds at least; the others need not be parsed."""


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
        self.word = re.compile(_DECLARED[language].format(re.escape(record.name)))

    def of_name(self, path: str) -> list[Placed]:
        text = self.texts[path]
        # A substring is found many times faster than a pattern.
        if self.record.name not in text or not self.word.search(text):
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
        return bare(each.docstring, self.language) == bare(self.record.docstring, self.language)

    def inherits(self, each: Placed) -> bool:
        """Say whether the recorded docstring is one that a method of that name may inherit."""
        wanted = bare(self.record.docstring, self.language)
        if not each.owners or not wanted:
            return False
        inside = (other.docstring for path in sorted(self.texts) for other in self.of_name(path))
        return any(bare(doc, self.language) == wanted for doc in (*_of_builtins(self.record.name), *inside))

    def one(self, found: Sequence[tuple[str, Placed]], how: str) -> Located | Missed:
        """Return the only one of several, or the one that stands at the recorded line or is the recorded code."""
        if len(found) > 1:
            found = [one for one in found if has_code(self.record, self.texts[one[0]], one[1])] or found
        if len(found) > 1:
            found = [one for one in found if has_line(self.record, one[1])] or found
        if len(found) > 1:
            places = ", ".join(f"{path}:{each.start + 1}" for path, each in found[:3])
            return Missed("ambiguous", f"{len(found)} functions fit: {places}")
        path, each = found[0]
        return placed(self.record, path, self.texts[path], each, how)

    def missed(
        self, named: Sequence[str], here: Sequence[tuple[str, Placed]], fitting: Sequence[tuple[str, Placed]]
    ) -> Missed:
        if not named:
            said = f"no file {self.record.path}, and no other" if self.record.path else "no"
            return Missed("no_file", f"{said} file has the function {self.record.name}")
        shown = ", ".join(named[:3])
        if not here:
            unread = self.language is Language.PYTHON and any(parse(self.texts[path]) is None for path in named)
            return Missed("no_function", f"{shown} {lacks(self.record.name, unread=unread)}")
        if not fitting:
            return Missed("other_signature", f"{shown}: {self.record.name} has other parameters than the record's")
        return Missed("other_docstring", f"{shown}: {self.record.name} has another docstring than the record's")


def placed(record: Record, path: str, text: str, each: Placed, how: str) -> Located | Missed:
    """Return a function that was chosen, with what its file contradicts of the record.

    Args:
        record: what the benchmark says of the task.
        path: of the file.
        text: of the file.
        each: the function.
        how: it was found.
    """
    if not each.alone:
        return Missed("shares_line", f"{path}:{each.start + 1} has other code on the function's first or last line")
    said = []
    if record.lineno is not None and not has_line(record, each):
        said.append(f"it begins on line {each.start + 1}, not {record.lineno}")
    if record.code and not has_code(record, text, each):
        said.append("its code is not the recorded one")
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
        doc=each.doc,
        remark="; ".join(said),
    )


def lacks(name: str, *, unread: bool) -> str:
    """Return in words that a file does not have a function; `unread`: because it is no Python of this version."""
    return f"cannot be read by this Python, to look for {name}" if unread else f"has no function {name}"


def bare(docstring: str, language: Language) -> str:
    """Return what of a docstring is compared."""
    return _IGNORED[language].sub("", docstring)


def has_line(record: Record, each: Placed) -> bool:
    """Say whether a function stands on the recorded line: its declaration's, or what is directly above that."""
    return record.lineno is not None and each.first <= record.lineno - 1 <= each.start


def has_code(record: Record, text: str, each: Placed) -> bool:
    """Say whether a function of a file is the recorded one; blanks, and what stands above it, do not count."""
    code = "".join(record.code.split())
    return bool(code) and code in "".join("".join(text.split("\n")[each.first : each.end]).split())


def _paths(record: Record, texts: Mapping[str, str], language: Language) -> list[str]:
    """Return the files that the record may name."""
    if language is Language.PYTHON:
        return _python_paths(record.path, texts)
    name = basename(record.path) or (f"{record.class_name}.java" if record.class_name else "")
    package = re.compile(rf"^\s*package\s+{re.escape(record.package)}\s*;", re.MULTILINE)
    return sorted(
        path for path, text in texts.items() if basename(path) == name and (not record.package or package.search(text))
    )


def _python_paths(path: str, texts: Mapping[str, str]) -> list[str]:
    """Return the path itself, or else those that end with it."""
    plain = path.removeprefix("src/")
    for one in (path, plain, f"src/{plain}"):
        if one in texts:
            return [one]
    ending = sorted(one for one in texts if one.endswith(f"/{plain}"))
    if ending:
        return ending
    # What is read may be a folder of the recorded repository: its paths then lack a beginning.
    parts = plain.split("/")
    inner = ("/".join(parts[begin:]) for begin in range(1, len(parts) - 1))
    return [one for one in inner if one in texts][:1]


def _of_builtins(name: str) -> Iterator[str]:
    """Yield the docstrings of built-in methods of a name, of this Python."""
    modules = (builtins, collections, collections.abc)
    kinds = {id(one): one for module in modules for one in vars(module).values() if isinstance(one, type)}
    for kind in kinds.values():
        doc = inspect.getdoc(vars(kind)[name]) if name in vars(kind) else None
        if doc:
            yield doc
