"""The functions of RepoEval's function level: what the end of a prompt says of the function to complete. Pure."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass

from ctxbench.bench.asts import parse
from ctxbench.bench.testing.python.text import indentation, shift
from ctxbench.bench.types import Reference, Sample

BENCHMARK = "repoeval"
_DEF = re.compile(r"[ \t]*(async[ \t]+)?def[ \t]+(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A function's declaration and docstring, at the end of a prompt."""

    line: int
    """Of the prompt, 0-based; decorators lie above it."""
    name: str
    """Bare, without its class."""
    signature: str
    docstring: str | None


def head_of(prompt: str, body: str, name: str | None) -> Head | None:
    """Return the head of the function that a prompt ends in.

    Args:
        prompt: ends with the newline before the body.
        body: the answer, with its indentation.
        name: what the function is called, if that is known.

    Returns:
        None if no declaration, followed by the rest of the prompt and the body, is one whole function.
    """
    lines = prompt.split("\n")[:-1]
    for at in range(len(lines) - 1, -1, -1):
        match = _DEF.match(lines[at])
        if match is None or (name is not None and match[2] != name.rpartition(".")[2]):
            continue
        text = "\n".join([*lines[at:], body])
        # The text of a method stands indented: in a block of its own it is read as it is.
        tree = parse(f"if 1:\n{text}\n" if indentation(lines[at]) else f"{text}\n")
        inner = tree.body if tree is not None else []
        if inner and isinstance(inner[0], ast.If):
            inner = inner[0].body
        if len(inner) == 1 and isinstance(inner[0], ast.FunctionDef | ast.AsyncFunctionDef):
            return _head(at, inner[0], lines[at:])
    return None


def _head(line: int, node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> Head:
    first = node.body[0]
    behind = lines[: first.lineno - node.lineno]
    signature = textwrap.dedent("\n".join(behind)).strip() if behind else lines[0].strip()
    return Head(line=line, name=node.name, signature=signature, docstring=ast.get_docstring(node))


def body_of(sample: Sample, reference: Reference) -> str:
    """Return the body of a function sample as it stands behind its cursor, in the file's indentation."""
    if sample.benchmark == BENCHMARK:
        return str(reference.fields["body"])
    lines = reference.target.split("\n")
    head = sample.prefix.split("\n")[sample.span[0] if sample.span else 0 : -1]
    return "\n".join(shift(lines, indentation(head[0] if head else ""))[len(head) :])
