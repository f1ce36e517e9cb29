"""Extract one whole function, as it would stand in the file, from a model's answer. Pure; no model, no test, no file.

A model continues the prompt (then it wrote a body), or answers in prose with the function in a fence, between
tags, or plainly. What is kept is one function: its own signature where it wrote one, else the sample's.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from ctxbench.bench.types import Language, Sample
from ctxbench.harness.extract import java, python
from ctxbench.harness.extract.given import Given, given
from ctxbench.harness.extract.unwrap import tagged

PARSE_FAILED = "parse_failed"
"""Flag of an answer that is no function of the language; it is kept as it came, and its tests will say so."""

NO_CODE_TAGS = "no_code_tags"
"""Flag of an answer that is no mere continuation of the prompt and stands between no ``[CODE]`` tags."""

_BODIES: dict[Language, Callable[[str], str | None]] = {Language.PYTHON: python.body, Language.JAVA: java.body}
_Reader = Callable[[Given, str, bool], tuple[str, bool]]
_READERS: dict[Language, _Reader] = {Language.PYTHON: python.function, Language.JAVA: java.function}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """One whole function."""

    text: str
    """In the indentation of the file; empty if the answer was blank."""
    flags: tuple[str, ...] = ()


def extract(sample: Sample, answer: str) -> Extracted:
    """Return the whole function that an answer gives for a function sample.

    Args:
        sample: what was asked for.
        answer: what the model wrote, all of it.
    """
    answer = answer.replace("\r\n", "\n")
    inner = tagged(answer)
    code = answer if inner is None else inner
    if not code.strip():
        return Extracted(text="", flags=(PARSE_FAILED,))
    head = given(sample)
    text, parsed = _READERS[sample.language](head, code, inner is not None)
    flags = () if parsed else (PARSE_FAILED,)
    if inner is None and not (text.startswith(head.head.rstrip()) and _begins(answer) in text):
        flags = (NO_CODE_TAGS, *flags)
    return Extracted(text=text, flags=flags)


def _begins(answer: str) -> str:
    return answer.strip().partition("\n")[0].rstrip()


def body(sample: Sample, text: str) -> str:
    """Return the body of a whole function: without signature, docstring and indentation.

    Of one that is not whole (it does not parse, or its braces are not balanced) what follows the sample's own
    signature and docstring is taken, and all of it where it has others.
    """
    found = _BODIES[sample.language](text)
    if found is None:
        head = textwrap.dedent(given(sample).lines)
        found = textwrap.dedent(text).removeprefix(head)
    return textwrap.dedent(found).strip("\n")


def rest(sample: Sample, target: str) -> str:
    """Return what stands behind the cursor of a function sample, in the indentation of the file.

    Args:
        sample: what was asked for.
        target: the whole function, dedented.
    """
    head = given(sample)
    indented = textwrap.indent(target, head.indent).split("\n")
    lines = indented[head.head.count("\n") :] or [""]
    return "\n".join([lines[0][sample.cursor.column :], *lines[1:]])
