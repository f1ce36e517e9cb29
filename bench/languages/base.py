"""`Language`: what a programming language brings, and the plain data that it says of files.

A language is one folder (or package) that subclasses `Language` and registers one object of it. Only what line samples
need must be given: a name, a grammar and the imports of a file. The rest are abilities that a language may have.
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
    """The facts of one file by itself. Each language adds its imports, definitions and name loads."""

    path: str
    broken: bool
    """Whether the parser met a syntax error."""
    tokens: Mapping[int, tuple[Span, ...]]
    """Line -> its tokens (a string is one token, comments are none), for lines that may use an import."""
    leaves: Mapping[int, tuple[Span, ...]]
    """The same, of a string its quotes, its content and its expressions: the leaves of the syntax tree."""
    barred: Mapping[int, str]
    """Line -> why it is no target: ``import``, ``decorator``, ``header``, ``multiline_string``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One name that an import statement binds."""

    lines: Span
    """Of the whole statement."""
    name: str
    """As the file calls it."""
    module: str
    """As written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalLoad:
    """One place where a name that comes from another file of the same repository is read."""

    line: int
    column: int
    name: str
    """The name as it is bound in the file."""
    uses: tuple[Use, ...]
    """The binding itself and, where it is a module or a class, the member reached through it."""
    near: tuple[Use, ...]
    """`uses` as far as they are spelled on this line: what is reached may stand on the next one."""
    statements: tuple[Span, ...]
    """Lines of every import statement of the file that brings the name in."""
    quoted: bool
    """Whether it stands inside a string (an f-string's expression)."""


def ends(reached: Sequence[Use]) -> tuple[Use, ...]:
    """Return what is bound and what is reached through it, of all the steps between."""
    return tuple(dict.fromkeys((reached[0], reached[-1])))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectReading:
    """One place where code reads a name of the project."""

    name: str
    """As spelled, up to the member that was judged: ``rules.round_up``, ``self.total``, ``Cart``."""
    line: int
    column: int
    """Where it begins in the code, 0-based, in characters."""
    known: bool
    """Whether the project defines it."""


class DefinitionName(NamedTuple):
    """Where a definition of a project should be found."""

    path: str
    kind: str
    """``module``, ``class`` or ``function``."""
    name: str
    """With the classes around it: ``Cart.add``, ``Outer.Inner``; a module is its whole file, whatever its name."""


class ProjectNames(Protocol):
    """The files of one repository, as far as names are concerned. Files are read when they are first needed."""

    def readings(self, path: str, code: str, *, start: tuple[int, int] = (0, 0)) -> tuple[ProjectReading, ...]:
        """Return what `code` reads of the project, in the order of lines.

        Args:
            path: the file that the code stands in; its own definitions and classes are those of the project's
                file, together with those that the code itself has.
            code: a file, or a part of one that holds the imports it needs; it may be cut off anywhere.
            start: line and column from which on readings are wanted; what is before is only read.
        """
        ...


class ApiStyle(Protocol):
    """How a language's APIs are found and shown (InferCom paper)."""

    SUMMARY_EXAMPLES: Sequence[tuple[str, str]]
    """Two functions with their summaries, for the prompt that asks a model for one."""
    REMARK: re.Pattern[str]
    """Strings and comments; groups ``remark`` and ``comment`` are those that may be remarks for readers."""

    def takes(self, function: Function, *, quirks: bool) -> bool:
        """Say whether a function is an API record."""
        ...

    def text(self, function: Function) -> str:
        """Return a function as an API entry shows it, without the line of its path."""
        ...

    def constructor_text(self, types: Sequence[Type]) -> str:
        """Return a class without a constructor as an API entry shows it; those around it come first."""
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
    """Patterns that tell code, strings and comments apart, one token at a time."""

    token: re.Pattern[str]
    """Matches at any character; groups ``comment`` (to the line's end), ``block`` (its opening), ``prefix`` and
    ``quote`` of a string, ``name``."""
    plain: re.Pattern[str]
    """A stretch in which nothing opens a string or a comment."""

    @classmethod
    def of(cls, comment: str, block: str, quotes: str, prefix: str, name: str, plain: str) -> Lexing:
        """Return the patterns made of these parts, each a regular expression without groups."""
        opening = rf"|(?P<block>{block})" if block else ""
        strings = rf"|(?P<prefix>{prefix})(?P<quote>{quotes})"
        token = rf"(?P<comment>{comment}[^\n\r]*){opening}{strings}|(?P<name>{name})|{_NUMBER}|."
        return cls(re.compile(token, re.DOTALL), re.compile(plain))


