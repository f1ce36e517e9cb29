"""Widgets that show stored text as text. Everything stored is untrusted and reaches a page only through here.

Streamlit reads Markdown in labels, captions, metrics and table cells of `st.table`; `plain` takes its meaning away.
Cells of `frame`, options of a choice and what `text` shows are text already.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from ctxbench.bench.errors import CtxbenchError
from ctxbench.bench.visible import visible
from ctxbench.dashboard.views import Figure
from ctxbench.dashboard.views.leaderboard import DrawnTable, markup, style
from ctxbench.harness.leaderboard.columns import COLUMNS

if TYPE_CHECKING:
    import altair as alt

INK = {"light": "#39444A", "dark": "#E4E9ED"}
"""Colour of what is written in a chart; Streamlit's own on white is too pale to read well."""
_CHOICES = "choices"
"""The anchor of a page's choices."""
_LINES = 24
_PIXELS_OF_LINE = 22
_PINNED = ("rank", "point", "letter", "strategy")
"""Columns that stay where they are while the others are moved: they say whose numbers are seen."""
_NAMES = ("strategy", "generator")
_SHORT, _LONGEST, _NAME_WIDTH = 30, 44, 330
"""Characters of names that are pinned, and that are shown at once, and the pixels of longer ones: these must not push
the numbers away. A click on a cell shows all of it."""
_JOINER = "\u2060"
"""Word joiner: not seen, and what it stands in is no shortcode, arrow or address to Streamlit's Markdown."""
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_REPLACED = re.compile(r"(?<=:)(?=\S)|(?<=@)(?=\S+\.\w)|(?<=www)(?=\.)|(?<=[-<>=~])(?=[-<>=~])", re.IGNORECASE)
"""Where Streamlit's Markdown would find an emoji, an icon, a colour, a link or an arrow in text that is escaped."""

HELP: Mapping[str, str] = {
    **{
        name: column.help
        for column in COLUMNS.values()
        for name in (column.key, column.heading)
        if isinstance(name, str) and column.help
    },
    "generator": "The model that completes the code, and how it was asked.",
    "sample set": "The tasks that were run; [:N] means the first N of them.",
    "language": "The programming language of the tasks.",
    "level": "A kind of task: where a line was cut, or how much of its repository a function uses.",
    "metric": "What is measured and what ranks the rows.",
    "profile": "Whose exact definition of the metrics. Different profiles are never ranked together.",
    "baseline": "The method that differences refer to.",
}
"""Term -> hover text."""


def plain(text: str) -> str:
    """Return a text for a label, caption or heading of Streamlit, without any Markdown in it."""
    return _PUNCTUATION.sub(r"\\\1", _REPLACED.sub(_JOINER, visible(" ".join(text.split()))))


def text(value: str, *, language: str | None = None, key: str, limit: int = 20_000) -> None:
    """Show stored text as it is; of a long one the beginning, and all of it to save.

    Args:
        value: the text.
        language: how to colour it, e.g. ``python``; None for not at all.
        key: tells its button from others of the page.
        limit: characters that are shown.
    """
    part = value[:limit]
    tall = part.count("\n") + len(part) // 120 > _LINES
    # Streamlit takes a line end off either end.
    st.code(
        f"\n{visible(part)}\n",
        language=language,
        wrap_lines=True,
        height=_LINES * _PIXELS_OF_LINE if tall else "content",
    )
    if len(value) > limit:
        st.caption(f"The first {limit:,} of {len(value):,} characters.")
        # Read as bytes, nothing in it can be taken for anything else.
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
    """Show a table that can be sorted and searched; cells are text or numbers, never markup.

    Args:
        rows: column -> cell, the same columns in each.
        help: column -> hover text of its heading; ours.
        key: tells it from other tables of the page.
        config: column -> one of `st.column_config`, where a plain column does not do.
    """
    columns = list(rows[0]) if rows else list(help)
    longest = {name: max((len(str(row.get(name))) for row in rows), default=0) for name in _NAMES}
    # Pinned, a long name would leave a phone no room for numbers.
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
    """Show tables of a board with their drawings."""
    st.html(f"<style>{style()}</style>" + "".join(map(markup, drawn)))


