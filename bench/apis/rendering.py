"""An API as it is shown in a prompt: its header and its class's, without bodies (InferCom paper, appendix)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxbench.bench.languages.outline import Function, Type
from ctxbench.bench.types import Language

_INDENT = " " * 4


def api_text(function: Function, language: Language, *, blank_decorator_line: bool = True) -> str:
    """Return a function as an API entry shows it, without the line of its path.

    Args:
        function: as `bench.languages.outline` gives it.
        language: its file's.
        blank_decorator_line: whether a Python method without decorators gets a line of four blanks where they
            would stand, as the released code prints it.
    """
    if language is Language.JAVA:
        return _java(function.types, f"{_stripped(function.header)};".split("\n"))
    signature = f"def {function.name}({function.parameters_text})"
    if function.returns:
        signature += f" -> {function.returns}"
    if not function.types:
        return signature
    lines = [*function.decorators] or ([""] if blank_decorator_line else [])
    return "\n".join([f"{function.types[-1].header}:", *(_INDENT + line for line in [*lines, signature])])


def constructor_text(types: Sequence[Type], language: Language) -> str:
    """Return a class without a constructor as an API entry shows it.

    Args:
        types: the class and those around it, outermost first.
        language: its file's.
    """
    return _java(types, []) if language is Language.JAVA else f"{types[-1].header}:"


def _java(types: Sequence[Type], member: list[str]) -> str:
    """Return a member wrapped in the headers of its class and of the class directly around that."""
    lines = member
    for depth, kind in enumerate(reversed(types[-2:])):
        closing = "};" if depth == 0 and len(types) > 1 else "}"
        lines = [f"{_stripped(kind.header)} {{", *(_INDENT + line for line in lines), closing]
        lines = [part for line in lines for part in line.split("\n")]
    return "\n".join(lines)


def _stripped(header: str) -> str:
    return "\n".join(line.strip() for line in header.split("\n"))
