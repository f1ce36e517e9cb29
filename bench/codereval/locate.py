"""Locates the function of a CoderEval task in a repository. CoderEval does not state the repository's commit."""

from __future__ import annotations

import ast
import builtins
import collections
import functools
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename

from tree_sitter import Node

from ctxbench.bench.codereval.records import EXACT, INHERITED, OTHER_FILE, Located, Missed, TaskRecord
from ctxbench.bench.functions.candidates import Declaration
from ctxbench.bench.functions.java import static as java
from ctxbench.bench.functions.python import static as python
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.java.outline import COMMENTS, declared, methods, shares_line
from ctxbench.bench.languages.outline import FunctionParameter
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.asts import documented, parse, statements
from ctxbench.bench.languages.python.asts import functions as declared_functions
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Cursor

_ANNOTATION = re.compile(r"@\w+(?:\.\w+)*(?:\([^()]*\))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFunction:
    """A function in a file. Lines are 0-based, and ends are exclusive."""

    declaration: Declaration
    first: int
    doc: tuple[Cursor, Cursor] | None
    parameters: tuple[str, ...]
    alone: bool
    """Whether no other code shares the first or last line (Java), or the body begins on its own line (Python)."""

    @property
    def leaf(self) -> str:
        """Name without classes and parameters."""
        return self.declaration.name.partition("(")[0].rpartition(".")[2]


@functools.lru_cache(maxsize=1024)
def functions(text: str, language: Language) -> tuple[SourceFunction, ...]:
    """List functions in line order, without nested or bodiless ones or Java constructors; empty for invalid Python."""
    located = _python(text) if language == PYTHON else _java(text)
    return tuple(sorted(located, key=lambda function: function.declaration.start))


def parameters_of(signature: str, language: Language) -> tuple[str, ...] | None:
    """Return a signature's parameter names (Python) or types and names (Java); None if the signature is invalid."""
    bare = signature.strip().rstrip(":{").rstrip()
    whole = f"{bare}:\n    pass\n" if language == PYTHON else f"class X {{\n{bare} {{ }}\n}}\n"
    parsed = language.outline(whole).functions
    return _parameters(parsed[0].parameters, language) if len(parsed) == 1 else None


def _parameters(parameters: Sequence[FunctionParameter], language: Language) -> tuple[str, ...]:
    if language == PYTHON:
        return tuple(parameter.name for parameter in parameters)
    return tuple(f"{_type(parameter)} {parameter.name}" for parameter in parameters)


def _type(parameter: FunctionParameter) -> str:
    words = re.sub(r"\bfinal\b", " ", _ANNOTATION.sub(" ", parameter.text))
    before, _, after = words.rpartition(parameter.name)
    return "".join((before + after).split())


def _python(text: str) -> Iterator[SourceFunction]:
    tree, lines = parse(text), text.split("\n")
    outlined = {function.head: function for function in PYTHON.outline(text).functions}
    for node, owners in declared_functions(tree) if tree else ():
        function = outlined.get(node.lineno - 1)
        if function is None:
            continue
        own, definition = statements(node), python.described(node, owners, lines)
        yield SourceFunction(
            declaration=definition,
            first=function.lines[0],
            doc=_span(node.body[0], lines) if documented(node) else None,
            parameters=_parameters(function.parameters, PYTHON),
            alone=not own or own[0].lineno > definition.cursor.line,
        )


def _span(node: ast.stmt, lines: Sequence[str]) -> tuple[Cursor, Cursor]:
    def cursor(row: int, byte: int) -> Cursor:
        return Cursor(line=row - 1, column=len(lines[row - 1].encode()[:byte].decode()))

    end = node.end_lineno or node.lineno
    return cursor(node.lineno, node.col_offset), cursor(end, node.end_col_offset or 0)


def _java(text: str) -> Iterator[SourceFunction]:
    source = Source(text, JAVA)
    outlined = {method.head: method for method in JAVA.outline(text).functions}
    met = [(parts, owners) for node, owners in methods(source, source.root) if (parts := declared(node)) is not None]
    names = [".".join([*owners, source.field(parts.node, "name")]) for parts, owners in met]
    for (parts, owners), name in zip(met, names, strict=True):
        function = outlined.get(parts.node.start_point[0])
        if function is None:
            continue
        overload = java.parameter_types(source, parts.node) if names.count(name) > 1 else ""
        yield SourceFunction(
            declaration=java.described(source, parts, owners, name + overload, function.docstring),
            first=function.lines[0],
            doc=_javadoc(source, parts.node) if function.docstring else None,
            parameters=_parameters(function.parameters, JAVA),
            alone=not shares_line(source, parts),
        )


def _javadoc(source: Source, node: Node) -> tuple[Cursor, Cursor] | None:
    above = node.prev_sibling
    while above is not None and above.type in COMMENTS:
        if source.text(above).startswith("/**"):
            (row, byte), (last, stop) = above.start_point, above.end_point
            return Cursor(line=row, column=source.column(row, byte)), Cursor(
                line=last, column=source.column(last, stop)
            )
        above = above.prev_sibling
    return None


__all__ = ["EXACT", "INHERITED", "OTHER_FILE", "Located", "Missed", "TaskRecord", "locate"]

_IGNORED = {PYTHON: re.compile(r"[\s\"'`\\]+"), JAVA: re.compile(r"[^\w]+")}
"""Characters that docstring comparison ignores. CoderEval's parser moved spaces and line breaks in Javadoc."""
_DECLARED = {PYTHON: r"\bdef\s+{}\b", JAVA: r"[\w\]>]\s+{}\s*\("}
"""Patterns that match every file that declares a function, by language. Other files need not be parsed."""

_Candidate = tuple[str, SourceFunction]


def locate(record: TaskRecord, texts: Mapping[str, str], language: Language) -> Located | Missed:
    """Locate a task's function, or return why it was not found or cannot be used.

    The function must have the recorded name, parameters and docstring; in Python, it may inherit the docstring. If the
    recorded file has no such function, other files are searched. The recorded code and line only help to choose
    between several functions, and appear in remarks.
    """
    parameters = parameters_of(record.signature, language) if record.signature else None
    return _Search(record, texts, language, parameters).located(_paths(record, texts, language))


class _Search:
    def __init__(
        self, record: TaskRecord, texts: Mapping[str, str], language: Language, parameters: tuple[str, ...] | None
    ) -> None:
        self.record, self.texts, self.language, self.parameters = record, texts, language, parameters
        self.word = re.compile(_DECLARED[language].format(re.escape(record.name)))

    def of_name(self, path: str) -> list[SourceFunction]:
        text = self.texts[path]
        # A substring search is many times faster than a pattern.
        if self.record.name not in text or not self.word.search(text):
            return []
        return [function for function in functions(text, self.language) if function.leaf == self.record.name]

    def located(self, named: Sequence[str]) -> Located | Missed:
        candidates = [(path, function) for path in named for function in self.of_name(path)]
        fitting = [(path, function) for path, function in candidates if self.fits(function)]
        exact = [(path, function) for path, function in fitting if self.documented(function)]
        if exact:
            return self.only(exact, EXACT)
        if self.language == PYTHON:
            undocumented = [candidate for candidate in fitting if not candidate[1].declaration.docstring]
            inherited = [candidate for candidate in undocumented if self.inherits(candidate[1])]
            if inherited:
                return self.only(inherited, INHERITED)
        elsewhere = self.elsewhere(named)
        if elsewhere:
            return self.only(elsewhere, OTHER_FILE if self.record.path else EXACT)
        return self.missed(named, candidates, fitting)

    def elsewhere(self, named: Sequence[str]) -> list[_Candidate]:
        others = sorted(self.texts.keys() - set(named))
        return [
            (path, function)
            for path in others
            for function in self.of_name(path)
            if self.fits(function) and self.documented(function) and function.declaration.docstring
        ]

    def fits(self, function: SourceFunction) -> bool:
        name = "" if self.language == PYTHON else self.record.class_name
        return (not name or name in function.declaration.owners) and self.parameters in (None, function.parameters)

    def documented(self, function: SourceFunction) -> bool:
        return bare(function.declaration.docstring, self.language) == bare(self.record.docstring, self.language)

    def inherits(self, function: SourceFunction) -> bool:
        recorded = bare(self.record.docstring, self.language)
        if not function.declaration.owners or not recorded:
            return False
        inside = (other.declaration.docstring for path in sorted(self.texts) for other in self.of_name(path))
        return any(bare(doc, self.language) == recorded for doc in (*_of_builtins(self.record.name), *inside))

    def only(self, candidates: Sequence[_Candidate], how: str) -> Located | Missed:
        if len(candidates) > 1:
            recorded = [(path, f) for path, f in candidates if has_code(self.record, self.texts[path], f)]
            candidates = recorded or candidates
        if len(candidates) > 1:
            candidates = [(path, f) for path, f in candidates if has_line(self.record, f)] or candidates
        if len(candidates) > 1:
            places = ", ".join(f"{path}:{function.declaration.start + 1}" for path, function in candidates[:3])
            return Missed("ambiguous", f"{len(candidates)} functions fit: {places}")
        path, function = candidates[0]
        return location_of(self.record, path, self.texts[path], function, how)

    def missed(
        self,
        named: Sequence[str],
        candidates: Sequence[_Candidate],
        fitting: Sequence[_Candidate],
    ) -> Missed:
        if not named:
            files = f"neither {self.record.path} nor another" if self.record.path else "no"
            return Missed("no_file", f"{files} file has the function {self.record.name}")
        paths = ", ".join(named[:3])
        if not candidates:
            unread = self.language == PYTHON and any(parse(self.texts[path]) is None for path in named)
            return Missed("no_function", f"{paths} {lacks_message(self.record.name, unread=unread)}")
        if not fitting:
            return Missed("other_signature", f"{paths}: {self.record.name}'s parameters differ from the record's")
        return Missed("other_docstring", f"{paths}: {self.record.name}'s docstring differs from the record's")


def locate_in_file(record: TaskRecord, path: str, text: str, language: Language) -> Located | Missed:
    """Locate a task's function in the task's own file, by name and line, or return why none can be used.

    If the line differs, choose the only function with the recorded code or docstring, or the nearest function.
    """
    namesakes = [function for function in functions(text, language) if function.leaf == record.name]
    if not namesakes:
        unread = language == PYTHON and parse(text) is None
        return Missed("no_function", f"the file {lacks_message(record.name, unread=unread)}")
    fitting = _fitting(record, text, namesakes, language)
    if len(fitting) > 1:
        places = ", ".join(str(function.declaration.start + 1) for function in fitting[:5])
        return Missed("ambiguous", f"{len(fitting)} functions {record.name} fit, on lines {places}")
    return location_of(record, path, text, fitting[0], EXACT)


def _fitting(
    record: TaskRecord, text: str, namesakes: list[SourceFunction], language: Language
) -> list[SourceFunction]:
    docstring = bare(record.docstring, language)
    rules = (
        [function for function in namesakes if has_line(record, function)],
        [function for function in namesakes if has_code(record, text, function)],
        [function for function in namesakes if bare(function.declaration.docstring, language) == docstring],
    )
    for fitting in rules:
        if len(fitting) == 1:
            return fitting
    if record.lineno is None:
        return namesakes
    recorded_line = record.lineno - 1
    nearest = min(abs(function.declaration.start - recorded_line) for function in namesakes)
    return [function for function in namesakes if abs(function.declaration.start - recorded_line) == nearest]


def location_of(record: TaskRecord, path: str, text: str, function: SourceFunction, how: str) -> Located | Missed:
    """Return a function's location, with remarks on a wrong line or code; `Missed` if other code shares its lines."""
    if not function.alone:
        where = f"{path}:{function.declaration.start + 1}"
        return Missed("shares_line", f"{where}: other code shares the function's first or last line")
    contradictions = []
    if record.lineno is not None and not has_line(record, function):
        contradictions.append(f"the function begins on line {function.declaration.start + 1}, not {record.lineno}")
    if record.code and not has_code(record, text, function):
        contradictions.append("the code differs from the record")
    return Located(
        path=path,
        declaration=function.declaration,
        how=how,
        doc=function.doc,
        remark="; ".join(contradictions),
    )


def lacks_message(name: str, *, unread: bool) -> str:
    """Return the end of a message about a file: it has no function `name` or, if `unread`, cannot be parsed."""
    return f"cannot be parsed by this Python, so {name} was not looked for" if unread else f"has no function {name}"


def bare(docstring: str, language: Language) -> str:
    """Return a docstring's text to compare: word characters (Java); all but blanks, quotes and backslashes (Python)."""
    return _IGNORED[language].sub("", docstring)


def has_line(record: TaskRecord, function: SourceFunction) -> bool:
    """Return whether the recorded line is in the function's head: from decorators or comments to the declaration."""
    return record.lineno is not None and function.first <= record.lineno - 1 <= function.declaration.start


def has_code(record: TaskRecord, text: str, function: SourceFunction) -> bool:
    """Return whether the function contains the recorded code, ignoring whitespace; False if no code is recorded."""
    code = "".join(record.code.split())
    return bool(code) and code in "".join("".join(text.split("\n")[function.first : function.declaration.end]).split())


def _paths(record: TaskRecord, texts: Mapping[str, str], language: Language) -> list[str]:
    if language == PYTHON:
        return _python_paths(record.path, texts)
    name = basename(record.path) or (f"{record.class_name}.java" if record.class_name else "")
    package = re.compile(rf"^\s*package\s+{re.escape(record.package)}\s*;", re.MULTILINE)
    return sorted(
        path for path, text in texts.items() if basename(path) == name and (not record.package or package.search(text))
    )


def _python_paths(path: str, texts: Mapping[str, str]) -> list[str]:
    plain = path.removeprefix("src/")
    for candidate in (path, plain, f"src/{plain}"):
        if candidate in texts:
            return [candidate]
    ending = sorted(candidate for candidate in texts if candidate.endswith(f"/{plain}"))
    if ending:
        return ending
    # The source folder may be a subfolder of the recorded repository, so its paths lack a beginning.
    parts = plain.split("/")
    inner = ("/".join(parts[begin:]) for begin in range(1, len(parts) - 1))
    return [candidate for candidate in inner if candidate in texts][:1]


def _of_builtins(name: str) -> Iterator[str]:
    modules = (builtins, collections, collections.abc)
    classes = {id(member): member for module in modules for member in vars(module).values() if isinstance(member, type)}
    for builtin in classes.values():
        doc = inspect.getdoc(vars(builtin)[name]) if name in vars(builtin) else None
        if doc:
            yield doc
