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

SAMPLES = [
    (PYTHON, "def f(a, *b, **c) -> int:\n    return a[1:-1] @ b\n\n\n"),
    (PYTHON, "x = f'{a!r}' + \"b\\\"c\" + '''doc\nmore''' # end\r\n\ty\x0c= 1_000.5e-3j"),
    (PYTHON, "s = 'unfinished\n  é = ªb, ¹ § \ud800 \x00"),
    (JAVA, 'Map<String, List<int[]>> m = new HashMap<>(); // "x\n\tfor (int i=0;i<=n;++i) { a >>>= 0x1FL; }'),
    (JAVA, '/** open\n * @param x y */ char c = \'\\\'\'; this::get; a -> b; """\n text"""'),
]


@pytest.mark.parametrize(("language", "text"), SAMPLES)
@pytest.mark.parametrize("line_start", [True, False])
def test_tokens_joined_are_the_text(language: Language, text: str, line_start: bool) -> None:
    tokens, tail = lex(text, language, line_start=line_start)
    assert join(tokens, tail) == text


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


def test_lines_begin_with_indentation_and_end_with_a_newline() -> None:
    tokens, _ = lex("if a:\n    b\n", PYTHON, line_start=True)
    assert [(token.kind.name, token.text) for token in tokens] == [
        ("INDENT", ""),
        ("KEYWORD", "if"),
        ("NAME", "a"),
        ("OPERATOR", ":"),
        ("NEWLINE", "\n"),
        ("INDENT", "    "),
        ("NAME", "b"),
        ("NEWLINE", "\n"),
    ]


def test_words_split_by_case_digits_and_signs() -> None:
    assert words("HTTPServer_get2Items") == ["HTTP", "Server", "_", "get", "2", "Items"]


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


def test_frame_knows_bracket_callee_slot_and_line() -> None:
    frame = Frame()
    for token in lex("x = f(a, g[1], key=", PYTHON, line_start=True)[0]:
        frame = advance(frame, token)
    assert (frame.opener, frame.callee, frame.stack[-1].slot, len(frame.stack)) == ("(", "f", 2, 1)
    assert frame.line[0] == "x"


def test_frame_survives_brackets_that_do_not_match() -> None:
    frame = Frame()
    for token in lex(")]}((", PYTHON, line_start=True)[0]:
        frame = advance(frame, token)
    assert len(frame.stack) == 2
