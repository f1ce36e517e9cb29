"""CrossCodeEval's completion unit: the first statement of a generation.

Java: up to the first ``;``, ``{`` or ``}``. Python: the shortest prefix that ends right before a
newline and leaves prompt + prefix without an ERROR node of the tree-sitter grammar.
"""

from __future__ import annotations

import functools
import re

import tree_sitter
import tree_sitter_python

MAX_DEPTH = 1000
"""Trees nested deeper count as invalid: the official walk ends at the interpreter's recursion limit."""

_JAVA_END = re.compile(r"[;{}]")


def cut(language: str, prompt: str, prediction: str) -> str:
    """Return the first statement of `prediction`, or all of it where none can be told.

    The prompt is looked at for Python only.
    """
    if language == "python":
        return _cut_python(prompt, prediction)
    end = _JAVA_END.search(prediction)
    # A bracket in first place reads as "not found" in the official code.
    return prediction[: end.end()] if end and end.start() > 0 else prediction


def _cut_python(prompt: str, prediction: str) -> str:
    """Try each prefix that a newline follows; no other prefix can end the search.

    Each is parsed whole: a tree made by an edit of the previous one may recover from an error elsewhere,
    and most generations are decided by their first newline.
    """
    # The empty prefix is never tried: the search starts behind the first character.
    end = prediction.find("\n", 1)
    if end < 0:
        return prediction
    parser = tree_sitter.Parser(_grammar())
    try:
        while end >= 0:
            if _is_valid(parser.parse((prompt + prediction[:end]).encode("utf-8")).root_node):
                return prediction[:end].rstrip()
            end = prediction.find("\n", end + 1)
    except UnicodeEncodeError:
        # A lone surrogate cannot be parsed; the official code keeps the text whole at any exception.
        pass
    return prediction


@functools.cache
def _grammar() -> tree_sitter.Language:
    return tree_sitter.Language(tree_sitter_python.language())


def _is_valid(root: tree_sitter.Node) -> bool:
    """Say whether a tree has no ERROR node and is not nested too deep. MISSING nodes are accepted."""
    # `has_error` is also true for MISSING nodes: it tells where to look, not what is there.
    suspects = [root] if root.has_error else []
    while suspects:
        node = suspects.pop()
        if node.is_error:
            return False
        suspects.extend(child for child in node.children if child.has_error)
    return not _too_deep(root)


def _too_deep(root: tree_sitter.Node) -> bool:
    """Say whether any node has more than `MAX_DEPTH` nodes on its path to the root."""
    open_nodes = [(root, 1)]
    while open_nodes:
        node, depth = open_nodes.pop()
        if depth > MAX_DEPTH:
            return True
        # A subtree of n nodes is at most n levels deep, so that most are passed over at once.
        if depth - 1 + node.descendant_count > MAX_DEPTH:
            open_nodes.extend((child, depth + 1) for child in node.children)
    return False
