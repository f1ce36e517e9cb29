import json
import math
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench import languages
from ctxbench.bench.errors import MachineFault
from ctxbench.bench.files import sha256_file
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories.manifest import builtin_names
from ctxbench.harness.generators.base import Request, Sampling, resolve
from ctxbench.harness.generators.incontext import InContext, context, features, trained_model, weights_path
from ctxbench.harness.generators.incontext.lexer import lex
from ctxbench.strategies.api import Prompt
from tests.helpers.incontext import api, prompt, similar

STORE = "class Store:\n    def __init__(self, path):\n        self.path = path\n\n"
INFILE = STORE + "    def total(self, user):\n        cart = self.load(user)\n        return "


@pytest.fixture(scope="module")
def inline() -> Iterator[InContext]:
    generator = InContext(workers=1)
    yield generator
    generator.close()


def answer(generator: InContext, shown: Prompt, language: Language = PYTHON) -> str:
    return generator.generate([Request(prompt=shown, language=language)])[0].text


@pytest.mark.parametrize("language", languages.every())
@pytest.mark.parametrize("infile", ["", "\n", INFILE, "x = (", "if a:\n", "é §"])
def test_probabilities_sum_to_one_at_every_point(language: Language, infile: str) -> None:
    reader = trained_model(language)
    reading = reader.read(prompt(infile, similar(("a.py", "total = f(a, b)"))))
    context, point = reading.context, reading.context.point
    for token in lex("cart.f(unseen, 1)\n", language, line_start=False)[0]:
        after = reader.next(context, point)
        assert after.unseen > 0
        assert (after.chances >= 0).all()
        assert after.chances.sum() + after.unseen == pytest.approx(1, abs=1e-9)
        point = context.extend(point, token)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.text(max_size=120), st.text(max_size=60), st.sampled_from(languages.every()))
def test_bits_are_finite_and_positive_on_any_text(infile: str, text: str, language: Language) -> None:
    bits = trained_model(language).bits(prompt(infile, similar(("a.py", infile[::-1]))), text)
    assert math.isfinite(bits)
    assert bits > 0


@pytest.mark.parametrize("text", ["x" * 20_000, "(" * 1100, "\U0001f600" * 500, "", "\n\n", "\ud800", "a\r\nb"])
def test_bits_are_finite_on_strange_texts(text: str) -> None:
    assert math.isfinite(trained_model(PYTHON).bits(prompt("a = "), text))
    assert math.isfinite(trained_model(PYTHON).bits(prompt(text), "a = 1"))
    assert math.isfinite(trained_model(PYTHON).bits(Prompt(blocks=()), text))


@pytest.mark.parametrize("language", languages.every())
def test_seeing_the_same_line_lowers_the_bits(inline: InContext, language: Language) -> None:
    line = "price_rules.apply_tax(cart.total, self.rate)"
    shown = similar(("shop/a.py", f"        cart = self.load(user)\n        return {line}\n"))
    other = similar(("shop/b.py", "def unrelated(x):\n    yield from x\n"))
    without, random, seen = inline.bits(
        [prompt(INFILE), prompt(INFILE, other), prompt(INFILE, shown)], [line] * 3, language
    )
    assert seen < 0.35 * min(without, random)
    assert abs(random - without) < 12


def test_a_signature_lowers_the_bits_of_its_call(inline: InContext) -> None:
    shown = api("shop/tax.py", "def compute_vat_amount(customer, country_code)")
    bits = inline.bits([prompt(INFILE), prompt(INFILE, shown)], ["compute_vat_amount(user, country_code)"] * 2, PYTHON)
    assert bits[1] < 0.6 * bits[0]


def test_completion_copies_a_call_seen_in_a_window(inline: InContext) -> None:
    shown = similar(
        ("shop/a.py", "def pay(user):\n    cart = load_cart(user)\n    return price_rules.apply_tax(cart, rate)\n")
    )
    infile = "\n\ndef preview(user, rate):\n    cart = load_cart(user)\n    return "
    assert answer(inline, prompt(infile, shown)) == "price_rules.apply_tax(cart, rate)"


def test_completion_of_a_whole_line_has_its_indentation(inline: InContext) -> None:
    body = "    def get(self):\n        self.check()\n        return self.value\n\n"
    infile = "class A:\n" + body + body.replace("get", "peek") + "    def last(self):\n        self.check()\n"
    assert answer(inline, prompt(infile)) == "        return self.value"


JAVA_FILE = (
    "class B {\n    private final Store store;\n    private final Rate rate;\n\n"
    "    B(Store store, Rate rate) {\n        this.store = store;\n        this.rate = rate;\n    }\n\n"
    "    Money preview(User user) {\n"
)


def test_completion_in_java_copies_a_call_seen_in_a_window(inline: InContext) -> None:
    body = "    Money pay(User user) {\n"
    body += "        Cart cart = store.load(user);\n        return TaxRules.apply(cart, rate);\n"
    shown = similar(("a/A.java", f"class A {{\n{body}    }}\n}}"))
    infile = JAVA_FILE + "        Cart cart = store.load(user);\n        return "
    assert answer(inline, prompt(infile, shown), JAVA) == "TaxRules.apply(cart, rate);"


def test_a_java_line_that_opens_a_block_is_completed(inline: InContext) -> None:
    loop = "        for (Cart cart : store.load(user)) {\n            cart.clear();\n        }\n"
    infile = JAVA_FILE + loop * 2 + "        for (Cart cart : "
    assert answer(inline, prompt(infile), JAVA) == "store.load(user)) {"


