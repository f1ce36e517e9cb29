"""The API base of the InferCom paper: function signatures, which queries find by usage examples or by summaries."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained, sha256
from ctxbench.bench.languages.base import ApiStyle, Language
from ctxbench.bench.languages.outline import Function, Outline, Type
from ctxbench.bench.retrieval.units import Unit
from ctxbench.bench.types import Place

By = Literal["usage", "summary"]


def units(
    path: str,
    text: str,
    language: Language,
    *,
    by: By,
    quirks: bool = False,
    constructors: bool = False,
) -> tuple[Unit, ...]:
    """Return the API records of a file in line order: one for each function that the language's `ApiStyle` takes.

    Args:
        text: the file's text, or the part that a strategy may see.
        by: ``usage``: keys are usage examples. ``summary``: records also have a summary, and source code for a model.
        quirks: select functions and build usage examples exactly as InferCom's released code does.
        constructors: add a record for each class without a constructor.
    """
    file_outline, lines = language.outline(text), text.split("\n")

    def unit(
        span: tuple[int, int], name: str, api_entry: str, keys: tuple[str, ...], function: Function | None = None
    ) -> Unit:
        record = Unit(place=Place(path=path, start=span[0], end=span[1]), text=api_entry, keys=keys, name=name)
        if by == "usage":
            return record
        owner = name.split(".")[-2] if "." in name else ""
        if function is None:
            return replace(record, code="\n".join(lines[span[0] : span[1]]), summary=post_process(split(owner)))
        return replace(record, code=function.code, summary=_of_function(function, owner))

    style = language.apis
    if style is None:
        return ()
    records = [
        unit(
            function.lines,
            function.qualified,
            style.text(function),
            tuple(dict.fromkeys(style.usages(function, path, quirks=quirks))),
            function,
        )
        for function in file_outline.functions
        if style.takes(function, quirks=quirks)
    ]
    for types, span in _without_constructor(file_outline, style) if constructors else ():
        outer = types[-2] if len(types) > 1 else None
        keys = style.constructor_usages(types[-1], outer, quirks=quirks)
        name = ".".join([*(kind.name for kind in types), style.constructor_name(types)])
        records.append(unit(span, name, style.constructor_text(types), keys))
    return tuple(sorted(records, key=lambda record: record.place))


def _without_constructor(file_outline: Outline, style: ApiStyle) -> Iterator[tuple[tuple[Type, ...], tuple[int, int]]]:
    constructed = {function.types[-1] for function in file_outline.functions if function.constructor}
    for place, kind in enumerate(file_outline.types):
        if kind.kind == "class" and kind not in constructed:
            types = (*(outer for outer in file_outline.types[:place] if outer.lines[1] >= kind.lines[1]), kind)
            if style.constructor_name(types):
                yield types, (kind.lines[0], kind.head + kind.header.count("\n") + 1)


SYSTEM = "You are an expert programmer"
MAX_TOKENS = 100
_CODE = "@{}@"
_LARGEST = 2**16
_DIGESTS = {
    "java": "9370b0769676d617be980f6d0b195fefd8b0b92c14e191d4b1faa9e0ae237b14",
    "python": "1f3540d8361664b52e3d5c3daa678bdab8ad569b18fbba62d14a5c0341020060",
}
_released: Mapping[str, str] = {}
"""Language -> this process's template for summary prompts. A run sets the templates before its first strategy."""


def released_templates(checkout: Path) -> dict[str, str]:
    """Return the template for summary prompts, by language, from a checkout of InferCom's release.

    Raises:
        InputFault: if a file cannot be read or differs from the release.
    """
    templates = {}
    for language, digest in _DIGESTS.items():
        file = checkout / "utils" / f"{language}.prompt"
        # Do not read pipes or endless files.
        is_small = file.is_file() and file.stat().st_size <= _LARGEST
        with explained(file):
            text = file.read_text(encoding="utf-8", errors="replace") if is_small or not file.exists() else ""
        templates[language] = text
        if sha256(templates[language]) != digest:
            raise InputFault(
                "the file differs from InferCom's release",
                where=str(file),
                cure="give the folder of a checkout of MethodJiao/InferCom",
            )
    return templates


