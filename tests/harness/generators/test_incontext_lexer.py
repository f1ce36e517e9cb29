from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench import languages
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE
from ctxbench.harness.generators.incontext.lexer import (
    TokenClass,
    classify,
    join,
    lex,
    words,
)

PYTHON, JAVA = PYTHON_LANGUAGE, JAVA_LANGUAGE


@settings(max_examples=150, deadline=None)
@given(
    st.text(st.characters(categories=None) | st.sampled_from("\"'\n \t#/*()abc=.")), st.sampled_from(languages.every())
)
def test_any_text_is_lexed_without_loss(text: str, language: Language) -> None:
    tokens, tail = lex(text, language, line_start=True)
    assert join(tokens, tail) == text
    assert all(token.text or token.kind is TokenClass.INDENT for token in tokens)
    # A token's class follows from its vocabulary entry, as generation needs it to.
    assert [classify(token.entry, language) for token in tokens] == [token.kind for token in tokens]
    for token in tokens:
        assert "".join(words(token.text)) == token.text
