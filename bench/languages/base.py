"""`Language`, the interface to a programming language, and plain data about files.

A language is a folder (or package) that subclasses `Language` and registers one object of the class. A name, a grammar
and the imports of a file are enough for line samples. Everything else is optional.
"""

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
    """The facts of a single file. Each language adds imports, definitions and name loads."""

    path: str
    broken: bool
    tokens: Mapping[int, tuple[Span, ...]]
    """Line -> its tokens without comments, each string as one token. Only lines that may use an import are included."""
    leaves: Mapping[int, tuple[Span, ...]]
    """Line -> leaves of the syntax tree. A string is split into quotes, content and expressions."""
    barred: Mapping[int, str]
    """Line -> why it cannot be a target: ``import``, ``decorator``, ``header``, ``multiline_string``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One name that an import statement binds."""

    lines: Span
    name: str
    module: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalLoad:
    """A place that reads a name from another file of the same repository."""

    line: int
    column: int
    name: str
    uses: tuple[Use, ...]
    """The binding itself and, for a module or class, the member that the code reaches through it."""
    near: tuple[Use, ...]
    """The part of `uses` on this line; the member may be on the next line."""
    statements: tuple[Span, ...]
    """Lines of every import statement of the file that binds the name."""
    quoted: bool
    """Whether the place is inside a string (an f-string's expression)."""


def ends(reached: Sequence[Use]) -> tuple[Use, ...]:
    """Return the first and the last of a sequence of uses: the binding and the member reached through it."""
    return tuple(dict.fromkeys((reached[0], reached[-1])))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectReading:
    """A place where code reads a name of the project."""

    name: str
    """The name as written, up to the member that was checked: ``rules.round_up``, ``self.total``, ``Cart``."""
    line: int
    column: int
    """Start column in the code, 0-based, in characters."""
    known: bool
    """Whether the project defines the name."""


class DefinitionName(NamedTuple):
    """The place where a definition of a project is expected."""

    path: str
    kind: str
    """``module``, ``class`` or ``function``."""
    name: str
    """The name with its classes: ``Cart.add``, ``Outer.Inner``. For a module, the whole file is meant and the name is
    ignored."""


class ProjectNames(Protocol):
    """The names in the files of one repository. Files are read on demand."""

    def readings(self, path: str, code: str, *, start: tuple[int, int] = (0, 0)) -> tuple[ProjectReading, ...]:
        """Return the project's names that `code` reads from `start` on, in line order.

        `code` may be a part of the file `path`, with the imports that it needs, and may end anywhere.
        """
        ...


class ApiStyle(Protocol):
    """Finds and prints a language's APIs, as the InferCom paper does."""

    SUMMARY_EXAMPLES: Sequence[tuple[str, str]]
    """Two functions with their summaries, for the prompt that requests a summary."""
    REMARK: re.Pattern[str]
    """Matches strings and comments. The groups ``remark`` and ``comment`` may be written for readers."""

    def takes(self, function: Function, *, quirks: bool) -> bool:
        """Return whether a function is an API record."""
        ...

    def text(self, function: Function) -> str:
        """Return the text of a function in an API entry, without the line of its path."""
        ...

    def constructor_text(self, types: Sequence[Type]) -> str:
        """Return the API entry's text for a class without a constructor; `types` begins with its outer classes."""
        ...

    def constructor_name(self, types: Sequence[Type]) -> str:
        """Return the bare name of a class's default constructor; empty if code cannot call the constructor."""
        ...

    def usages(self, function: Function, path: str, *, quirks: bool) -> Iterable[str]:
        """Return the usage examples of a function, in the order of the paper's table."""
        ...

    def constructor_usages(self, kind: Type, outer: Type | None, *, quirks: bool) -> tuple[str, ...]:
        """Return the usage examples of a class that declares no constructor."""
        ...


_NUMBER = r"\d\w*(?:\.(?:\d\w*|[eE][+-]?\d\w*|[jJdDfFlL]\b)?)?|\.\d\w*"


@dataclass(frozen=True, slots=True)
class Lexing:
    """Patterns that split a text into code, strings and comments, one token at a time."""

    token: re.Pattern[str]
    """Matches at any character. Groups: ``comment`` (to the line's end), ``block`` (its opening), ``prefix`` and
    ``quote`` of a string, ``name``."""
    plain: re.Pattern[str]
    """Matches text that opens no string or comment."""

    @classmethod
    def of(cls, comment: str, block: str, quotes: str, prefix: str, name: str, plain: str) -> Lexing:
        """Build the patterns from regular expressions without groups."""
        opening = rf"|(?P<block>{block})" if block else ""
        strings = rf"|(?P<prefix>{prefix})(?P<quote>{quotes})"
        token = rf"(?P<comment>{comment}[^\n\r]*){opening}{strings}|(?P<name>{name})|{_NUMBER}|."
        return cls(re.compile(token, re.DOTALL), re.compile(plain))


_BRACES = Lexing.of("//", r"/\*", r"\"\"\"|\"|'|`", "", r"(?:[^\W\d]|\$)[\w$]*", r"[^\"'`/]++")


