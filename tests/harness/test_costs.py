"""Costs of a run, from answers to the leaderboard: every call counts, and cached answers keep their first cost."""

import csv
import dataclasses
import io
import json
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.languages.python import PYTHON
from ctxbench.harness.generators.base import Capabilities, Request, Response
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.leaderboard import board, render, scales
from ctxbench.harness.leaderboard.scales import at_level
from ctxbench.harness.prices import Prices, Rate, builtin, load, of_home
from ctxbench.harness.results import COSTS, PRICE, RunTable, Status
from ctxbench.harness.run.batching import Batcher
from ctxbench.harness.run.resources import Summaries
from ctxbench.harness.run.runner import fault_of
from ctxbench.harness.run.spec import RunOptions
from tests.harness.test_batcher import Memory
from tests.harness.test_runner import Bench, right
from tests.harness.test_summariser import PAY, answer
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.runs import make_table

RATES = '[[rate]]\nmatch = "scripted"\ninput = 2.0\ncached = 0.5\noutput = 8.0\nseen = 2026-11-21\n'


class Metered(Scripted):
    """Reports ten cached tokens per prompt and one second per answer, and records its answers."""

    def __init__(self) -> None:
        super().__init__(right, version="1")
        self.given: list[Response] = []

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        made = [dataclasses.replace(one, cached=10, seconds=1.0) for one in super().generate(requests)]
        self.given += made
        return made


def priced(tmp_path: Path, rates: str = RATES) -> Bench:
    bench = Bench(tmp_path)
    (bench.home.root / "prices.toml").write_text(rates)
    return bench


def total(table: RunTable, name: str) -> float:
    return sum(value or 0.0 for value in table.costs[name])


def test_every_call_of_every_sample_is_counted(tmp_path: Path) -> None:
    bench, model = priced(tmp_path), Metered()
    bench.run(model, "lc.repocoder(iterations=2)", choices=RunOptions(n=2, temperature=0.5))
    table = bench.table()
    # Each sample needs a draft and two completions.
    assert set(table.calls) == {3} and len(model.given) == 3 * 8
    for name, told in (("tokens_in", "tokens_in"), ("tokens_out", "tokens_out"), ("tokens_cached", "cached")):
        assert total(table, name) == sum(getattr(one, told) for one in model.given) > 0
    expected = [((one.tokens_in - 10) * 2.0 + 10 * 0.5 + one.tokens_out * 8.0) / 1e6 for one in model.given]
    assert total(table, PRICE) == pytest.approx(sum(expected))
    assert set(table.costs["generator_seconds"]) == {3.0} and set(table.costs["test_seconds"]) == {None}
    assert table.seconds == tuple(
        (one or 0) + (two or 0)
        for one, two in zip(table.costs["strategy_seconds"], table.costs["generator_seconds"], strict=True)
    )


def test_a_cached_answer_keeps_its_original_cost(tmp_path: Path) -> None:
    bench, first, second = priced(tmp_path), Metered(), Metered()
    bench.run(first)
    (bench.home.root / "prices.toml").write_text(RATES.replace("2.0", "200.0"))
    bench.run(second, choices=RunOptions(limit=4))
    assert second.given == [], "another run of the same prompts asks nothing"
    whole, limited = (bench.table(index) for index in (0, 1))
    assert len(limited.sample) == 4 and limited.costs[PRICE]
    known = dict(zip(whole.sample, whole.costs[PRICE], strict=True))
    assert limited.costs[PRICE] == tuple(known[sample] for sample in limited.sample)
    assert total(limited, "tokens_cached") == 40.0


def test_a_local_model_has_a_price_only_if_its_machine_has_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.run(Metered())
    assert set(bench.table().costs[PRICE]) == {None} and total(bench.table(), "tokens_in") > 0
    machine = Rate(match=("scripted",), per_hour=3600.0, at_once=4, looked_up=of_home(bench.home).rates[0].looked_up)
    assert set(bench.table(prices=Prices((machine,))).costs[PRICE]) == {0.25}


