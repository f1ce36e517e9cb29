"""Every choice lives in the URL's query, so that a view can be shared, kept and gone back to.

What the URL says holds; without it what was chosen on another page under the same name; without that the default. What
is not among the options is not taken, and the page says so. What was chosen is written to the URL when the page is
complete (`flush`), all at once, so that one click is one step in the browser's history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

import streamlit as st

from ctxbench.bench.visible import visible
from ctxbench.dashboard import show

T = TypeVar("T")
_PAGE, _WRITTEN, _KEPT, _NOW = "url/page", "url/written", "url/kept", "url/now"
_WIDGET = "url/widget/"


def enter(page: str) -> None:
    """Begin a run of a page; coming from another, its widgets take their values from the URL."""
    state: Any = st.session_state
    state.setdefault(_KEPT, {})
    state[_NOW] = {}
    if state.get(_PAGE) != page:
        state[_PAGE], state[_WRITTEN] = page, {}
        for key in [key for key in state if str(key).startswith(_WIDGET)]:
            del state[key]


def flush() -> None:
    """End a run of a page: write its choices to the URL."""
    state: Any = st.session_state
    now = {name: values for name, values in state[_NOW].items() if values}
    state[_WRITTEN] = now
    # What was emptied here is empty on the next page too.
    state[_KEPT] = {name: values for name, values in state[_KEPT].items() if name not in state[_NOW]} | now
    if now != {name: st.query_params.get_all(name) for name in st.query_params}:
        st.query_params.from_dict(now)


def choose(
    label: str,
    options: Sequence[T],
    *,
    name: str,
    default: T | None = None,
    shown: Callable[[T], str] = str,
    written: Callable[[T], str] | None = None,
    help: str = "",  # noqa: A002 - as Streamlit's widgets call it
    where: Any = st,
) -> T:
    """Let the reader choose one.

    Args:
        label: what is chosen; ours, not stored text.
        options: at least one.
        name: its name in the URL.
        default: chosen unless the URL says otherwise; else the first.
        shown: an option as text on the page; stored text is safe here.
        written: an option as text in the URL, by which they are told apart; None: as `shown`.
        help: hover text; ours.
        where: a container of Streamlit.
    """
    spelled = {(written or shown)(one): one for one in options}
    first = next(iter(spelled)) if default is None or default not in options else (written or shown)(default)
    value = _start(name, [first], lambda given: [one for one in given[:1] if one in spelled], label)[0]
    key = _set(name, value)
    picked = where.selectbox(
        label, list(spelled), key=key, help=help or None, format_func=lambda one: visible(shown(spelled[one]))
    )
    chosen = first if picked is None else str(picked)
    _note(name, [chosen])
    return spelled[chosen]


def choose_many(  # noqa: PLR0913 - as `choose`, and `most`
    label: str,
    options: Sequence[T],
    *,
    name: str,
    default: Sequence[T] | None = None,
    shown: Callable[[T], str] = str,
    written: Callable[[T], str] | None = None,
    help: str = "",  # noqa: A002
    most: int | None = None,
    where: Any = st,
) -> list[T]:
    """Let the reader choose some, `most` at most; by default none. The arguments are those of `choose`."""
    spelled = {(written or shown)(one): one for one in options}
    first = [(written or shown)(one) for one in default or () if one in options]
    values = _start(name, first, lambda given: [one for one in given if one in spelled], label, empty=True)
    key = _set(name, list(dict.fromkeys(values))[:most])
    found = where.multiselect(
        label,
        list(spelled),
        key=key,
        help=help or None,
        max_selections=most,
        format_func=lambda one: visible(shown(spelled[one])),
    )
    picked = [str(one) for one in found]
    # That none was chosen must be told from nothing said.
    _note(name, picked or ([""] if first else []))
    return [spelled[one] for one in picked]


def text(label: str, *, name: str, default: str = "", help: str = "", where: Any = st) -> str:  # noqa: A002
    """Let the reader write a line, e.g. to search for. The arguments are those of `choose`."""
    value = _start(name, [default], lambda given: given[:1], label)[0]
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
    """Let the reader give a whole number from `low` to `high`. The other arguments are those of `choose`."""

    def valid(given: list[str]) -> list[str]:
        return [
            one for one in given[:1] if one.isascii() and one.isdigit() and len(one) < 16 and low <= int(one) <= high
        ]

    value = int(_start(name, [str(min(max(default, low), high))], valid, label)[0])
    picked = where.number_input(label, low, high, key=_set(name, value), step=1, help=help or None)
    chosen = value if picked is None else int(picked)
    _note(name, [str(chosen)])
    return chosen


def put(name: str, value: str | int | list[str]) -> None:
    """Choose for the reader, in the callback of a button or a table: as if the widget of that name had been used."""
    st.session_state[_WIDGET + name] = value


def link(page: str, **query: str | Sequence[str]) -> str:
    """Return the URL of a page's view, within this site; of a choice of several, all of them."""
    given = {name: value for name, value in query.items() if value}
    return f"/{page}?{urlencode(given, doseq=True)}" if given else f"/{page}"


def _start(
    name: str, default: list[str], valid: Callable[[list[str]], list[str]], label: str, *, empty: bool = False
) -> list[str]:
    """Return what the widget is to hold: the reader's click, else the URL's, else another page's, else the default."""
    state: Any = st.session_state
    given: list[str] = st.query_params.get_all(name)
    written: list[str] = state[_WRITTEN].get(name, [])
    key = _WIDGET + name
    if key in state and given == written:
        clicked = [str(one) for one in state[key]] if isinstance(state[key], list) else [str(state[key])]
        return valid(clicked) or ([] if empty and not clicked else default)
    if given:
        found = valid(given)
        if found or (empty and given == [""]):
            return found
        show.note(
            f"{label}: there is no {', '.join(given)[:200]} here; shown is {', '.join(default) or 'what is left'}."
        )
        return default
    if written:
        return default
    return valid(state[_KEPT].get(name, [])) or default


def _set(name: str, value: Any) -> str:
    """Put a value into the widget's state before the widget is made; return its key."""
    key = _WIDGET + name
    if st.session_state.get(key) != value:
        st.session_state[key] = value
    return key


def _note(name: str, values: list[str]) -> None:
    st.session_state[_NOW][name] = values
