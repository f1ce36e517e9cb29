"""The Java part of the line sample checker: a separate tokenizer, and declarations found by counting braces."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tests.independent.line_samples import Read, Span

_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<string>\"\"\"(?:\\.|.)*?\"\"\"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
    |(?P<word>[^\W\d]\w*|\$\w*)|(?P<number>\.?\d(?:[\w.]|(?<=[eEpP])[+-])*)
    |(?P<mark>->|::|\.\.\.|>>>=|<<=|>>=|\+\+|--|&&|\|\||[-+*/&|^%=<>!]=|[-+*/&|^%=<>!~?:;,.@(){}\[\]])""",
    re.DOTALL | re.VERBOSE,
)
_TYPES = {"class", "interface", "enum", "record"}
_PAIRS = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True)
class Token:
    """One token and its position."""

    text: str
    kind: str
    line: int
    column: int
    last: int
    """The line on which the token ends."""


@dataclass(frozen=True)
class Import:
    """One import declaration."""

    span: Span
    name: str
    static: bool
    star: bool


def tokens_of(text: str) -> list[Token] | None:
    """Return a file's tokens without comments, or None if a part of the file is not valid Java."""
    found, at, line, begin = [], 0, 0, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        breaks = match[0].count("\n")
        if match.lastgroup != "blank":
            found.append(Token(match[0], str(match.lastgroup), line, at - begin, line + breaks))
        if breaks:
            line, begin = line + breaks, at + match[0].rindex("\n") + 1
        at = match.end()
    return found


class Source:
    """The declarations of one file."""

    def __init__(self, text: str) -> None:
        tokens = tokens_of(text)
        self.tokens: list[Token] = tokens or []
        self.parses = tokens is not None and _balanced(self.tokens)
        self.package, self.imports, self.heads = "", list[Import](), set[int]()
        self.types: dict[str, dict[str, str]] = {}
        """Type's name within the package -> its own members -> ``variable`` or ``function``."""
        self.body = 0
        """The first token after package and imports."""
        self._read_head()
        self._read_types()

    def _read_head(self) -> None:
        at = 0
        while at < len(self.tokens):
            token = self.tokens[at]
            if token.text in ("package", "import"):
                end = next((n for n in range(at, len(self.tokens)) if self.tokens[n].text == ";"), at)
                words = [token.text for token in self.tokens[at + 1 : end]]
                span = (token.line, self.tokens[end].line + 1)
                self.heads.update(range(*span))
                static, star = words[:1] == ["static"], words[-1:] == ["*"]
                name = "".join(words[static : len(words) - 2 * star])
                if token.text == "package":
                    self.package = name
                else:
                    self.imports.append(Import(span, name, static, star))
                at, self.body = end + 1, end + 1
            elif token.text in (*_TYPES, "@") or token.kind == "word":
                if token.text != "@" or self.tokens[at + 1].text == "interface" or "package" not in _words(self.tokens):
                    return
                at += 1
            else:
                at += 1

    def _read_types(self) -> None:
        """Follow the braces. A name is a member if the innermost brace belongs to a type."""
        stack: list[str] = []
        enums: set[str] = set()
        waiting = ""
        depth = 0
        tokens = self.tokens
        for at, token in enumerate(tokens[self.body :], self.body):
            before = tokens[at - 1].text if at else ""
            after = tokens[at + 1].text if at + 1 < len(tokens) else ""
            if token.text in "([":
                depth += 1
            elif token.text in ")]":
                depth -= 1
            elif token.text == "{":
                stack.append(waiting)
                waiting = ""
            elif token.text == "}":
                if stack:
                    stack.pop()
            elif token.kind == "word" and before in _TYPES and not (before == "record" and after not in "(<"):
                outer = stack[-1] if stack else ""
                if stack and not outer:
                    continue  # a type inside a method
                waiting = f"{outer}.{token.text}" if outer else token.text
                self.types.setdefault(waiting, {})
                if before == "enum":
                    enums.add(waiting)
            elif stack and stack[-1] and token.kind == "word" and depth == 0:
                member = _member(before, after, constants=stack[-1] in enums)
                if member:
                    self.types[stack[-1]].setdefault(token.text, member)


