"""The lengths of prefixes, answers and suffixes: quartiles and a histogram. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import quantiles
from typing import Any

import altair as alt

from ctxbench.bench.anatomy import Measured
from ctxbench.dashboard.theme import SERIES
from ctxbench.dashboard.views.benchmark import Cells

LENGTHS: Mapping[str, Callable[[Measured], int | None]] = {
    "prefix tokens": lambda sample: sample.prefix_tokens,
    "prefix lines": lambda sample: sample.prefix_lines,
    "target tokens": lambda sample: sample.target_tokens,
    "target lines": lambda sample: sample.target_lines,
    "suffix lines": lambda sample: sample.suffix_lines,
    "names used": lambda sample: sample.uses,
    "tests": lambda sample: sample.tests,
}
"""What is measured of a sample -> how."""
MEANING: Mapping[str, str] = {
    "prefix tokens": "Tokens of the file up to the cursor, counted as budgets are (ctxcode-1).",
    "prefix lines": "Lines of the file before the cursor's.",
    "target tokens": "Tokens of the answer.",
    "target lines": "Lines of the answer.",
    "suffix lines": "Lines of the file after the answer; line samples do not show them.",
    "names used": "Names of the project that the answer needs.",
    "tests": "Tests that judge a completion.",
}
HELP: Mapping[str, str] = {
    "what": "What is measured of a sample.",
    "samples": "Samples that have it.",
    "least": "The smallest.",
    "quarter": "A quarter of the samples are at or below it.",
    "median": "Half of the samples are at or below it.",
    "three quarters": "Three quarters of the samples are at or below it.",
    "most": "The largest.",
}
_BINS = 24


def summary(measured: Sequence[Measured]) -> list[Cells]:
    """Return the quartiles of every length that tells samples apart."""
    rows: list[Cells] = []
    for name, of in LENGTHS.items():
        lengths = sorted(value for sample in measured if (value := of(sample)) is not None)
        if not lengths or lengths[-1] == 0:
            continue
        low, middle, high = quantiles(lengths, n=4, method="inclusive") if len(lengths) > 1 else [lengths[0]] * 3
        rows.append(
            {
                "what": name,
                "samples": len(lengths),
                "least": lengths[0],
                "quarter": round(low),
                "median": round(middle),
                "three quarters": round(high),
                "most": lengths[-1],
            }
        )
    return rows


def bins(values: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return low, high (exclusive) and count of equal stretches from the least to the most; none of nothing.

    The last stretch takes what lies far out: it begins where 99% of the values end, so that the others can be seen.
    """
    if not values:
        return []
    ordered = sorted(values)
    far = ordered[math.ceil(0.99 * len(ordered)) - 1]
    width = max(1, math.ceil((far - ordered[0] + 1) / _BINS))
    last = (far - ordered[0]) // width
    counted = Counter(min((value - ordered[0]) // width, last) for value in ordered)
    return [
        (
            ordered[0] + at * width,
            max(ordered[0] + (at + 1) * width, ordered[-1] + 1 if at == last else 0),
            counted[at],
        )
        for at in range(last + 1)
    ]


def histogram(measured: Sequence[Measured], name: str) -> alt.Chart:
    """Return the distribution of a length of `LENGTHS` as a bar chart, one colour a kind of sample."""
    of = LENGTHS[name]
    values = [value for sample in measured if (value := of(sample)) is not None]
    edges = bins(values)
    rows: list[dict[str, Any]] = []
    for low, high, count in edges:
        label = str(low) if high == low + 1 else f"{low} to {high - 1}"
        rows.append({"from": low, "length": label, "samples": count})
    data: Any = alt
    chart: alt.Chart = (
        alt.Chart(data.Data(values=rows), height=180)
        .mark_bar(color=SERIES[0])
        .encode(
            x=alt.X("length:N", sort=[row["length"] for row in rows], title=name, axis=alt.Axis(labelOverlap=True)),
            y=alt.Y("samples:Q", title="samples", axis=alt.Axis(tickMinStep=1)),
            tooltip=[alt.Tooltip("length:N", title=name), alt.Tooltip("samples:Q", title="samples")],
        )
    )
    return chart
