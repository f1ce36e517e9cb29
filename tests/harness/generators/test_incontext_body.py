"""A whole body by the built-in model, and the shapes that lines can have."""

import ast
import hashlib
import itertools
import json
import textwrap

import pytest

from ctxbench.bench import languages
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Kind
from ctxbench.harness.generators.base import Response
from ctxbench.harness.generators.incontext import VERSION, InContext, weights_path
from ctxbench.strategies.api import Block, BlockKind, Prompt
from ctxbench.strategies.layout import closing
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


def test_a_java_body_ends_with_the_brace_that_closes_it() -> None:
    response = ask(JAVA, JAVA_LANGUAGE)
    assert response.finish == "stop"
    assert response.text.rstrip().endswith("}") and response.text.count("}") == response.text.count("{") + 1


def test_a_body_that_does_not_end_is_cut_at_a_whole_line() -> None:
    response = ask(FILE, max_tokens=4)
    assert response.finish == "length"
    assert response.text == "" or response.text.endswith("\n")


def test_a_java_body_that_does_not_end_is_closed() -> None:
    for most in range(3, 40, 6):
        response = ask(JAVA, JAVA_LANGUAGE, max_tokens=most)
        assert not response.text or response.text.count("}") == response.text.count("{") + 1


@pytest.mark.parametrize("text", ["", "\n", "def", 'def f():\n    """Open', "def f(:\n", "\tdef f():\n\t\t"])
def test_any_prompt_gives_an_answer(text: str) -> None:
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
def test_a_closing_section_is_given_a_body(style: str, signature: str, indent: int, doc: str) -> None:
    shown = Block(kind=BlockKind.SIMILAR, text=FILE[: FILE.index("    def put")])
    body = ask(asked_for(signature, doc, PYTHON, style, shown)).text
    assert body.startswith(" " * indent) and not body.startswith(" " * (indent + 1))
    head = textwrap.indent(signature, " " * (indent - 4))
    ast.parse(("class A:\n" if indent == 8 else "") + f"{head}\n{body}")


@pytest.mark.parametrize("doc", ["Put an item in at the front.\n\n@param item {@code it}", ""])
def test_a_closing_section_of_java_is_given_a_body(doc: str) -> None:
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
def test_bodies_parse_and_do_not_go_in_circles(signature: str, code: str) -> None:
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
def test_the_version_stands_for_the_same_answers_and_prices() -> None:
    """If this fails, change the model back or give it another version: stored answers would be another model's."""
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
