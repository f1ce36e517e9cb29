"""The memorisation probe tells a generator that has read the samples from one that has not, in both languages."""

from __future__ import annotations

import json
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.code_tokens import count
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Cursor, Kind, Reference, Sample, Use
from ctxbench.harness.diagnostics.memory import _VOCABULARY, MemoryProbe, probe, twin_names, twins
from ctxbench.harness.generators.base import Capabilities
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.leaderboard import board, records, render
from ctxbench.harness.run.attempt import silent
from ctxbench.harness.run.runner import run
from ctxbench.harness.store import Store, open_store
from ctxbench.harness.store.runs import find_run, run_tables
from ctxbench.strategies.api import Prompt
from tests.helpers.cells import open_inline
from tests.helpers.cli import run_cli
from tests.helpers.samples import make_reference, make_sample
from tests.helpers.sets import make_set

_PYTHON = (
    "from shop.tax import apply_tax\n\n\nclass Cart:\n    def total_price(self, rate: float,\n"
    "            user_name=None):\n        '''Say what it comes to.'''\n        base = 3\n        out = "
)
_JAVA = (
    "import a.Tax;\nclass Cart {\n    private int unitPrice;\n    /** Say what it comes to. */\n"
    "    public double getTotal(List<String> taxes, int MAX_SIZE)\n    {\n        return "
)


def use(*names: str) -> tuple[Use, ...]:
    return tuple(Use(name=name, module="shop.tax", kind="function") for name in names)


@pytest.mark.parametrize(
    ("sample", "target", "before", "stays"),
    [
        (
            make_sample(prefix=_PYTHON, uses=use("apply_tax")),
            "apply_tax(self.total_price, len(rate), user_name.strip(), base)",
            "    def total_price(self, rate: float,\n            user_name=None):\n        out = ",
            ["self", "float", "None", "len", "strip", "def"],
        ),
        (
            make_sample(language=JAVA, prefix=_JAVA, uses=use("Tax", "Tax.rounded")),
            "Tax.rounded(unitPrice, taxes.size(), MAX_SIZE).toString();",
            "    public double getTotal(List<String> taxes, int MAX_SIZE)\n    {\n        return ",
            ["public", "double", "List", "String", "size", "toString", "return"],
        ),
    ],
    ids=["python", "java"],
)
def test_a_twin_has_other_names_of_the_same_shape(sample: Sample, target: str, before: str, stays: list[str]) -> None:
    pair = twins(sample, make_reference(target=target))
    assert pair is not None
    original, twin = pair
    assert (original.prompt, original.target) == (before, target), "nothing but the signature, and the line's beginning"
    whole, renamed = original.prompt + original.target, twin.prompt + twin.target
    assert count(whole) == count(renamed) and len(whole) == len(renamed) and whole != renamed
    assert all(renamed.count(word) >= whole.count(word) > 0 for word in stays)
    shape = str.maketrans(dict.fromkeys(string.ascii_lowercase, "a") | dict.fromkeys(string.ascii_uppercase, "A"))
    assert whole.translate(shape) == renamed.translate(shape)
    assert twins(sample, make_reference(target=target)) == pair
    assert (
        twins(
            make_sample(prefix="# 2\n" + sample.prefix, language=sample.language, uses=sample.uses),
            make_reference(target=target),
        )
        != pair
    )


def test_a_function_is_shown_its_signature_without_the_docstring() -> None:
    prefix = '@cached\ndef apply_tax(amount, rate):\n    """Say it."""\n'
    sample = make_sample(
        kind=Kind.FUNCTION,
        prefix=prefix,
        cursor=Cursor(line=3, column=0),
        name="apply_tax",
        span=(1, 4),
        suffix="\n\nx = 1\n",
    )
    pair = twins(
        sample, make_reference(target='def apply_tax(amount, rate):\n    """Say it."""\n    return amount * rate')
    )
    assert pair is not None
    original, twin = pair
    assert original.prompt == "def apply_tax(amount, rate):\n" and original.target == "    return amount * rate"
    assert twin.target.split() != original.target.split() and twin.target.startswith("    return ")


def test_outside_functions_only_the_beginning_of_the_line_is_shown() -> None:
    sample = make_sample(prefix="def f(rate):\n    return rate\n\n\nrate_total = ", uses=use("price"))
    pair = twins(sample, make_reference(target="price(3)"))
    assert pair is not None and pair[0].prompt == "rate_total = "
    assert twins(make_sample(prefix="print("), make_reference(target="len('a'))")) is None, "nothing of the project's"
    assert twins(make_sample(prefix="rate = "), make_reference(target="len('a')")) is None, "nothing but its prompt"


