"""API signatures of a file, as the text of an API block."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA

_JAVA_METHOD = re.compile(
    r"^[ \t]+(?:public|protected|private|static)[\w<>\[\], .?]*?[ \t](\w+)\(([^)]*)\)[^;{]*\{", re.MULTILINE
)


def signatures(path: str, text: str, language: Language) -> Iterator[tuple[str, str]]:
    """Yield (name that a user writes, API text) of every function of a file."""
    if language == JAVA:
        owner = Path(path).stem
        for match in _JAVA_METHOD.finditer(text):
            head = " ".join(match.group().rstrip("{").split())
            yield owner, f"# {path}\n# public class {owner} {{\n#     {head};\n# }}\n\n"
        return
    tree = _parsed(text)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            yield node.name, f"# {path}\n# def {node.name}({ast.unparse(node.args)}){returns}\n\n"
        elif isinstance(node, ast.ClassDef):
            for child in node.body:
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    head = f"# {path}\n# class {node.name}:\n#     \n#     def {child.name}({ast.unparse(child.args)})"
                    yield (node.name if child.name == "__init__" else child.name), head + "\n\n"


def _parsed(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except SyntaxError:
            return None
