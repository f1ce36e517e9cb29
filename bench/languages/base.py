"""`Language`, the interface to a programming language, and plain data about files."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import UTF8, Decoded, decode
from ctxbench.bench.languages.outline import Function, Outline, Span, Type
from ctxbench.bench.registry import Registry

if TYPE_CHECKING:
    from ctxbench.bench.functions.mining import Miner
    from ctxbench.bench.judging.suites import Testing
    from ctxbench.bench.languages.answers import AnswerReader
    from ctxbench.bench.languages.syntax import Source
    from ctxbench.bench.types import Use


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """Facts about one file. Each language's subclass adds imports, definitions and the names that the file reads."""

    path: str
    broken: bool
    tokens: Mapping[int, tuple[Span, ...]]
    """Column spans of the tokens in each line that may use an import, without comments. A string is one token."""
    leaves: Mapping[int, tuple[Span, ...]]
    """Like `tokens`, but for the leaves of the syntax tree: a string is split into quotes, content and expressions."""
    barred: Mapping[int, str]
    """Why a line cannot be a target, by line: ``import``, ``decorator``, ``header`` or ``multiline_string``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """A name that an import statement binds."""

    lines: Span
    name: str
    module: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalLoad:
    """A place in code that reads a name from another file of the repository."""

    line: int
    column: int
    name: str
    uses: tuple[Use, ...]
    """The imported name and, for a module or class, the last member that the code reaches through the name."""
    near: tuple[Use, ...]
    """Like `uses`, but only with members written on `line`. The expression may continue on the next line."""
    statements: tuple[Span, ...]
    """Lines of the file's import statements that bind the name."""
    quoted: bool
    """Whether the place is inside a string (an f-string's expression)."""


def ends(reached: Sequence[Use]) -> tuple[Use, ...]:
    """Return the first use and, if it differs, the last: the imported name, and the member reached through it."""
    return tuple(dict.fromkeys((reached[0], reached[-1])))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectReading:
    """A place where code reads a name of the project."""

    name: str
    """The name as written, up to the last member that was looked up: ``rules.round_up``, ``self.total``, ``Cart``."""
    line: int
    column: int
    """Start column, 0-based, in characters."""
    known: bool


class DefinitionName(NamedTuple):
    """The file and name under which a definition in the project is expected."""

    path: str
    kind: str
    """``module``, ``class`` or ``function``."""
    name: str
    """Name with classes: ``Cart.add``, ``Outer.Inner``. Ignored for a module."""


class ProjectNames(Protocol):
    """Finds a project's names in code, and whether the project defines them. Reads the project's files when needed."""

    def readings(self, path: str, code: str, *, start: tuple[int, int] = (0, 0)) -> tuple[ProjectReading, ...]:
        """Return the places where `code` reads a name of the project, in line and column order.

        Args:
            path: file that `code` belongs to.
            code: a file, or a part of a file with the imports that it needs. The code may end anywhere.
            start: first line and column to report, both 0-based.
        """
        ...


class ApiStyle(Protocol):
    """Selects and formats a language's APIs as in the InferCom paper or, with ``quirks``, as in the paper's code."""

    SUMMARY_EXAMPLES: Sequence[tuple[str, str]]
    """Two example functions with their summaries, for the prompt that asks for a summary."""
    REMARK: re.Pattern[str]
    """Matches strings and comments. The groups ``remark`` and ``comment`` may contain documentation."""

    def takes(self, function: Function, *, quirks: bool) -> bool:
        """Return whether a function gets an API entry."""
        ...

    def text(self, function: Function) -> str:
        """Return a function's API entry, without its path."""
        ...

    def constructor_text(self, types: Sequence[Type]) -> str:
        """Return the API entry of a class without a constructor. `types` lists its outer classes, then the class."""
        ...

    def constructor_name(self, types: Sequence[Type]) -> str:
        """Return the name of a class's default constructor; empty if the class cannot be instantiated."""
        ...

    def usages(self, function: Function, path: str, *, quirks: bool) -> Iterable[str]:
        """Return a function's usage examples, in the order of the InferCom paper's table."""
        ...

    def constructor_usages(self, kind: Type, outer: Type | None, *, quirks: bool) -> tuple[str, ...]:
        """Return the usage examples of a class that declares no constructor."""
        ...


