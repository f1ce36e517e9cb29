"""CoCoGen: draft, check the draft statically, ask for a repair (ICL-strategies paper, Table 4). Python only.

CoCoGen's release runs pylint. Here, pyflakes and `ProjectNames` check the draft. Solved examples are ctxbench's own.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Annotated

from ctxbench.bench.languages.answers import FunctionHead
from ctxbench.bench.languages.base import ProjectNames
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.modules import ModuleIndex
from ctxbench.bench.parameters import AtLeast, EncoderSpec
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.strategies.api import Block, BlockKind, Generate, Prompt, text_block
from ctxbench.strategies.baselines.rlcoder import WHOLE
from ctxbench.strategies.layout import RepositoryFiles, bare_name, infile_flags, left_block
from ctxbench.strategies.registry import strategy

DRAFT = 1024
"""Maximum new tokens of a draft. The last call has the same limit, so the scored answer is the checked one."""
SUGGESTED = 5
END = "[END OF CODE]"
NO_INSTRUCTIONS = "no_instructions"
_SIGNATURE = "Function signature:  "
_PROBLEM = (
    "Write a function.\nFunction name: {name}\nFunction signature:  {signature}\nFunction Description:\n{description}"
)
_EXAMPLES = (
    (
        "clamp",
        "def clamp(value, low, high)",
        "Return the value, or the nearer bound if it lies outside of them.",
        "def clamp(value, low, high):\n    return max(low, min(value, high))",
    ),
    (
        "group_by_length",
        "def group_by_length(words)",
        "Return a dictionary from a length to the words that have it, in their order.",
        "def group_by_length(words):\n    groups = {}\n    for word in words:\n"
        "        groups.setdefault(len(word), []).append(word)\n    return groups",
    ),
)


@strategy("base.cocogen", kinds=(Kind.FUNCTION,), languages=(PYTHON,))
def cocogen(
    query: Query,
    repo: Repository,
    generate: Generate,
    *,
    encoder: EncoderSpec = "minilm",
    contexts: Annotated[int, AtLeast(0)] = 1,
    repairs: Annotated[int, AtLeast(0)] = 3,
) -> Prompt:
    """Show similar functions; check the draft without running it; report its faults to the model up to `repairs` times.

    The checker finds syntax errors, undefined names, members that the project lacks, and redefined functions, and lists
    symbols of the repository that may be meant. It reports only faults in the draft. CoCoGen's release also skips tasks
    whose reference has such faults, which a strategy cannot know.

    A model that only continues code gets the functions before the file, and after a fault the signatures of the symbols
    that may be meant (flag ``no_instructions``).

    Args:
        generate: the model, asked for at most `repairs` drafts.
        encoder: finds functions similar to the task, and symbols if no name matches.
        contexts: functions shown (CoCoGen's release: 3 for GPT-3.5, otherwise 1).
        repairs: maximum number of repairs.
    """
    checker, symbols = Checker(query, repo), Symbols(repo, query.path, encoder)
    context_blocks = _contexts(query, repo, encoder, contexts)
    instructs = generate.instructs
    prompt = first_prompt(query, context_blocks) if instructs else _plain(query, context_blocks)
    flags = [] if instructs else [NO_INSTRUCTIONS]
    if contexts and not context_blocks:
        flags.append("no_candidates")
    for _ in range(repairs):
        draft = placed(query, generate(prompt, role="draft", max_tokens=DRAFT))
        if draft is None:
            flags.append("empty_draft")
            break
        faults = checker.faults(draft)
        if not faults:
            break
        flags.append("repaired")
        suggestions = [(fault, _suggested(fault, draft, symbols)) for fault in faults]
        prompt = (
            _repair(query, draft, suggestions, symbols.module(query.path)) if instructs else _hinted(query, suggestions)
        )
    return prompt.flagged(*flags)


def _contexts(query: Query, repo: Repository, encoder: str, most: int) -> list[Block]:
    hits = repo.search(problem(query), unit="function", ranker=encoder, top=most) if most else ()
    blocks = [Block(kind=BlockKind.SIMILAR, text=hit.text, places=(hit.place,), score=hit.score) for hit in hits]
    return blocks[::-1]


def _suggested(fault: DraftFault, draft: DraftedFile, symbols: Symbols) -> tuple[Symbol, ...]:
    if fault.category not in (Category.UNDEFINED, Category.MEMBER):
        return ()
    return symbols.find(fault.name.rpartition(".")[2], draft.line(fault.line), SUGGESTED)


def _plain(query: Query, context_blocks: Sequence[Block]) -> Prompt:
    gap = text_block("\n\n")
    left_context = left_block(query, WHOLE)
    return Prompt(
        blocks=(*(part for block in context_blocks for part in (block, gap)), left_context),
        flags=infile_flags(query, left_context, by_lines=False),
    )


def _hinted(query: Query, suggestions: Sequence[tuple[DraftFault, Sequence[Symbol]]]) -> Prompt:
    suggested_symbols = dict.fromkeys(symbol for _, symbols in suggestions for symbol in symbols)
    return _plain(query, [symbol.block() for symbol in suggested_symbols])


def problem(query: Query) -> str:
    """Return the task as text: name, signature and docstring.

    CoCoGen's release uses CoderEval's human-written description, which mined samples lack.
    """
    return f"{_text_of(bare_name(query.name or ''), _signature(query), query.docstring or '')}\n"


def first_prompt(query: Query, contexts: Sequence[Block]) -> Prompt:
    """Return the first prompt: solved examples, the blocks of `contexts` in their order, and the task."""
    context_parts = [part for block in contexts for part in (block, text_block("\n"))] or [text_block("\n")]
    head, tail = text_block(f"{_shots()}```\n"), text_block("```\n")
    return Prompt(blocks=(head, *context_parts, tail, *_question(query), text_block("A:\n")))


def _repair(
    query: Query, draft: DraftedFile, suggestions: Sequence[tuple[DraftFault, Sequence[Symbol]]], module: str
) -> Prompt:
    reasons = dict.fromkeys(reason_text(fault, draft, symbols, module) for fault, symbols in suggestions)
    reason = "\n".join(reasons)
    again = f"\nPrevious Answer: \n```\n{draft.function}\n```\nFail Reason:{reason}\nA:\n"
    return Prompt(blocks=(text_block(_shots()), *_question(query), text_block(again)))


def reason_text(fault: DraftFault, draft: DraftedFile, symbols: Sequence[Symbol], module: str) -> str:
    """Return a message that explains a fault and lists repository symbols that may be meant."""
    line = f"In line: {draft.line(fault.line)}"
    if fault.category is Category.REDEFINED:
        return f"{line}\nError: {fault.name!r} is already defined above; use that definition."
    if fault.category not in (Category.UNDEFINED, Category.MEMBER):
        return f"{line} . {fault.message}"
    owner, _, member = fault.name.rpartition(".")
    error = f"{owner!r} has no member {member!r}." if owner else f"there is no symbol {member!r} in this context."
    text = f"{line}\nError: {error}\nCurrent Module: {module}"
    if not symbols:
        return text
    listed = "".join(f"\n```\n{symbol.text} ...\n```" for symbol in symbols)
    return f"{text}\nSymbols of the repository that may be used:{listed}"


def _text_of(name: str, signature: str, description: str) -> str:
    return _PROBLEM.format(name=name, signature=signature, description=description)


def _shots() -> str:
    shots = [f'Q: "{_text_of(*example)}"\nA:\n{solution}\n{END}\n' for *example, solution in _EXAMPLES]
    return "\n".join([*shots, ""])


def _question(query: Query) -> tuple[Block, ...]:
    signature = _signature(query)
    whole = f'Q: "{problem(query)}"\n'
    at = whole.index(_SIGNATURE) + len(_SIGNATURE)
    return (
        text_block(whole[:at]),
        Block(kind=BlockKind.INFILE, text=signature),
        text_block(whole[at + len(signature) :]),
    )


def _signature(query: Query) -> str:
    return (query.signature or "").rstrip().removesuffix(":")


class Category(StrEnum):
    """A fault's kind, which determines the text in the prompt. Names except ``other`` are pylint's."""

    SYNTAX = "syntax-error"
    UNDEFINED = "undefined-variable"
    MEMBER = "no-member"
    REDEFINED = "function-redefined"
    OTHER = "other"
    """Any other fault. The prompt shows only the checker's message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftFault:
    """A fault in the drafted function."""

    category: Category
    line: int
    """Line in the file, 0-based."""
    name: str
    """The wrong name as written (``rules.round_up``); empty if the fault has no name."""
    message: str


_CATEGORIES = {
    "UndefinedName": Category.UNDEFINED,
    "UndefinedLocal": Category.UNDEFINED,
    "RedefinedWhileUnused": Category.REDEFINED,
    **dict.fromkeys(
        (
            "DuplicateArgument",
            "ReturnOutsideFunction",
            "YieldOutsideFunction",
            "ContinueOutsideLoop",
            "BreakOutsideLoop",
            "DefaultExceptNotLast",
            "TwoStarredExpressions",
            "TooManyExpressionsInStarredAssignment",
            "StringDotFormatMissingArgument",
            "StringDotFormatInvalidFormat",
            "PercentFormatMissingArgument",
            "PercentFormatInvalidFormat",
            "PercentFormatPositionalCountMismatch",
            "RaiseNotImplemented",
        ),
        Category.OTHER,
    ),
}
"""Pyflakes messages that pylint calls errors. Others (unused names, style) are ignored."""


class Checker:
    """A static checker of drafts for one query."""

    def __init__(self, query: Query, repo: Repository) -> None:
        self._query, self._repo = query, repo

    @cached_property
    def _project(self) -> ProjectNames:
        return PYTHON.project(RepositoryFiles(self._repo))

    def faults(self, draft: DraftedFile) -> tuple[DraftFault, ...]:
        """Return the drafted function's faults, sorted by line; empty if the rest of its file cannot be parsed."""
        error = _parsed("\n".join(PYTHON.shift(draft.function.split("\n"), "")))
        if isinstance(error, SyntaxError):
            line = draft.start + max(0, (error.lineno or 1) - 1)
            return (DraftFault(category=Category.SYNTAX, line=min(line, draft.end - 1), name="", message=error.msg),)
        tree = _parsed(draft.text)
        if isinstance(tree, SyntaxError):
            return ()
        faults = [*self._messages(tree, draft), *self._members(draft)]
        first_faults: dict[tuple[int, str], DraftFault] = {}
        for fault in sorted(faults, key=lambda fault: (fault.line, list(Category).index(fault.category))):
            first_faults.setdefault((fault.line, fault.name.partition(".")[0]), fault)
        return tuple(first_faults.values())

    def _messages(self, tree: ast.Module, draft: DraftedFile) -> Iterator[DraftFault]:
        from pyflakes.checker import Checker as Pyflakes  # type: ignore[import-untyped]  # noqa: PLC0415

        messages: Iterable[object] = Pyflakes(tree, filename=self._query.path).messages
        for message in messages:
            category = _CATEGORIES.get(type(message).__name__)
            line = int(getattr(message, "lineno", 0)) - 1
            arguments: tuple[object, ...] = getattr(message, "message_args", ())
            if category is None or not draft.start <= line < draft.end:
                continue
            name = str(arguments[0]) if arguments and category is not Category.OTHER else ""
            if category is Category.REDEFINED and name == bare_name(self._query.name or ""):
                continue  # the file itself defines it twice
            text = str(getattr(message, "message", "")) % arguments
            yield DraftFault(category=category, line=line, name=name, message=text)

    def _members(self, draft: DraftedFile) -> Iterator[DraftFault]:
        for reading in self._project.readings(self._query.path, draft.text):
            if not reading.known and draft.start <= reading.line < draft.end:
                owner, _, member = reading.name.rpartition(".")
                message = f"{owner or 'the project'} has no member {member!r}"
                yield DraftFault(category=Category.MEMBER, line=reading.line, name=reading.name, message=message)


def _parsed(text: str) -> ast.Module | SyntaxError:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except SyntaxError as error:
            return error
        except (ValueError, RecursionError, MemoryError) as error:
            return SyntaxError(str(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A function, method or class of the repository."""

    name: str
    header: str
    """The dedented declaration without its colon. A method's declaration follows that of its class."""
    imports: str
    """Import line for the target file; empty if the target file defines the symbol."""
    place: Place

    @property
    def text(self) -> str:
        """Import line, if any, and declaration."""
        return "\n".join(part for part in (self.imports, self.header) if part)

    def block(self) -> Block:
        """Return the symbol as a prompt block."""
        return Block(kind=BlockKind.API, text=f"{self.text}\n", places=(self.place,))


class Symbols:
    """A search for repository symbols that a draft may have meant."""

    def __init__(self, repo: Repository, path: str, encoder: str) -> None:
        """Prepare the search for a target file. `encoder` ranks functions if no name matches."""
        self._repo, self._path, self._encoder = repo, path, encoder

    @cached_property
    def _modules(self) -> ModuleIndex:
        return ModuleIndex(self._repo.files(), ())

    def find(self, name: str, line: str, most: int = 5) -> tuple[Symbol, ...]:
        """Return up to `most` symbols with this unqualified name; without a match, functions most similar to `line`."""
        exact_matches = tuple(self._named(name))
        return (exact_matches or tuple(self._like(f"{name}\n{line}", most)))[:most]

    def _named(self, name: str) -> Iterator[Symbol]:
        word = re.compile(rf"^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+{re.escape(name)}\b", re.M)
        for path in self._repo.files():
            text = self._repo.read(path)
            if not word.search(text):
                continue
            file_outline = PYTHON.outline(text)
            for type_outline in file_outline.types:
                if type_outline.name == name:
                    place = Place(path=path, start=type_outline.lines[0], end=type_outline.lines[1])
                    yield Symbol(name=name, header=type_outline.header, imports=self._import(path, name), place=place)
            for function in file_outline.functions:
                if function.name != name or function.inside:
                    continue
                # An inner class is reached through the outermost.
                owner = function.types[0].name if function.types else function.name
                above = "".join(f"{kind.header}:\n    " for kind in function.types[-1:])
                place = Place(path=path, start=function.lines[0], end=function.lines[1])
                header = f"{above}{' '.join(function.header.split())}"
                yield Symbol(name=function.qualified, header=header, imports=self._import(path, owner), place=place)

    def _like(self, text: str, most: int) -> Iterator[Symbol]:
        for hit in self._repo.search(text, unit="function", ranker=self._encoder, top=most):
            functions = PYTHON.outline(textwrap.dedent(hit.text)).functions
            if functions:
                *owners, _ = hit.name.split(".")
                header = " ".join(functions[0].header.split())
                header = f"class {owners[-1]}:\n    {header}" if owners else header
                imports = self._import(hit.place.path, owners[0] if owners else hit.name)
                yield Symbol(name=hit.name, header=header, imports=imports, place=hit.place)

    def _import(self, path: str, name: str) -> str:
        return "" if path == self._path else f"from {self.module(path)} import {name}"

    def module(self, path: str) -> str:
        """Return a file's dotted module name."""
        return self._modules.name(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedFile:
    """The target file with a drafted function. Lines are 0-based, and the end is exclusive."""

    text: str
    function: str
    start: int
    end: int

    def line(self, number: int) -> str:
        """Return a line without its indentation; empty if it does not exist."""
        lines = self.text.split("\n")
        return lines[number].strip() if 0 <= number < len(lines) else ""


def placed(query: Query, answer: str) -> DraftedFile | None:
    """Return the target file with the answer's function; None if the file does not declare it, or the answer is blank.

    The function is extracted as for scoring, so the checker reads what tests would run.
    """
    lines = query.prefix.split("\n")
    name = bare_name(query.name or "")
    at = _declaration(lines, name)
    code = answer.partition(END)[0]
    if at is None or not code.strip():
        return None
    head = FunctionHead(name=name, signature=query.signature or "", head="\n".join(lines[at:]))
    function, _ = query.language.answers.function(head, code, wrapped=False)
    whole = "\n".join(query.language.shift(function.split("\n"), head.indent)).rstrip()
    before = "".join(f"{line}\n" for line in lines[:at])
    return DraftedFile(
        text=f"{before}{whole}\n{query.suffix or ''}", function=whole, start=at, end=at + whole.count("\n") + 1
    )


def _declaration(lines: list[str], name: str) -> int | None:
    word = re.compile(rf"\s*(?:async\s+)?def\s+{re.escape(name)}\b")
    return next((at for at in range(len(lines) - 1, -1, -1) if word.match(lines[at])), None)
