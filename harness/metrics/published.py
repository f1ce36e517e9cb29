"""Profiles equal to the scorers that papers and a competition released, including their quirks.

- ``repocoder``: both texts are reduced to stripped, non-blank lines; the prediction keeps as many as the target has.
  The prompt and the language are ignored, and comments stay.
- ``crosscodeeval``: the prediction is truncated to its first statement, comments are removed from both texts by pattern
  (``#…`` and ``//…``, also inside strings), then the texts and their identifiers are compared. A Java statement ends at
  the first ``;``, ``{`` or ``}``. A Python statement is the shortest prefix before a newline for which prompt + prefix
  has no ERROR node in the tree-sitter grammar.
- ``rlcoder_repoeval``: CrossCodeEval's cleaned texts under RepoCoder's EM and ES, as in RLCoder's RepoEval numbers.
- ``infercom``: RepoCoder's EM and ES, and identifier match. For identifiers, comment lines are removed before the
  prediction is truncated to the target's number of lines. The lines are joined without a separator, so words can merge.
- ``context_collection``: chrF of the Context Collection Competition of ASE 2025, over the whole completion and the
  whole reference, with comments. This is Popović's chrF (2015) with the defaults of sacreBLEU's sentence score, which
  the organisers' package ``codegen_metrics`` wraps: n-grams of 1 to 6 characters, blanks removed, recall with twice
  the weight of precision, means over the orders that both texts have.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections import Counter
from collections.abc import Callable

import tree_sitter
import tree_sitter_python
from rapidfuzz.distance import Indel, Levenshtein

from ctxbench.bench.elementary import running_sum
from ctxbench.bench.languages.base import Language
from ctxbench.harness.metrics import Profile, Values, points, profile, share
from ctxbench.harness.metrics.ctxbench import match_identifiers

MAX_DEPTH = 1000
"""Maximum nesting of a valid tree. The official code stops at the interpreter's recursion limit."""
_JAVA_END = re.compile(r"[;{}]")

_HASH = re.compile(r"#[^\n]*")
_SLASHES = re.compile(r"//[^\n]*")
_CROSSCODEEVAL = "CrossCodeEval's released scorer"
_ORDER, _BETA = 6, 2

# Fixed lists: the official Python list is that of the running interpreter, so scores would depend on it.
_PYTHON = (
    "None and as assert async await break class continue def del elif else except finally for from global "
    "if import in is lambda nonlocal not or pass raise return try while with yield"
)
_JAVA = (
    "abstract assert boolean break byte case catch char class const continue default do double else enum "
    "extends final finally float for goto if implements import instanceof int interface long native new "
    "package private protected public return short static strictfp super switch synchronized this throw "
    "throws transient try var void volatile while"
)
_KEYWORDS = {"python": frozenset(_PYTHON.split()), "java": frozenset(_JAVA.split())}
# A backslash escapes any character but a newline. Possessive quantifiers are safe: the alternatives cannot overlap.
_STRING = re.compile(r""""(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+'""")
_WORD = re.compile(r"\w+")
_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")


def identifiers(language: str, text: str) -> list[str]:
    """Return the identifiers of `text` in order, with repeats, as CrossCodeEval and InferCom find them.

    String literals are deleted by pattern. Words that start with an ASCII letter or ``_`` are identifiers unless they
    are keywords. The prefix of ``f"…"`` remains as an identifier, as in the official code.
    """
    keywords = _KEYWORDS[language] if language in _KEYWORDS else Language(language).reserved
    return [word for word in _WORD.findall(_STRING.sub("", text)) if word[0] in _FIRST and word not in keywords]


def _repocoder(_language: str, _prompt: str, prediction: str, ground_truth: str) -> Values:
    return {"em": float(_same_lines(prediction, ground_truth)), "es": _edit_similarity(prediction, ground_truth)}


def _same_lines(prediction: str, ground_truth: str) -> bool:
    """Return whether the compared lines are equal; True if the target has no non-blank line."""
    predicted, target = _compared_lines(prediction, ground_truth)
    return predicted == target


def _edit_similarity(prediction: str, ground_truth: str) -> float | None:
    """Return 1 - Levenshtein distance / greater length; None if the target is blank, as in a division by zero."""
    predicted, target = _compared_lines(prediction, ground_truth)
    if not target:
        return None
    predicted_text, target_text = "\n".join(predicted), "\n".join(target)
    return 1 - Levenshtein.distance(predicted_text, target_text) / max(len(predicted_text), len(target_text))


