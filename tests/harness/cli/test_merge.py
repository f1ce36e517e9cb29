"""`ctxbench run --shard` and `ctxbench merge`: shards merge into one board, in any order and any number of times."""

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.files import sha256
from ctxbench.bench.home import Home
from ctxbench.harness.cells import open_cells
from ctxbench.harness.run.merging import REMARK
from ctxbench.harness.store import open_store
from ctxbench.harness.store.shard import SUFFIX, manifest_of, read
from ctxbench.harness.store.work import faults_of, run_works
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.sets import make_set

pytestmark = pytest.mark.usefixtures("inline_cells")
GENERATOR = "scripted(text=apply_tax)"
TIMES = {"seconds", "strategy_seconds", "generator_seconds"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    make_set(home, repos=3, per_repo=5)
    return home


def run(home: Home, *options: str, strategies: tuple[str, ...] = ("lc.infile", "lc.repocoder")) -> Any:
    chosen = [word for strategy in strategies for word in ("--strategy", strategy)]
    words = ("--home", str(home.root), "--samples", "demo", *chosen, "--generator", GENERATOR, "--limit", "13")
    return run_cli("run", *words, *options)


def merge(home: Home, *places: Path, db: str = "merged") -> Any:
    return run_cli("merge", "--home", str(home.root), "--db", url(home, db), *map(str, places or [home.shards]))


def url(home: Home, name: str) -> str:
    return f"sqlite:///{home.root / name}.db"


def board(home: Home, db: str) -> Any:
    """Return the board without its times and the remark about merging, and every score without its times."""
    options = ["--home", str(home.root), "--db", url(home, db)]
    rows = json.loads(run_cli("leaderboard", *options, "--format", "json").out)
    for row in rows:
        row["remarks"] = [remark for remark in row["remarks"] if remark != REMARK]
    scores = run_cli("scores", *options, "--samples", "demo", "--format", "csv")
    assert scores.code == 0, scores.err
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows], _untimed(scores.out)


def _untimed(csv: str) -> list[list[str]]:
    head, *lines = (line.split(",") for line in csv.splitlines())
    timed = [at for at, name in enumerate(head) if "seconds" in name]
    return [[cell for at, cell in enumerate(line) if at not in timed] for line in (head, *sorted(lines))]


def shards(home: Home) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in home.shards.glob(f"*{SUFFIX}")}


def facts(content: bytes) -> list[str]:
    return [line for line in gzip.decompress(content).decode().splitlines() if not line.startswith('{"times"')]


@pytest.mark.slow
def test_shards_merged_in_any_order_and_twice_equal_the_local_board(home: Home) -> None:
    assert run(home, "--db", url(home, "local")).code == 0
    for index in (2, 0, 3, 1, 2):
        ended = run(home, "--shard", f"{index}/4")
        assert ended.code == 0 and ended.out.count("missing 0") == 2, ended.err
    assert not Path(home.database.removeprefix("sqlite:///")).exists(), "a share has a database of its own"
    ended = merge(home)
    assert ended.code == 0 and ended.out.count("new 13  already there 0  faults 0  missing 0") == 2, ended
    merged = board(home, "merged")
    assert merged == board(home, "local")
    told = run_cli("leaderboard", "--home", str(home.root), "--db", url(home, "merged"), "--format", "json").out
    assert all(REMARK in row["remarks"] for row in json.loads(told))
    ended = merge(home)
    assert ended.code == 0 and ended.out.count("new 0  already there 13  faults 0  missing 0") == 2, ended
    assert board(home, "merged") == merged
    # A run without --shard has nothing left to do.
    ended = run(home, "--db", url(home, "merged"))
    assert ended.code == 0 and ended.out.count("scored 13  model-failed 0  missing 0") == 2


@pytest.mark.slow
def test_equal_work_writes_equal_shards_except_for_times(home: Home) -> None:
    run(home, "--shard", "0/2")
    first = shards(home)
    shutil.rmtree(home.shards)
    run(home, "--shard", "0/2")
    second = shards(home)
    units = {name for name in first if manifest_of_bytes(first[name])["finished"]}
    # Shards about an attempt contain its time, so their names differ.
    assert units < first.keys() and units == first.keys() & second.keys()
    assert all(facts(first[name]) == facts(second[name]) for name in units)


