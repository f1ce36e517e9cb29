"""`ctxbench exec`, also with `--anew`, and `ctxbench run` over functions, as a user calls them, with a fake sandbox."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text as sql

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.judging import judge as judging
from ctxbench.bench.judging.types import Judgement, Verdict
from ctxbench.harness.store import open_store
from ctxbench.sandbox import registry
from tests.helpers.cli import Result, assert_fault, run_cli
from tests.helpers.functions import FakeJudge, make_function_set
from tests.helpers.interrupts import Interrupting
from tests.helpers.sets import make_set

pytestmark = pytest.mark.usefixtures("inline_cells")
FIELDS = ["sample", "index", "verdict", "reason", "tests_run", "seconds", "peak_bytes", "flags"]


class Fake:
    """A fake back end and judge. Tests may set `answer`."""

    name = "docker"

    def __init__(self) -> None:
        self.answer: Callable[..., Judgement] | None = None
        self.judges: list[FakeJudge] = []
        self.wanted: list[str | None] = []

    def open_sandbox(self, name: str | None, cache: Path) -> Fake:
        assert cache.name == "sandbox"
        self.wanted.append(name)
        return self

    @contextlib.contextmanager
    def judge(self, home: Home, sample_set: Any, sandbox: object, *, width: int) -> Iterator[FakeJudge]:
        assert sandbox is self
        made = FakeJudge(sample_set, answer=self.answer)
        self.judges.append(made)
        try:
            yield made
        finally:
            made.closed += 1

    @property
    def asked(self) -> int:
        return sum(len(judge.asked) for judge in self.judges)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    made = Fake()
    monkeypatch.setattr(registry, "open_sandbox", made.open_sandbox)
    monkeypatch.setattr(judging, "Judge", made.judge)
    yield made
    assert all(judge.closed == 1 for judge in made.judges)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    make_function_set(home)
    return home


def completions(home: Home, *, per_sample: int = 1) -> list[dict[str, Any]]:
    """Return correct completions, each followed by a wrong one if there are two per sample."""
    sample_set = sets.load(home, "functions")
    rows = []
    for sample in sample_set.samples:
        target = sample_set.references[sample.id].target
        rows += [{"sample": sample.id, "text": target}]
        rows += [{"sample": sample.id, "text": target + " - 1 if False else None or 0"}] * (per_sample > 1)
    return rows


def write(home: Home, rows: list[Any]) -> Path:
    path = home.root / "completions.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def execute(home: Home, *arguments: str) -> Result:
    return run_cli("exec", "--samples", "functions", "--home", str(home.root), *arguments)


def records(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.out.splitlines()]


@pytest.mark.slow
def test_scores_show_where_tests_and_exact_match_disagree(home: Home, fake: Fake) -> None:
    where = ("--home", str(home.root))
    fake.answer = lambda sample, text: Judgement(verdict=Verdict.PASSED if "2" in sample.name else Verdict.FAILED)
    ran = run_cli("run", "--samples", "functions", "--generator", "scripted(text=x)",
                  "--strategy", "gold", "--strategy", "lc.infile", *where)  # fmt: skip
    assert ran.code == 0, ran
    rows = records(run_cli("scores", "--samples", "functions", "--format", "jsonl", *where))
    counts = Counter((row["strategy"], row["em"], row["pass@1"]) for row in rows)
    assert counts == {("gold", 1, 1): 2, ("gold", 1, 0): 4, ("lc.infile", 0, 1): 2, ("lc.infile", 0, 0): 4}


def test_every_completion_has_a_row_in_order(home: Home, fake: Fake) -> None:
    rows = completions(home)
    rows[1]["text"] = "def times_3(amount):\n    return 0"
    rows[2]["text"] = " \n"
    rows[3] |= {"index": 7, "strategy": "mine", "generator": "m"}
    result = execute(home, "--completions", str(write(home, rows)))
    assert result.code == 0, result
    found = records(result)
    assert [row["sample"] for row in found] == [row["sample"] for row in rows]
    assert [row["verdict"] for row in found] == ["PASSED", "FAILED", "FAILED", "PASSED", "PASSED", "PASSED"]
    assert list(found[0]) == FIELDS and found[0]["tests_run"] == 1 and found[0]["reason"] == ""
    assert found[2]["reason"] == "empty" and found[2]["tests_run"] == 0 and fake.asked == 5
    assert (found[3]["index"], found[3]["strategy"], found[3]["generator"]) == (7, "mine", "m")
    assert "FAILED 2  PASSED 4" in result.err


def test_missing_indices_are_counted_per_sample(home: Home, fake: Fake) -> None:
    rows = completions(home, per_sample=2)
    assert [row["index"] for row in records(execute(home, "--completions", str(write(home, rows))))] == [0, 1] * 6


def test_repeating_the_command_runs_no_tests_again(home: Home, fake: Fake) -> None:
    path, out = write(home, completions(home)), home.root / "verdicts.jsonl"
    first = execute(home, "--completions", str(path))
    again = execute(home, "--completions", str(path), "--sandbox", "docker", "--out", str(out))
    assert again.out == "" and first.out == out.read_text()
    assert fake.asked == 6 and fake.wanted == [None, "docker"]


def _broken(*samples: str) -> Callable[..., Judgement]:
    def answer(sample: Any, text: str) -> Judgement:
        broken = sample.id in samples
        return Judgement(verdict=Verdict.BROKEN if broken else Verdict.PASSED, reason="its box was lost" * broken)

    return answer


def test_a_broken_verdict_is_reported_and_judged_again(home: Home, fake: Fake) -> None:
    rows = completions(home)
    path = write(home, rows)
    fake.answer = _broken(rows[0]["sample"])
    result = execute(home, "--completions", str(path))
    assert_fault(result, "1 verdict is missing", "its box was lost", "run the same command again")
    assert [row["verdict"] for row in records(result)] == ["BROKEN"] + ["PASSED"] * 5
    assert "tests: 5 of 6, 1 missing" in result.err
    fake.answer = None
    result = execute(home, "--completions", str(path))
    assert result.code == 0 and {row["verdict"] for row in records(result)} == {"PASSED"}
    assert fake.asked == 7


def test_an_interrupt_keeps_finished_verdicts(home: Home, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxbench.harness.cli import score

    path = write(home, completions(home))
    with monkeypatch.context() as patched:
        patched.setattr(score, "progress", Interrupting())
        result = execute(home, "--completions", str(path), "--workers", "1")
    assert result.code == 130 and "run the same command again" in result.err
    assert execute(home, "--completions", str(path)).code == 0
    assert fake.asked == 6


GOOD = {"sample": "kit0/kit/tax.py#times_2", "text": "x"}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], ["no completion", "sample"]),
        ([GOOD, '{"sample": '], ["completions.jsonl:2"]),
        ([GOOD, {"sample": "kit0/kit/tax.py#times_2"}], ["completions.jsonl:2", "field text is missing"]),
        ([{"text": "x"}], [":1", "field sample is missing"]),
        ([{**GOOD, "text": 3}], [":1", "field text: input should be a valid string"]),
        ([{**GOOD, "index": -1}], [":1", "field index"]),
        ([{**GOOD, "completion": "x"}], [":1", "field completion is not known"]),
        ([{**GOOD, "indx": 0}], [":1", "field 'indx' is not known; did you mean index?"]),
        ([GOOD, GOOD], [":2", "field text", "completions.jsonl:1", "index"]),
        ([GOOD, {**GOOD, "sample": "kit0/kit/tax.py#times_1"}], [":2", "times_1", "did you mean"]),
        ([GOOD, {**GOOD, "index": 0}], [":2", "field index", "completions.jsonl:1"]),
        (["[1]"], [":1"]),
    ],
)
def test_an_invalid_completions_file_is_refused(home: Home, fake: Fake, rows: list[Any], words: list[str]) -> None:
    result = execute(home, "--completions", str(write(home, rows)))
    assert_fault(result, *words)
    assert fake.judges == [] and result.out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        "exec",
        "exec --completions a --run b",
        "exec --sandbox none --run b",
        "exec --workers 0",
        *(f"run {one}" for one in ("--k=0", "--k=x", "--k=1,,2", "--temperature=-1", "--top-p=0", "--sandbox=podman")),
    ],
)
def test_wrong_usage_exits_with_code_2(home: Home, fake: Fake, arguments: str) -> None:
    command, *options = arguments.split()
    result = execute(home, *options) if command == "exec" else run(home, *options)
    assert result.code == 2 and "Traceback" not in result.err


def run(home: Home, *arguments: str, text: str = "    return amount * 2") -> Result:
    generator = f"scripted(text='{text}')"
    base = ["run", "--samples", "functions", "--strategy", "lc.infile", "--generator", generator]
    return run_cli(*base, "--home", str(home.root), *arguments)


@pytest.mark.slow
def test_a_run_prints_its_pass_at_k(home: Home, fake: Fake) -> None:
    result = run(home, "--k", "1,2")
    assert result.code == 0, result
    assert "scored 6  model-failed 0  missing 0  pass@1 33.3%  pass@2 33.3%" in result.out
    assert "2 completions per sample, temperature 0.8, top-p 0.95" in result.err
    assert "the 2 completions of each sample are equal" in result.err
    board = json.loads(run_cli("leaderboard", "--home", str(home.root), "--k", "2", "--format", "json").out)
    assert board[0]["pass@1"]["mean"] == board[0]["pass@2"]["mean"] == pytest.approx(33.333333)
    assert board[0]["ranked_by"] == "pass@1" and board[0]["completions"] == 2
    ranked = run_cli(
        "leaderboard", "--home", str(home.root), "--k", "2", "--metric", "pass@2", "--by-level", "--explain"
    )
    assert "Ranked by pass@2" in ranked.out and "project_runnable" in ranked.out


@pytest.mark.slow
def test_exec_judges_a_run_that_had_no_sandbox(home: Home, fake: Fake) -> None:
    result = run(home, "--sandbox", "none")
    assert result.code == 0 and fake.judges == []
    assert "unjudged 6" in result.out and "ctxbench exec --samples functions --run" in result.err
    id_ = result.out.split()[0]
    judged = execute(home, "--run", id_[:6])
    assert judged.code == 0, judged
    assert [row["verdict"] for row in records(judged)].count("PASSED") == 2 and fake.asked == 6
    again = execute(home, "--run", id_)
    assert (again.code, again.out, fake.asked) == (0, "", 6) and "nothing to judge" in again.err
    assert "pass@1 33.3%" in run(home).out and fake.asked == 6
    assert run(home).out.split()[0] == id_


@pytest.mark.slow
def test_exec_of_a_run_records_broken_verdicts_as_missing(home: Home, fake: Fake) -> None:
    id_ = run(home, "--sandbox", "none").out.split()[0]
    fake.answer = _broken("kit0/kit/tax.py#times_2")
    result = execute(home, "--run", id_)
    assert_fault(result, "1 verdict is missing")
    with open_store(home.database) as store, store.reading() as connection:
        rows = connection.execute(sql("SELECT reason, finished, missing FROM outcome ORDER BY attempt_id")).all()
        faults = connection.execute(sql("SELECT sample_id, kind FROM fault")).all()
    assert [tuple(row) for row in rows][1:] == [("faults", 5, 1)]
    assert [tuple(row) for row in faults] == [("kit0/kit/tax.py#times_2", "machine")]
    fake.answer = None
    assert execute(home, "--run", id_).code == 0 and "pass@1 100.0%" in run(home).out


@pytest.mark.slow
def test_an_unsuitable_run_is_refused(home: Home, fake: Fake) -> None:
    assert_fault(execute(home, "--run", "abc"), "abc", "stored run")
    make_set(home)
    id_ = run(home, "--sandbox", "none").out.split()[0]
    assert fake.judges == []
    result = run_cli("exec", "--samples", "demo", "--home", str(home.root), "--run", id_)
    assert_fault(result, "used other samples", "--samples")


def test_k_must_fit_the_completions_and_the_samples(home: Home, fake: Fake) -> None:
    assert_fault(run(home, "--n", "2", "--k", "5"), "pass@5", "--n 5")
    make_set(home)
    base = ["run", "--samples", "demo", "--strategy", "lc.infile", "--generator", "scripted(text=x)"]
    assert_fault(run_cli(*base, "--home", str(home.root), "--k", "1"), "functions", "leave --k out")


def _flagged(sample: Any, text: str) -> Judgement:
    passed = "right" in text or sample.id.endswith(("#times_2", "#plus_1"))
    flags = ("frames", "gc") if sample.id.endswith("#times_2") else ()
    return Judgement(verdict=Verdict.PASSED if passed else Verdict.FAILED, flags=flags)


@pytest.mark.slow
def test_the_flags_of_a_pass_are_shown_with_its_verdict(home: Home, fake: Fake) -> None:
    fake.answer = _flagged
    flags = {
        row["sample"]: row["flags"]
        for row in records(execute(home, "--completions", str(write(home, completions(home)))))
    }
    id_ = run(home).out.split()[0]
    flagged = [sample for sample, found in flags.items() if found]
    assert flagged and {tuple(flags[sample]) for sample in flagged} == {("frames", "gc")} and len(flagged) < len(flags)
    remark = "passes are not plain (docs/verdicts.md)."
    [row] = json.loads(run_cli("leaderboard", "--home", str(home.root), "--format", "json").out)
    assert [text for text in row["remarks"] if text.endswith(remark)] == row["remarks"] != []
    assert remark in run_cli("leaderboard", "--home", str(home.root)).out
    [strict] = json.loads(run_cli("leaderboard", "--home", str(home.root), "--format", "json", "--strict").out)
    assert strict["pass@1"]["mean"] < row["pass@1"]["mean"]
    assert all("passes are not plain, counted as failed" in text for text in strict["remarks"])
    out = home.root / "out.jsonl"
    assert (
        run_cli("results", "export", id_, "--format", "ctxbench", "--out", str(out), "--home", str(home.root)).code == 0
    )
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    told = {line["sample"]: line["flags"] for line in lines if "flags" in line}
    assert told == {sample: ["frames", "gc"] for sample in flagged}
    again = ("results", "import", "--format", "ctxbench", str(out), "--samples", "functions", "--home", str(home.root))
    assert run_cli(*again).code == 0
    rows = json.loads(run_cli("leaderboard", "--home", str(home.root), "--format", "json").out)
    assert {one["origin"]: one["remarks"] for one in rows}["imported"] == row["remarks"]
    assert execute(home, "--completions", str(out)).code == 0, "what an export says of a verdict is no completion"


P, F, B = Verdict.PASSED, Verdict.FAILED, Verdict.BROKEN
CHANGING = "kit0/kit/tax.py#times_2"


def script(*verdicts: Verdict) -> Callable[..., Judgement]:
    """Return an answer function that gives one sample these verdicts in turn, and fails all others."""
    left: Iterator[Verdict] = iter(verdicts)

    def answer(sample: Any, text: str) -> Judgement:
        verdict = next(left) if sample.id == CHANGING else F
        return Judgement(verdict=verdict, reason=f"was {verdict}" if verdict is not P else "")

    return answer


def board(home: Home) -> Any:
    [row] = json.loads(run_cli("leaderboard", "--home", str(home.root), "--format", "json").out)
    return row


def rows(home: Home, query: str) -> list[tuple[Any, ...]]:
    with open_store(home.database) as store, store.reading() as connection:
        return [tuple(row) for row in connection.execute(sql(query))]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "later"), [(F, P), (P, F), (F, F)])
def test_new_verdicts_replace_old_ones(home: Home, fake: Fake, first: Verdict, later: Verdict) -> None:
    fake.answer = script(first, later)
    id_ = run(home).out.split()[0]
    assert board(home)["pass@1"]["mean"] == pytest.approx(100 / 6 * (first is P))
    stored = rows(home, "SELECT count(*) FROM verdict")
    result = execute(home, "--run", id_, "--anew")
    assert result.code == 0, result
    assert len(records(result)) == 6
    assert next(row for row in records(result) if row["sample"] == CHANGING)["verdict"] == later
    assert board(home)["pass@1"]["mean"] == pytest.approx(100 / 6 * (later is P))
    assert rows(home, "SELECT count(*) FROM judged") == [(6,)] and rows(home, "SELECT count(*) FROM verdict") == stored
    with pytest.raises(Exception, match="appended, never changed"):
        rows(home, "DELETE FROM verdict")


@pytest.mark.slow
def test_other_runs_take_the_new_verdict_without_anew(home: Home, fake: Fake) -> None:
    fake.answer = script(F, P)
    id_ = run(home).out.split()[0]
    other = run(home, "--seed", "5").out.split()[0]
    assert other != id_ and execute(home, "--run", id_, "--anew").code == 0
    asked = fake.asked
    result = execute(home, "--run", other)
    assert next(row for row in records(result) if row["sample"] == CHANGING)["verdict"] == P
    assert len(records(result)) == 6 and fake.asked == asked


@pytest.mark.slow
def test_missing_verdicts_are_judged_later_without_anew(home: Home, fake: Fake) -> None:
    fake.answer = script(F, B, P)
    id_ = run(home).out.split()[0]
    words = "run the same command again, without --anew; it does only what is missing"
    assert_fault(execute(home, "--run", id_, "--anew"), "1 verdict is missing", words)
    asked = fake.asked
    result = execute(home, "--run", id_)
    assert [row["verdict"] for row in records(result)] == [P] and fake.asked == asked + 1


@pytest.mark.slow
def test_anew_deletes_nothing_if_the_run_cannot_be_judged_now(
    home: Home, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = run(home).out.split()[0]
    with open_store(home.database) as store, store.run_lock(id_) as locked:
        attempt = store.start_attempt(id_, "process", locked=locked)
        assert_fault(
            execute(home, "--run", id_, "--anew"), "a process is working on the run", "stop that process first"
        )
        store.end_attempt(attempt, reason="done", finished=0, missing=0)

    def none(*_: Any, **__: Any) -> Any:
        raise InputFault("there is no sandbox", cure="install one")

    monkeypatch.setattr("ctxbench.harness.run.execution.open_executor", none)
    assert_fault(execute(home, "--run", id_, "--anew"), "there is no sandbox")
    assert rows(home, "SELECT count(*) FROM judged") == [(6,)]


def test_anew_needs_a_run(home: Home, fake: Fake) -> None:
    path = write(home, completions(home)[:1])
    result = execute(home, "--completions", str(path), "--anew")
    assert result.code == 2 and "--anew needs --run" in result.err


def test_a_verdict_shows_the_earlier_one_of_a_concurrent_judge(home: Home, fake: Fake) -> None:
    fake.answer = lambda sample, text: Judgement(verdict=P, earlier="FAILED: too\nlate")
    path = write(home, completions(home)[:1])
    for _ in range(2):
        [row] = records(execute(home, "--completions", str(path)))
        assert (row["verdict"], row["earlier"]) == (P, "FAILED: too late")
