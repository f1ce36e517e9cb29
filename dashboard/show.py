"""Widgets that display stored text, which is untrusted, as plain text. Other code must escape such text itself.

`plain` escapes Markdown, which Streamlit interprets in labels, captions, metrics and cells of `st.table`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from ctxbench.bench.errors import CtxbenchError
from ctxbench.bench.escaping import visible
from ctxbench.dashboard.views import Figure
from ctxbench.dashboard.views.leaderboard import DrawnTable, markup, style
from ctxbench.harness.leaderboard.columns import COLUMNS

if TYPE_CHECKING:
    import altair as alt

INK = {"light": "#39444A", "dark": "#E4E9ED"}
"""Theme -> colour of text in charts. Streamlit's own colour is too pale on white."""
_CHOICES = "choices"
_LINES = 24
_PIXELS_OF_LINE = 22
_PINNED = ("rank", "point", "letter", "strategy")
"""Columns that stay in place while the others scroll, because they identify the row."""
_NAMES = ("strategy", "generator")
_SHORT, _LONGEST, _NAME_WIDTH = 30, 44, 330
"""Maximum characters of a pinned name, and of a name displayed at natural width; width in pixels of longer names. A
click on a cell displays the whole name."""
_JOINER = "\u2060"
"""Word joiner: invisible, and prevents Streamlit's Markdown from finding shortcodes, arrows or links."""
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_REPLACED = re.compile(r"(?<=:)(?=\S)|(?<=@)(?=\S+\.\w)|(?<=www)(?=\.)|(?<=[-<>=~])(?=[-<>=~])", re.IGNORECASE)
"""Positions where Streamlit's Markdown would find an emoji, icon, colour, link or arrow in escaped text."""

HELP: Mapping[str, str] = {
    **{
        name: column.help
        for column in COLUMNS.values()
        for name in (column.key, column.heading)
        if isinstance(name, str) and column.help
    },
    "generator": "The model that completes the code, and its settings.",
    "sample set": "The tasks that were run; [:N] means N of them, from the repositories in turn.",
    "language": "The programming language of the tasks.",
    "level": "A kind of task: where a line is cut, or how much of its repository a function uses.",
    "metric": "The metric that ranks the rows.",
    "profile": "The definitions of the metrics, such as a paper's. A ranking uses one profile.",
    "baseline": "The row that others are compared with.",
}


def plain(text: str) -> str:
    """Return a text for a label, caption or heading of Streamlit, with all Markdown escaped."""
    return _PUNCTUATION.sub(r"\\\1", _REPLACED.sub(_JOINER, visible(" ".join(text.split()))))


def text(value: str, *, language: str | None = None, key: str, limit: int = 20_000) -> None:
    """Show stored text as code. If it is longer than `limit`, show only its start, and a button that saves all of it.

    Args:
        language: language of syntax colours, such as ``python``; None for no colours.
        limit: maximum number of characters displayed.
    """
    part = value[:limit]
    tall = part.count("\n") + len(part) // 120 > _LINES
    # Streamlit removes a line end from either end.
    st.code(
        f"\n{visible(part)}\n",
        language=language,
        wrap_lines=True,
        height=_LINES * _PIXELS_OF_LINE if tall else "content",
    )
    if len(value) > limit:
        st.caption(f"The first {limit:,} of {len(value):,} characters.")
        # Encode here, because Streamlit would fail on a lone surrogate.
        st.download_button(
            "Save all of it", value.encode("utf-8", "replace"), f"{_name(key)}.txt", "text/plain", key=key
        )


