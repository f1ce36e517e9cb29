"""Meanings of the headings of a leaderboard, in a sentence each. Pure text; docs/statistics.md says it at length."""

from __future__ import annotations

from collections.abc import Mapping

TERMS = {
    "rank": "The ranks that significant differences leave open: 1-3 means that nobody knows which of the three it is.",
    "tier": "Letters: two rows that share one are not told apart at 5%, after correction for all pairs.",
    "strategy": "What decides which parts of the repository the model is shown.",
    "n": "Samples that count: scored, or without a usable answer, which counts as the worst value.",
    "unscored": "Samples that the machine failed: missing, never counted as 0.",
    "marked": "Samples left out because their own tests cannot judge them.",
    "[95%]": "The mean over samples and its 95% interval, over repositories where there are at least five.",
    "by repo": "The mean of the repositories' means: every repository weighs the same.",
    "to": "The paired difference to the baseline on the samples that both completed, with its 95% interval.",
    "p": "How often chance alone would give such a difference, corrected for the pairs shown; a star: below 5%.",
    "tokens": "Mean number of tokens of the final prompt's context.",
    "calls": "Mean number of calls of the model for a sample.",
    "seconds": "Mean seconds a sample: the strategy's work and the model's answers.",
    "US$": "Mean price of a sample in US dollars; a dash where nobody knows the model's price.",
}
"""Heading, or its beginning or end, -> what it means."""


def meaning(heading: str, metrics: Mapping[str, str]) -> str:
    """Return what a heading means, or nothing where it is a level's own name.

    Args:
        heading: as it is shown.
        metrics: heading of a metric, with its unit -> what its declaration says of it.
    """
    if heading in TERMS:
        return TERMS[heading]
    if heading.endswith("[95%]"):
        return " ".join(filter(None, (metrics.get(heading.removesuffix(" [95%]")), TERMS["[95%]"])))
    first = heading.partition(" ")[0]
    return TERMS["to"] if first == "to" else ""
