"""Static diagnostics, without a model: use and cost of a context, and names that a completion invents."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ctxbench.bench.code_tokens import count
from ctxbench.bench.languages.base import Language, ProjectNames, ProjectReading
from ctxbench.bench.languages.outline import Function, Outline, Type
from ctxbench.bench.masking import is_hidden, visible_target
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.types import Kind, Place, Sample, Use
from ctxbench.harness.definitions import RETRIEVED, Definition, Scores, definition_scores, needed, retrieved
from ctxbench.harness.metrics import ctxbench
from ctxbench.harness.metrics.published import identifiers
from ctxbench.strategies.api import BlockKind, Prompt

RECALL, WASTE = "api_recall", "context_waste"
HALLUCINATED, MADE_UP = "hallucinated", "made_up_names"
_MOST_FILES = 256
_WORD = re.compile(r"[A-Za-z_]\w*")
_ASSIGNED = r"^\s*(?:[\w, =]+[,=]\s*)?{name}\s*(?:,[\w, ]+)?(?::[^=]+)?=(?!=)"
_DECLARED = r"^(?!\s*(?:\*|//|/\*)).*(?<![\w.]){name}\s*(?:=(?!=)|[,;({{]|$)"
_RENAMED = re.compile(r"\b(\w+)\s+as\s+(\w+)")
Lines = Callable[[Place], Sequence[str]]
"""Function from a place to the source lines there, as the sample shows them."""
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_SKIPPED = re.compile(
    r'"""(?:\\.|.)*?"""|\'\'\'(?:\\.|.)*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*', re.S
)


@dataclass(frozen=True, slots=True)
class CompletionExcerpt:
    """A completion with just enough code around it to resolve its names, and its start position in that code.

    The code is the imports, the heads of the surrounding classes and, for a line sample, the function up to the cursor.
    Parsing it is about thirty times faster than parsing the file.
    """

    code: str
    line: int
    column: int


class OutlinedFile:
    """A repository's file, parsed into functions and classes."""

    def __init__(self, text: str, language: Language) -> None:
        self.lines, self.language = text.split("\n"), language
        file_outline: Outline = language.outline(text)
        self._definitions = file_outline.named_lines(self.lines)
        self._functions = [function for function in file_outline.functions if not function.inside]
        self._types = file_outline.types
        self._imports = [span for span in import_statements(self.lines, language) if not self._inner(span[0])]
        self.original_names = original_names(text, language)

    def excerpt(self, sample: Sample, completion: str) -> CompletionExcerpt | None:
        """Return a completion with the code that resolves its names.

        Args:
            sample: the task; its masked imports are not read.
            completion: the text after the cursor; for a function sample the whole function, indented as in the file.

        Returns:
            The excerpt; None if the text before the cursor on its line differs from this file.
        """
        row, column = sample.cursor.line, sample.cursor.column
        before = sample.prefix.rpartition("\n")[2]
        if row > len(self.lines) or (self.lines[row : row + 1] or [""])[0][:column] != before:
            return None
        head = [line for span in self._imports if self._visible(span, sample) for line in self._dedented(span)]
        start = sample.span[0] if sample.kind is Kind.FUNCTION and sample.span else row
        function, types = self._around(start)
        head += self._heads(types)
        if sample.kind is Kind.FUNCTION:
            return CompletionExcerpt("\n".join([*head, completion]), len(head) + 1, 0)
        body = self._before(row, function, types)
        code = "\n".join([*head, *body, before + completion])
        return CompletionExcerpt(closed(code) if self.language.indented else code, len(head) + len(body), column)

    def definition(self, path: str, name: str) -> Definition | None:
        """Return the definition of a qualified name, such as ``Outer.Inner``; None if the file has none.

        Names other than functions and classes are looked up where a module or class assigns or declares them.
        """
        bare = name.rpartition(".")[2]
        rows = self._definitions.get(name) or list(self._variable_rows(name.rpartition(".")[0], bare))[:1]
        return Definition(bare, path, tuple((row, self.lines[row].strip()) for row in rows)) if rows else None

    def _variable_rows(self, owner: str, name: str) -> Iterator[int]:
        pattern = _ASSIGNED if self.language.indented else _DECLARED
        declared = re.compile(pattern.format(name=re.escape(name)))
        for row, line in enumerate(self.lines):
            if name in line and declared.search(line):
                function, types = self._around(row)
                if function is None and ".".join(around.name for around in types) == owner:
                    yield row

    def _inner(self, row: int) -> bool:
        return any(function.lines[0] <= row < function.lines[1] for function in self._functions)

    def _visible(self, span: tuple[int, int], sample: Sample) -> bool:
        is_read = sample.kind is Kind.FUNCTION or span[1] <= sample.cursor.line
        return is_read and not any(start < span[1] and span[0] < end for start, end in sample.masked)

    def _dedented(self, span: tuple[int, int]) -> list[str]:
        first, *others = self.lines[slice(*span)]
        return [first.lstrip(), *others]

    def _around(self, row: int) -> tuple[Function | None, Sequence[Type]]:
        for function in self._functions:
            if function.lines[0] <= row < function.lines[1]:
                return function, function.types
        return None, [around for around in self._types if around.lines[0] <= row < around.lines[1]]

    def _heads(self, types: Sequence[Type]) -> list[str]:
        if not self.language.indented:
            return " ".join(f"{type_.header} {{" for type_ in types).split("\n") if types else []
        heads = []
        for type_ in types:
            rows = range(*type_.lines)
            row = next((row for row in rows if self.lines[row].lstrip().startswith("class ")), type_.lines[0])
            heads += [f"{' ' * _indent(self.lines[row])}{' '.join(type_.header.split())}:"]
        return heads

    def _before(self, row: int, function: Function | None, types: Sequence[Type]) -> list[str]:
        """Return the lines from the start of the function or statement up to the cursor's line."""
        if function is not None:
            return self.lines[min(function.head, row) : row]
        start, base = row, 0
        if types:
            inside = [line for line in self.lines[types[-1].lines[0] + 1 : row] if line.strip()]
            base = min((_indent(line) for line in inside if _indent(line)), default=0)
        while start > 0 and row - start < 99 and (_indent(self.lines[start]) > base or not self.lines[start].strip()):
            start -= 1
        return self.lines[start:row]