def _compared_lines(prediction: str, ground_truth: str) -> tuple[list[str], list[str]]:
    target = _lines(ground_truth)
    return _lines(prediction)[: len(target)], target


def _lines(text: str) -> list[str]:
    return [stripped for line in text.splitlines() if (stripped := line.strip())]


_REPOCODER = (
    share("em", "Exact match of as many non-blank lines as the reference has.", source="RepoCoder's released scorer"),
    share(
        "es",
        "Edit similarity of as many non-blank lines as the reference has: 1 - Levenshtein distance / greater length.",
        source="RepoCoder's released scorer",
    ),
)

profile(
    Profile(
        name="repocoder",
        summary="RepoCoder's scorer: as many lines as the target has",
        metrics=_REPOCODER,
        score=_repocoder,
    )
)


def clean(text: str) -> str:
    """Delete ``#`` and ``//`` comments to the end of the line, in any language. Block comments stay."""
    return _SLASHES.sub("", _HASH.sub("", text))


def cleaned(language: str, prompt: str, prediction: str, ground_truth: str) -> tuple[str, str]:
    """Return the prediction's first statement and the whole target, both without comments, as CrossCodeEval does."""
    return clean(first_statement(language, prompt, prediction)), clean(ground_truth)


def _crosscodeeval(language: str, prompt: str, prediction: str, ground_truth: str) -> Values:
    """Return ``em`` and ``id_*``, 0 to 1; ``es`` and ``es_difflib`` as integers, 0 to 100."""
    predicted, target = cleaned(language, prompt, prediction, ground_truth)
    predicted_text, target_text = predicted.strip(), target.strip()
    return {
        "em": float(_statement_lines(predicted) == _statement_lines(target)),
        "es": float(_points(predicted_text, target_text, _levenshtein_ratio)),
        "es_difflib": float(_points(predicted_text, target_text, _difflib_ratio)),
        **match_identifiers(identifiers(language, predicted), identifiers(language, target)),
    }


def _statement_lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _points(predicted: str, target: str, ratio: Callable[[str, str], float]) -> int:
    if predicted == target:
        return 100
    if not predicted or not target:
        return 0
    return round(100 * ratio(predicted, target))


def _levenshtein_ratio(predicted: str, target: str) -> float:
    """Return 1 - (insertions + deletions) / (sum of lengths), in this order of operations."""
    return 1.0 - Indel.distance(predicted, target) / (len(predicted) + len(target))


def _difflib_ratio(predicted: str, target: str) -> float:
    return difflib.SequenceMatcher(None, predicted, target).ratio()


def first_statement(language: str, prompt: str, prediction: str) -> str:
    """Return the first statement of `prediction`, or all of it if no statement ends. Only Python uses the prompt."""
    if language == "python":
        return _cut_python(prompt, prediction)
    end = _JAVA_END.search(prediction)
    # The official code treats a bracket at the start as "not found".
    return prediction[: end.end()] if end and end.start() > 0 else prediction


def _cut_python(prompt: str, prediction: str) -> str:
    """Try each prefix that ends before a newline. No other prefix can end the search.

    Each prefix is parsed from scratch, because an incrementally edited tree may recover from an error elsewhere. Most
    predictions are decided at their first newline.
    """
    # The search starts after the first character, so the empty prefix is never tried.
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
        # A lone surrogate cannot be parsed. The official code keeps the text whole at any exception.
        pass
    return prediction


@functools.cache
def _grammar() -> tree_sitter.Language:
    return tree_sitter.Language(tree_sitter_python.language())


def _is_valid(root: tree_sitter.Node) -> bool:
    """Return whether a tree has no ERROR node and is not too deep. MISSING nodes are accepted."""
    # `has_error` is also true for MISSING nodes, so it only shows where to search.
    suspects = [root] if root.has_error else []
    while suspects:
        node = suspects.pop()
        if node.is_error:
            return False
        suspects.extend(child for child in node.children if child.has_error)
    return not _too_deep(root)


