"""How the built-in model reads texts, prompts and signatures, and how it writes whole bodies."""

import ast
import hashlib
import itertools
import json
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench import languages
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Kind
from ctxbench.harness.generators.base import Response
from ctxbench.harness.generators.incontext import VERSION, InContext, weights_path
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
from ctxbench.harness.generators.incontext.source import PromptRegion, call_forms, clean, read
from ctxbench.strategies.api import Block, BlockKind, Context, Prompt, Snippet
from ctxbench.strategies.layout import closing, render
from tests.helpers.incontext import api, prompt, similar
from tests.helpers.requests import make_prompt, make_request
from tests.helpers.samples import make_query

FILE = '''\
class Cart:
    def add(self, item):
        """Put an item in."""
        self.items.append(item)
        self.total += item.price
        return self.items

    def put(self, item):
        """Put an item in at the front."""
'''
JAVA = """\
class Cart {
    int add(Item item) {
        if (item == null) {
            return 0;
        }
        items.add(item);
        return items.size();
    }

    int put(Item item) {
"""


def ask(text: str | Prompt, language: Language = PYTHON, *, max_tokens: int = 1024) -> Response:
    shown = make_prompt(text) if isinstance(text, str) else text
    request = make_request(prompt=shown, language=language, kind=Kind.FUNCTION, max_tokens=max_tokens)
    return InContext(workers=1).generate([request])[0]


@pytest.mark.parametrize("start", ["", "        "])
def test_a_python_body_is_indented_parses_and_ends_with_the_function(start: str) -> None:
    response = ask(FILE + start)
    body = start + response.text
    assert response.finish == "stop" and body.strip()
    assert all(not line.strip() or line.startswith(" " * 8) for line in body.split("\n"))
    ast.parse(textwrap.dedent(FILE) + body)
    assert ask(FILE + start).text == response.text


def test_a_java_body_ends_with_its_closing_brace() -> None:
    response = ask(JAVA, JAVA_LANGUAGE)
    assert response.finish == "stop"
    assert response.text.rstrip().endswith("}") and response.text.count("}") == response.text.count("{") + 1


def test_an_unfinished_body_is_cut_after_a_whole_line() -> None:
    response = ask(FILE, max_tokens=4)
    assert response.finish == "length"
    assert response.text == "" or response.text.endswith("\n")


def test_an_unfinished_java_body_is_closed() -> None:
    for most in range(3, 40, 6):
        response = ask(JAVA, JAVA_LANGUAGE, max_tokens=most)
        assert not response.text or response.text.count("}") == response.text.count("{") + 1


@pytest.mark.parametrize("text", ["", "\n", "def", 'def f():\n    """Open', "def f(:\n", "\tdef f():\n\t\t"])
def test_any_prompt_has_an_answer(text: str) -> None:
    for language in languages.every():
        assert isinstance(ask(text, language, max_tokens=20).text, str)


def asked_for(signature: str, doc: str, language: Language, style: str = "paper", *shown: Block) -> Prompt:
    query = make_query(kind=Kind.FUNCTION, language=language, signature=signature, docstring=doc)
    return Prompt(blocks=(Block(kind=BlockKind.TEXT, text="Write it.\n\n"), *shown, *closing(query, style)))


@pytest.mark.parametrize("style", ["paper", "clean"])
@pytest.mark.parametrize(
    ("signature", "indent"),
    [
        ("def put(self, item):", 8),
        ("def put(\n    self,\n    item: dict[str, int],\n) -> list:", 8),
        ("def put(item, *, selfish={1: 2}):", 4),
        ("async def put(item):", 4),
    ],
)
@pytest.mark.parametrize("doc", ["Put an item in.\n\n>>> put(1)", "", 'FieldError: it\'s "quoted"'])
def test_a_body_is_written_for_a_closing_section(style: str, signature: str, indent: int, doc: str) -> None:
    shown = Block(kind=BlockKind.SIMILAR, text=FILE[: FILE.index("    def put")])
    body = ask(asked_for(signature, doc, PYTHON, style, shown)).text
    assert body.startswith(" " * indent) and not body.startswith(" " * (indent + 1))
    head = textwrap.indent(signature, " " * (indent - 4))
    ast.parse(("class A:\n" if indent == 8 else "") + f"{head}\n{body}")