def import_statements(lines: Sequence[str], language: Language) -> list[tuple[int, int]]:
    """Return the line ranges ``[start, end)`` of import statements, including multi-line ones."""
    spans, end = [], 0
    for row, line in enumerate(lines):
        if row >= end and language.import_line.match(line):
            end = row + 1
            while "(" in line and ")" not in "".join(lines[row:end]) and end < min(len(lines), row + 99):
                end += 1
            spans.append((row, end))
    return spans


def original_names(code: str, language: Language) -> dict[str, str]:
    """Return the original name ``a`` of every import ``a as b``, by its alias ``b``."""
    lines = code.split("\n")
    statements = ("\n".join(lines[start:end]) for start, end in import_statements(lines, language))
    return {bound: name for statement in statements for name, bound in _RENAMED.findall(statement)}


def closed(code: str) -> str:
    """Close open brackets of unfinished Python code, and add a body after a final colon, so that it usually parses."""
    open_: list[str] = []
    for sign in re.findall(r"[()\[\]{}]", _SKIPPED.sub("", code)):
        if sign in _PAIRS:
            open_.append(_PAIRS[sign])
        elif open_ and open_[-1] == sign:
            open_.pop()
    ended = code + "".join(reversed(open_))
    return f"{ended} pass" if ended.rstrip().endswith(":") else ended


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


@dataclass(slots=True)
class _Repository:
    snapshot: Snapshot
    project: ProjectNames | None
    files: dict[str, OutlinedFile] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)
    definitions: dict[tuple[str, tuple[Use, ...]], tuple[Definition, ...]] = field(default_factory=dict)