class Language(str):
    """A registered programming language. As text it is its name (``python``), as in files, databases and options."""

    label = ""
    suffix = ""
    comment = "//"
    """The beginning of a comment that ends with its line."""
    qualified_types = False
    """Whether the module of a `Use` is a qualified class instead of a file. The last parts may then be classes."""
    indented = False
    """Whether indentation instead of braces marks where a block ends."""
    reserved: frozenset[str] = frozenset()
    """Reserved words and literals, without words that can also be names (``match``, ``record``)."""
    import_line = re.compile(r"\s*import\s")
    """Matches the beginning of an import statement or package declaration."""
    lexing = _BRACES
    """Patterns of the language's tokens; the default is for languages with braces."""

    def __new__(cls, name: str) -> Language:
        """Return the registered language called `name`. A subclass creates the object to register."""
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
    """Node types of functions, methods and constructors. Their field ``body`` is the body."""
    names: frozenset[str] = frozenset({"identifier"})
    """Node types that read a name."""
    barred: Mapping[str, str] = {}
    """Node type -> why its lines cannot be targets. ``multiline_string`` applies only to nodes of several lines, and
    ``header`` only up to the body."""

    def imports(self, source: Source) -> Iterable[Import]:
        """Yield the names that the import statements of a file bind."""
        raise NotImplementedError

    def locate(self, module: str, path: str, files: Iterable[str]) -> str | None:
        """Return the file that an import names; None if the file is outside the project.

        `module` is as written and `path` the importing file. Use `files` only for membership tests.
        """
        raise NotImplementedError

    def analyse(self, path: str, text: str) -> FileFacts:
        """Analyse one file. The result is plain data that can be sent between processes."""
        from ctxbench.bench.languages.syntax import analyse  # noqa: PLC0415 - it needs a grammar

        return analyse(self, path, text)

    def resolve(self, files: Mapping[str, Any]) -> dict[str, tuple[InternalLoad, ...]]:
        """Find the uses of project-internal imports, file by file, in line and column order."""
        from ctxbench.bench.languages.syntax import resolve  # noqa: PLC0415 - it needs a grammar

        return resolve(self, files)

    def parses(self, text: str) -> bool:
        """Return whether the language's own parser also accepts a text that the grammar accepts."""
        return True

    def decoder(self, root: Path) -> Callable[[bytes, Path], Decoded]:
        """Return a function that decodes source files below `root` from their bytes and path; UTF-8 by default."""
        return lambda raw, _: decode(raw, UTF8)

    def is_harness(self, name: str, text: str, beside: Callable[[str], str]) -> bool:
        """Return whether CoderEval's harness left this file; `beside` returns the text of a file in the same folder."""
        return False

    def module_of(self, path: str) -> str:
        """Return the dotted name of a file's module, from the repository's root."""
        return path.removesuffix(self.suffix).replace("/", ".")

    def defining_files(self, module: str, files: Iterable[str]) -> list[str]:
        """Return the files that may contain a dotted module or a qualified class, as in `bench.types.Use`."""
        names = {self.module_of(path): path for path in files}
        parts = module.split(".")
        for end in range(len(parts), 0 if self.qualified_types else len(parts) - 1, -1):
            dotted = ".".join(parts[:end])
            paths = [path for name, path in names.items() if dotted and f".{name}".endswith(f".{dotted}")]
            if paths:
                return paths
        return []

    def outline(self, text: str) -> Outline:
        """Return the functions and classes of a file, which may be cut at the cursor; empty by default."""
        return Outline(functions=(), types=(), broken=False)

    def project(self, texts: Mapping[str, str]) -> ProjectNames | None:
        """Return the names in a repository's files (path -> text); None if the language does not support this."""
        return None

    def referred(self, path: str, line: int, texts: Mapping[str, str]) -> Iterable[DefinitionName]:
        """Yield the definitions that a file refers to up to a 0-based line, by static analysis; some may not exist."""
        return ()

    @property
    def apis(self) -> ApiStyle | None:
        """The `ApiStyle` of the language, or None."""
        return None

    @property
    def answers(self) -> AnswerReader:
        """The `AnswerReader` of the language."""
        from ctxbench.bench.languages.answers import PlainAnswerReader  # noqa: PLC0415 - only functions need it

        return PlainAnswerReader()

    def shift(self, lines: list[str], to: str) -> list[str]:
        """Move the lines of a function, or of its body, to the indentation `to`; strings may stay unchanged."""
        return textwrap.indent(textwrap.dedent("\n".join(lines)), to).split("\n")

    def testing(self) -> Testing:
        """Return the module that builds the `Suite` of a repository.

        Raises:
            InputFault: if the language does not support tests.
        """
        raise InputFault(f"ctxbench cannot run tests of {self.label}", cure="use line samples")

    def miner(self) -> Miner:
        """Return the module that finds functions covered by a repository's own tests.

        Raises:
            InputFault: if the language does not support function samples.
        """
        raise InputFault(
            f"ctxbench cannot build function samples of {self.label}", cure="build line samples with --kind line"
        )


L = TypeVar("L", bound=Language)
_LANGUAGES: Registry[Language] = Registry("language", group="ctxbench.languages")


def register(language: L) -> L:
    """Register a language under its name and return it; its package calls this when it is imported.

    Raises:
        InputFault: if another language has that name.
    """
    _LANGUAGES.add(str(language), language, origin=type(language).__module__)
    return language


def get(name: str) -> Language:
    """Return the language called `name`; its grammar is loaded on demand.

    Raises:
        UnknownName: if no language has this name.
        InputFault: if its package cannot be imported.
    """
    return _LANGUAGES.get(name)


def names() -> tuple[str, ...]:
    """Return the names of all languages, sorted, without importing any language."""
    return _LANGUAGES.names()


def every() -> tuple[Language, ...]:
    """Return all languages, sorted by name."""
    return tuple(get(name) for name in names())
