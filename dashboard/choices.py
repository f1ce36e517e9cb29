"""Choices of the pages, stored in the URL's query, so that views can be shared, bookmarked and revisited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, TypeVar
from urllib.parse import urlencode

import streamlit as st

from ctxbench.bench.dates import read_date
from ctxbench.bench.escaping import visible
from ctxbench.dashboard import data, show
from ctxbench.harness.metrics import PROFILES
from ctxbench.harness.store.samples import StoredSet

T = TypeVar("T")
_PAGE, _WRITTEN, _REMEMBERED, _NOW, _REFUSED = "url/page", "url/written", "url/remembered", "url/now", "url/refused"
_WIDGET = "url/widget/"


def enter(page: str) -> None:
    """Prepare the choices before a page is drawn. On a new page, widgets start from the URL or from earlier choices."""
    state: Any = st.session_state
    state.setdefault(_REMEMBERED, {})
    state[_NOW] = {}
    # The container is at the top, because the choices may be far below.
    state[_REFUSED] = st.container()
    if state.get(_PAGE) != page:
        state[_PAGE], state[_WRITTEN] = page, {}
        for key in [key for key in state if str(key).startswith(_WIDGET)]:
            del state[key]


def flush() -> None:
    """Write a page's choices to the URL after the page is drawn."""
    state: Any = st.session_state
    now = {name: values for name, values in state[_NOW].items() if values}
    state[_WRITTEN] = now
    # A choice that is emptied here is empty on the next page too.
    state[_REMEMBERED] = {name: values for name, values in state[_REMEMBERED].items() if name not in state[_NOW]} | now
    if now != {name: st.query_params.get_all(name) for name in st.query_params}:
        st.query_params.from_dict(now)


def choose(  # noqa: PLR0913 - the options, and their looks
    label: str,
    options: Sequence[T],
    *,
    name: str,
    default: T | None = None,
    label_of: Callable[[T], str] = str,
    key_of: Callable[[T], str] | None = None,
    help: str = "",  # noqa: A002 - as Streamlit's widgets call it
    where: Any = st,
    tabs: bool = False,
) -> T:
    """Let the reader choose one option, and return it.

    Args:
        label: name of the choice; never stored text.
        name: the choice's name in the URL.
        default: the choice if neither the URL nor an earlier page has one; None for the first option.
        label_of: returns an option's text on the page, which may be stored text.
        key_of: returns an option's unique text in the URL; None for `label_of`.
        help: hover text; never stored text.
        tabs: show all options side by side, without the label.
    """
    spelled = {(key_of or label_of)(option): option for option in options}
    first = next(iter(spelled)) if default is None or default not in options else (key_of or label_of)(default)
    value = _start(name, [first], lambda values: [spelling for spelling in values[:1] if spelling in spelled], label)[0]
    key = _set(name, value)

    def shown(spelling: str) -> str:
        written = visible(label_of(spelled[spelling]))
        # Streamlit reads Markdown in these labels only.
        return show.plain(written) if tabs else written

    widget = where.segmented_control if tabs else where.selectbox
    more = {"required": True, "label_visibility": "collapsed"} if tabs else {"help": help or None}
    picked = widget(label, list(spelled), key=key, format_func=shown, **more)
    spelling = first if picked is None else str(picked)
    _note(name, [spelling])
    return spelled[spelling]


def choose_many(  # noqa: PLR0913 - as `choose`, and `most`
    label: str,
    options: Sequence[T],
    *,
    name: str,
    default: Sequence[T] | None = None,
    label_of: Callable[[T], str] = str,
    key_of: Callable[[T], str] | None = None,
    help: str = "",  # noqa: A002
    most: int | None = None,
    where: Any = st,
) -> list[T]:
    """Let the reader choose options, by default none, and at most `most` if given. Return them; see also `choose`."""
    spelled = {(key_of or label_of)(option): option for option in options}
    first = [(key_of or label_of)(option) for option in default or () if option in options]
    values = _start(
        name, first, lambda values: [spelling for spelling in values if spelling in spelled], label, empty=True
    )
    key = _set(name, list(dict.fromkeys(values))[:most])
    selection = where.multiselect(
        label,
        list(spelled),
        key=key,
        help=help or None,
        max_selections=most,
        format_func=lambda spelling: visible(label_of(spelled[spelling])),
    )
    picked = [str(spelling) for spelling in selection]
    # An empty choice must differ from a missing one.
    _note(name, picked or ([""] if first else []))
    return [spelled[spelling] for spelling in picked]