class Diagnostics:
    """Computes the diagnostics of a set's samples; thread-safe."""

    def __init__(self, snapshots: Callable[[], Mapping[str, Snapshot]]) -> None:
        """Create diagnostics. `snapshots` loads the repositories when the first sample is measured."""
        self._snapshots = snapshots
        self._repositories: dict[str, _Repository | None] = {}
        self._lock = threading.RLock()

    def of_prompt(self, sample: Sample, prompt: Prompt, target: str) -> Scores:
        """Return a prompt's API recall and waste (0 to 1, or None) and `definition_scores`. `target`: the reference."""
        with self._lock:
            return {
                RECALL: api_recall(sample.uses, prompt, self._original_names(sample)),
                WASTE: context_waste(prompt, target, sample.language, lambda place: self._lines(sample, place)),
                **definition_scores(self.definitions(sample), prompt),
            }

    def definitions(self, sample: Sample) -> tuple[Definition, ...]:
        """Return the distinct definitions in other files that a sample's reference uses.

        Excludes modules, definitions in the sample's own or hidden files, and names that the repository does not
        define.
        """
        with self._lock:
            repository = self._repository(sample.repo) if sample.uses else None
            if repository is None:
                return ()
            key = sample.id, sample.uses
            if key not in repository.definitions:
                uses = [use for use in needed(sample.uses) if use.kind != "module"]
                definitions = [self._definition(repository, sample, use) for use in uses]
                repository.definitions[key] = tuple(dict.fromkeys(filter(None, definitions)))
            return repository.definitions[key]

    def _definition(self, repository: _Repository, sample: Sample, use: Use) -> Definition | None:
        snapshot, parts = repository.snapshot, use.module.split(".")
        paths = snapshot.language.defining_files(use.module, snapshot.texts)
        name = self._original_names(sample).get(use.name, use.name.rpartition(".")[2])
        for own_name in itertools.chain([name], _renamed(name, repository)):
            # Among files of the same name, those nearest to the root come first.
            for path in sorted(paths, key=lambda path: (path.count("/"), path)):
                stem = snapshot.language.module_of(path).rpartition(".")[2]
                # A qualified class is in the file with its name, or with the name of a class around it.
                types = parts[len(parts) - 1 - parts[::-1].index(stem) :] if snapshot.language.qualified_types else []
                names = [*types, *([] if use.kind == "class" and types else [own_name])]
                definition = self._file(repository, path).definition(path, ".".join(names))
                if definition is not None:
                    return None if path == sample.path or is_hidden(path, sample.hidden) else definition
        return None

    def of_completion(self, sample: Sample, text: str, target: str) -> Scores:
        """Return `HALLUCINATED` (share of a completion's project names that do not exist) and `MADE_UP` (their number).

        Both are None if the names cannot be checked; the share is also None without project names.

        Args:
            text: the completion: a whole function, or, for a line sample, text that is truncated to the target's lines.
            target: the reference; only its number of lines is used.
        """
        readings = self.readings(sample, text, target)
        if readings is None:
            return {HALLUCINATED: None, MADE_UP: None}
        unknown = sum(not reading.known for reading in readings)
        return {HALLUCINATED: unknown / len(readings) if readings else None, MADE_UP: float(unknown)}

    def readings(self, sample: Sample, text: str, target: str) -> tuple[ProjectReading, ...] | None:
        """Return the project names that a completion uses, and whether each exists; None if that is unknown."""
        if sample.kind is Kind.LINE:
            text = ctxbench.unit(sample.prefix.rpartition("\n")[2], text, target)
        with self._lock:
            repository = self._repository(sample.repo)
            if repository is None or repository.project is None or sample.path not in repository.snapshot.texts:
                return None
            excerpt = self._file(repository, sample.path).excerpt(sample, text)
            if excerpt is None:
                return None
            return repository.project.readings(sample.path, excerpt.code, start=(excerpt.line, excerpt.column))

    def _repository(self, name: str) -> _Repository | None:
        if name not in self._repositories:
            snapshot = self._snapshots().get(name)
            self._repositories[name] = (
                _Repository(snapshot, snapshot.language.project(snapshot.texts)) if snapshot is not None else None
            )
        return self._repositories[name]

    def _file(self, repository: _Repository, path: str) -> OutlinedFile:
        if path not in repository.files:
            if len(repository.files) >= _MOST_FILES:
                repository.files.clear()
            repository.files[path] = OutlinedFile(repository.snapshot.texts[path], repository.snapshot.language)
        return repository.files[path]

    def _original_names(self, sample: Sample) -> Mapping[str, str]:
        repository = self._repository(sample.repo) if sample.uses else None
        if repository is None or sample.path not in repository.snapshot.texts:
            return {}
        return self._file(repository, sample.path).original_names

    def _lines(self, sample: Sample, place: Place) -> Sequence[str]:
        repository = self._repository(sample.repo)
        if repository is None or place.path not in repository.snapshot.texts:
            return ()
        if sample.kind is Kind.FUNCTION and place.path == sample.path:
            target = visible_target(repository.snapshot.texts[place.path], sample.query(), sample.masked)
            return target.text.split("\n")[place.start : place.end]
        if place.path not in repository.lines:
            repository.lines[place.path] = repository.snapshot.texts[place.path].split("\n")
        return repository.lines[place.path][place.start : place.end]


