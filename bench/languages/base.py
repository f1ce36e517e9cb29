"""`Language`: the interface to a programming language, and plain data about files.

A language is one folder (or package) that subclasses `Language` and registers one object of the class. Only the parts
for line samples are required: a name, a grammar and the imports of a file. Everything else is optional.
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
    """The facts of a single file. Each language adds its imports, definitions and name loads."""

    path: str
    broken: bool
    """Whether the parser found a syntax error."""
    tokens: Mapping[int, tuple[Span, ...]]
    """Line -> its tokens, without comments and with each string as one token; for lines that may use an import."""
    leaves: Mapping[int, tuple[Span, ...]]
    """Line -> the leaves of the syntax tree: a string is split into its quotes, content and expressions."""
    barred: Mapping[int, str]
    """Line -> why it cannot be a target: ``import``, ``decorator``, ``header``, ``multiline_string``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One name that an import statement binds."""

    lines: Span
    """Lines of the whole statement."""
    name: str
    """The name in the file."""
    module: str
    """The module as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalLoad:
    """A place that reads a name from another file of the same repository."""

    line: int
    column: int
    name: str
    """The name as bound in the file."""
    uses: tuple[Use, ...]
    """The binding itself and, if it is a module or a class, the member reached through it."""
    near: tuple[Use, ...]
    """`uses` as far as they are written on this line; the member may be on the next one."""
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
    """As written, up to the member that was checked: ``rules.round_up``, ``self.total``, ``Cart``."""
    line: int
    column: int
    """Start column in the code, 0-based, in characters."""
    known: bool
    """Whether the project defines it."""


class DefinitionName(NamedTuple):
    """The place where a definition of a project is expected."""

    path: str
    kind: str
    """``module``, ``class`` or ``function``."""
    name: str
    """With its classes: ``Cart.add``, ``Outer.Inner``; a module is its whole file, whatever its name."""


class ProjectNames(Protocol):
    """The names in the files of one repository. Files are read on demand."""

    def readings(self, path: str, code: str, *, start: tuple[int, int] = (0, 0)) -> tuple[ProjectReading, ...]:
        """Return the project's names that `code` reads, in line order.

        Args:
            path: the file of the code. Its definitions are those of the project's file and those in the code itself.
            code: a file, or a part of one with the imports it needs; it may be cut off anywhere.
            start: line and column of the first reading to return; earlier code is only parsed.
        """
        ...


class ApiStyle(Protocol):
    """How a language's APIs are found and shown (InferCom paper)."""

    SUMMARY_EXAMPLES: Sequence[tuple[str, str]]
    """Two functions with their summaries, for the prompt that requests a summary."""
    REMARK: re.Pattern[str]
    """Strings and comments; the groups ``remark`` and ``comment`` may be written for readers."""

    def takes(self, function: Function, *, quirks: bool) -> bool:
        """Return whether a function is an API record."""
        ...

    def text(self, function: Function) -> str:
        """Return a function as an API entry shows it, without the line of its path."""
        ...

    def constructor_text(self, types: Sequence[Type]) -> str:
        """Return a class without a constructor as an API entry shows it; its outer classes come first."""
        ...

    def constructor_name(self, types: Sequence[Type]) -> str:
        """Return the bare name of the constructor of such a class; empty if it cannot be called."""
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
    """A stretch that opens no string or comment."""

    @classmethod
    def of(cls, comment: str, block: str, quotes: str, prefix: str, name: str, plain: str) -> Lexing:
        """Return the patterns built from these parts, each a regular expression without groups."""
        opening = rf"|(?P<block>{block})" if block else ""
        strings = rf"|(?P<prefix>{prefix})(?P<quote>{quotes})"
        token = rf"(?P<comment>{comment}[^\n\r]*){opening}{strings}|(?P<name>{name})|{_NUMBER}|."
        return cls(re.compile(token, re.DOTALL), re.compile(plain))


_BRACES = Lexing.of("//", r"/\*", r"\"\"\"|\"|'|`", "", r"(?:[^\W\d]|\$)[\w$]*", r"[^\"'`/]++")