def _too_deep(root: tree_sitter.Node) -> bool:
    open_nodes = [(root, 1)]
    while open_nodes:
        node, depth = open_nodes.pop()
        if depth > MAX_DEPTH:
            return True
        # A subtree of n nodes is at most n levels deep, so most subtrees are skipped.
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
                source=_CROSSCODEEVAL,
            ),
            points(
                "es",
                "Edit similarity of the first statement and the reference, in whole points (with python-Levenshtein).",
                source=_CROSSCODEEVAL,
            ),
            points(
                "es_difflib",
                "Edit similarity by difflib, which the released code uses without python-Levenshtein.",
                source=_CROSSCODEEVAL,
            ),
            share(
                "id_em",
                "Whether the identifiers equal those of the reference, in the same order.",
                source=_CROSSCODEEVAL,
            ),
            share("id_precision", "Share of the predicted identifiers that the reference has.", source=_CROSSCODEEVAL),
            share("id_recall", "Share of the reference's identifiers that were predicted.", source=_CROSSCODEEVAL),
            share(
                "id_f1",
                "Harmonic mean of identifier precision and recall; 0 if neither text has any.",
                source=_CROSSCODEEVAL,
            ),
        ),
        score=_crosscodeeval,
    )
)


def _rlcoder(language: str, prompt: str, prediction: str, ground_truth: str) -> Values:
    """Return ``em`` and ``es``, 0 to 1; ``es`` is None if the cleaned target is blank."""
    predicted, target = cleaned(language, prompt, prediction, ground_truth)
    return _repocoder(language, prompt, predicted, target)


profile(
    Profile(
        name="rlcoder_repoeval",
        summary="RLCoder's RepoEval scorer: CrossCodeEval's clean statement under RepoCoder's formulas",
        metrics=_REPOCODER,
        score=_rlcoder,
    )
)


def _infercom(language: str, prompt: str, prediction: str, ground_truth: str) -> Values:
    """Return ``em``, ``es``, ``id_em`` and ``id_f1``, 0 to 1; ``es`` is None for a blank target."""
    target = _code_lines(language, ground_truth)
    predicted = _code_lines(language, prediction)[: len(target)]
    names = match_identifiers(identifiers(language, "".join(predicted)), identifiers(language, "".join(target)))
    line_values = _repocoder(language, prompt, prediction, ground_truth)
    return {**line_values, "id_em": names["id_em"], "id_f1": names["id_f1"]}


def _code_lines(language: str, text: str) -> list[str]:
    sign = Language(language).comment
    return [line for line in _lines(text) if not line.startswith(sign)]


profile(
    Profile(
        name="infercom",
        summary="InferCom's scorer: RepoCoder's lines, identifiers without comment lines",
        metrics=(
            *_REPOCODER,
            share(
                "id_em",
                "Whether the identifiers equal those of the reference, in the same order.",
                source="InferCom's released scorer",
            ),
            share(
                "id_f1",
                "F1 of the identifiers, as sets; 0 if neither text has any.",
                source="InferCom's released scorer",
            ),
        ),
        score=_infercom,
    )
)


def chrf(prediction: str, ground_truth: str) -> float:
    """Return the chrF score (character n-gram F-score), from 0 to 1; 0 if a text is blank."""
    predicted, target = ("".join(text.split()) for text in (prediction, ground_truth))
    orders = [_shares(predicted, target, order) for order in range(1, min(_ORDER, len(predicted), len(target)) + 1)]
    if not orders:
        return 0.0
    precision = running_sum(precision for precision, _ in orders) / len(orders)
    recall = running_sum(recall for _, recall in orders) / len(orders)
    weighed = _BETA**2 * precision + recall
    return (1 + _BETA**2) * precision * recall / weighed if weighed else 0.0


def _shares(predicted: str, target: str, order: int) -> tuple[float, float]:
    ours, theirs = (
        Counter(text[start : start + order] for start in range(len(text) - order + 1)) for text in (predicted, target)
    )
    matches = (ours & theirs).total()
    return matches / ours.total(), matches / theirs.total()


def _context_collection(language: str, prompt: str, prediction: str, ground_truth: str) -> Values:  # noqa: ARG001 - texts alone
    return {"chrf": chrf(prediction, ground_truth)}


profile(
    Profile(
        name="context_collection",
        summary="chrF of the whole completion, as in the Context Collection Competition of 2025",
        metrics=(
            share(
                "chrf",
                "Character n-gram F-score, recall twice as heavy as precision, blanks left out.",
                source="Popović 2015, with sacreBLEU's defaults",
            ),
        ),
        score=_context_collection,
    )
)
