"""Profile `ctxbench`: the corrected measure, and the default.

- Unit: for a target of one line, the prediction's first line; where nothing of the line stands before the
  cursor yet, its first non-blank line. For a longer target, as many non-blank lines as it has; the rest of the
  cursor's line counts as one in both, also where the line is full and nothing follows on it.
- Comments are removed by syntax, so that ``a // b`` and ``"#fff"`` keep their tails. A target that is
  nothing but comment is compared as it stands.
- ES is the indel ratio, always, whatever else is installed.
- Identifiers are found by syntax: those outside strings and comments, with the ones in f-strings'
  replacement fields. Two texts without any agree: their F1 is 1.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from rapidfuzz.distance import Indel

from ctxbench.harness.metrics import lexing
from ctxbench.harness.metrics.profile import Profile, Values, profile, share

_SOURCE = "ctxbench"
_LINE_END = re.compile(r"\r\n|\n|\r")


def score(language: str, prompt: str, prediction: str, ground_truth: str) -> Values:
    """Return ``em``, ``es`` and ``id_*``, all in 0..1."""
    return compare(language, prompt, unit(prompt, prediction, ground_truth), ground_truth)


def compare(language: str, prompt: str, prediction: str, ground_truth: str) -> Values:
    """Return what `score` does of the whole prediction, none of it cut off."""
    predicted = lexing.read(language, prompt, prediction)
    target = lexing.read(language, prompt, ground_truth)
    predicted_code, target_code = _tidy(predicted.code), _tidy(target.code)
    if not target_code:
        predicted_code, target_code = _tidy(prediction), _tidy(ground_truth)
    return {
        "em": float(predicted_code == target_code),
        "es": Indel.normalized_similarity(predicted_code, target_code),
        **_names(predicted, target),
    }


def unit(prompt: str, prediction: str, ground_truth: str) -> str:
    """Return the part of the prediction that is compared: as many lines that count as the target has.

    Those are the lines that are not blank, and the line of the cursor where something stands before it: that counts in
    both, even if nothing follows on it.
    """
    cursor_line_counts = bool(prompt[max(prompt.rfind("\n"), prompt.rfind("\r")) + 1 :].strip())

    def counting(text: str) -> Iterator[str]:
        for number, line in enumerate(_LINE_END.split(text)):
            if line.strip() or (number == 0 and cursor_line_counts):
                yield line

    line_count = max(1, sum(1 for _ in counting(ground_truth)))
    return "\n".join(itertools.islice(counting(prediction), line_count))


def _tidy(text: str) -> str:
    """Strip the text, the ends of its lines, and blank lines."""
    lines = (line.rstrip() for line in _LINE_END.split(text))
    return "\n".join(line for line in lines if line).strip()


def _names(predicted: lexing.LexedText, target: lexing.LexedText) -> Values:
    names = lexing.match_identifiers(predicted.names, target.names)
    if not predicted.names and not target.names:
        return {"id_em": 1.0, "id_precision": 1.0, "id_recall": 1.0, "id_f1": 1.0}
    return {"id_em": names.em, "id_precision": names.precision, "id_recall": names.recall, "id_f1": names.f1}


profile(
    Profile(
        name="ctxbench",
        summary="first line, comments and identifiers by syntax, indel similarity; the default",
        metrics=(
            share(
                "em",
                "Exact match of the line, or of a function's body, comments removed.",
                source=_SOURCE,
            ),
            share(
                "es",
                "Edit similarity of the same texts: 1 - (insertions + deletions) / sum of lengths.",
                source=_SOURCE,
            ),
            share("id_em", "The identifiers are those of the reference, in the same order.", source=_SOURCE),
            share("id_precision", "Share of the predicted identifiers that the reference has.", source=_SOURCE),
            share("id_recall", "Share of the reference's identifiers that were predicted.", source=_SOURCE),
            share(
                "id_f1", "Harmonic mean of identifier precision and recall; 1 if neither text has any.", source=_SOURCE
            ),
        ),
        score=score,
    )
)