def test_an_invalid_rate_file_stops_a_run_before_it_begins(tmp_path: Path) -> None:
    bench, model = priced(tmp_path, "[[rate]]\nmatch = 3\n"), Metered()
    with pytest.raises(InputFault, match="rate 1: match must be"):
        bench.run(model)
    assert model.given == [] and bench.rows("SELECT * FROM run") == []


@pytest.mark.slow
def test_the_leaderboard_recomputes_prices_from_another_rate_file(tmp_path: Path) -> None:
    bench = priced(tmp_path)
    bench.run(Metered(), "lc.infile", "lc.repocoder(iterations=1)")
    dear = tmp_path / "dear.toml"
    dear.write_text(RATES.replace("2.0", "20.0").replace("0.5", "5.0").replace("8.0", "80.0"))
    home = f"--home={bench.home.root}"
    before, after = (
        json.loads(run_cli("leaderboard", home, "--format", "json", *extra).out)
        for extra in ((), ("--prices", str(dear)))
    )
    assert len(before) == 2
    for one, other in zip(before, after, strict=True):
        assert other[PRICE] == pytest.approx(10 * one[PRICE]) and one[PRICE] > 0
        assert {**other, PRICE: 0} == {**one, PRICE: 0}
        assert one["price"] == pytest.approx(
            ((one["tokens_in"] - one["tokens_cached"]) * 2 + one["tokens_cached"] * 0.5 + one["tokens_out"] * 8) / 1e6
        )
    [infile] = [one for one in before if one["strategy"] == "lc.infile"]
    table = next(t for t in (bench.table(0), bench.table(1)) if t.run.strategy == "lc.infile")
    assert infile["tokens_in"] == total(table, "tokens_in") / 8
    assert "US$" in run_cli("leaderboard", home).out
    (tmp_path / "bad.toml").write_text("[[rate]]\n")
    assert_fault(run_cli("leaderboard", home, "--prices", str(tmp_path / "bad.toml")), "bad.toml", "rate 1: match")
    assert_fault(run_cli("leaderboard", home, "--prices", str(tmp_path / "none.toml")), "none.toml")


def costly(strategy: str, prices: Sequence[float | None], **run: object) -> RunTable:
    count = len(prices)
    made = make_table({"es": [0.1 * index for index in range(count)]}, "ab" * (count // 2), strategy=strategy, **run)
    columns: dict[str, tuple[float | None, ...]] = dict.fromkeys(COSTS, (3.0,) * count)
    return dataclasses.replace(made, costs={**columns, PRICE: tuple(prices)})


def test_costs_of_a_row_are_means_without_missing_samples() -> None:
    table = costly("a", [0.1, 0.3, 5.0, 0.2])
    status = (Status.SCORED, Status.MODEL_FAILED, Status.INFRA_FAILED, Status.SCORED)
    [row] = board([dataclasses.replace(table, status=status)]).rows
    assert row.costs[PRICE] == pytest.approx(0.2) and row.costs["tokens_in"] == 3.0


def test_a_row_with_an_unknown_price_has_no_mean_price() -> None:
    [row] = board([costly("a", [0.1, None, 0.1, 0.1])]).rows
    assert row.costs[PRICE] is None and row.costs["tokens_out"] == 3.0


def test_json_and_csv_have_all_costs_and_keep_small_prices() -> None:
    made = board([costly("a", [0.00000012] * 4), make_table({"es": [0.5] * 4}, "abab", strategy="old")])
    one, other = json.loads(render.to_json(made))
    one, other = (one, other) if one["strategy"] == "a" else (other, one)
    assert [one[name] for name in COSTS] == [3.0, 3.0, 3.0, 1.2e-07, 3.0, 3.0, 3.0]
    assert [other[name] for name in COSTS] == [None] * len(COSTS)
    rows = {row["strategy"]: row for row in csv.DictReader(io.StringIO(render.to_csv(made)))}
    assert float(rows["a"][PRICE]) == 1.2e-07 and rows["old"][PRICE] == "" and set(COSTS) <= set(rows["a"])


def test_the_table_shows_prices_if_any_are_known() -> None:
    known, unknown = costly("a", [0.0123456] * 4), costly("b", [None] * 4)
    assert "US$" not in render.table(board([unknown]))
    shown = render.table(board([known, unknown]))
    assert "US$" in shown and "0.0123" in shown and "0.01234" not in shown
    assert "US\\$" in render.markdown(board([known]))
    # A control asks no model. Its price of 0 does not make the other prices known.
    assert "US$" not in render.table(board([unknown, costly("c", [0.0] * 4, control=True, ranked=False)]))


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (None, "-"),
        (0.0, "0.00"),
        (0.0000791234, "0.0000791"),
        (0.0123456, "0.0123"),
        (1.234, "1.23"),
        (123.4, "123.40"),
    ],
)
def test_prices_have_three_digits_and_no_exponent(number: float | None, shown: str) -> None:
    assert scales.dollars(number) == shown