def ask_with(templates: Mapping[str, str]) -> None:
    """Set this process's templates for summary prompts. An empty mapping selects ctxbench's own."""
    global _released  # noqa: PLW0603 - as for the tokenizer of budgets: strategies call plain functions
    _released = templates


_NOISE = ("here is the summary:", "summary:", "summarize the code:")


def summary_prompt(code: str, language: Language) -> str:
    """Return the prompt that asks a model to summarize code."""
    return (_released.get(language) or _template(language)).replace(_CODE, code)


def _template(language: Language) -> str:
    pairs = language.apis.SUMMARY_EXAMPLES if language.apis else ()
    examples = "".join(f"code:\n{example}\n\nsummary:\n{sentence}\n\n" for example, sentence in pairs)
    return (
        f"Act as an expert {language.label} programmer. Given a function code or a fragment, "
        f"summarize it with a short sentence.\n\nHere are two examples:\n\n{examples}"
        "Please answer strictly in the examples format and do not add extra sentences!\n"
        f"code:\n{_CODE}\nsummary:\n"
    )


def post_process(answer: str) -> str:
    """Return a model's summary in lower case, without headings such as "Summary:"."""
    text = answer.lower()
    for noise in _NOISE:
        text = text.replace(noise, "")
    return text.strip()


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


def summary(code: str, language: Language) -> str:
    """Summarize code without a model, from docstring, name, comments, calls or first line; empty if none has words."""
    code = textwrap.dedent(code).strip("\n")
    function = _whole(language.outline(code))
    if function is not None:
        return _of_function(function, "")
    return post_process(_remark(code, language) or _called(code, language) or split(code.strip().partition("\n")[0]))


def split(name: str) -> str:
    """Split identifiers into words: ``HTTPClient.load_all`` -> ``http client load all``."""
    return " ".join(word for part in _PARTS.findall(name) for word in _CASES.split(part)).lower()


def first_sentence(text: str) -> str:
    """Return a docstring's first sentence without final punctuation; empty if a tag such as ``@param`` comes first."""
    text = _BREAK.sub("\n\n", _INLINE.sub(lambda match: match[1] or "", text))
    paragraph = text.strip().partition("\n\n")[0]
    paragraph = " ".join(re.split(r"\n\s*[@:]\w", f"\n{paragraph}")[0].split())
    match = _SENTENCE.match(paragraph)
    return (match[1] if match is not None else paragraph).rstrip(".:! ")


def _of_function(function: Function, owner: str) -> str:
    sentence = first_sentence(function.docstring)
    if not sentence:
        # The name of a constructor adds nothing to that of its class.
        names = [owner] if owner and function.name in ("__init__", owner) else [owner, function.name]
        sentence = split(" ".join(names))
    return post_process(sentence)


def _whole(code_outline: Outline) -> Function | None:
    function = next(iter(code_outline.functions), None)
    return function if function is not None and not function.types and not function.lines[0] else None


def _remarks(language: Language) -> re.Pattern[str]:
    return _NOTHING if language.apis is None else language.apis.REMARK


def _remark(code: str, language: Language) -> str:
    for match in _remarks(language).finditer(code):
        alone = not code[: match.start()].rpartition("\n")[2].strip()
        text = match["comment"] or (match["remark"] if alone else "") or ""
        sentence = "" if _PRAGMA.match(text) else first_sentence(_MARGIN.sub("", text.strip("\"'/*")))
        if split(sentence):
            return sentence
    return ""


def _called(code: str, language: Language) -> str:
    calls = ["".join(name.split()) for name in _CALL.findall(_remarks(language).sub(" ", code))]
    calls = [name.removeprefix("self.").removeprefix("this.") for name in calls]
    return split(" ".join(dict.fromkeys(name for name in calls if name not in _NO_CALLS)))