@pytest.mark.parametrize("doc", ["Put an item in at the front.\n\n@param item {@code it}", ""])
def test_a_java_body_is_written_for_a_closing_section(doc: str) -> None:
    shown = Block(kind=BlockKind.SIMILAR, text=JAVA[: JAVA.index("    int put")] + "}\n")
    body = ask(asked_for("int put(Item item)", doc, JAVA_LANGUAGE, "paper", shown), JAVA_LANGUAGE).text
    assert body.rstrip().endswith("}") and body.count("}") == body.count("{") + 1
    assert body.startswith(" " * 8)


CIRCULAR = """\
def wait(self):
    self.poll(self.queue, self.limit)
    self.poll(self.queue, self.limit)
    self.poll(self.queue, self.limit)
    self.poll(self.queue, self.limit)
"""


@pytest.mark.parametrize(
    "signature",
    ["def wait(self, limit):", "def stop(self):", "def clamp(x, lower=float('-inf'), upper=float('inf')):"],
)
@pytest.mark.parametrize(
    "code", ["", CIRCULAR, FILE, FILE.replace("        return", "        if item:\n            return")]
)
def test_bodies_parse_and_do_not_repeat_lines(signature: str, code: str) -> None:
    shown = Block(kind=BlockKind.SIMILAR, text=code)
    body = ask(asked_for(signature, "Wait for it.", PYTHON, "paper", shown)).text
    ast.parse("def f():\n" + textwrap.indent(textwrap.dedent(body), "    "))
    lines = body.splitlines()
    assert all(one != other for one, other in itertools.pairwise(lines))


ODD = """\
    async def load_cart(self, user, *args, limit: int | None = None, **kwargs) -> list[float]:
        if user not in self._carts and not self.closed:  # new ones
            raise KeyError(f"no cart of {user!r}")
        return [apply_tax(price * 2, rate=rates["vat"], café="é") for price in self._carts[user] if price >= 0.5]
"""
ODD_JAVA = """\
    @Override
    public <T extends Item> double total(Map<String, List<T>> carts) throws NoCart {
        for (T item : carts.get(user)) {
            sum += item.price() * rules.rate(user, "vat", 'x') - (sum >>> 2); // free
        }
        return items.stream().map(Item::price).filter(price -> price > LIMIT).count();
    }
"""
WINDOW = "def pay(user):\n    cart = store.load_cart(user)\n    return apply_tax(cart, rate=self.rules.rate(user))\n"


