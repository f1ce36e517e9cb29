import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench import languages
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE
from ctxbench.harness.generators.incontext.lexer import (
    Frame,
    TokenClass,
    advance,
    classify,
    join,
    lex,
    space_before,
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


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (PYTHON, "total = store.load(user_id, *args, key=-1)[0][1:2] if not a == b else {'a': [1, 2]}  # why"),
        (PYTHON, "return lambda x, **kw: (yield) ** -x and self.f().g"),
        (PYTHON, "def pay(self, amount: int) -> None:"),
        (PYTHON, "def pay(self, amount: tuple[int, ...] = (), rate=1, *, to: str = None):"),
        (PYTHON, "pay(parts=[Part(text='a')], to=(), **{'a': -b})"),
        (PYTHON, "@cache.get(1)"),
        (PYTHON, "assert (a, b) in [c]"),
        (JAVA, "final Map<String, List<Item>> items = new HashMap<>(size + 1);"),
        (JAVA, "for (int i = 0; i < names.length; i++) {"),
        (JAVA, "return (a != null && !b) ? x[i] : -1;"),
        (JAVA, "items.forEach(Item::show);"),
    ],
)
def test_usual_spacing_is_expected(language: Language, text: str) -> None:
    tokens, _ = lex(text, language, line_start=False)
    frame = Frame()
    wanted = ""
    for at, token in enumerate(tokens):
        before, earlier = (tokens[at - k] if at >= k else None for k in (1, 2))
        wanted += space_before(before, earlier, token.text, token.kind, frame, language) + token.text
        frame = advance(frame, token)
    assert wanted == text