@pytest.mark.parametrize("infile", ["f(", "x = ", "    return", "class A:\n"])
def test_an_empty_line_is_never_the_answer(inline: InContext, infile: str) -> None:
    assert answer(inline, prompt(infile)).strip()


@pytest.mark.parametrize("infile", ["", "f(((", ")))", "x = [1,\n", "if True:\n    ", "\x00é"])
def test_completion_of_any_prompt_ends_within_max_tokens(inline: InContext, infile: str) -> None:
    for language in languages.every():
        request = Request(prompt=prompt(infile), language=language, sampling=Sampling(max_tokens=20))
        response = inline.generate([request])[0]
        assert response.finish in ("stop", "length")
        assert response.tokens_out <= 20
        assert not response.text.endswith("\n")


def test_max_tokens_and_stop_texts_end_an_answer(inline: InContext) -> None:
    shown = prompt(INFILE)
    cut = inline.generate([Request(prompt=shown, language=PYTHON, sampling=Sampling(max_tokens=1))])[0]
    assert cut.tokens_out == 1
    whole = answer(inline, shown)
    stop = whole[1]
    stopped = inline.generate([Request(prompt=shown, language=PYTHON, sampling=Sampling(stop=(stop,)))])[0]
    assert stopped.text == whole.split(stop)[0]


@pytest.mark.parametrize("language", languages.every())
def test_the_training_record_fits_the_weights_and_excludes_benchmarks(language: Language) -> None:
    path = weights_path(language)
    record = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert record["weights_sha256"] == sha256_file(path)
    names = {source["name"].replace("_", "-") for source in record["sources"]}
    assert not names & set(builtin_names())
    assert {source["role"] for source in record["sources"]} == {"fit", "tune", "test"}
    bits = [record["held_out"][kind]["bits"] for kind in ("infile", "similar", "similar+api", "reference+api")]
    assert bits == sorted(bits, reverse=True)
    assert record["held_out"]["random"]["bits"] > record["held_out"]["repocoder"]["bits"]
    assert bits[1] > record["held_out"]["reference"]["bits"]


@pytest.mark.slow
def test_incontext_is_listed_without_loading_numpy() -> None:
    program = "import sys; from ctxbench.harness.generators.base import parameters; "
    program += "print([p.name for p in parameters('incontext')]); sys.exit('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "['workers']\n"), done.stderr
    assert isinstance(resolve("incontext(workers=1)"), InContext)


@pytest.mark.slow
def test_results_do_not_depend_on_workers_and_a_lost_worker_is_a_fault(inline: InContext) -> None:
    prompts = [prompt(INFILE), prompt("x = "), prompt("", similar(("a.py", "b = c(d)")))]
    requests = [Request(prompt=shown, language=PYTHON) for shown in prompts]
    pooled = InContext(workers=2)
    try:
        pooled.wake(PYTHON)
        assert pooled._pool is not None and len(pooled._pool._processes) == 2
        assert [r.text for r in pooled.generate(requests)] == [r.text for r in inline.generate(requests)]
        lines = ["cart", "f(y)", "b"]
        assert pooled.bits(prompts, lines, PYTHON) == inline.bits(prompts, lines, PYTHON)
        assert pooled._pool is not None
        for process in list(pooled._pool._processes.values()):
            process.kill()
        with pytest.raises(MachineFault, match="run the same command again"):
            while True:
                pooled.generate(requests)
        assert [r.text for r in pooled.generate(requests[:1])] == [answer(inline, prompts[0])]
    finally:
        pooled.close()


LINES = st.sampled_from(
    [
        "import os\n",
        "def f(cart, rate=1):\n",
        "    total = f(cart, rate)\n",
        "    return cart.total\n",
        "x = [f(1), '''\n",
    ]
)


@given(
    infile=st.lists(LINES, max_size=8).map("".join),
    window=st.lists(LINES, max_size=6).map("".join),
    text=st.sampled_from(["cart.total(rate, x)", "total = f(", "'''", "unseen = os.f[1].carts"]),
    language=st.sampled_from([PYTHON, JAVA]),
)
@settings(max_examples=25, deadline=None)
def test_fast_scores_equal_those_of_the_feature_definitions(
    infile: str, window: str, text: str, language: Language
) -> None:
    reader = trained_model(language)
    reading = reader.read(prompt(infile + "    ", similar(("a.py", window))))
    context, point = reading.context, reading.context.point
    possible = ~features.impossible(context)
    for token in lex(text + "\n", language, line_start=False)[0]:
        defined = reader.weights[features.indices(context, point)].sum(axis=0)
        assert (reader._tables.positions(context, point) == defined)[possible].all()
        gates = reader.weights[features.gates(point)].sum(axis=1)
        assert reader._tables.gates(point) == gates.tolist()
        point = context.extend(point, token)


def test_a_full_lexicon_is_replaced_without_changing_bits(monkeypatch: pytest.MonkeyPatch, inline: InContext) -> None:
    shown = prompt("def f(cart, rate):\n    return cart.total\n\nx = ")
    before = inline.bits([shown], ["f(cart, 2)"], PYTHON)
    first = trained_model(PYTHON).prior.lexicon
    monkeypatch.setattr(context, "MOST_LINES", 0)
    assert inline.bits([shown], ["f(cart, 2)"], PYTHON) == before
    assert trained_model(PYTHON).prior.lexicon is not first