@pytest.mark.slow
def test_answers_and_bits_are_those_of_the_version() -> None:
    """If this test fails, undo the change or change the version. Stored answers would otherwise be wrong."""
    model, digest = InContext(workers=1), hashlib.sha256()
    for language, code in ((PYTHON, FILE + ODD), (JAVA_LANGUAGE, JAVA + ODD_JAVA)):
        digest.update(weights_path(language).read_bytes())
        lines = code.splitlines(keepends=True)
        blocks = (similar(("shop/pay.py", WINDOW), ("shop/a.py", code[::2])), api("tax.py", "def vat(user, land)"))
        for number, line in enumerate(lines):
            shown = prompt("".join(lines[:number]) + line[: len(line) // 2], *blocks[: number % 3])
            kinds = Kind if number % 4 == 0 else (Kind.LINE,)
            asked = [make_request(prompt=shown, language=language, kind=kind, max_tokens=60) for kind in kinds]
            answers = [(one.text, one.finish, one.tokens_in, one.tokens_out) for one in model.generate(asked)]
            bits = model.bits([shown], [line[len(line) // 2 : -1]], language)
            digest.update(json.dumps([answers, bits]).encode())
    assert (VERSION, digest.hexdigest()[:16]) == ("1-5dd647a939dc", "99f263a03cb8f66c")


def texts(shown: Prompt, region: PromptRegion, language: Language = PYTHON) -> list[str]:
    return [join(stretch.tokens) for stretch in read(shown, language).stretches if stretch.region is region]


def test_retrieved_windows_lose_marks_headers_rules_and_paths() -> None:
    shown = prompt("x = ", similar(("shop/a.py", "def f():\n    return 1"), ("shop/b.py", "y = f()")))
    assert texts(shown, PromptRegion.SIMILAR) == ["def f():\n    return 1\n", "y = f()\n"]
    assert texts(shown, PromptRegion.INFILE) == ["x ="]
    assert read(shown, PYTHON).space == " "


def test_the_layout_of_the_line_strategies_is_read() -> None:
    snippets = (Snippet(path="a/b.py", text="def f(x):\n\n    return x", score=1.0), Snippet(path="c.py", text="y = 2"))
    shown = render(make_query(prefix="import os\n\nz = "), Context(snippets))
    assert texts(shown, PromptRegion.SIMILAR) == ["y = 2\n", "def f(x):\n    return x\n"]
    assert texts(shown, PromptRegion.INFILE) == ["import os\nz ="]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('def f():\n    """Doc\n    string."""\n    a = 1\n', 'def f():\n    """\n    a = 1\n'),
        ("a = 1  # why\n\n\n# alone\nb = 2\n", "a = 1\nb = 2\n"),
        ('end of a text.\n    """\n    a = 1\n', "    a = 1\n"),
    ],
)
def test_documentation_and_blank_lines_are_left_out(text: str, left: str) -> None:
    assert join(clean(text, PYTHON, whole=True)) == left


@pytest.mark.parametrize(
    ("language", "text", "forms"),
    [
        (PYTHON, "def apply_tax(amount: float, rate=0.2) -> float", ["apply_tax(amount, rate)\n"]),
        (PYTHON, "class HTTPCart(Base):\n    def __init__(self, host, *, port: int = 1)", ["HTTPCart(host, port)\n"]),
        (PYTHON, "class Cart:\n    \n    def load(self, user_id)", ["cart.load(user_id)\n"]),
        (PYTHON, "def f()", ["f()\n"]),
        (PYTHON, "def broken(a, (b", []),
        (
            JAVA_LANGUAGE,
            "public class Cart {\n    public Invoice checkout(PaymentCard card, boolean b);\n}",
            ["cart.checkout(card, b);\n"],
        ),
        (JAVA_LANGUAGE, "class Cart {\n    public Cart(Map<String, Item> items) {", ["new Cart(items);\n"]),
        (JAVA_LANGUAGE, "return f(a, b);", []),
    ],
)
def test_signatures_offer_calls(language: Language, text: str, forms: list[str]) -> None:
    found = call_forms(lex(text + "\n", language, line_start=True)[0], language)
    assert found[: len(forms)] == forms
    assert bool(found) == bool(forms)


def test_a_long_signature_offers_one_argument_per_line() -> None:
    names = ", ".join(f"argument_number_{n}" for n in range(5))
    shown = prompt("", api("a.py", f"def f({names})"))
    assert texts(shown, PromptRegion.CALL)[1].startswith(
        "f(\n    argument_number_0=argument_number_0,\n    argument_number_1"
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(BlockKind), st.text(max_size=200)), max_size=4),
    st.sampled_from(languages.every()),
)
def test_any_prompt_is_read(blocks: list[tuple[BlockKind, str]], language: Language) -> None:
    read(Prompt(blocks=tuple(Block(kind=kind, text=text) for kind, text in blocks)), language)


@settings(max_examples=150, deadline=None)
@given(
    st.text(st.characters(categories=None) | st.sampled_from("\"'\n \t#/*()abc=.")), st.sampled_from(languages.every())
)
def test_any_text_is_lexed_without_loss(text: str, language: Language) -> None:
    tokens, tail = lex(text, language, line_start=True)
    assert join(tokens, tail) == text
    assert all(token.text or token.kind is TokenClass.INDENT for token in tokens)
    # Generation needs each token's class to follow from its vocabulary entry.
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
        (JAVA_LANGUAGE, "final Map<String, List<Item>> items = new HashMap<>(size + 1);"),
        (JAVA_LANGUAGE, "for (int i = 0; i < names.length; i++) {"),
        (JAVA_LANGUAGE, "return (a != null && !b) ? x[i] : -1;"),
        (JAVA_LANGUAGE, "items.forEach(Item::show);"),
    ],
)
def test_usual_spacing_is_predicted(language: Language, text: str) -> None:
    tokens, _ = lex(text, language, line_start=False)
    frame = Frame()
    wanted = ""
    for at, token in enumerate(tokens):
        before, earlier = (tokens[at - k] if at >= k else None for k in (1, 2))
        wanted += space_before(before, earlier, token.text, token.kind, frame, language) + token.text
        frame = advance(frame, token)
    assert wanted == text