class Language(str):
    """A registered programming language. As text it is its name (``python``), as in files, databases and options."""

    label = ""
    """The name for display: ``Python``."""
    suffix = ""
    """The file-name suffix of its source files, with the dot."""
    comment = "//"
    """The beginning of a comment that ends with its line."""
    qualified_types = False
    """Whether the module of a `Use` is a qualified class rather than a file, so that its last parts may be classes."""
    indented = False
    """Whether indentation rather than braces marks where a block ends."""
    reserved: frozenset[str] = frozenset()
    """Reserved words and literals, without those that can also be names (``match``, ``record``)."""
    import_line = re.compile(r"\s*import\s")
    """The beginning of an import statement, or of a package declaration."""
    lexing = _BRACES
    """The patterns of its tokens; by default those of languages with braces."""

    def __new__(cls, name: str) -> Language:
        """Return the registered language with a name; in a subclass, create the object to register."""
        if cls is not Language:
            return super().__new__(cls, name)
        return get(name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name."""
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
        """Return the tree-sitter grammar, as ``tree_sitter_python.language()`` returns it."""
        raise NotImplementedError

    # For lines that use a project's own API: `imports`, `locate`, `names` and `barred`, or `analyse` and `resolve`

    function_nodes: frozenset[str] = frozenset()
    """Node types of functions, methods and constructors; their body, if any, is the field ``body``."""
    names: frozenset[str] = frozenset({"identifier"})
    """Node types that read a name."""
    barred: Mapping[str, str] = {}
    """Types of nodes whose lines cannot be targets -> why: ``import``, ``decorator``, ``multiline_string`` if the node
    spans several lines; for ``header`` the lines up to the body."""

    def imports(self, source: Source) -> Iterable[Import]:
        """Yield the names that the import statements of a file bind."""
        raise NotImplementedError

    def locate(self, module: str, path: str, files: Iterable[str]) -> str | None:
        """Return the file that an import names; None if it is not in the project.

        Args:
            module: as written.
            path: the importing file.
            files: the project's files, only for membership tests.
        """
        raise NotImplementedError

    def analyse(self, path: str, text: str) -> FileFacts:
        """Analyse one file; the result is plain data that can be sent between processes."""
        from ctxbench.bench.languages.syntax import analyse  # noqa: PLC0415 - it needs a grammar

        return analyse(self, path, text)

    def resolve(self, files: Mapping[str, Any]) -> dict[str, tuple[InternalLoad, ...]]:
        """Find the uses of project-internal imports, file by file, in line and column order."""
        from ctxbench.bench.languages.syntax import resolve  # noqa: PLC0415 - it needs a grammar

        return resolve(self, files)

    def parses(self, text: str) -> bool:
        """Return whether the language's own parser accepts a text that its grammar accepts."""
        return True

    def decoder(self, root: Path) -> Callable[[bytes, Path], Decoded]:
        """Return a function that decodes source files below a folder, from their bytes and path; UTF-8 by default."""
        return lambda raw, _: decode(raw, UTF8)

    def is_harness(self, name: str, text: str, beside: Callable[[str], str]) -> bool:
        """Return whether CoderEval's harness left a file; `beside` returns the text of a file in the same folder."""
        return False

    def module_of(self, path: str) -> str:
        """Return the dotted name of a file's module, from the repository's root."""
        return path.removesuffix(self.suffix).replace("/", ".")

    def defining_files(self, module: str, files: Iterable[str]) -> list[str]:
        """Return the files that a dotted module, or a qualified class, may be in.

        Args:
            module: as in `bench.types.Use`; its first parts may be folders above the repository's root, or be missing.
            files: paths of the repository.
        """
        names = {self.module_of(path): path for path in files}
        parts = module.split(".")
        for end in range(len(parts), 0 if self.qualified_types else len(parts) - 1, -1):
            dotted = ".".join(parts[:end])
            paths = [path for name, path in names.items() if dotted and f".{name}".endswith(f".{dotted}")]
            if paths:
                return paths
        return []

    # Functions and names

    def outline(self, text: str) -> Outline:
        """Return the functions and classes of a file, which may be cut at the cursor; empty by default."""
        return Outline(functions=(), types=(), broken=False)

    def project(self, texts: Mapping[str, str]) -> ProjectNames | None:
        """Return the names in a repository's files (path -> text); None if the language does not support it."""
        return None

    def referred(self, path: str, line: int, texts: Mapping[str, str]) -> Iterable[DefinitionName]:
        """Yield the definitions that a file directly refers to up to a line, by static analysis; none by default.

        Some may be in the file itself, or not exist.

        Args:
            path: the file.
            line: the last line to consider, from 0.
            texts: the project's files, each read on access.
        """
        return ()

    @property
    def apis(self) -> ApiStyle | None:
        """How its APIs are found and shown; None if the language has no API retrieval."""
        return None

    @property
    def answers(self) -> AnswerReader:
        """The reader that extracts its functions from models' answers."""
        from ctxbench.bench.languages.answers import PlainAnswerReader  # noqa: PLC0415 - only functions need it

        return PlainAnswerReader()

    def shift(self, lines: list[str], to: str) -> list[str]:
        """Return a function's lines, or those of its body, moved to an indentation.

        Languages may override it to leave strings unchanged.

        Args:
            lines: without their ends.
            to: spaces or tabs.
        """
        return textwrap.indent(textwrap.dedent("\n".join(lines)), to).split("\n")

    def testing(self) -> Testing:
        """Return the module that builds the suites of its repositories' tests.

        Raises:
            InputFault: if the language does not support it.
        """
        raise InputFault(f"no tests of {self.label} can be run", cure="use samples that are compared as texts")

    def miner(self) -> Miner:
        """Return the module that finds functions covered by a repository's own tests.

        Raises:
            InputFault: if the language does not support it.
        """
        raise InputFault(f"no function samples can be built of {self.label}", cure="build lines: --kind line")


L = TypeVar("L", bound=Language)
_LANGUAGES: Registry[Language] = Registry("language", group="ctxbench.languages")


def register(language: L) -> L:
    """Register a language under its name and return it; called by the package of its entry point.

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
    """Return the names of all languages, sorted, without importing them."""
    return _LANGUAGES.names()


def every() -> tuple[Language, ...]:
    """Return all languages, sorted by name."""
    return tuple(get(name) for name in names())
