"""Profile `crosscodeeval`: equal to the scorer released with CrossCodeEval, its quirks included.

The prediction is cut to its first statement, comments are removed from both texts by pattern (``#…`` and ``//…``, also
inside strings), then the texts and their identifiers are compared. In Java a statement goes up to the first ``;``,
``{`` or ``}``; in Python it is the shortest prefix that ends right before a newline and leaves prompt + prefix without
an ERROR node of the tree-sitter grammar.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable

import tree_sitter
import tree_sitter_python
from rapidfuzz.distance import Indel

from ctxbench.harness.metrics.lexing import identifiers, match_identifiers
from ctxbench.harness.metrics.profile import Profile, Values, points, profile, share

MAX_DEPTH = 1000
"""Trees nested deeper count as invalid: the official walk ends at the interpreter's recursion limit."""
_JAVA_END = re.compile(r"[;{}]")

_SOURCE = "CrossCodeEval's released scorer"
_HASH = re.compile(r"#[^\n]*")
_SLASHES = re.compile(r"//[^\n]*")


def clean(text: str) -> str:
    """Delete from ``#``, then from ``//``, to the end of the line, in any language; block comments stay."""
    return _SLASHES.sub("", _HASH.sub("", text))


def cleaned(language: str, prompt: str, prediction: str, ground_truth: str) -> tuple[str, str]:
    """Return (prediction, target) as they are compared; the target is never cut."""
    return clean(first_statement(language, prompt, prediction)), clean(ground_truth)


def score(language: str, prompt: str, prediction: str, ground_truth: str) -> Values:
    """Return ``em`` and ``id_*`` in 0..1, ``es`` and ``es_difflib`` as whole points 0..100."""
    predicted, target = cleaned(language, prompt, prediction, ground_truth)
    names = match_identifiers(identifiers(language, predicted), identifiers(language, target))
    predicted_text, target_text = predicted.strip(), target.strip()
    return {
        "em": float(_lines(predicted) == _lines(target)),
        "es": float(_points(predicted_text, target_text, _levenshtein_ratio)),
        "es_difflib": float(_points(predicted_text, target_text, _difflib_ratio)),
        "id_em": names.em,
        "id_precision": names.precision,
        "id_recall": names.recall,
        "id_f1": names.f1,
    }


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _points(predicted: str, target: str, ratio: Callable[[str, str], float]) -> int:
    """Return a similarity in whole points, ties to the even one."""
    if predicted == target:
        return 100
    if not predicted or not target:
        return 0
    return round(100 * ratio(predicted, target))


def _levenshtein_ratio(predicted: str, target: str) -> float:
    """Return 1 - (insertions + deletions) / (sum of lengths), in this order of operations."""
    return 1.0 - Indel.distance(predicted, target) / (len(predicted) + len(target))


def _difflib_ratio(predicted: str, target: str) -> float:
    """Return difflib's ratio, its popularity heuristic ("autojunk") on."""
    return difflib.SequenceMatcher(None, predicted, target).ratio()


def first_statement(language: str, prompt: str, prediction: str) -> str:
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


profile(
    Profile(
        name="crosscodeeval",
        summary="CrossCodeEval's scorer: first statement, comments removed by pattern",
        metrics=(
            share(
                "em",
                "Exact match of the first statement and the reference, comments removed.",
                source=_SOURCE,
            ),
            points(
                "es",
                "Edit similarity of the first statement and the reference, in whole points (with python-Levenshtein).",
                source=_SOURCE,
            ),
            points(
                "es_difflib",
                "Edit similarity by difflib, which the released code uses where python-Levenshtein is missing.",
                source=_SOURCE,
            ),
            share("id_em", "The identifiers are those of the reference, in the same order.", source=_SOURCE),
            share("id_precision", "Share of the predicted identifiers that the reference has.", source=_SOURCE),
            share("id_recall", "Share of the reference's identifiers that were predicted.", source=_SOURCE),
            share(
                "id_f1", "Harmonic mean of identifier precision and recall; 0 if neither text has any.", source=_SOURCE
            ),
        ),
        score=score,
    )
)