_BRACES = Lexing.of("//", r"/\*", r"\"\"\"|\"|'|`", "", r"(?:[^\W\d]|\$)[\w$]*", r"[^\"'`/]++")


class Language(str):
    """A registered programming language; as text its name (``python``), as files, databases and options spell it."""

    label = ""
    """The name as people write it: ``Python``."""
    suffix = ""
    """The file-name suffix of its source files, dot included."""
    comment = "//"
    """What begins a comment that ends with its line."""
    qualified_types = False
    """Whether the module of a `Use` is a qualified class rather than a file, so that its last parts may be classes."""
    indented = False
    """Whether indentation tells where a block ends; else braces do."""
    reserved: frozenset[str] = frozenset()
    """Reserved words and literals; those that may be names elsewhere (``match``, ``record``) are left out."""
    import_line = re.compile(r"\s*import\s")
    """The beginning of an import statement, and of what names the file's own package."""
    lexing = _BRACES
    """How its tokens are told apart; that of languages with braces unless it says otherwise."""

    def __new__(cls, name: str) -> Language:
        """Return the registered language of a name; of a subclass make the object that is to be registered."""
        if cls is not Language:
            return super().__new__(cls, name)
        return get(name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes by name."""
        return get, (str(self),)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Any:
        """Read a language from its name."""
        from pydantic_core import PydanticCustomError, core_schema  # noqa: PLC0415 - only where something is read

        def read(name: str) -> Language:
            if name not in names():
                options = " or ".join(map(repr, names()))
                raise PydanticCustomError("language", "input should be {options}", {"options": options})
            return get(name)

        return core_schema.no_info_after_validator_function(read, core_schema.str_schema())

    def grammar(self) -> object:
        """Return the tree-sitter grammar, as ``tree_sitter_python.language()`` gives it."""
        raise NotImplementedError

    # Lines that use a project's own API: `imports`, `locate`, `names` and `barred`, or `analyse` and `resolve`

    function_nodes: frozenset[str] = frozenset()
    """Types of nodes of functions, methods and constructors; those with a body have it as their field ``body``."""
    names: frozenset[str] = frozenset({"identifier"})
    """Types of nodes that read a name."""
    barred: Mapping[str, str] = {}
    """Types of nodes whose lines are no targets -> why: ``import``, ``decorator``, ``multiline_string`` where the node
    goes over several lines; of ``header`` the lines up to the body."""

    def imports(self, source: Source) -> Iterable[Import]:
        """Yield what the import statements of a file bind."""
        raise NotImplementedError

    def locate(self, module: str, path: str, files: Iterable[str]) -> str | None:
        """Return the file that an import names, None if it is not of the project.

        Args:
            module: as written.
            path: the importing file's.
            files: the project's, for asking whether a path is among them.
        """
        raise NotImplementedError

    def analyse(self, path: str, text: str) -> FileFacts:
        """Read one file; the result is plain data that can travel between processes."""
        from ctxbench.bench.languages.syntax import analyse  # noqa: PLC0415 - it needs a grammar

        return analyse(self, path, text)

    def resolve(self, files: Mapping[str, Any]) -> dict[str, tuple[InternalLoad, ...]]:
        """Find the uses of project-internal imports, file by file, in line and column order."""
        from ctxbench.bench.languages.syntax import resolve  # noqa: PLC0415 - it needs a grammar

        return resolve(self, files)

    def parses(self, text: str) -> bool:
        """Say whether the language's own parser takes a text that its grammar takes."""
        return True

    def decoder(self, root: Path) -> Callable[[bytes, Path], Decoded]:
        """Return what reads the source files below a folder, from their bytes and place; else in UTF-8."""
        return lambda raw, _: decode(raw, UTF8)

    def is_harness(self, name: str, text: str, beside: Callable[[str], str]) -> bool:
        """Say whether a file was left by CoderEval's harness; `beside` gives the text of a file in its folder."""
        return False

    def module_of(self, path: str) -> str:
        """Return the dotted name of a file's module, from the repository's root."""
        return path.removesuffix(self.suffix).replace("/", ".")

    def defining_files(self, module: str, files: Iterable[str]) -> list[str]:
        """Return the files that a dotted module, or a qualified class, may be.

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
        """Return the functions and classes of a file, which may be cut at the cursor; none unless it knows them."""
        return Outline(functions=(), types=(), broken=False)

    def project(self, texts: Mapping[str, str]) -> ProjectNames | None:
        """Return the files of a repository (path -> text), to be asked for the names that code reads; None without."""
        return None

    def referred(self, path: str, line: int, texts: Mapping[str, str]) -> Iterable[DefinitionName]:
        """Yield the definitions that a file refers to up to a line, one step away, by static analysis; none by default.

        Some may be in the file itself, or nowhere.

        Args:
            path: the file's.
            line: the last that counts, from 0.
            texts: the project's files, each read when it is asked for.
        """
        return ()

    @property
    def apis(self) -> ApiStyle | None:
        """How its APIs are found and shown; None: no unit of retrieval is an API."""
        return None

    @property
    def answers(self) -> AnswerReader:
        """How its functions are taken out of what models answer."""
        from ctxbench.bench.languages.answers import PlainAnswerReader  # noqa: PLC0415 - only functions need it

        return PlainAnswerReader()

    def shift(self, lines: list[str], to: str) -> list[str]:
        """Return a function's lines, or those of its body, moved so that they begin at an indentation.

        A language that is taught more leaves its strings what they are.

        Args:
            lines: without their ends.
            to: spaces or tabs.
        """
        return textwrap.indent(textwrap.dedent("\n".join(lines)), to).split("\n")

    def testing(self) -> Testing:
        """Return what builds the suites of its repositories' tests.

        Raises:
            InputFault: if nobody has taught this language so much.
        """
        raise InputFault(f"no tests of {self.label} can be run", cure="use samples that are compared as texts")

    def miner(self) -> Miner:
        """Return what finds functions that a repository's own tests cover.

        Raises:
            InputFault: if nobody has taught this language so much.
        """
        raise InputFault(f"no function samples can be built of {self.label}", cure="build lines: --kind line")


L = TypeVar("L", bound=Language)
_LANGUAGES: Registry[Language] = Registry("language", group="ctxbench.languages")


def register(language: L) -> L:
    """Register a language under its name and return it; called by the package that its entry point names.

    Raises:
        InputFault: if another language has that name.
    """
    _LANGUAGES.add(str(language), language, origin=type(language).__module__)
    return language


def get(name: str) -> Language:
    """Return the language called `name`; its grammar is loaded only when it is needed.

    Raises:
        UnknownName: if none is called so.
        InputFault: if its package cannot be imported.
    """
    return _LANGUAGES.get(name)


def names() -> tuple[str, ...]:
    """Return the names of all languages, sorted; none is imported for it."""
    return _LANGUAGES.names()


def every() -> tuple[Language, ...]:
    """Return all languages, sorted by name."""
    return tuple(get(name) for name in names())