def test_words_are_replaced_consistently_and_never_by_a_name_that_is_there() -> None:
    names = ["cart_total", "CartTotal", "CART", "total2", "ab_is", "HTTPServer", "cartTotals", "_cart"]
    new = twin_names(names, reserved={*names, "desk", "fish"}, words=["lake", "desk"], seed="s")
    cart, total = new["cart_total"].split("_")
    assert cart == "lake" and total in _VOCABULARY.split(), "the file's own words come first"
    assert new["CartTotal"] == cart.capitalize() + total.capitalize() and new["CART"] == cart.upper()
    assert new["total2"] == f"{total}2" and new["_cart"] == f"_{cart}" and new["ab_is"] == "ab_is"
    assert len(set(new.values())) == len(names) and all(len(old) == len(other) for old, other in new.items())
    many = [f"{first}{second}zz" for first in "abcdefghij" for second in "abcdefghij"]
    assert len(set(twin_names(many, reserved=many, words=[], seed="s").values())) == len(many), (
        "more words than the vocabulary has"
    )
    words = _VOCABULARY.split()
    assert len(words) == len(set(words)) and all(word.isalpha() and word.islower() for word in words)


class Reader(Scripted):
    """A generator to which a text that it has read costs a bit a character, and any other text four."""

    capabilities = Capabilities(batch_size=16, prices=True)

    def __init__(self, read: Sequence[str]) -> None:
        super().__init__(lambda _: "x", version="1")
        self.read, self.priced = frozenset(read), 0

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        self.priced += len(texts)
        return [len(text) * (1.0 if text in self.read else 4.0) for text in texts]