def test_each_level_has_its_own_costs() -> None:
    table = dataclasses.replace(costly("a", [0.1, 0.2, 0.3, 0.4]), level=("x", "y", "x", "y"))
    assert at_level(table, "y").costs[PRICE] == (0.2, 0.4)


def test_api_summaries_are_priced_separately(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(RATES)
    for rates, ends in ((load(tmp_path / "p.toml"), True), (None, False)):
        batcher = Batcher(Scripted(answer), "scripted", Memory(), rates)
        try:
            summaries = Summaries(batcher)
            summaries(PYTHON, [PAY])
            assert summaries.remark.startswith("offline: 1 API summaries") and (", US$ " in summaries.remark) is ends
        finally:
            batcher.close()


@pytest.mark.slow
def test_index_construction_is_stored_with_the_attempt_that_built_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    strategies = ("lc.infile", "lc.repofuse(encoder=bm25)", "lc.repofuse(analogies=1, encoder=bm25)")
    bench.run(Metered(), *strategies)
    rows = bench.rows(
        "SELECT strategy, c.repo, c.stage, c.seconds FROM construction c JOIN attempt a ON a.id = c.attempt_id "
        "JOIN run r ON r.id = a.run_id ORDER BY c.attempt_id, c.ordinal"
    )
    assert {strategy for strategy, *_ in rows} == {strategies[1]}, "what it made is there for the next"
    stages = {(repo, stage) for _, repo, stage, _ in rows}
    made = ("units chunk(lines=10)", "index bm25 of chunk(lines=10)")
    assert stages == {(repo, stage) for repo in ("shop0", "shop1") for stage in made} and len(rows) == 4
    assert all(0 < seconds < 60 for *_, seconds in rows)


@pytest.mark.slow
def test_a_run_stops_at_its_cost_limit_until_the_limit_is_raised(tmp_path: Path) -> None:
    bench, model = priced(tmp_path, RATES.replace("8.0", "80000.0")), OneByOne()
    [summary] = bench.run(model, choices=RunOptions(workers=1, max_cost=0.0001))
    assert summary.scored > 0 and summary.missing > 0 and summary.spent is not None and summary.spent >= 0.0001
    fault = fault_of([summary])
    assert fault is not None and "at its cost limit, with US$" in fault.what and "raise --max-cost" in fault.cure
    asked = len(model.given)
    [summary] = bench.run(model, choices=RunOptions(workers=1, max_cost=1e6))
    assert not summary.missing and summary.spent is None and len(model.given) > asked
    assert summary.costs is not None and summary.costs.price == pytest.approx(total(bench.table(), PRICE))
    assert summary.costs.tokens_out == total(bench.table(), "tokens_out")
    # All results are stored, so a third run costs nothing and reaches no limit.
    [summary] = bench.run(model, choices=RunOptions(max_cost=1e-9))
    assert not summary.missing and summary.spent is None


class OneByOne(Metered):
    """Answers one request at a time, so that few samples are in progress."""

    capabilities = Capabilities(batch_size=1)


def test_a_cost_limit_without_a_known_rate_is_refused_before_any_request(tmp_path: Path) -> None:
    bench, model = Bench(tmp_path), Metered()
    with pytest.raises(
        InputFault, match=r"--max-cost: the price of scripted.* is unknown; add its rate to prices.toml"
    ):
        bench.run(model, choices=RunOptions(max_cost=1.0))
    assert not model.given


@pytest.mark.slow
def test_costs_of_a_run_are_estimated_from_its_last_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench, model = priced(tmp_path), Metered()
    with caplog.at_level("INFO", logger="ctxbench.harness.run.runner"):
        bench.run(model, choices=RunOptions(limit=2))
        assert "cannot be estimated without a stored run\n" in caplog.text
        [summary] = bench.run(model)
    assert summary.costs is not None
    [estimate] = re.findall(r"about (\d+) tokens in, (\d+) out, US\$ (\S+), as in its last run", caplog.text)
    assert int(estimate[0]) == pytest.approx(summary.costs.tokens_in, rel=0.3) and float(estimate[2]) > 0


DAY = date(2026, 11, 21)


def rate(*match: str, **fields: object) -> Rate:
    return Rate(**{"match": match, "looked_up": DAY, **fields})  # type: ignore[arg-type]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_cached_tokens_are_cheaper_and_counted_once() -> None:
    one = rate("m", input=2.0, cached=0.5, output=8.0)
    assert one.price(tokens_in=1_000_000, tokens_out=0, cached=0, seconds=9) == 2.0
    assert one.price(tokens_in=1_000_000, tokens_out=500_000, cached=400_000, seconds=9) == pytest.approx(1.2 + 0.2 + 4)


def test_an_hourly_price_is_shared_by_concurrent_answers() -> None:
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
def test_rate_patterns_match_models_and_specs(pattern: str, generator: str, fits: bool) -> None:
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
def test_a_price_applies_only_to_its_own_service(generator: str, fits: bool) -> None:
    assert rate("gpt-x", url="https://api.openai.com").fits(generator) is fits


def test_a_price_does_not_apply_to_another_service_tier() -> None:
    spec = """openai(extra='{"service_tier": "flex"}', model=gpt-x)"""
    assert not rate("gpt-x", "gpt*").fits(spec) and rate("*service_tier*flex*gpt-x*").fits(spec)
    assert rate("gpt-x").fits("""openai(extra='{"reasoning_effort": "low"}', model=gpt-x)""")


def test_the_first_matching_rate_applies() -> None:
    prices = Prices((rate("a*", input=1.0), rate("ab", input=2.0)))
    asked = {"tokens_in": 1_000_000, "tokens_out": 0, "cached": 0, "seconds": 0}
    assert prices.price("ab", **asked) == 1.0
    assert prices.price("b", **asked) is None
    assert prices.before([rate("b", input=3.0)]).price("b", **asked) == 3.0


def test_built_in_rates_are_dated_and_cover_one_service() -> None:
    rates = builtin().rates
    assert rates
    for one in rates:
        assert one.looked_up >= date(2026, 11, 21) and one.source and one.url == "https://api.openai.com"
        assert 0 < one.cached < one.input < one.output and not any("*" in name for name in one.match)
    assert builtin().rate("incontext") is None and builtin().rate("hf(model=gpt-4o)") is None


def test_rates_of_the_home_come_before_built_in_rates(tmp_path: Path) -> None:
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


def test_all_faults_of_a_rate_file_are_reported_together(tmp_path: Path) -> None:
    text = 'top = 1\n[[rate]]\nmatch = []\nprice = 3\ninput = -1\ncached = nan\nseen = "2026-11-21"\n'
    text += '[[rate]]\nmatch = "m"\nseen = 2026-11-21T10:00:00\nat_once = 0\nurl = 3\ncached = true\n'
    with pytest.raises(InputFault) as caught:
        load(write(tmp_path / "p.toml", text))
    said = str(caught.value)
    for words in (
        "the key 'top' is unknown",
        "rate 1: the key 'price' is unknown",
        "rate 1: match must be",
        "rate 1: seen must be a date",
        "rate 1: input must be a number",
        "rate 1: cached must be a number",
        "rate 1: input and output must be given together",
        "rate 2: seen must be a date",
        "rate 2: at_once must be a whole number",
        "rate 2: url must be a string",
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
def test_files_without_rate_tables_are_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputFault, match=words):
        load(write(tmp_path / "p.toml", text))
    with pytest.raises(InputFault, match=r"nothing\.toml"):
        load(tmp_path / "nothing.toml")