def frame(
    rows: Sequence[Mapping[str, object]],
    *,
    help: Mapping[str, str],  # noqa: A002 - as Streamlit calls it
    key: str,
    **config: Any,
) -> None:
    """Show a table that can be sorted and searched. Cells are text or numbers, never markup.

    Args:
        rows: a mapping from column to cell per row; all rows have the same columns.
        help: hover text of each heading, by column; never stored text.
        config: columns of `st.column_config`, by name, where a plain column is not enough.
    """
    columns = list(rows[0]) if rows else list(help)
    longest = {name: max((len(str(row.get(name))) for row in rows), default=0) for name in _NAMES}
    # A long pinned name would leave no room for numbers on a phone.
    pinned = _PINNED if longest["strategy"] <= _SHORT else ()
    columns_config: dict[str, Any] = {
        name: config.get(name)
        or st.column_config.Column(
            help=help.get(name, HELP.get(name)),
            width=_NAME_WIDTH if longest.get(name, 0) > _LONGEST else None,
            pinned=name in pinned or None,
        )
        for name in columns
    }
    cells = [{name: visible(cell) if isinstance(cell, str) else cell for name, cell in row.items()} for row in rows]
    content: Any = _written(cells) if cells else {name: [] for name in columns}
    st.dataframe(
        content, hide_index=True, column_config=columns_config, key=key, alt=_name(key), row_height=32, placeholder="–"
    )


def tables(drawn: Iterable[DrawnTable]) -> None:
    """Show tables with drawn intervals."""
    st.html(f"<style>{style()}</style>" + "".join(map(markup, drawn)))


def _written(rows: list[dict[str, object]]) -> Any:
    if not any(isinstance(cell, Figure) for row in rows for cell in row.values()):
        return rows
    import pandas as pd  # noqa: PLC0415 - comes with Streamlit, loads late

    # Plain numeric columns would lose texts and empty cells, and turn integers into fractions.
    return pd.DataFrame(rows, dtype=object).style.format(_cell)


def _cell(cell: object) -> object:
    if isinstance(cell, Figure):
        return cell.text
    return f"{cell:g}" if isinstance(cell, float) else cell


def chart(spec: alt.LayerChart, *, key: str) -> None:
    """Show a chart in the colours of the page's theme, as wide as the page."""
    ink = INK.get(st.context.theme.type or "")
    if ink is not None:
        spec = spec.configure_axis(labelColor=ink, titleColor=ink).configure_legend(labelColor=ink)
        # An outline separates the point at a mean from the bar of the same colour behind it.
        spec = spec.configure_text(color=ink).configure_point(stroke=ink, strokeWidth=1)
    st.altair_chart(spec, width="stretch", key=key, theme="streamlit")


def answer(sentence: str, *of: str, then: str = "") -> None:
    """Show a page's result in one or two sentences, the choices in `of` that led to it, and a link to the choices."""
    st.markdown(f"**{plain(sentence)}** {plain(then)}")
    about = ", ".join(plain(choice) for choice in of if choice != "all")
    # A caption's links are too pale to read.
    st.markdown(" · ".join(filter(None, [about, f"[choose another](#{_CHOICES})"])))


def choices() -> Any:
    """Add the section for a page's choices, and return its container. The link that `answer` shows jumps there."""
    where = st.container()
    where.header("Choices", anchor=_CHOICES)
    return where


def note(sentence: str) -> None:
    """Show a note below or beside a table. It may contain stored text."""
    notes([sentence])


def notes(sentences: Iterable[str]) -> None:
    """Show notes below a table, close together. They may contain stored text."""
    lines = [
        f'<p style="margin: 0.15rem 0; overflow-wrap: anywhere">{html.escape(visible(sentence))}</p>'
        for sentence in sentences
    ]
    if lines:
        st.html("".join(lines))


def empty(what: str, command: str) -> None:
    """Show a message that there is nothing to display, and a command that helps."""
    st.info(plain(what), icon=":material/info:")
    st.code(command, language="shell", wrap_lines=True)


def no_scores() -> None:
    """Show a message that no run over the sample set has scores of the metric profile, and commands that add them."""
    empty(
        "No run over this sample set has scores of this metric profile yet. The first command scores stored "
        "completions. The Runs page has the command that continues a run.",
        "ctxbench rescore\nctxbench run --samples NAME --strategy SPEC --generator SPEC",
    )


def fault(error: CtxbenchError) -> None:
    """Show an error: what is wrong, where, and what to do."""
    head = f"{error.where}: {error.what}" if error.where else error.what
    st.error(plain(head), icon=":material/error:")
    if error.cure:
        note(error.cure[:1].upper() + error.cure[1:])


def _name(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", key).strip("-") or "table"