def _member(before: str, after: str, *, constants: bool) -> str:
    typed = re.fullmatch(r"[\w$]+|>|\]|>>|>>>", before) and before not in ("new", "return", "throws", "extends")
    if after == "(" and typed:
        return "function"
    if after in ("=", ";", ",") and typed:
        return "variable"
    return "variable" if constants and before in ("{", ",", ")") and after in (",", ";", "}", "{", "(") else ""


def _words(tokens: Sequence[Token]) -> set[str]:
    return {token.text for token in tokens[:400]}


def _balanced(tokens: Sequence[Token]) -> bool:
    stack = []
    for token in tokens:
        if token.text in _PAIRS.values():
            stack.append(token.text)
        elif token.text in _PAIRS and (not stack or stack.pop() != _PAIRS[token.text]):
            return False
    return not stack


class Project:
    """The types of a repository."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.sources = {path: Source(text) for path, text in texts.items()}
        self.types: dict[str, list[str]] = defaultdict(list)
        """Qualified name -> the files that declare it."""
        for path, source in self.sources.items():
            for name in source.types:
                self.types[f"{source.package}.{name}".strip(".")].append(path)

    def members(self, qualified: str) -> dict[str, str]:
        """Return the members of a type, with its member types."""
        found: dict[str, str] = {}
        for path in self.types.get(qualified, ()):
            source = self.sources[path]
            name = qualified.removeprefix(f"{source.package}.")
            found |= source.types[name]
            inner = (other.removeprefix(f"{name}.") for other in source.types if other.startswith(f"{name}."))
            found |= {other: "class" for other in inner if "." not in other}
        return found


class JavaFile:
    """One file of a project."""

    def __init__(self, path: str, project: Project) -> None:
        self.path, self.project, self.source = path, project, project.sources[path]
        self.parses = self.source.parses
        self._imports = [item for item in self.source.imports if self._inside(item)]

    def _inside(self, item: Import) -> bool:
        """Return whether an import reaches another file of the project."""
        owner = item.name.rpartition(".")[0] if item.static and not item.star else item.name
        if self.path in self.project.types.get(owner, ()) or self.path in self.project.types.get(item.name, ()):
            return False
        packages = {source.package for source in self.project.sources.values()}
        return owner in self.project.types or (item.star and not item.static and owner in packages)

    @cached_property
    def _by_line(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for at, token in enumerate(self.source.tokens):
            found[token.line].append(at)
        return found

    @cached_property
    def _barred(self) -> set[int]:
        tokens = self.source.tokens
        found = set(self.source.heads)
        for at, token in enumerate(tokens):
            if token.last > token.line:
                found.update(range(token.line, token.last + 1))
            if token.text == "@" and at + 1 < len(tokens) and tokens[at + 1].text != "interface":
                end = at + 1
                while end + 2 < len(tokens) and tokens[end + 1].text == ".":
                    end += 2
                if end + 1 < len(tokens) and tokens[end + 1].text == "(":
                    end = _closing(tokens, end + 1)
                found.update(range(token.line, tokens[end].last + 1))
            if (
                token.kind == "word"
                and token.text in _TYPES
                and tokens[at + 1].kind == "word"
                and at >= self.source.body
            ):
                end = next((n for n in range(at, len(tokens)) if tokens[n].text in "{;"), at)
                found.update(range(token.line, tokens[end].line + 1))
        return found

    def barred(self, line: int) -> bool:
        return line in self._barred

    def tokens(self, line: int) -> Sequence[int]:
        tokens = self.source.tokens
        return [tokens[at].column for at in self._by_line[line] if tokens[at].last == line]

    def reads(self, line: int) -> Sequence[Read]:
        found = []
        for at in self._by_line[line]:
            token = self.source.tokens[at]
            spans = self._read(at)
            if spans:
                # The same name may mean something different, such as a method, not a type: a different read.
                above = (other for other in self._places[token.text] if self.source.tokens[other].line < line)
                first = not any(self._read(other) == spans for other in above)
                found.append(Read(self._spelled(at), token.column, spans, first))
        return found

    def _read(self, at: int) -> frozenset[Span]:
        """Return the project imports that bind the token, or none if the token is not a name that is read."""
        token = self.source.tokens[at]
        if at < self.source.body or token.kind != "word" or self._before(at) in (".", "::"):
            return frozenset()
        if self._own_variable(at):
            return frozenset()
        spans = self._bringing(token.text, self._after(at) == "(" and self._before(at) != "new")
        if self._label(at):  # a constant of the switched enum, unless one of that name is imported
            spans &= {item.span for item in self._imports if item.static and not item.star}
        return spans

    def _own_variable(self, at: int) -> bool:
        """Return whether a name is a field of this file, and is not in a place that allows only types."""
        name, tokens = self.source.tokens[at].text, self.source.tokens
        if self._before(at) in ("instanceof", "new", "<") or self._after(at) in ("<", "(", "::", "."):
            return False
        if at + 1 < len(tokens) and tokens[at + 1].kind == "word" and tokens[at + 1].text != "instanceof":
            return False
        cast = self._before(at) == "(" and self._after(at) == ")"
        return not cast and any(members.get(name) == "variable" for members in self.source.types.values())

    def _label(self, at: int) -> bool:
        if self._after(at) not in (":", "->", ","):
            return False
        while self._before(at) == ",":
            at -= 2
        return self._before(at) == "case"

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for at, token in enumerate(self.source.tokens):
            if token.kind == "word":
                found[token.text].append(at)
        return found

    def _before(self, at: int) -> str:
        return self.source.tokens[at - 1].text if at else ""

    def _after(self, at: int) -> str:
        return self.source.tokens[at + 1].text if at + 1 < len(self.source.tokens) else ""

    def _spelled(self, at: int) -> str:
        """Return a name with the following parts on its line."""
        tokens = self.source.tokens
        line, parts = tokens[at].line, [tokens[at].text]
        at += 1
        while at + 1 < len(tokens) and tokens[at].text in (".", "::") and tokens[at + 1].line == line:
            at += 1
            if tokens[at].text == "<":
                at = _closing_angle(tokens, at) + 1
            if tokens[at].kind != "word" or tokens[at].line != line:
                break
            parts.append(tokens[at].text)
            at += 1
        return ".".join(parts)

    def _bringing(self, name: str, called: bool) -> frozenset[Span]:
        """Return the statements that import a name from another file of the project."""
        single = {item.span for item in self._imports if not item.star and self._names(item, name, called)}
        if single:
            return frozenset(single)
        if not called and any(
            not item.star and not item.static and item.name.rpartition(".")[2] == name for item in self.source.imports
        ):
            return frozenset()
        if not called and f"{self.source.package}.{name}".strip(".") in self.project.types:
            return frozenset()
        if any(name == part for qualified in self.source.types for part in qualified.split(".")) and not called:
            return frozenset()
        return frozenset(item.span for item in self._imports if item.star and self._names(item, name, called))

    def _names(self, item: Import, name: str, called: bool) -> bool:
        if not item.star:
            if item.name.rpartition(".")[2] != name or (called and not item.static):
                return False
            if not item.static:
                return item.name in self.project.types
            kind = self.project.members(item.name.rpartition(".")[0]).get(name, "")
            return not kind or (kind == "function") == called
        if item.static:
            kind = self.project.members(item.name).get(name, "")
            return bool(kind) and (kind == "function") == called
        return not called and f"{item.name}.{name}" in self.project.types

    def defines(self, module: str, name: str, kind: str) -> bool:
        leaf = name.rpartition(".")[2]
        if kind == "class":
            return module in self.project.types and module.rpartition(".")[2] == leaf
        if kind == "unknown":
            return module in self.project.types
        return self.project.members(module).get(leaf, "") == kind


def _closing(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for number in range(at, len(tokens)):
        depth += (tokens[number].text == "(") - (tokens[number].text == ")")
        if not depth:
            return number
    return at


def _closing_angle(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for number in range(at, len(tokens)):
        depth += (tokens[number].text == "<") - (tokens[number].text == ">")
        if depth <= 0:
            return number
    return at
