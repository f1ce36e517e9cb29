"""Contents of the Samples page: metrics, filters, the list, and one sample with scores, blocks and calls."""

from __future__ import annotations

import difflib
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ctxbench.bench.escaping import blanks, visible
from ctxbench.bench.samples import AnsweredTask
from ctxbench.dashboard.views import Figure
from ctxbench.harness.leaderboard import scales
from ctxbench.harness.leaderboard.scales import Scale, scale_of
from ctxbench.harness.metrics import COPYABLE, HEADLINE, common_metric
from ctxbench.harness.results import Status, only_copies
from ctxbench.harness.store.details import BlockFacts, CompletionFacts, Detail, Step, StoredCall
from ctxbench.harness.store.runs import CONTEXT, StoredRun
from ctxbench.harness.store.search import Differs, Facets, FoundSample, Measure, Order
from ctxbench.harness.store.verdicts import PASS
from ctxbench.harness.store.write import StoredVerdict

TASK_LINES, TASK_CHARACTERS = 15, 4_000
"""Maximum lines and characters displayed before the cursor."""
STEP = 500
"""Maximum characters of a text in a row of steps. The call contains the whole text."""
CURSOR = "▏"

PAGE = 25
ANY = "any"
NONE = "none"
PASSES = "pass@1"
HELP: Mapping[str, str] = {
    "": "The sample shown below.",
    "sample": "The sample's id, as in samples.jsonl and in exported results.",
    "repository": "Repository of the code.",
    "place": "File, and line of the cursor, counted from 1.",
    "level": "A kind of task: where a line is cut, or how much of its repository a function uses.",
    "status": "scored; model-failed: no usable answer, counts as the worst value; infra-failed: missing; excluded: "
    "invalid.",
    "A": "Value of run A, mean over its completions; empty if the sample does not count.",
    "B": "Value of run B.",
    "A - B": "Run A minus run B.",
}
NUMBERS: Mapping[str, str] = {"A": "%.1f", "B": "%.1f", "A - B": "%+.1f"}
"""Numeric column -> its format. A single sample has no interval."""
STATUS: Mapping[Status, str] = {
    Status.SCORED: "The sample counts.",
    Status.MODEL_FAILED: "The model gave no usable answer: the sample counts as the worst value.",
    Status.INFRA_FAILED: "The strategy or the machine failed, or the run is not complete: the sample is missing.",
    Status.EXCLUDED: "The sample is invalid: its tests cannot judge it, so it does not count.",
}
DIFFERS: Mapping[str, Differs] = {ANY: "", "A and B differ": "any", "A is better": "first", "B is better": "second"}
ORDERS: Mapping[str, Order] = {"as planned": "plan", "lowest of A": "lowest", "highest of A": "highest"}
COMPARED_ORDERS: Mapping[str, Order] = {"most different": "difference", **ORDERS}
"""Orders of the list if two runs are displayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric with its name on the page and its key in the store."""

    name: str
    measure: Measure
    scale: Scale

    def in_unit(self, value: float | None) -> float | None:
        """Convert a stored value to the displayed unit."""
        return None if value is None else value * self.scale.factor


def metrics(facets: Facets, profile: str) -> tuple[Metric, ...]:
    """Return a run's metrics under a profile, and its metrics of contexts and tests."""
    return tuple(_metric(named(kind), *kind, profile) for kind in facets.measures if belongs(kind, profile))


def belongs(kind: tuple[str, str], profile: str) -> bool:
    """Return whether a stored (profile, metric) is displayed under `profile`: its own, context metrics, the verdict."""
    stored_profile, metric = kind
    of_context = stored_profile == CONTEXT and common_metric(metric) is not None
    return metric == PASS or stored_profile == profile or of_context


def named(kind: tuple[str, str]) -> str:
    """Return the name that a stored metric has on the leaderboard."""
    return PASSES if kind[1] == PASS else kind[1]


def _metric(name: str, stored_profile: str, metric: str, profile: str) -> Metric:
    scale = scale_of(profile, name)
    worst = None if scale.worst is None else scale.worst / scale.factor
    measure = Measure(profile=stored_profile, metric=metric, worst=worst, lower_is_better=scale.lower_is_better)
    return Metric(name=name, measure=measure, scale=scale)