def lines_of(home: Home, language: Language, count: int = 6) -> SampleSet:
    """Return a set of lines of two repositories, each line with its own answer in that language."""
    prefix, end = (_PYTHON, "\n") if language == PYTHON else (_JAVA, ";\n    }\n}\n")
    path = f"shop/Cart{language.suffix}"
    entries: dict[str, Any] = {}
    for repo in ("shop0", "shop1"):
        root = home.repos / repo / "1"
        (root / "shop").mkdir(parents=True)
        (root / path).write_text(f"{prefix}levied(0){end}")
        digest = snapshot.load(repo, root, language).digest
        entries[repo] = {"language": str(language), "checkout": f"{repo}/1", "snapshot": digest}
    cursor = Cursor(line=prefix.count("\n"), column=len(prefix.rpartition("\n")[2]))
    samples = [
        make_sample(
            id=f"{repo}/{at}", repo=repo, path=path, language=language, prefix=prefix, cursor=cursor, uses=use("levied")
        )
        for at, repo in enumerate(sorted([*entries] * (count // 2)))
    ]
    references = [Reference(id=sample.id, target=f"levied({at})") for at, sample in enumerate(samples)]
    return sets.save(home, f"lines-{language}", samples, references, {"repositories": entries})


def stored(
    home: Home, store: Store, sample_set: SampleSet, model: Reader, strategy: str = "lc.infile", **how: Any
) -> str:
    [summary] = run(home, store, sample_set, strategies=[strategy], generator="scripted", cells=open_inline,
                    resolve=lambda _: model, **how)  # fmt: skip
    assert summary.missing == 0
    return summary.run


def probed(home: Home, store: Store, run_id: str, model: Reader, limit: int | None = None) -> MemoryProbe:
    return probe(home, store, find_run(store, run_id), limit=limit, progress=silent, resolve=lambda _: model)


@pytest.mark.slow
@pytest.mark.parametrize("language", [PYTHON, JAVA])
def test_the_probe_tells_who_has_read_the_samples(tmp_path: Path, language: Language) -> None:
    memorised = {}
    for name in ("reader", "stranger"):
        home = Home(tmp_path / name)
        sample_set = lines_of(home, language)
        answers = [reference.target for reference in sample_set.references.values()]
        model = Reader(answers if name == "reader" else [])
        with open_store(home.database) as store:
            first = stored(home, store, sample_set, model)
            assert "memorised" not in run_tables(store)[0].metrics, "no run measures it by itself"
            model.priced = 0
            part = probed(home, store, first, model, limit=2)
            assert (part.new, part.over_limit, len(part.costs), model.priced) == (2, 4, 2, 4)
            found = probed(home, store, first, model)
            assert (found.new, found.over_limit, len(found.costs), model.priced) == (4, 0, 6, 12)
            second = stored(home, store, sample_set, model, "lc.random_windows")
            model.priced = 0
            again = probed(home, store, second, model)
            assert (again.new, model.priced, again.costs) == (0, 0, found.costs), (
                "of another strategy's run it is known"
            )
            shown = board(run_tables(store))
            ranked = board(run_tables(store), metric="memorised")
        assert {row.tier for row in ranked.groups[0].rows} == {"a"} and not ranked.groups[0].family.significant
        estimates = [row.metrics["memorised"] for row in shown.groups[0].rows]
        assert len(estimates) == 2 and estimates[0] == estimates[1]
        memorised[name] = estimates[0]
        assert "memorised bits [95%]" in render.table(shown)
        assert json.loads(records.to_json(shown))[0]["memorised"]["mean"] == estimates[0].mean
        scale = shown.groups[0].scales["memorised"]
        assert scale.lower_is_better and scale.unit == "bits" and "Mattern" in scale.source
    length = len(answers[0])
    assert memorised["reader"].mean == pytest.approx(3 * length) and memorised["stranger"].mean == 0.0
    assert memorised["reader"].low > memorised["stranger"].high


class OddReader(Reader):
    """A reader that cannot price one text, or nothing."""

    def __init__(self, bad: str) -> None:
        super().__init__([])
        self.bad = bad

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        if any(self.bad in text for text in texts):
            raise MachineFault("it answers oddly")
        return super().bits(prompts, texts, language)


@pytest.mark.slow
def test_a_sample_that_cannot_be_priced_is_named_and_stops_no_other(tmp_path: Path) -> None:
    home = Home(tmp_path)
    sample_set = lines_of(home, PYTHON)
    with open_store(home.database) as store:
        run_id = stored(home, store, sample_set, Reader([]))
        with pytest.raises(MachineFault, match="oddly"):
            probed(home, store, run_id, OddReader(""))
        part = probed(home, store, run_id, OddReader("levied(0)"), limit=1)
        assert (part.new, part.over_limit, [*part.faults]) == (1, 4, ["shop0/0"])
        rest = probed(home, store, run_id, OddReader("levied(0)"))
        assert (rest.new, rest.over_limit, [*rest.faults], len(rest.costs)) == (4, 0, ["shop0/0"], 5)
        assert probed(home, store, run_id, Reader([])).new == 1


@pytest.mark.slow
def test_a_model_without_prices_and_another_version_are_refused_in_one_line(tmp_path: Path) -> None:
    home = Home(tmp_path)
    sample_set = make_set(home, per_repo=1)
    with open_store(home.database) as store:
        model = Reader([])
        with_prices = find_run(store, stored(home, store, sample_set, model))
        model.version = "2"
        with pytest.raises(InputFault, match=r"'scripted 2' by now, and was 'scripted 1'"):
            probe(home, store, with_prices, limit=None, progress=silent, resolve=lambda _: model)
        mute = Scripted(lambda _: "x", version="3")
        coder = Reader([])
        [summary] = run(home, store, sample_set, strategies=["lc.infile"], generator="scripted", cells=open_inline,
                        resolve=lambda spec: coder if spec == "incontext" else mute)  # fmt: skip
        with pytest.raises(InputFault, match="scripted gives no log-probabilities"):
            probe(home, store, find_run(store, summary.run), limit=None, progress=silent)


@pytest.mark.slow
def test_the_command_probes_the_built_in_model(tmp_path: Path) -> None:
    home = Home(tmp_path)
    lines_of(home, PYTHON)
    where = ("--home", str(tmp_path))
    ran = run_cli(
        "run", *where, "--samples", "lines-python", "--strategy", "lc.infile", "--generator", "incontext(workers=1)"
    )
    assert ran.code == 0, ran.err
    first = run_cli("diagnose", "--memorised", ran.out.split()[0], *where)
    assert first.code == 0 and "samples 6  new 6  left 0" in first.out and "memorised " in first.out, first
    again = json.loads(run_cli("diagnose", "--memorised", ran.out.split()[0], *where, "--format", "json").out)
    assert (again["new"], len(again["samples"])) == (0, 6)
    assert all(costs["reference"] > 0 and costs["twin"] > 0 for costs in again["samples"].values())
