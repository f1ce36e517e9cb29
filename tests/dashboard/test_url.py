"""Choices are read from the URL, written to it and carried to the next page. Invalid values are refused."""

import pytest
from streamlit.testing.v1 import AppTest

from ctxbench.dashboard import choices

BODY = """
import streamlit as st
from ctxbench.dashboard import choices

options = st.session_state.get("options", ["a", "b", "<b>"])
choices.enter(st.session_state.get("page", "one"))
one = choices.choose("One", options, name="one", default="b", label_of=str.upper, key_of=str)
many = choices.choose_many("Many", ["x", "y", "z"], name="many", default=["x"], most=2)
text = choices.text("Text", name="text")
number = choices.number("Number", 1, 10, name="number", default=3)
st.button("Put", on_click=lambda: choices.put("one", "a"))
st.session_state["chosen_values"] = (one, many, text, number)
choices.flush()
"""


def opened(**query: str | list[str]) -> AppTest:
    test = AppTest.from_string(BODY, default_timeout=60)
    for name, value in query.items():
        test.query_params[name] = value
    test.run()
    assert not test.exception, test.exception
    return test


def chosen_values(test: AppTest) -> tuple[object, ...]:
    values: tuple[object, ...] = test.session_state["chosen_values"]
    return values


def test_without_a_query_the_defaults_are_chosen_and_written() -> None:
    test = opened()
    assert chosen_values(test) == ("b", ["x"], "", 3)
    assert test.query_params == {"one": "b", "many": "x", "number": "3"}


def test_a_query_sets_the_choices() -> None:
    test = opened(one="<b>", many=["y", "z"], text="find me", number="7")
    assert chosen_values(test) == ("<b>", ["y", "z"], "find me", 7)
    assert test.selectbox[0].value == "<b>" and test.multiselect[0].value == ["y", "z"]
    assert not test.get("html")


@pytest.mark.parametrize("query", [{"one": "gone"}, {"number": "11"}, {"number": "-1"}, {"number": "x"}, {"many": "w"}])
def test_an_unknown_option_is_refused_with_a_note(query: dict[str, str]) -> None:
    test = opened(**query)
    assert chosen_values(test) == ("b", ["x"], "", 3)
    [note] = test.get("html")
    assert next(iter(query.values())) in note.proto.body
    assert not test.run().get("html"), "once is enough"


def test_markup_in_a_query_is_shown_as_text() -> None:
    [note] = opened(one="<script>x</script>").get("html")
    assert "<script" not in note.proto.body and "&lt;script&gt;" in note.proto.body


def test_a_click_is_written_to_the_url() -> None:
    test = opened(one="a")
    test.selectbox[0].set_value("<b>").run()
    test.multiselect[0].set_value(["z"]).run()
    test.text_input[0].set_value("words").run()
    test.number_input[0].set_value(9).run()
    assert chosen_values(test) == ("<b>", ["z"], "words", 9)
    assert test.query_params == {"one": "<b>", "many": "z", "text": "words", "number": "9"}


@pytest.mark.slow
def test_an_empty_choice_differs_from_no_choice() -> None:
    test = opened()
    test.multiselect[0].set_value([]).run()
    assert chosen_values(test)[1] == []
    again = opened(many="")
    assert chosen_values(again)[1] == []


def test_going_back_in_the_browser_changes_the_choice() -> None:
    test = opened(one="a")
    test.query_params["one"] = "<b>"
    assert chosen_values(test.run())[0] == "<b>"
    del test.query_params["one"]
    assert chosen_values(test.run())[0] == "b"


def test_choices_are_carried_to_the_next_page_if_they_exist_there() -> None:
    test = opened(one="a", number="7")
    test.session_state["page"] = "two"
    test.query_params.clear()
    assert chosen_values(test.run()) == ("a", ["x"], "", 7)
    assert test.query_params["one"] == "a"
    test.session_state["page"], test.session_state["options"] = "three", ["b", "c"]
    test.query_params.clear()
    assert chosen_values(test.run())[0] == "b" and not test.get("html")


def test_an_option_that_disappears_is_replaced_by_the_default() -> None:
    test = opened(one="a")
    test.session_state["options"] = ["b", "c"]
    assert chosen_values(test.run())[0] == "b" and not test.exception


def test_a_callback_can_set_a_choice() -> None:
    test = opened(one="<b>")
    test.button[0].click().run()
    assert chosen_values(test)[0] == "a" and test.query_params["one"] == "a"


def test_links_quote_their_values() -> None:
    assert choices.link("compare") == "/compare"
    assert choices.link("compare", samples="demo[:10]", runs=["a b", "c&d"], none="") == (
        "/compare?samples=demo%5B%3A10%5D&runs=a+b&runs=c%26d"
    )