def text(label: str, *, name: str, default: str = "", help: str = "", where: Any = st) -> str:  # noqa: A002
    """Let the reader enter a line of text, and return it. Arguments are those of `choose`."""
    value = _start(name, [default], lambda values: values[:1], label)[0]
    written = str(where.text_input(label, key=_set(name, value), help=help or None) or "")
    _note(name, [written] if written != default else [])
    return written


def number(
    label: str,
    low: int,
    high: int,
    *,
    name: str,
    default: int,
    help: str = "",  # noqa: A002
    where: Any = st,
) -> int:
    """Let the reader enter a whole number from `low` to `high`, and return it. See `choose` for other arguments."""

    def valid(values: list[str]) -> list[str]:
        return [
            digits
            for digits in values[:1]
            if digits.isascii() and digits.isdigit() and len(digits) < 16 and low <= int(digits) <= high
        ]

    value = int(_start(name, [str(min(max(default, low), high))], valid, label)[0])
    picked = where.number_input(label, low, high, key=_set(name, value), step=1, help=help or None)
    result = value if picked is None else int(picked)
    _note(name, [str(result)])
    return result


def put(name: str, value: str | int | list[str]) -> None:
    """Set a choice from the callback of a button or table, as if the reader had used the choice's own widget."""
    st.session_state[_WIDGET + name] = value


def link(page: str, **query: str | Sequence[str]) -> str:
    """Return the URL of a page of this site with choices in its query."""
    filled = {name: value for name, value in query.items() if value}
    # Behind a proxy, the site may start below its root.
    place = "/".join(["", *filter(None, [str(st.get_option("server.baseUrlPath") or "").strip("/"), page])])
    return f"{place}?{urlencode(filled, doseq=True)}" if filled else place


def _start(
    name: str, default: list[str], valid: Callable[[list[str]], list[str]], label: str, *, empty: bool = False
) -> list[str]:
    state: Any = st.session_state
    requested: list[str] = st.query_params.get_all(name)
    written: list[str] = state[_WRITTEN].get(name, [])
    key = _WIDGET + name
    if key in state and requested == written:
        clicked = [str(spelling) for spelling in state[key]] if isinstance(state[key], list) else [str(state[key])]
        return valid(clicked) or ([] if empty and not clicked else default)
    if requested:
        accepted = valid(requested)
        if accepted or (empty and requested == [""]):
            return accepted
        shown_instead = f"showing {', '.join(default)} instead" if any(default) else "nothing is selected instead"
        with state[_REFUSED]:
            show.note(f"{label}: {', '.join(requested)[:200]} does not exist here; {shown_instead}.")
        return default
    if written:
        return default
    return valid(state[_REMEMBERED].get(name, [])) or default


def _set(name: str, value: Any) -> str:
    key = _WIDGET + name
    if st.session_state.get(key) != value:
        st.session_state[key] = value
    return key


def _note(name: str, values: list[str]) -> None:
    st.session_state[_NOW][name] = values


def sample_set(where: Any) -> StoredSet:
    """Let the reader choose a sample set with runs, and return it; `where` is a Streamlit container."""
    return choose(
        "Sample set",
        data.sets(),
        name="samples",
        label_of=lambda choice: choice.samples,
        help=show.HELP["sample set"],
        where=where,
    )


def language(samples: StoredSet, where: Any, *, tabs: bool = False) -> str:
    """Let the reader choose a language of a sample set, and return it."""
    return choose("Language", samples.languages, name="language", help=show.HELP["language"], where=where, tabs=tabs)


def profile(where: Any) -> str:
    """Let the reader choose a metric profile, and return its name."""
    return choose(
        "Metric profile", list(PROFILES), name="profile", default="ctxbench", help=show.HELP["profile"], where=where
    )


def newer_than(where: Any) -> date | None:
    """Let the reader enter a day, and return it; None without a valid day. Only samples dated after the day count."""
    written = text(
        "Newer than",
        name="after",
        help="A day such as 2024-06-01. Shows only samples whose code is dated after it, like `--after` on the "
        "command line.",
        where=where,
    ).strip()
    try:
        return read_date(written) if written else None
    except ValueError:
        show.note(f"Newer than: {written[:200]} is not a day such as 2024-06-01; all samples are shown.")
        return None
