"""The Samples page: search and filter the samples of one or two runs, and open a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from ctxbench.bench.errors import CtxbenchError, UnknownName
from ctxbench.bench.escaping import hidden, visible
from ctxbench.bench.samples import AnsweredTask, answered_task
from ctxbench.dashboard import choices, data, show
from ctxbench.dashboard.views import samples as view
from ctxbench.harness.results import Status
from ctxbench.harness.store.details import (
    CompletionFacts,
    Detail,
    call_texts,
    detail,
    steps_of,
)
from ctxbench.harness.store.runs import StoredRun, runs_over
from ctxbench.harness.store.samples import StoredSet
from ctxbench.harness.store.search import (
    Facets,
    FoundSample,
    Order,
    SampleFilter,
    facets,
    is_planned,
    search,
)
from ctxbench.strategies.agent import ROLE

_LIST = "samples-list"
PHONE_STYLE = f"""<style>@media (max-width: 640px) {{
[data-testid=stLayoutWrapper]:has(> .st-key-{_LIST}) {{ order: 1; }}
}}</style>"""
"""CSS that puts the list below the sample on a phone, so that the model's text is visible without scrolling."""
_TALL = 145
"""Height of the list in pixels: a heading and three samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    samples: StoredSet
    first: StoredRun
    second: StoredRun | None
    facets: Facets
    profile: str
    metric: view.Metric
    language: str


def page() -> None:
    """Show the samples of one run, or of two runs side by side, and one sample in full."""
    top = st.container(horizontal=True)
    more = st.expander("More choices and filters", key="filters")
    choice = _choose(top, more.columns(4))
    if choice is None:
        show.empty("No sample of this set is finished yet.", "ctxbench run --samples NAME --strategy SPEC")
        return
    differs = view.ANY
    if choice.second:
        differs = choices.choose(
            "Show",
            list(view.DIFFERS),
            name="differs",
            help="Samples to list, by the values of runs A and B in the chosen metric.",
            where=top,
        )
    st.html(PHONE_STYLE)
    opened = _listing(choice, differs, more)
    if opened:
        runs = [("A", choice.first), *([("B", choice.second)] if choice.second else [])]
        show_sample(choice.samples, runs, opened, choice.profile)


def _choose(main: Any, more: Sequence[Any]) -> _Choice | None:
    samples = choices.sample_set(main)
    language = choices.language(samples, more[0])
    profile = choices.profile(more[1])
    label = samples.samples.removesuffix(f" {samples.digest[:12]}")
    runs = data.cached(runs_over, samples.digest, label)
    generator = _generator(samples, more[2])
    runs = [run for run in runs if generator in (view.ANY, run.label)]
    ranked_by = samples.generators[0] if generator == view.ANY else generator
    leader, base = data.leader(samples.samples, language, ranked_by, profile)
    by_id = {run.id: run for run in runs}
    first = choices.choose(
        "Run A",
        runs,
        name="run",
        default=by_id.get(leader),
        label_of=view.spelled,
        key_of=lambda run: run.id,
        help="Run whose samples are listed.",
        where=main,
    )
    second = choices.choose(
        "Run B",
        [None, *(run for run in runs if run.id != first.id)],
        name="other",
        default=by_id.get(base),
        label_of=lambda run: view.spelled(run) if run else view.NONE,
        key_of=lambda run: run.id if run else view.NONE,
        help="A second run to compare with.",
        where=main,
    )
    run_facets = data.cached(facets, first.id)
    metrics = view.metrics(run_facets, profile)
    default = view.preferred(metrics, first.label)
    if default is None:
        return None
    metric = choices.choose(
        "Metric",
        metrics,
        name="metric",
        default=default,
        label_of=lambda metric: metric.name,
        help=show.HELP["metric"],
        where=main,
    )
    return _Choice(
        samples=samples,
        first=first,
        second=second,
        facets=run_facets,
        profile=profile,
        metric=metric,
        language=language,
    )


def _generator(samples: StoredSet, where: Any) -> str:
    if len(samples.generators) < 2:
        return view.ANY
    options = [view.ANY, *samples.generators]
    return choices.choose("Generator", options, name="generator", help=show.HELP["generator"], where=where)


def _filters(choice: _Choice, differs: str, more: Any) -> tuple[SampleFilter, Order, str, Any]:
    with more:
        upper, middle, lower = st.columns(4), st.columns(4), st.columns(4)
    facet = choice.facets
    words = choices.text("Search", name="words", help="Part of an id, a path or a repository.", where=upper[0])
    orders = view.COMPARED_ORDERS if choice.second else view.ORDERS
    order = choices.choose("Order", list(orders), name="order", where=upper[1])
    typed = choices.text(
        "Sample", name="sample", help="Id of a sample to open, even if the filters exclude it.", where=upper[3]
    )
    status = _facet("Status", tuple(map(str, Status)), "status", middle[2])
    filters = SampleFilter(
        run=choice.first.id,
        measure=choice.metric.measure,
        words=words.strip(),
        language=choice.language,
        repo=_facet("Repository", facet.repos, "repo", middle[0]),
        level=_facet("Level", facet.levels, "level", middle[1]),
        status=Status(status) if status else None,
        verdict=_facet("Verdict of tests", facet.verdicts, "verdict", lower[0]) if facet.verdicts else "",
        flag=_facet("Flag", facet.flags, "flag", lower[1]) if facet.flags else "",
        other=choice.second.id if choice.second else "",
        differs=view.DIFFERS[differs],
    )
    return filters, orders[order], typed.strip(), upper[2]


def _facet(label: str, options: tuple[str, ...], name: str, where: object) -> str:
    picked = choices.choose(label, [view.ANY, *options], name=name, where=where)
    return "" if picked == view.ANY else picked


def _listing(choice: _Choice, differs: str, more: Any) -> str:
    filters, order, typed, page_column = _filters(choice, differs, more)
    matching = data.cached(search, filters, order=order)
    pages = view.pages(len(matching))
    page = choices.number("Page", 1, pages, name="page", default=1, where=page_column)
    samples = matching[(page - 1) * view.PAGE : page * view.PAGE]
    can_open = bool(typed) and data.cached(is_planned, choice.first.id, typed)
    opened = typed if can_open else samples[0].id if samples else ""
    if typed and not can_open:
        show.note(f"Run A has no sample {typed}; the first sample found is shown.")
    if not samples:
        show.empty("No sample matches these filters; remove a filter.", "ctxbench samples show NAME")
    noun = "disagreement" if filters.differs else "sample"
    if opened:
        _steps(matching, opened, noun)
    with st.container(key=_LIST):
        if samples:
            rows = view.sample_rows(samples, choice.metric, opened, compared=choice.second is not None)
            _table(rows, f"found/{hash((filters, order, page, opened))}")
            count = f"{len(matching):,} {'sample' if len(matching) == 1 else 'samples'} found; page {page} of {pages}."
            show.note(f"{count} Key n opens the next {noun if filters.differs else 'one'}, key p the previous one.")
    return opened


def _table(rows: list[dict[str, object]], key: str) -> None:
    def choose() -> None:
        selected = st.session_state[key]["selection"]["rows"]
        if selected:
            choices.put("sample", str(rows[selected[0]]["sample"]))

    cells = [{name: visible(cell) if isinstance(cell, str) else cell for name, cell in row.items()} for row in rows]
    config: dict[str, Any] = {name: st.column_config.Column(help=view.HELP.get(name)) for name in rows[0]}
    config[""] = st.column_config.Column(help=view.HELP[""], width=30)
    for name, form in view.NUMBERS.items():
        config[name] = st.column_config.NumberColumn(help=view.HELP[name], format=form)
    st.dataframe(
        cells,
        hide_index=True,
        key=key,
        on_select=choose,
        selection_mode="single-row",
        column_config=config,
        height=_TALL,
        placeholder="–",
    )


def _steps(matching: Sequence[FoundSample], opened: str, noun: str) -> None:
    before, after, number = view.neighbours(matching, opened)

    def open_sample(sample: str, place: int) -> None:
        choices.put("sample", sample)
        # Show the page of the list that has this sample.
        choices.put("page", 1 + max(place - 1, 0) // view.PAGE)

    with st.container(horizontal=True):
        for label, sample, key, place in (("Previous", before, "p", number - 1), ("Next", after, "n", number + 1)):
            st.button(
                f"{label} {noun}",
                key=f"step-{key}",
                shortcut=key,
                disabled=sample is None,
                on_click=open_sample,
                args=(sample or "", place),
                help=f"{label} sample in the list of samples found. Key: {key}",
                width="stretch",
            )


BLOCKS = 60
"""Maximum number of blocks displayed one by one. The whole prompt contains all blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the compared runs: its letter (A or B), and its data for the open sample."""

    letter: str
    run: StoredRun
    detail: Detail
    completion: CompletionFacts | None


def show_sample(samples: StoredSet, runs: Sequence[tuple[str, StoredRun]], sample: str, profile: str) -> None:
    """Show one sample as completed by one or two runs. `runs` contains each run with its letter, A or B."""
    sides = _sides(runs, sample)
    first = sides[0].detail
    st.header(show.plain(sample), anchor=False)
    task = _task(samples, first)
    # The model's text comes first, because it matters most.
    for where, side in zip(st.columns(len(sides)), sides, strict=True):
        with where:
            _outcome(side, task)
    _scores(sides, profile)
    show.note(view.place(first))
    if task is not None:
        _show_task(task, first.language)
    for where, side in zip(st.columns(len(sides)), sides, strict=True):
        with where:
            _context(side, [other for other in sides if other is not side])


def _sides(runs: Sequence[tuple[str, StoredRun]], sample: str) -> list[Side]:
    sides = []
    for letter, run in runs:
        try:
            sample_detail = data.cached(detail, run.id, sample)
        except UnknownName:
            show.note(f"{letter}: the run {run.id} does not include the sample {sample}.")
            continue
        at = 0
        if len(sample_detail.completions) > 1:
            at = -1 + choices.number(
                f"Completion of {letter}",
                1,
                len(sample_detail.completions),
                name=f"completion{letter}",
                default=1,
                help="The completion to show, with its scores.",
            )
        completion = sample_detail.completions[at] if sample_detail.completions else None
        sides.append(Side(letter=letter, run=run, detail=sample_detail, completion=completion))
    return sides


def _task(samples: StoredSet, sample_detail: Detail) -> AnsweredTask | None:
    try:
        task = answered_task(data.home(), samples.name, sample_detail.set_digest, sample_detail.sample)
    except CtxbenchError as error:
        show.fault(error)
        return None
    if task is None:
        show.note(
            f"The reference is not on this machine: the home folder has no sample set {samples.name} of digest "
            f"{sample_detail.set_digest[:12]}. Stored results are shown without it."
        )
    return task


def _show_task(task: AnsweredTask, language: str) -> None:
    st.markdown("**Task**", help="The last lines before the cursor ▏, where the model continues.")
    show.text(view.before_cursor(task), language=language, key="task")
    if task.original_import:
        with st.expander("Masked import lines", key="masked"):
            show.text(task.original_import, language=language, key="masked-text")
    with st.expander("Reference", key="reference"):
        if task.has_answer:
            show.text(task.target, language=language, key="reference-text")
        else:
            show.note("This benchmark has no reference for the sample; only tests judge it.")
        if task.tests:
            show.text("\n".join(task.tests), key="reference-tests")


def _scores(sides: Sequence[Side], profile: str) -> None:
    rows = view.score_rows([(side.letter, side.completion) for side in sides], profile)
    if rows:
        st.markdown("**Scores**", help="Scores of this sample; the leaderboard shows their mean over all samples.")
        show.frame(rows, help=view.DETAIL_HELP, key="scores")


def _outcome(side: Side, task: AnsweredTask | None) -> None:
    sample, completion = side.detail, side.completion
    text = None if completion is None else completion.text
    st.markdown(f"**{side.letter}** · {show.plain(side.run.strategy)}")
    if text is not None and task is not None and task.has_answer:
        _comparison(task.target, text, sample.kind, f"diff-{side.letter}")
    flags = [*sample.flags, *(completion.flags if completion else ())]
    show.notes(
        [
            f"{side.run.label} · {sample.status}: {view.STATUS[sample.status]}",
            *(f"Invalid, {mark}: {reason}" for mark, reason in sample.marks),
            *(f"Fault of the machine: {fault}" for fault in sample.faults[-3:]),
            *([f"Flags: {', '.join(dict.fromkeys(flags))}"] if flags else []),
        ]
    )
    if completion is not None and text is not None:
        _completion(side, text, completion, expanded=task is None or not task.has_answer)
    if sample.imported:
        show.note("Recorded elsewhere: prompt, calls and times are unknown.")


def _comparison(reference: str, completion: str, kind: str, key: str) -> None:
    same = view.equal(reference, completion)
    if same:
        show.note("The completion equals the reference.")
    if kind == "line":
        st.html(view.by_words(reference, completion))
    elif not same:
        show.text(view.by_lines(reference, completion), language="diff", key=key)
        show.note("Lines with - are only in the reference, lines with + only in the completion.")
    if max(len(reference), len(completion)) > view.LIMIT:
        show.note(f"Only the first {view.LIMIT:,} characters are compared.")


def _completion(side: Side, text: str, completion: CompletionFacts, *, expanded: bool) -> None:
    language, key = side.detail.language, side.letter
    with st.expander("Completion", expanded=expanded, key=f"completion-{key}"):
        show.text(text, language=language, key=f"text-{key}")
    if completion.judged is not None:
        show.note(f"Tests: {view.verdict(completion.judged)}")
        if view.doubted(completion.judged):
            show.note(
                f"The completion was judged more than once: {view.doubted(completion.judged)}. See docs/verdicts.md."
            )
        if completion.judged.flags:
            show.note(f"The completion is not plain code: {'; '.join(completion.judged.flags)}. See docs/verdicts.md.")
        with st.expander("Test output", key=f"output-{key}"):
            show.text(completion.judged.output or "(none)", key=f"output-text-{key}")
    with st.expander("Raw output of the model", key=f"raw-{key}"):
        show.text(completion.raw, key=f"raw-text-{key}")
        if hidden(completion.raw):
            show.note(f"{hidden(completion.raw)} invisible characters are written out here.")


def _context(side: Side, others: Sequence[Side]) -> None:
    key, blocks, prompt = side.letter, side.detail.blocks, side.detail.prompt
    if side.detail.imported or prompt is None:
        return
    st.markdown(
        f"**What the model saw** · {key} · {show.plain(side.run.strategy)}",
        help="The blocks of the final prompt, in the order of the prompt.",
    )
    show.note(view.cost_phrase(side.detail))
    show.frame(view.block_rows(blocks), help=view.DETAIL_HELP, key=f"blocks-{key}")
    inside = [(number, block) for number, block in enumerate(blocks, 1) if block.start is not None]
    elsewhere = [other.detail.prompt for other in others if other.detail.prompt is not None]
    for number, block in inside[:BLOCKS]:
        is_only_here = bool(elsewhere) and not any(prompt[block.start : block.end] in text for text in elsewhere)
        label = f"{view.block_label(number, block)}{f' · only {key}' * is_only_here}"
        with st.expander(show.plain(label), key=f"block-{key}-{number}"):
            show.text(prompt[block.start : block.end], language=side.detail.language, key=f"block-text-{key}-{number}")
    if len(inside) > BLOCKS:
        show.note(f"{len(inside) - BLOCKS} more blocks are in the whole prompt.")
    with st.expander("The whole prompt", key=f"prompt-{key}"):
        show.text(prompt, language=side.detail.language, key=f"prompt-text-{key}")
    _calls(side)


def _calls(side: Side) -> None:
    calls = side.detail.calls
    if any(call.role == ROLE for call in calls):
        st.markdown("**Steps**", help="Tools that the model used to find context; the calls below show the results.")
        steps = data.cached(steps_of, side.run.id, side.detail.sample)
        show.frame(view.step_rows(steps), help=view.DETAIL_HELP, key=f"steps-{side.letter}")
    st.markdown("**Model calls**", help="Every call of the model for this sample; the last answer is scored.")
    show.frame(view.call_rows(calls), help=view.DETAIL_HELP, key=f"calls-{side.letter}")
    options = [view.NONE, *(f"{call.ordinal + 1} {call.role}" for call in calls)]
    picked = choices.choose(
        f"Open a call of {side.letter}", options, name=f"call{side.letter}", help="Shows the call's prompt and answer."
    )
    if picked != view.NONE:
        ordinal = calls[options.index(picked) - 1].ordinal
        texts = data.cached(call_texts, side.run.id, side.detail.sample, ordinal)
        if texts is not None:
            show.text(texts.prompt, key=f"asked-{side.letter}")
            show.text(texts.answer, key=f"answer-{side.letter}")
