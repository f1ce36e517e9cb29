"""Summaries without a model: the first sentence of the docstring, else the words of the name.

A substitute of ours for generators that follow no instructions; the InferCom paper asks a model. A fragment of code,
such as a draft, is summarised by its first docstring or comment, else by the names of what it calls.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from ctxbench.bench.apis.prompts import post_process
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.outline import Function, Outline
from ctxbench.bench.retrieval.units import Unit

_PARTS = re.compile(r"[^\W\d_]+|\d+")
_CASES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SENTENCE = re.compile(r"(.+?)(?<!e\.g)(?<!i\.e)(?<!etc)[.!?](?=\s|$)")
_INLINE = re.compile(r"\{@\w+\s+([^{}]*)\}|</?(?:a|b|code|em|i|strong|tt)\b[^<>]*>")
_BREAK = re.compile(r"</?(?:br|h\d|li|ol|p|pre|table|ul)\b[^<>]*>")
_NOTHING = re.compile(r"(?!)(?P<string>)(?P<comment>)")
_PRAGMA = re.compile(r"\W*(?:noqa|type:|pragma|pylint|fmt:|nosec|noinspection|checkstyle|!)", re.IGNORECASE)
_MARGIN = re.compile(r"^[ \t]*\*+ ?", re.MULTILINE)
_CALL = re.compile(r"([^\W\d]\w*(?:\s*\.\s*[^\W\d]\w*)*)\s*\(")
_NO_CALLS = frozenset(
    """
    and as assert async await catch class def del elif else except exec finally for from global if import in is lambda
    new nonlocal not or pass raise return super switch synchronized this throw try while with yield
    """.split()  # noqa: SIM905 - a list of forty strings is no more readable
)


def summarise(language: Language, units: Sequence[Unit]) -> list[str]:
    """Return a plain summary of each API record (a `bench.retrieval.units.Summarise`)."""
    return [_of_record(unit, language) for unit in units]


def summary(code: str, language: Language) -> str:
    """Return a plain summary of a function or of a fragment; empty if it holds no word that says anything."""
    code = textwrap.dedent(code).strip("\n")
    function = _whole(language.outline(code))
    if function is not None:
        return _of_function(function, "")
    return post_process(_remark(code, language) or _called(code, language) or split(code.strip().partition("\n")[0]))


def split(name: str) -> str:
    """Return the words of an identifier, or of several: ``HTTPClient.load_all`` -> ``http client load all``."""
    return " ".join(word for part in _PARTS.findall(name) for word in _CASES.split(part)).lower()


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring or Javadoc on one line, its full stop left out.

    It ends with its paragraph at the latest. A Javadoc that begins with a tag (``@return``) has none.
    """
    text = _BREAK.sub("\n\n", _INLINE.sub(lambda match: match[1] or "", text))
    paragraph = text.strip().partition("\n\n")[0]
    paragraph = " ".join(re.split(r"\n\s*[@:]\w", f"\n{paragraph}")[0].split())
    match = _SENTENCE.match(paragraph)
    return (match[1] if match is not None else paragraph).rstrip(".:! ")


def _of_record(unit: Unit, language: Language) -> str:
    owner = unit.name.split(".")[-2] if "." in unit.name else ""
    code = unit.code if language.apis is None else language.apis.record(unit.code, owner)
    function = next(iter(language.outline(code).functions), None)
    return _of_function(function, owner) if function is not None else post_process(split(owner))


def _of_function(function: Function, owner: str) -> str:
    sentence = first_sentence(function.docstring)
    if not sentence:
        # A constructor says no more than its class does.
        names = [owner] if owner and function.name in ("__init__", owner) else [owner, function.name]
        sentence = split(" ".join(names))
    return post_process(sentence)


def _whole(code_outline: Outline) -> Function | None:
    """Return the function that a piece of code begins with."""
    function = next(iter(code_outline.functions), None)
    return function if function is not None and not function.types and not function.lines[0] else None


def _remarks(language: Language) -> re.Pattern[str]:
    return _NOTHING if language.apis is None else language.apis.REMARK


def _remark(code: str, language: Language) -> str:
    """Return the first sentence of the first docstring or comment that is meant for readers."""
    for match in _remarks(language).finditer(code):
        alone = not code[: match.start()].rpartition("\n")[2].strip()
        text = match["comment"] or (match["remark"] if alone else "") or ""
        sentence = "" if _PRAGMA.match(text) else first_sentence(_MARGIN.sub("", text.strip("\"'/*")))
        if split(sentence):
            return sentence
    return ""


def _called(code: str, language: Language) -> str:
    """Return the names of what a fragment calls, with what they are called on, each once."""
    calls = ["".join(name.split()) for name in _CALL.findall(_remarks(language).sub(" ", code))]
    calls = [name.removeprefix("self.").removeprefix("this.") for name in calls]
    return split(" ".join(dict.fromkeys(name for name in calls if name not in _NO_CALLS)))
