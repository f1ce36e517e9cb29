"""Runs with a separate summariser: two served models, each asked once for its own part."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from ctxbench.bench import code_tokens
from ctxbench.bench.apis import MAX_TOKENS, SYSTEM, summary_prompt
from ctxbench.bench.errors import MachineFault
from ctxbench.bench.files import sha256
from ctxbench.bench.home import Home
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories.snapshot import is_test_or_vendored
from ctxbench.bench.retrieval.units import Unit
from ctxbench.bench.types import Place
from ctxbench.harness.generators.base import Request
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.results import COSTS, OFFLINE_COSTS, SUMMARY_COSTS, spec_of_label
from ctxbench.harness.run.resources import Summaries
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables
from tests.harness.test_batcher import batching
from tests.helpers.cli import Result, assert_fault, run_cli
from tests.helpers.openai_server import Server, serving
from tests.helpers.sets import make_set

PRICES = "".join(
    f'[[rate]]\nmatch = "*{name}*"\ninput = {price}\noutput = {price}\nseen = 2026-11-21\n'
    for name, price in (("writer", 1.0), ("teller", 10.0))
)


FUNCTIONS = {"apply_tax", "pay_shop0", "pay_shop1"}


@dataclass
class Pair:
    """Two servers, and a home with a set whose repositories have tests and vendored files."""

    home: Home
    writer: Server
    teller: Server

    def run(self, *options: str, strategy: str = "lc.infercom(encoder=bm25)", summariser: bool = True) -> Result:
        spec = f"openai(model=writer, url='{self.writer.url}', endpoint=completions)"
        more = ("--summariser", f"openai(model=teller, url='{self.teller.url}', endpoint=chat)") if summariser else ()
        return run_cli(
            *("run", "--samples", "demo", "--strategy", strategy, "--generator", spec),
            *(*more, *options, "--home", str(self.home.root)),
        )

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with open_store(self.home.database) as store, store.reading() as connection:
            return [tuple(row) for row in connection.execute(text(query))]


@pytest.fixture
def pair(tmp_path: Path, inline_cells: None) -> Iterator[Pair]:
    home = Home(tmp_path / "home")
    for repo in ("shop0", "shop1"):
        for path in ("tests/test_tax.py", "shop/_vendor/copied.py"):
            place = home.repos / repo / "1" / path
            place.parent.mkdir(parents=True)
            place.write_text(f"def {place.stem}_of_others(rate):\n    return rate\n")
    make_set(home, per_repo=2)
    (home.root / "prices.toml").write_text(PRICES)
    with (
        serving(model="writer", answer=lambda *_: "apply_tax(cart_1, rate)\n") as writer,
        serving(model="teller", answer=lambda *_: "Summary: adds the tax") as teller,
    ):
        yield Pair(home, writer, teller)


def asked_about(server: Server) -> set[str]:
    """Return the names of the functions that a server was asked to summarise, and the drafts."""
    codes = [call["messages"][-1]["content"].rpartition("code:\n")[2] for call in server.calls]
    return {(re.search(r"def (\w+)", code) or re.search(r"(total_\d+) =", code) or ["", code])[1] for code in codes}


@pytest.mark.slow
def test_one_model_completes_and_the_other_summarises(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxbench.harness.run.resources._MANY_SUMMARIES", 2)
    first = pair.run()
    assert first.code == 0, first.err
    assert "will be written" in first.err
    assert all("prompt" in call and "summarize" not in call["prompt"] for call in pair.writer.calls)
    assert asked_about(pair.teller) == FUNCTIONS | {"total_0", "total_1"}, "no tests, no vendored files"
    assert "offline: 3 API summaries" in first.err
    asked = len(pair.writer.calls), len(pair.teller.calls)
    again = pair.run()
    assert (
        again.code == 0
        and "will be written" not in again.err
        and (len(pair.writer.calls), len(pair.teller.calls)) == asked
    )
    other = pair.run(strategy="lc.infercom(encoder=bm25, k_fsr=2)")
    assert other.code == 0 and len(pair.teller.calls) == asked[1], "summaries are shared by runs"
    roles = pair.rows("SELECT role, g.generator FROM call JOIN generation g ON g.id = generation_id GROUP BY 1, 2")
    assert {(role, "teller" in generator) for role, generator in roles} == {
        ("draft", False),
        ("summary", True),
        ("final", False),
    }


@pytest.mark.slow
def test_summariser_settings_change_the_run_id(pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release, text = tmp_path / "release", "Say it.\ncode:\n@{}@\nsummary:\n"
    (release / "utils").mkdir(parents=True)
    for language in ("java", "python"):
        (release / "utils" / f"{language}.prompt").write_text(text)
    monkeypatch.setattr("ctxbench.bench.apis._DIGESTS", dict.fromkeys(("java", "python"), sha256(text)))
    ids = [
        pair.run(*options, summariser=bool(given)).out.split()[0]
        for given, options in (
            (False, ()),
            (True, ()),
            (True, ("--summarise-tests",)),
            (True, ("--summary-template", str(release))),
        )
    ]
    assert len(set(ids)) == 4
    sent = [[message["role"] for message in call["messages"]] for call in pair.teller.calls]
    assert sent == [["system", "user"]] * len(sent)
    assert {call["messages"][0]["content"] for call in pair.teller.calls} == {SYSTEM}
    released = [call for call in pair.teller.calls if call["messages"][1]["content"].startswith("Say it.")]
    assert len(released) >= len(FUNCTIONS) + 2, "drafts too, which cells ask about"
    assert {"test_tax_of_others", "copied_of_others"} <= asked_about(pair.teller)
    with open_store(pair.home.database) as store:
        tables = {table.run.id: table for table in run_tables(store)}
        assert [spec_of_label(tables[id_].run.generator) for id_ in ids] == [tables[ids[0]].run.generator] * 4
        assert tables[ids[3]].run.generator.endswith(", asked as released]")
        assert (
            tables[ids[1]]
            .run.generator.partition(" [summaries by ")[2]
            .startswith("openai(endpoint=chat, model=teller,")
        )
    commands = [json.loads(run_cli("runs", id_, "--format", "json", "--home", str(pair.home.root)).out) for id_ in ids]
    words = [command[0]["command"] if isinstance(command, list) else command["command"] for command in commands]
    assert ["--summariser" in command for command in words] == [False, True, True, True]
    assert ["--summarise-tests" in command for command in words] == [False, False, True, False]
    assert ["--summary-template" in command for command in words] == [False, False, False, True]


def test_a_summariser_that_cannot_follow_instructions_is_refused(pair: Pair) -> None:
    refused = pair.run("--summariser", "incontext", summariser=False)
    assert_fault(refused, "summariser incontext does not follow instructions", "endpoint=chat")
    assert pair.writer.calls == pair.teller.calls == []


@pytest.mark.slow
def test_calls_tokens_and_price_of_the_summariser_are_counted_separately(pair: Pair) -> None:
    pair.run()
    with open_store(pair.home.database) as store:
        [table] = run_tables(store)
    assert set(table.costs) >= {*COSTS, *SUMMARY_COSTS}
    assert table.calls == (2.0,) * 4 and table.costs["summary_calls"] == (1.0,) * 4
    assert table.run.offline["offline_calls"] == len(FUNCTIONS)
    assert len(pair.teller.calls) == len(FUNCTIONS) + 2, "samples of two repositories have equal drafts"
    for tokens_in, tokens_out, price, rate in (
        (table.costs["tokens_in"][0], table.costs["tokens_out"][0], table.costs["price"][0], 1.0),
        (*(table.costs[name][0] for name in SUMMARY_COSTS[1:]), 10.0),
        (*(table.run.offline[name] for name in OFFLINE_COSTS[1:]), 10.0),
    ):
        assert price == pytest.approx((tokens_in + tokens_out) * rate / 1e6)
    [record] = json.loads(
        run_cli("leaderboard", "--samples", "demo", "--format", "json", "--home", str(pair.home.root)).out
    )
    assert record["summary_calls"] == 1 and record["offline_calls"] == 3 and record["offline_price"] > 0


@pytest.mark.parametrize("strategy", ["lc.infile", "lc.repocoder"])
def test_a_run_without_summaries_has_no_summary_costs(pair: Pair, strategy: str) -> None:
    assert pair.run(strategy=strategy).code == 0 and not pair.teller.calls
    with open_store(pair.home.database) as store:
        [table] = run_tables(store)
    assert table.costs["summary_calls"] == (0.0,) * 4 and not table.run.offline


@pytest.mark.slow
def test_a_papers_table_is_reproduced_with_both_models(pair: Pair) -> None:
    spec = f"openai(model=teller, url='{pair.teller.url}', endpoint=chat)"
    result = run_cli(
        *("reproduce", "infercom-table6", "--samples", "demo", "--encoder", "hashed", "--home", str(pair.home.root)),
        *("--generator", f"openai(model=writer, url='{pair.writer.url}', endpoint=completions)", "--summariser", spec),
    )
    assert result.code == 0, result.err
    head = " ".join(result.out.split())
    asked = f"summariser: ours {spec}, not for functions of tests and vendored files"
    assert f"{asked} (--summarise-tests); the paper Llama3-8B-Instruct" in head
    assert asked_about(pair.teller) >= FUNCTIONS


@pytest.mark.parametrize("option", [("--summarise-tests",), ("--summary-template", "nowhere")])
def test_a_summary_option_without_a_summariser_is_refused(pair: Pair, option: tuple[str, ...]) -> None:
    refused = pair.run(*option, summariser=False)
    assert refused.code == 2 and f"{option[0]} needs --summariser" in refused.err


@pytest.mark.parametrize(
    ("path", "left_out"),
    [
        ("shop/tax.py", False),
        ("shop/testing.py", False),
        ("shop/contest.py", False),
        ("src/main/java/shop/Latest.java", False),
        ("src/main/java/shop/Tax.java", False),
        ("tests/helpers.py", True),
        ("shop/test_tax.py", True),
        ("shop/tax_test.py", True),
        ("shop/conftest.py", True),
        ("src/test/java/shop/Fixture.java", True),
        ("src/main/java/shop/TaxTest.java", True),
        ("pip/_vendor/idna/core.py", True),
        ("third_party/idna.py", True),
    ],
)
def test_tests_and_vendored_files_are_recognized_by_their_paths(path: str, left_out: bool) -> None:
    assert is_test_or_vendored(path) == left_out


def unit(name: str, code: str) -> Unit:
    plain = name.replace(".", " ").lower()
    return Unit(place=Place(path="a.py", start=0, end=1), text=name, name=name, code=code, summary=plain)


PAY = unit("Cart.pay", "def pay(self): return 1")
SHIP = unit("ship", "def ship(): return 2")


def answer(request: Request) -> str:
    return "" if "def ship" in request.prompt.text.rpartition("code:")[2] else "Summary: Pays THE bill"


def test_an_empty_model_answer_is_replaced_by_the_plain_summary() -> None:
    with batching(Scripted(answer)) as batcher:
        assert Summaries(batcher)(PYTHON, [SHIP, PAY]) == ["ship", "pays the bill"]


def test_a_generator_that_cannot_follow_instructions_is_not_asked() -> None:
    generator = Scripted(answer, instructs=False)
    with batching(generator) as batcher:
        summaries = Summaries(batcher)
        assert summaries.plain
        assert summaries(PYTHON, [PAY, SHIP]) == ["cart pay", "ship"]
        assert summaries.remark == ""
    assert generator.batches == []


@pytest.mark.parametrize(("count", "tells"), [(200, False), (201, True)])
def test_the_cost_of_many_summaries_is_announced_before_the_first(
    count: int, tells: bool, caplog: pytest.LogCaptureFixture
) -> None:
    units = [unit(f"f{number}", f"def f{number}(): return {number}") for number in range(count)]
    told: list[int] = []

    def note(_: Request) -> str:
        told.append(len(caplog.records))
        return "Returns a number"

    with caplog.at_level("INFO", logger="ctxbench"), batching(Scripted(note)) as batcher:
        summaries = Summaries(batcher)
        summaries.planned = lambda: [(PYTHON, units[:100]), (PYTHON, units[50:])]
        summaries(PYTHON, units[:3])
        summaries(PYTHON, units)
        tokens = sum(code_tokens.count(summary_prompt(one.code, PYTHON)) for one in units)
        later = Summaries(batcher)
        later.planned = lambda: [(PYTHON, units)]
        later(PYTHON, units)
    assert [record.getMessage() for record in caplog.records] == [
        f"{count} API summaries will be written by s: {count} calls, about {tokens} tokens in and at most "
        f"{count * MAX_TOKENS} out; they are stored for later runs"
    ] * tells
    assert set(told) == {int(tells)}


def test_a_lost_summariser_is_a_machine_fault() -> None:
    with batching(Scripted(answer, faults=[1])) as batcher, pytest.raises(MachineFault):
        Summaries(batcher)(PYTHON, [PAY])