def _written(rows: list[dict[str, object]]) -> Any:
    """Return what `st.dataframe` takes: each `Figure` sorts as its number and is shown as its text."""
    if not any(isinstance(cell, Figure) for row in rows for cell in row.values()):
        return rows
    import pandas as pd  # noqa: PLC0415 - comes with Streamlit, loads late

    # As objects: of a column of plain numbers the texts would be lost, and so would be that a cell is empty; whole
    # numbers beside an empty cell would no longer be whole.
    return pd.DataFrame(rows, dtype=object).style.format(_cell)


def _cell(cell: object) -> object:
    if isinstance(cell, Figure):
        return cell.text
    return f"{cell:g}" if isinstance(cell, float) else cell


def chart(spec: alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart | alt.FacetChart, *, key: str) -> None:
    """Show a chart in the colours of the page's theme: as wide as the page, unless it has a width of its own."""
    fixed = (
        isinstance(getattr(spec, "width", None), int | float) or hasattr(spec, "hconcat") or hasattr(spec, "vconcat")
    )
    ink = INK.get(st.context.theme.type or "")
    if ink is not None:
        spec = spec.configure_axis(labelColor=ink, titleColor=ink).configure_legend(labelColor=ink)
        # An outline tells the point at a mean from the bar of the same colour behind it.
        spec = spec.configure_text(color=ink).configure_point(stroke=ink, strokeWidth=1)
    st.altair_chart(spec, width="content" if fixed else "stretch", key=key, theme="streamlit")


def answer(sentence: str, *of: str, then: str = "") -> None:
    """Say what a page is there to tell, its first number in it, and of what, with the way to the choices.

    Args:
        sentence: the answer.
        of: the choices that it is about; "all" is not worth a word.
        then: what is said behind it.
    """
    st.markdown(f"**{plain(sentence)}** {plain(then)}")
    about = ", ".join(plain(choice) for choice in of if choice != "all")
    # Not a caption: its links are too pale to read.
    st.markdown(" · ".join(filter(None, [about, f"[choose another](#{_CHOICES})"])))


def choices() -> Any:
    """Return the container of a page's choices, which stand behind what they decide; a link of `answer` leads there."""
    where = st.container()
    where.header("Choices", anchor=_CHOICES)
    return where


def note(sentence: str) -> None:
    """Say something below or beside a table; may hold stored text."""
    notes([sentence])


def notes(sentences: Iterable[str]) -> None:
    """Say several things below a table, close together; they may hold stored text."""
    lines = [
        f'<p style="margin: 0.15rem 0; overflow-wrap: anywhere">{html.escape(visible(sentence))}</p>'
        for sentence in sentences
    ]
    if lines:
        st.html("".join(lines))


def empty(what: str, command: str) -> None:
    """Say that there is nothing to show, and what to run so that there is."""
    st.info(plain(what), icon=":material/info:")
    st.code(command, language="shell", wrap_lines=True)


def no_scores() -> None:
    """Say that no run over the chosen sample set has a score of the chosen metric profile, and how to get them."""
    empty(
        "No run over this sample set has a score of this metric profile yet. The first command scores completions "
        "that are stored; the page Runs has the command that goes on with a run.",
        "ctxbench rescore\nctxbench run --samples NAME --strategy SPEC --generator SPEC",
    )


def fault(error: CtxbenchError) -> None:
    """Say what is wrong, where, and what cures it."""
    head = f"{error.where}: {error.what}" if error.where else error.what
    st.error(plain(head), icon=":material/error:")
    if error.cure:
        note(error.cure[:1].upper() + error.cure[1:])


def _name(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", key).strip("-") or "table"