def preferred(available: Sequence[Metric], generator: str) -> Metric | None:
    """Return the default metric: the ranking metric of the leaderboard, or another available one; None without any."""
    ranking = (PASSES, *([COPYABLE] if only_copies(generator) else []), "es", "em")
    named = {metric.name: metric for metric in available}
    own = sorted(available, key=lambda metric: (metric.measure.profile == CONTEXT, metric.name != HEADLINE))
    return next((named[name] for name in ranking if name in named), own[0] if own else None)


def spelled(run: StoredRun) -> str:
    """Return the text of a run in a list of options: its strategy and id."""
    return f"{run.strategy} · {run.id}"


def sample_rows(
    samples: Sequence[FoundSample], metric: Metric, opened: str, *, compared: bool
) -> list[dict[str, object]]:
    """Return one row per sample; with `compared` also the values of a second run."""
    rows: list[dict[str, object]] = []
    for sample in samples:
        values: dict[str, object] = {"A": metric.in_unit(sample.value)}
        if compared:
            values["B"] = metric.in_unit(sample.other)
            both = sample.value is not None and sample.other is not None
            values["A - B"] = metric.in_unit((sample.value or 0) - (sample.other or 0)) if both else None
        # Values come first: names and places are long, and a table is truncated at the right.
        row: dict[str, object] = {"": "▸" if sample.id == opened else "", **values, "sample": sample.id}
        row |= {"status": str(sample.status), "level": sample.level, "repository": sample.repo}
        row["place"] = f"{sample.path}:{sample.line + 1}"
        rows.append(row)
    return rows


def neighbours(samples: Sequence[FoundSample], sample: str) -> tuple[str | None, str | None, int]:
    """Return the ids of the samples before and after this one, and its position in the list, counted from 1.

    An id is None at an end of the list. If the sample is not listed, its position is 0 and the next id is the first.
    """
    ids = [listed.id for listed in samples]
    at = ids.index(sample) if sample in ids else -1
    return (ids[at - 1] if at > 0 else None), next(iter(ids[at + 1 :]), None), at + 1