def _renamed(name: str, repository: _Repository) -> Iterator[str]:
    """Yield the names that the package's files import as ``name``: a package may re-export a renamed definition."""
    word = re.compile(rf"\b(\w+)\s+as\s+{re.escape(name)}\b")
    texts = repository.snapshot.texts
    yield from dict.fromkeys(other for path in texts for other in word.findall(texts[path]))


def api_recall(uses: Sequence[Use], prompt: Prompt, originals: Mapping[str, str]) -> float | None:
    """Return the share (0 to 1) of the target's internal APIs that retrieved blocks mention; None without known uses.

    Args:
        uses: names that the target needs. Of ``rules`` and ``rules.round_up`` only the latter counts.
        originals: original names by name in the file, for imports ``a as b``. Either name counts.
    """
    apis = {use.name.rpartition(".")[2] for use in needed(uses)}
    if not apis:
        return None
    words = {word for block in retrieved(prompt) for word in _WORD.findall(block.text)}
    return sum(api in words or originals.get(api) in words for api in apis) / len(apis)


def context_waste(prompt: Prompt, target: str, language: Language, lines: Lines) -> float | None:
    """Return the share (0 to 1) of retrieved tokens without a name that the target needs; lower is better.

    These are the tokens of dropped blocks, and of blocks without an identifier that is in the target but not in the
    rest of the prompt (the file, fixed text). If a dropped block's size is unknown, the lines of its first place are
    counted as comments. But an API of unknown size counts as much as the average API in the prompt, or as the first of
    these lines if the prompt has no API.

    Returns:
        The share; None if nothing was retrieved, or the target names nothing beyond the rest of the prompt.
    """
    blocks = retrieved(prompt)
    dropped = [dropped_block for dropped_block in prompt.dropped if dropped_block.kind in RETRIEVED]
    if not blocks and not dropped:
        return None
    needed = set(identifiers(str(language), target))
    for block in prompt.blocks if needed else ():
        if block.kind not in RETRIEVED:
            needed.difference_update(_WORD.findall(block.text))
    if not needed:
        return None
    costs = [(block, count(block.text)) for block in blocks]
    total = sum(cost for _, cost in costs)
    wasted = sum(cost for block, cost in costs if needed.isdisjoint(_WORD.findall(block.text)))
    apis = [cost for block, cost in costs if block.kind is BlockKind.API]
    mean_api = sum(apis) / len(apis) if apis else None
    left_out = 0.0
    for dropped_block in dropped:
        if dropped_block.tokens:
            left_out += dropped_block.tokens
            continue
        text = lines(dropped_block.places[0]) if dropped_block.places else ()
        if dropped_block.kind is BlockKind.API:
            left_out += mean_api if mean_api is not None else _tokens(text[:1])
        else:
            left_out += _tokens(text)
    return (wasted + left_out) / (total + left_out) if total + left_out else None


def _tokens(lines: Sequence[str]) -> int:
    return count("".join(f"# {line}\n" for line in lines))