def manifest_of_bytes(content: bytes) -> Any:
    return json.loads(gzip.decompress(content).decode().splitlines()[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[:-100],
        lambda whole: b"",
        lambda whole: gzip.compress(gzip.decompress(whole).replace(b"cart_", b"card_")),
        lambda whole: b"x" + whole[1:],
    ],
)
def test_a_damaged_shard_is_rewritten_by_its_own_share_only(
    home: Home, caplog: pytest.LogCaptureFixture, damage: Callable[[bytes], bytes]
) -> None:
    for index in range(2):
        run(home, "--shard", f"{index}/2", strategies=("lc.infile",))
    before = shards(home)
    [of_first, *_] = sorted(name for name in before if "shop0" in manifest_of_bytes(before[name])["snapshots"])
    (home.shards / of_first).write_bytes(damage(before[of_first]))
    for index in (1, 0):
        assert run(home, "--shard", f"{index}/2", strategies=("lc.infile",)).code == 0
    assert any(of_first in line and "are repeated" in line for line in caplog.messages)
    after = shards(home)
    assert {name for name in before if facts(after[name]) != facts(before[name])} == set()
    ended = merge(home)
    assert ended.code == 0 and "new 13  already there 0  faults 0  missing 0" in ended.out, ended.err


@pytest.mark.slow
def test_faults_leave_samples_missing_and_are_counted_after_the_merge(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Real cells distinguish a strategy's fault from a fault of ctxbench.
    monkeypatch.setattr("ctxbench.harness.run.resources.open_cells", open_cells)
    fussy = tmp_path / "fussy.py"
    fussy.write_text(
        '"""Fussy."""\nfrom ctxbench import Context, strategy\n\n@strategy("fussy")\ndef fussy(query, repo):\n'
        '    """Fail on one file."""\n    if query.prefix.count("total_") == 2:\n        raise ValueError("not this")\n'
        "    return Context.ranked([])\n"
    )
    options = {"strategies": (f"{fussy}@fussy",)}
    counts = []
    for index in range(2):
        ended = run(home, "--shard", f"{index}/2", **options)
        assert ended.code in (0, 1), ended.err
        counts.append(ended.out.partition("missing ")[2].split()[0])
        assert ended.code == (1 if counts[-1] != "0" else 0)
    ended = merge(home)
    missing = sum(map(int, counts))
    assert missing and f"faults {missing}  missing {missing}" in ended.out
    with open_store(url(home, "merged")) as store:
        [work] = run_works(store)
        groups = faults_of(store, work.id)
        assert {group.kind for group in groups} == {"strategy"} and sum(group.count for group in groups) == missing
        assert sum(attempt.faults for attempt in work.attempts) == missing
        attempts = len(work.attempts)
    merge(home)
    with open_store(url(home, "merged")) as store:
        assert len(run_works(store)[0].attempts) == attempts
    # A local run continues from there, and does only the missing samples.
    ended = run(home, "--db", url(home, "merged"), **options)
    assert ended.code == 1 and f"{fussy}@fussy: 0 of {missing}, {missing} missing" in ended.err


def rewritten(file: Path, change: Callable[[str], str]) -> Path:
    """Write a shard with changed lines under the name that fits its new content."""
    text = change(gzip.decompress(file.read_bytes()).decode())
    told = "".join(line for line in text.splitlines(keepends=True) if not line.startswith('{"times"'))
    place = file.parent.parent / "other" / f"{file.name.partition('-')[0]}-{sha256(told)[:24]}{SUFFIX}"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(gzip.compress(text.encode()))
    return place


def unit_file(home: Home) -> Path:
    return next(file for file in sorted(home.shards.glob(f"*{SUFFIX}")) if manifest_of(file).finished)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda text: re.sub(r'"es",(\d)', r'"es",1\1', text), "has another value for shop"),
        (lambda text: re.sub(r'"copyable_bits",(-?\d)', r'"copyable_bits",1\1', text), "has another value for shop"),
        (lambda text: re.sub(r'"context","bits",(\d)', r'"context","bits",1\1', text), "has another value for shop"),
        (lambda text: text.replace('"text":"apply_tax"', '"text":"pay"'), "has another value for the answer "),
        (lambda text: re.sub(r'"bits":(\d)', r'"bits":1\1', text), "has another value for the cost in bits "),
    ],
)
def test_a_shard_with_a_different_value_for_a_key_is_refused(
    home: Home, change: Callable[[str], str], what: str
) -> None:
    for index in range(2):
        run(home, "--shard", f"{index}/2", strategies=("lc.infile",))
    assert merge(home).code == 0
    before = board(home, "merged")
    other = rewritten(unit_file(home), change)
    ended = merge(home, other.parent, home.shards)
    assert_fault(ended, what)
    assert "run` without --shard" in ended.err
    assert "already there 13" in ended.out and board(home, "merged") == before