_NUMBER = r"\d\w*(?:\.(?:\d\w*|[eE][+-]?\d\w*|[jJdDfFlL]\b)?)?|\.\d\w*"


@dataclass(frozen=True, slots=True)
class Lexing:
    """Patterns that split a text into code, strings and comments."""

    token: re.Pattern[str]
    """Matches a token. Groups: ``comment``, ``block`` (``/*``), ``prefix`` and ``quote`` of a string, and ``name``."""
    plain: re.Pattern[str]
    """Matches text that opens no string or comment."""

    @classmethod
    def of(cls, comment: str, block: str, quotes: str, prefix: str, name: str, plain: str) -> Lexing:
        """Build the patterns from regular expressions without capturing groups."""
        opening = rf"|(?P<block>{block})" if block else ""
        strings = rf"|(?P<prefix>{prefix})(?P<quote>{quotes})"
        token = rf"(?P<comment>{comment}[^\n\r]*){opening}{strings}|(?P<name>{name})|{_NUMBER}|."
        return cls(re.compile(token, re.DOTALL), re.compile(plain))


_BRACES = Lexing.of("//", r"/\*", r"\"\"\"|\"|'|`", "", r"(?:[^\W\d]|\$)[\w$]*", r"[^\"'`/]++")


class Language(str):
    """A registered programming language. As a string, it is equal to the language's name (``python``)."""

    label = ""
    suffix = ""
    comment = "//"
    """Start of a line comment."""
    qualified_types = False
    """Whether `Use.module` is the qualified name of a class, possibly a nested class, instead of a module's name."""
    indented = False
    """Whether blocks end by indentation instead of braces."""
    reserved: frozenset[str] = frozenset()
    """Reserved words and literals, except words that can also be names (``match``, ``record``)."""
    import_line = re.compile(r"\s*import\s")
    """Matches the start of an import statement or package declaration."""
    lexing = _BRACES
    """Patterns of the language's tokens; by default, those of languages with braces."""

    def __new__(cls, name: str) -> Language:
        """Return a registered language by name. A subclass creates the object to register."""
        if cls is not Language:
            return super().__new__(cls, name)
        return get(name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a language by its name."""
        return get, (str(self),)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Any:
        """Validate a language by its name."""
        from pydantic_core import PydanticCustomError, core_schema  # noqa: PLC0415 - only where something is read

        def read(name: str) -> Language:
            if name not in names():
                options = " or ".join(map(repr, names()))
                raise PydanticCustomError("language", "input should be {options}", {"options": options})
            return get(name)

        return core_schema.no_info_after_validator_function(read, core_schema.str_schema())

    def grammar(self) -> object:
        """Return the tree-sitter grammar, such as ``tree_sitter_python.language()``."""
        raise NotImplementedError

    function_nodes: frozenset[str] = frozenset()
    """Node types of functions, methods and constructors with a field ``body``."""
    names: frozenset[str] = frozenset({"identifier"})
    barred: Mapping[str, str] = {}
    """Why a node's lines cannot be targets, by node type. ``header`` applies only up to the start of the body."""

    def imports(self, source: Source) -> Iterable[Import]:
        """Yield the names that a file's import statements bind."""
        raise NotImplementedError

    def locate(self, module: str, path: str, files: Iterable[str]) -> str | None:
        """Return the file that an import names; None if the file is outside the project.

        Args:
            module: the imported module, as written.
            path: the importing file.
            files: all files of the project, for membership tests only.
        """
        raise NotImplementedError

    def analyse(self, path: str, text: str) -> FileFacts:
        """Return facts about one file, as plain data that can be sent between processes."""
        from ctxbench.bench.languages.syntax import analyse  # noqa: PLC0415 - it needs a grammar

        return analyse(self, path, text)

    def resolve(self, files: Mapping[str, Any]) -> dict[str, tuple[InternalLoad, ...]]:
        """Return each file's uses of project-internal imports, by path, in line and column order."""
        from ctxbench.bench.languages.syntax import resolve  # noqa: PLC0415 - it needs a grammar

        return resolve(self, files)

    def parses(self, text: str) -> bool:
        """Return whether the language's own parser also accepts a text that the tree-sitter grammar accepts."""
        return True

    def decoder(self, root: Path) -> Callable[[bytes, Path], Decoded]:
        """Return a function that decodes a source file below `root`, given its bytes and path. The default is UTF-8."""
        return lambda raw, _: decode(raw, UTF8)

    def is_harness(self, name: str, text: str, beside: Callable[[str], str]) -> bool:
        """Return whether a file was left by CoderEval's harness. `beside` reads a file in the same folder."""
        return False

    def module_of(self, path: str) -> str:
        """Return a file's dotted module name, relative to the repository's root."""
        return path.removesuffix(self.suffix).replace("/", ".")

    def defining_files(self, module: str, files: Iterable[str]) -> list[str]:
        """Return the files that may define a module or qualified class, as named by `bench.types.Use.module`."""
        names = {self.module_of(path): path for path in files}
        parts = module.split(".")
        for end in range(len(parts), 0 if self.qualified_types else len(parts) - 1, -1):
            dotted = ".".join(parts[:end])
            paths = [path for name, path in names.items() if dotted and f".{name}".endswith(f".{dotted}")]
            if paths:
                return paths
        return []

    def outline(self, text: str) -> Outline:
        """Return a file's functions and classes. The file may end at the cursor. The default is an empty outline."""
        return Outline(functions=(), types=(), broken=False)

    def project(self, texts: Mapping[str, str]) -> ProjectNames | None:
        """Return an object that finds a project's names, given its texts by path; None if not supported."""
        return None

    def referred(self, path: str, line: int, texts: Mapping[str, str]) -> Iterable[DefinitionName]:
        """Yield definitions that a file's imports, and its names up to a 0-based line, refer to. Some may not exist."""
        return ()

    @property
    def apis(self) -> ApiStyle | None:
        """The language's `ApiStyle`, or None."""
        return None

    @property
    def answers(self) -> AnswerReader:
        """The language's `AnswerReader`."""
        from ctxbench.bench.languages.answers import PlainAnswerReader  # noqa: PLC0415 - only functions need it

        return PlainAnswerReader()

    def shift(self, lines: list[str], to: str) -> list[str]:
        """Move a function's lines to the indentation `to`. Lines inside strings may keep their indentation."""
        return textwrap.indent(textwrap.dedent("\n".join(lines)), to).split("\n")

    def testing(self) -> Testing:
        """Return the module that builds a repository's `Suite`.

        Raises:
            InputFault: if the language does not support tests.
        """
        raise InputFault(f"ctxbench cannot run tests of {self.label}", cure="use line samples")

    def miner(self) -> Miner:
        """Return the module that finds functions covered by tests.

        Raises:
            InputFault: if the language does not support function samples.
        """
        raise InputFault(
            f"ctxbench cannot build function samples of {self.label}", cure="build line samples with --kind line"
        )


L = TypeVar("L", bound=Language)
_LANGUAGES: Registry[Language] = Registry("language", group="ctxbench.languages")


def register(language: L) -> L:
    """Register a language under its name, and return it. The language's package calls this when it is imported.

    Raises:
        InputFault: if another language already has the name.
    """
    _LANGUAGES.add(str(language), language, origin=type(language).__module__)
    return language


def get(name: str) -> Language:
    """Return a language by name.

    Raises:
        UnknownName: if no language has this name.
        InputFault: if its package cannot be imported, or two packages provide it.
    """
    return _LANGUAGES.get(name)


def names() -> tuple[str, ...]:
    """Return the names of all languages, sorted. No language's package is imported."""
    return _LANGUAGES.names()


def every() -> tuple[Language, ...]:
    """Return all languages, sorted by name."""
    return tuple(get(name) for name in names())
