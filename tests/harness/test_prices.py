"""Rates of models: which holds, what it makes of tokens and seconds, and everything a file can have wrong."""

from datetime import date
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.harness.prices import Prices, Rate, builtin, load, of_home

DAY = date(2026, 11, 21)


def rate(*match: str, **fields: object) -> Rate:
    return Rate(**{"match": match, "looked_up": DAY, **fields})  # type: ignore[arg-type]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_tokens_at_hand_are_cheaper_and_counted_once() -> None:
    one = rate("m", input=2.0, cached=0.5, output=8.0)
    assert one.price(tokens_in=1_000_000, tokens_out=0, cached=0, seconds=9) == 2.0
    assert one.price(tokens_in=1_000_000, tokens_out=500_000, cached=400_000, seconds=9) == pytest.approx(1.2 + 0.2 + 4)


def test_a_machine_is_paid_by_the_hour_and_shared_by_what_it_answers_at_once() -> None:
    assert rate("m", per_hour=3.6).price(tokens_in=10, tokens_out=10, cached=0, seconds=50) == pytest.approx(0.05)
    shared = rate("m", per_hour=3.6, at_once=10)
    assert shared.price(tokens_in=10, tokens_out=10, cached=0, seconds=50) == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("pattern", "generator", "fits"),
    [
        ("gpt-x", "openai(model=gpt-x)", True),
        ("gpt-x", "openai(model=gpt-x-large)", False),
        ("gpt-*", "openai(model=gpt-x-large)", True),
        ("GPT-X", "openai(model=gpt-x)", False),
        ("hf(*", "hf(model=org/tiny)", True),
        ("org/*", "hf(model=org/tiny)", True),
        ("incontext", "incontext", True),
        ("incontext", "a label (imported, not a spec", False),
        ("*imported*", "a label (imported, not a spec", True),
    ],
)
def test_patterns_are_of_models_and_of_specs(pattern: str, generator: str, fits: bool) -> None:
    assert rate("nothing", pattern).fits(generator) is fits


@pytest.mark.parametrize(
    ("generator", "fits"),
    [
        ("openai(model=gpt-x)", True),
        ("openai(model=gpt-x, url=https://api.openai.com/v1)", True),
        ("openai(model=gpt-x, url=http://127.0.0.1:8000/v1)", False),
        ("openai(model=gpt-x, url=https://api.openai.com.example.org/v1)", False),
        ("hf(model=gpt-x)", False),
    ],
)
def test_a_price_of_a_service_holds_for_that_service_only(generator: str, fits: bool) -> None:
    assert rate("gpt-x", url="https://api.openai.com").fits(generator) is fits


def test_another_tier_of_a_service_has_another_price() -> None:
    spec = """openai(extra='{"service_tier": "flex"}', model=gpt-x)"""
    assert not rate("gpt-x", "gpt*").fits(spec) and rate("*service_tier*flex*gpt-x*").fits(spec)
    assert rate("gpt-x").fits("""openai(extra='{"reasoning_effort": "low"}', model=gpt-x)""")


def test_of_several_rates_the_first_holds_and_of_none_nobody_knows() -> None:
    prices = Prices((rate("a*", input=1.0), rate("ab", input=2.0)))
    asked = {"tokens_in": 1_000_000, "tokens_out": 0, "cached": 0, "seconds": 0}
    assert prices.price("ab", **asked) == 1.0
    assert prices.price("b", **asked) is None
    assert prices.before([rate("b", input=3.0)]).price("b", **asked) == 3.0


def test_what_is_built_in_is_dated_and_of_one_service() -> None:
    rates = builtin().rates
    assert rates
    for one in rates:
        assert one.looked_up >= date(2026, 11, 21) and one.source and one.url == "https://api.openai.com"
        assert 0 < one.cached < one.input < one.output and not any("*" in name for name in one.match)
    assert builtin().rate("incontext") is None and builtin().rate("hf(model=gpt-4o)") is None


def test_a_homes_own_rates_come_first(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert of_home(home) == builtin()
    text = '[[rate]]\nmatch = "gpt-4o"\ninput = 1\noutput = 2\nseen = 2026-11-21\n'
    text += '[[rate]]\nmatch = ["hf(*", "vllm(*"]\nper_hour = 3.2\nat_once = 8\nseen = 2026-11-20\nsource = "bill"\n'
    write(tmp_path / "prices.toml", text)
    mine, machine, *others = of_home(home).rates
    assert (mine.match, mine.input, mine.cached, mine.output) == (("gpt-4o",), 1.0, 1.0, 2.0)
    assert (machine.per_hour, machine.at_once, machine.looked_up, machine.source) == (
        3.2,
        8,
        date(2026, 11, 20),
        "bill",
    )
    assert tuple(others) == builtin().rates
    assert of_home(home).rate("openai(model=gpt-4o)") == mine
    assert of_home(home).rate("openai(model=gpt-4o-mini)") == builtin().rate("openai(model=gpt-4o-mini)")


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    text = 'top = 1\n[[rate]]\nmatch = []\nprice = 3\ninput = -1\ncached = nan\nseen = "2026-11-21"\n'
    text += '[[rate]]\nmatch = "m"\nseen = 2026-11-21T10:00:00\nat_once = 0\nurl = 3\ncached = true\n'
    with pytest.raises(InputFault) as caught:
        load(write(tmp_path / "p.toml", text))
    said = str(caught.value)
    for words in (
        "no key 'top'",
        "rate 1: there is no key 'price'",
        "rate 1: match must be",
        "rate 1: seen must be a date",
        "rate 1: input must be a number",
        "rate 1: cached must be a number",
        "rate 1: input and output must be given together",
        "rate 2: seen must be a date",
        "rate 2: at_once must be a whole number",
        "rate 2: url must be a text",
        "rate 2: neither input and output nor per_hour",
        "rate 2: cached is given without input",
        "rate 2: at_once is given without per_hour",
        "write each table as [[rate]] with match",
    ):
        assert words in said, words
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "words"),
    [("rate = 3", "not a list of tables"), ("[rate", "is not valid TOML"), ("rate = [1]", "not a list of tables")],
)
def test_files_of_another_kind(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputFault, match=words):
        load(write(tmp_path / "p.toml", text))
    with pytest.raises(InputFault, match=r"nothing\.toml"):
        load(tmp_path / "nothing.toml")