@pytest.mark.slow
def test_shards_may_differ_in_the_last_digits_of_a_cost(home: Home) -> None:
    run(home, "--shard", "0/2", strategies=("lc.repocoder",))
    assert merge(home).code == 0
    before = board(home, "merged")

    def last_digits(text: str) -> str:
        nudged = re.sub(r'("copyable_bits",|"bits"[,:])(-?\d+\.\d+)', lambda m: f"{m[1]}{float(m[2]) + 3e-12!r}", text)
        assert nudged.count("copyable_bits") and nudged != text
        return nudged

    ended = merge(home, rewritten(unit_file(home), last_digits))
    assert ended.code == 0 and "new 0" in ended.out, ended.err
    assert board(home, "merged") == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda text: "", "is empty"),
        (lambda text: "[]\n", "not a JSON object"),
        (lambda text: "{}\n", "field format"),
        (lambda text: text.replace('"format":4', '"format":1', 1), "has format 1, and this ctxbench reads format 4"),
        (lambda text: text.replace('"seed":0', '"seed":1', 1), "the run's settings do not match its id"),
        (lambda text: text.replace('{"sample":', '{"simple":', 1), "does not belong to a shard"),
        (lambda text: text.replace('"status":"scored"', '"status":"good"', 1), "field status"),
        (lambda text: text.replace('"completions":', '"completion":', 1), "is not a finished sample"),
        (lambda text: text.replace("#L", "#M"), "is not a sample of the shard's run"),
        (lambda text: _without(text, '{"answer"'), "lacks an answer or a verdict"),
        (lambda text: _without(text, '{"times":["answer"'), "field seconds: field required"),
    ],
)
def test_an_invalid_shard_is_refused_in_one_line(home: Home, change: Callable[[str], str], what: str) -> None:
    run(home, "--shard", "0/3", strategies=("lc.infile",))
    other = rewritten(unit_file(home), change)
    assert_fault(merge(home, other), what)


def _without(text: str, begin: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(begin))


@pytest.mark.slow
def test_a_shard_that_was_changed_or_cut_off_is_refused(home: Home) -> None:
    run(home, "--shard", "0/3", strategies=("lc.infile",))
    file = unit_file(home)
    whole = file.read_bytes()
    file.write_bytes(gzip.compress(gzip.decompress(whole).replace(b"cart_", b"card_")))
    assert_fault(merge(home, file), "was changed or damaged")
    file.write_bytes(whole[:-100])
    assert_fault(merge(home, file), "gzip data ends too early")


@pytest.mark.slow
def test_a_missing_set_and_changed_repositories_are_named(home: Home) -> None:
    run(home, "--shard", "0/3", strategies=("lc.infile",))
    file = unit_file(home)
    [repo] = read(file).snapshots
    other = rewritten(file, lambda text: text.replace(read(file).snapshots[repo], "0" * 64))
    assert_fault(merge(home, other), f"have different files of '{repo}'")
    shutil.rmtree(home.samples / "demo")
    assert_fault(merge(home, file), "the shard's sample set 'demo' is not in the home folder")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--shard", "4/4"), "is not a share"),
        (("--out", "x"), "--out needs --shard"),
    ],
)
def test_wrong_options_are_refused(home: Home, options: tuple[str, ...], what: str) -> None:
    ended = run(home, *options)
    assert ended.code == 2 and what in ended.err


def test_a_folder_without_shards_is_refused(home: Home, tmp_path: Path) -> None:
    assert_fault(merge(home, tmp_path / "nowhere"), "no such file or folder")
    (tmp_path / "empty").mkdir()
    assert_fault(merge(home, tmp_path / "empty"), "contains no shard")