def pages(total: int) -> int:
    """Return the number of pages for this many samples, at least 1."""
    return max(1, -(-total // PAGE))


DETAIL_HELP: Mapping[str, str] = {
    "block": "Position in the prompt; empty for a dropped block.",
    "kind": "infile: the file itself; similar: code found elsewhere; api: signatures; other kinds are the "
    "strategy's own.",
    "places": "Files and lines of the block, counted from 1.",
    "score": "Score by the retriever; scores of different retrievers cannot be compared.",
    "tokens": "Length in tokens, by the tokenizer of budgets.",
    "state": "kept whole, cut to fit, or dropped.",
    "reason": "Why the block was dropped.",
    "gain": "Bits that the block saves on the reference, if measured by `ctxbench diagnose`.",
    "call": "Number of the call, in the order in which the model was asked.",
    "role": "Purpose of the call; final: the completion that is scored.",
    "tokens in": "Tokens of the prompt, as the generator counts them.",
    "cached": "Prompt tokens that the service had cached.",
    "tokens out": "Tokens of the answer.",
    "seconds": "Seconds until the answer.",
    "price": "US dollars, if the model's price is known.",
    "finish": "Why the answer ended. stop: a stop sequence or its natural end; length: the token limit.",
    "step": "Number of the model's answer; an answer may call several tools.",
    "tool": "Tool that the model called; none: an answer without a call, which also counts as a step.",
    "arguments": "Arguments as the model wrote them.",
    "said": "Text that the model wrote beside its calls.",
    "metric": "The metric, under the chosen profile.",
}


def place(detail: Detail) -> str:
    """Return a sample's repository, file, line and column of the cursor (counted from 1), and level."""
    return f"{detail.repo} · {detail.path}:{detail.line + 1}:{detail.column + 1} · {detail.level}"


def before_cursor(task: AnsweredTask) -> str:
    """Return the last lines before the cursor, then the mark `CURSOR`. A very long text loses its start."""
    whole = "\n".join(task.prefix.split("\n")[-TASK_LINES:])
    return ("…" if len(whole) > TASK_CHARACTERS else "") + whole[-TASK_CHARACTERS:] + CURSOR


def score_rows(runs: Sequence[tuple[str, CompletionFacts | None]], profile: str) -> list[dict[str, object]]:
    """Return a row per metric with the values of each run's completion, in the displayed unit."""
    kinds = {kind for _, completion in runs if completion for kind in completion.scores if belongs(kind, profile)}
    rows: list[dict[str, object]] = []
    # Leave out metrics that are undefined for all runs.
    kinds = {
        kind for kind in kinds if any(completion and completion.scores.get(kind) is not None for _, completion in runs)
    }
    for kind in sorted(kinds, key=lambda it: (it[0] != profile, it)):
        scale = scale_of(profile, named(kind))
        row: dict[str, object] = {"metric": f"{kind[1]} ({scale.unit})"}
        for name, completion in runs:
            value = completion.scores.get(kind) if completion else None
            row[name] = None if value is None else Figure(scales.written(value * scale.factor, None))
        rows.append(row)
    return rows


def _places(block: BlockFacts) -> str:
    return ", ".join(f"{place.path}:{place.start + 1}-{max(place.end, place.start + 1)}" for place in block.places)


def block_rows(blocks: Sequence[BlockFacts]) -> list[dict[str, object]]:
    """Return one row per block, in the given order. Dropped blocks have no number."""
    gains = any(block.gain is not None for block in blocks)
    rows: list[dict[str, object]] = []
    for number, block in enumerate(blocks, 1):
        row: dict[str, object] = {
            "block": number if block.start is not None else None,
            "kind": block.kind,
            "places": _places(block),
            # Three digits are enough, because scores only order the blocks.
            "score": None if block.score is None else Figure(f"{block.score:.3g}"),
            "tokens": block.tokens if block.start is not None else None,
            "state": block.state,
            "reason": block.reason,
        }
        rows.append(row | ({"gain": None if block.gain is None else Figure(f"{block.gain:.1f}")} if gains else {}))
    return rows


def block_label(number: int, block: BlockFacts) -> str:
    """Return the heading of a prompt block: number, kind, places, score, tokens, state and gain."""
    facts = [
        f"{number}. {block.kind}",
        _places(block),
        f"score {block.score:.3g}" if block.score is not None else "",
        f"{block.tokens} token{'s' * (block.tokens != 1)}",
        block.state,
        f"gain {scales.written(block.gain, None, sign=True)} bits" if block.gain is not None else "",
    ]
    return " · ".join(fact for fact in facts if fact)


def call_rows(calls: Sequence[StoredCall]) -> list[dict[str, object]]:
    """Return one row per model call, and a total if there are several."""
    rows: list[dict[str, object]] = [
        {
            "call": str(call.ordinal + 1),
            "role": call.role,
            "tokens in": call.tokens_in,
            "cached": call.cached,
            "tokens out": call.tokens_out,
            "seconds": Figure(seconds(call.seconds), call.seconds),
            "price": price(call.price),
            "finish": call.finish,
        }
        for call in calls
    ]
    if len(calls) < 2:
        return rows
    prices = [call.price for call in calls if call.price is not None]
    spent = sum(call.seconds for call in calls)
    total: dict[str, object] = {
        "call": "all",
        "role": "",
        "tokens in": sum(call.tokens_in for call in calls),
        "cached": sum(call.cached for call in calls),
        "tokens out": sum(call.tokens_out for call in calls),
        "seconds": Figure(seconds(spent), spent),
        "price": price(sum(prices) if len(prices) == len(calls) else None),
        "finish": "",
    }
    return [*rows, total]


def step_rows(steps: Sequence[Step]) -> list[dict[str, object]]:
    """Return one row per tool call, or per answer without a tool call."""
    rows: list[dict[str, object]] = []
    for step in steps:
        written = (step.tool or NONE, step.arguments, step.text)
        tool, arguments, words = (text if len(text) <= STEP else f"{text[:STEP]}…" for text in written)
        rows.append({"step": step.number, "tool": tool, "arguments": arguments, "said": words})
    return rows


def seconds(time: float | None) -> str:
    """Format seconds, rounded to at least three significant digits; ``<0.001`` below the precision of measurements."""
    return "<0.001" if time is not None and 0 < time < 0.001 else scales.amount(time)


def price(dollars: float | None) -> Figure | None:
    """Return the cell of a price in US dollars, with at most three significant digits; None if unknown."""
    return None if dollars is None else Figure(f"${dollars:.3g}", dollars)


def verdict(judged: StoredVerdict) -> str:
    """Return a phrase that states the verdict and the cost of its tests."""
    facts = [
        f"{judged.verdict}{f' ({judged.reason})' if judged.reason else ''}",
        f"{judged.tests_run} {'test' if judged.tests_run == 1 else 'tests'} run",
        f"{seconds(judged.seconds)} s",
        f"{scales.amount(judged.peak_bytes / 2**20)} MiB at most" if judged.peak_bytes else "",
        f"in {judged.sandbox}" if judged.sandbox else "",
    ]
    return " · ".join(fact for fact in facts if fact)


def doubted(judged: StoredVerdict) -> str:
    """Return a phrase about the first verdict if the tests were repeated; otherwise an empty text."""
    return f"first {judged.earlier}; then again while no other job ran" if judged.earlier else ""


def cost_phrase(detail: Detail) -> str:
    """Return a phrase about a sample's cost: context tokens, calls, seconds of strategy and model; empty if unknown."""
    if detail.imported or detail.prompt is None:
        return ""
    return " · ".join(
        (
            f"{detail.context_tokens} tokens of context",
            f"{len(detail.calls)} {'call' if len(detail.calls) == 1 else 'calls'}",
            f"strategy {seconds(detail.strategy_seconds)} s",
            f"model {seconds(detail.generator_seconds)} s",
        )
    )


LIMIT = 20_000
"""Maximum characters of each text that are compared."""
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_MANY = 6_000
"""Maximum words that are compared one by one, because memory grows quadratically."""
_BESIDE = 2
"""Equal lines of context on each side of a difference."""
_MARKS = {
    "reference": '<del style="background:rgba(214,79,79,.22);text-decoration:underline wavy 1px">{}</del>',
    "completion": '<ins style="background:rgba(46,134,193,.22);text-decoration:none;border-bottom:2px solid">{}</ins>',
}
"""Text -> HTML that marks words found only in this text. Shapes and colours suit colour-blind readers."""
_LINE = (
    '<div style="display:flex;gap:.75rem;margin:.15rem 0">'
    '<span style="flex:0 0 5.5rem;opacity:.7;font-size:.8rem">{}</span>'
    '<code style="flex:1;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate">{}</code></div>'
)


def equal(reference: str, completion: str) -> bool:
    """Return whether two texts are equal except for surrounding whitespace."""
    return reference.strip() == completion.strip()


def by_lines(reference: str, completion: str) -> str:
    """Return a unified diff: ``-`` before lines only in the reference, ``+`` before lines only in the completion."""
    before, after = (visible(text[:LIMIT]).split("\n") for text in (reference, completion))
    _, _, *lines = [*difflib.unified_diff(before, after, n=_BESIDE, lineterm="")] or ("", "")
    return "".join(f"{line}\n" for line in lines)


def by_words(reference: str, completion: str) -> str:
    """Return both texts as HTML, one below the other, with differences marked and their whitespace visible."""
    from rapidfuzz.distance import Indel  # noqa: PLC0415 - only when a sample is opened

    words = [_TOKEN.findall(text[:LIMIT]) for text in (reference, completion)]
    if max(map(len, words)) > _MANY:
        words = [text[:LIMIT].splitlines(keepends=True) for text in (reference, completion)]
    rows = ["", ""]
    for step in Indel.opcodes(*words):
        ends = (step.src_start, step.src_end), (step.dest_start, step.dest_end)
        for at, ((start, end), mark) in enumerate(zip(ends, _MARKS.values(), strict=True)):
            text = visible("".join(words[at][start:end]))
            differs = step.tag != "equal" and text
            rows[at] += mark.format(html.escape(blanks(text))) if differs else html.escape(text)
    return "".join(_LINE.format(name, row or "&nbsp;") for name, row in zip(_MARKS, rows, strict=True))
