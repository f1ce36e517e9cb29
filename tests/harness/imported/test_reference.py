"""Reference results: written from stored runs, imported with their own origin, refused if they do not fit."""

import gzip
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

import pytest

from ctxbench.bench import standard
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind
from ctxbench.harness.generators.answers import Extracted
from ctxbench.harness.imported import probes, reference
from ctxbench.harness.results import Origin, RunTable
from ctxbench.harness.run import runner
from ctxbench.harness.run.attempt import RunSummary
from ctxbench.harness.store import Store, open_store
from ctxbench.harness.store.details import detail
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.work import run_works
from scripts import model_results
from tests.helpers.cells import open_inline
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.extras import needed
from tests.helpers.functions import FakeJudge, make_function_set
from tests.helpers.sets import make_set

NAME, LITE = "ctxbench-2", "ctxbench-2-lite"
STRATEGIES = ("lc.infile", "lc.repocoder")


def ran(home: Home, samples: str, *strategies: str) -> None:
    for strategy in strategies:
        words = ("--samples", samples, "--strategy", strategy, "--generator", "incontext", "--home", str(home.root))
        result = run_cli("run", *words)
        assert result.code == 0, result


def tables(home: Home, profile: str = "ctxbench") -> dict[tuple[str, Origin], RunTable]:
    with open_store(home.database) as store:
        return {(table.run.strategy, table.run.origin): table for table in run_tables(store, profile=profile)}


def imported(home: Home, *words: str) -> Any:
    return run_cli("results", "import", "--reference", *words, "--home", str(home.root))


def members(sample_set: SampleSet, kind: Kind, per_repo: int) -> standard.StandardSet:
    """Return a standard set with the samples of `sample_set`."""
    repos = sample_set.manifest["repositories"]
    return standard.StandardSet(
        name=NAME,
        per_repo=MappingProxyType({kind.value: per_repo}),
        seed=0,
        domains=MappingProxyType(dict.fromkeys(repos, "shops")),
        tested=frozenset(repos) if kind is Kind.FUNCTION else frozenset(),
        digests=MappingProxyType({kind.value: sample_set.digest}),
    )


@pytest.fixture(scope="module")
def authors(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a home with runs of two strategies over a stand-in for the standard set: six repositories."""
    home = Home(tmp_path_factory.mktemp("authors") / "home")
    make_set(home, name=NAME, repos=6, per_repo=2)
    ran(home, NAME, *STRATEGIES)
    return home


@pytest.fixture
def written(authors: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SampleSet]:
    """Write the reference file of these runs. The lite set has the first two repositories."""
    from ctxbench.bench import samples

    whole = samples.load(authors, NAME)
    lite = make_set(Home(tmp_path / "lite"), name=LITE, repos=2, per_repo=2)
    sets = {name: members(of, Kind.LINE, 2) for name, of in ((NAME, whole), (LITE, lite))}
    monkeypatch.setattr(standard, "load", sets.__getitem__)
    monkeypatch.setattr(reference, "REFERENCE_FOLDER", tmp_path)
    with open_store(authors.database) as store:
        ids = {run.choices.strategy: run.id for run in run_works(store)}
        runs = [reference.read(store, ids[strategy], whole) for strategy in STRATEGIES]
        path = reference.write(NAME, whole, runs)
    assert path.parent == tmp_path
    yield whole


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["ctxbench", "infercom"])
def test_imported_rows_equal_the_authors_rows_except_for_their_origin(
    authors: Home, written: SampleSet, home: Home, profile: str
) -> None:
    result = imported(home, NAME)
    assert result.code == 0 and len(result.out.splitlines()) == 2, result
    theirs, ours = tables(authors, profile), tables(home, profile)
    assert set(ours) == {(strategy, Origin.REFERENCE) for strategy in STRATEGIES}
    for strategy in STRATEGIES:
        run, row = theirs[strategy, Origin.RUN], ours[strategy, Origin.REFERENCE]
        assert row.metrics == run.metrics and row.status == run.status and row.dated == run.dated
        assert (row.sample, row.repo, row.level) == (run.sample, run.repo, run.level)
        assert (row.context_tokens, row.calls) == (run.context_tokens, run.calls)
        assert row.costs["tokens_in"] == run.costs["tokens_in"] and row.costs["tokens_out"] == run.costs["tokens_out"]
        assert set(row.seconds) == set(row.costs["strategy_seconds"]) == {None} and row.run.loads == ()
        assert row.run.id != run.run.id and row.run.sampling == run.run.sampling


def test_an_interrupted_import_is_completed_and_not_repeated(
    written: SampleSet, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(reference, "add_records", interrupted)
        assert imported(home, NAME).code != 0
    assert not next(iter(tables(home).values())).metrics
    assert imported(home, NAME).code == 0
    whole = tables(home)
    again = imported(home, NAME)
    assert again.out.count("already imported, nothing changed") == 2
    assert tables(home) == whole and all(table.metrics for table in whole.values())


@pytest.mark.slow
def test_an_own_strategy_is_compared_with_reference_rows(written: SampleSet, home: Home) -> None:
    # Another name for the same samples, which their digest identifies.
    make_set(home, name="mine", repos=6, per_repo=2)
    assert imported(home, NAME, "--samples", "mine").code == 0
    ran(home, "mine", "lc.random_windows", "lc.infile")
    board = json.loads(run_cli("leaderboard", "--home", str(home.root), "--format", "json").out)
    rows = {(row["strategy"], row["origin"]): row for row in board}
    assert set(rows) == {("lc.random_windows", "run"), ("lc.infile", "run"), ("lc.repocoder", "reference")}
    difference = rows["lc.repocoder", "reference"]["difference"]["copyable_bits"]
    assert difference["repositories"] == 6 and difference["p"] is not None
    text = run_cli("leaderboard", "--home", str(home.root), "--explain").out
    assert "repocoder (reference)" in text and "ship with ctxbench" in text and "1 run is not shown" in text
    runs = json.loads(run_cli("runs", "--home", str(home.root), "--format", "json").out)
    commands = {run["strategy"]: run["command"] for run in runs if run["origin"] == "reference"}
    assert commands["lc.repocoder"].startswith(f"ctxbench results import --reference {NAME} --samples mine")


def test_reference_rows_have_no_texts_to_export(written: SampleSet, home: Home) -> None:
    assert imported(home, NAME).code == 0
    run = next(iter(tables(home).values())).run.id
    words = ("export", run, "--format", "ctxbench", "--out", str(home.root / "out.jsonl"), "--home", str(home.root))
    assert_fault(run_cli("results", *words), "scores but no texts", "run its strategy yourself")


def test_the_lite_set_gets_a_part_of_the_reference_results(authors: Home, written: SampleSet, home: Home) -> None:
    make_set(home, name=LITE, repos=2, per_repo=2)
    assert imported(home, LITE).code == 0
    ours, theirs = tables(home)["lc.repocoder", Origin.REFERENCE], tables(authors)["lc.repocoder", Origin.RUN]
    keep = [place for place, repo in enumerate(theirs.repo) if repo in ("shop0", "shop1")]
    assert ours.sample == tuple(theirs.sample[place] for place in keep) and len(ours.sample) == 4
    assert ours.metrics["bits"] == tuple(theirs.metrics["bits"][place] for place in keep)
    with open_store(home.database) as store:
        assert {run.choices.samples_digest for run in run_works(store)} == {standard.load(LITE).digests["line"]}


def test_rows_of_a_published_model_include_completions(authors: Home, written: SampleSet, home: Home) -> None:
    words = ("--samples", NAME, "--strategy", "lc.infile", "--generator", "scripted(text='a line')", "--limit", "3")
    assert run_cli("run", *words, "--home", str(authors.root)).code == 0
    with open_store(authors.database) as store:
        (id_,) = {run.id for run in run_works(store) if run.choices.generator.startswith("scripted")}
        run = reference.read(store, id_, written, limit=3)
    path = reference.write(NAME, written, [run], label="tiny", limit=3)
    assert path.name == "ctxbench-2-line-tiny.jsonl.gz"
    (results,) = reference.models(NAME).values()
    assert results.limit == len(results.samples) == 3 and not reference.models(LITE)
    assert imported(home, NAME).code == 0
    assert imported(home, NAME).out.count("already imported, nothing changed") == 3
    (row,) = (table for table in tables(home).values() if table.run.generator.startswith("scripted"))
    assert row.run.samples == f"{NAME}[:3]" and len(row.sample) == 3
    with open_store(home.database) as store:
        completions = [detail(store, row.run.id, sample).completions for sample in row.sample]
    assert {of.text for (of,) in completions} == {"a line"}
    assert all(of.scores["ctxbench", "em"] == 0.0 for (of,) in completions)


@pytest.mark.slow
def test_a_row_over_more_samples_runs_only_the_missing_ones(
    authors: Home, written: SampleSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(*limits: int) -> None:
        plans = {("tiny", Kind.LINE): model_results.Plan(model="incontext", limits=limits, strategies=STRATEGIES)}
        monkeypatch.setattr(model_results, "PLANS", plans)
        model_results.make(authors, "tiny", Kind.LINE)

    def counted(home: Home, store: Store, sample_set: SampleSet, **words: Any) -> list[RunSummary]:
        asked.append(words["choices"].limit or len(sample_set.samples))
        return run(home, store, sample_set, **words)

    asked: list[int] = []
    run = runner.run
    monkeypatch.setattr(model_results, "LITE", NAME)
    monkeypatch.setattr(runner, "run", counted)
    plan(3)
    plan(3)
    assert asked == [3, 3]
    plan(3, 8)
    # Besides the five missing samples, the first and the last sample in the file are measured again.
    assert asked[2:] == [7, 7]
    joined = reference.models(NAME)["tiny"]
    next(reference.REFERENCE_FOLDER.glob("*-tiny.*")).unlink()
    plan(8)
    assert asked[4:] == [8, 8]
    whole = reference.models(NAME)["tiny"]
    assert len(joined.samples) == 8 and (joined.samples, joined.runs) == (whole.samples, whole.runs)


def test_other_samples_are_refused(written: SampleSet, home: Home) -> None:
    make_set(home, name=NAME, repos=5, per_repo=2)
    assert_fault(imported(home, NAME), "contains other samples", f"samples build NAME --set {NAME}")
    assert_fault(imported(home, LITE, "--samples", NAME), "contains other samples", f"samples build NAME --set {LITE}")
    with open_store(home.database) as store:
        assert not run_works(store)


@pytest.mark.parametrize("name", ["VERSION", "TOKENIZER"])
def test_another_model_or_tokenizer_is_refused(
    written: SampleSet, home: Home, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(reference, name, "2-other")
    assert_fault(imported(home, NAME), "were measured with", "this version uses", "2-other", "install ctxbench")


@pytest.mark.parametrize(
    ("where", "function", "gives", "said"),
    [
        (probes.metrics, "score", {"em": 1.0}, "crosscodeeval, ctxbench, "),
        (probes.diagnostics, "context_waste", 0.5, "metrics: context;"),
        (probes, "extract", Extracted(text="def f(): ..."), "metrics: extraction;"),
    ],
)
def test_results_of_other_metric_versions_are_refused(
    written: SampleSet,
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    where: object,
    function: str,
    gives: object,
    said: str,
) -> None:
    monkeypatch.setattr(where, function, lambda *_, **__: gives)
    assert_fault(imported(home, NAME), "other versions of these metrics", said, "install ctxbench")


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a home with runs over functions, and write their reference file."""
    needed("torch", "hf")
    theirs = Home(tmp_path / "functions")
    sample_set = make_function_set(theirs, name=standard.samples_name(NAME, Kind.FUNCTION))
    both = dict.fromkeys((NAME, LITE), members(sample_set, Kind.FUNCTION, 3))
    monkeypatch.setattr(standard, "load", both.__getitem__)
    monkeypatch.setattr(reference, "REFERENCE_FOLDER", tmp_path)
    with open_store(theirs.database) as store:
        summaries = runner.run(
            theirs,
            store,
            sample_set,
            strategies=("icl.infile", "gold", "blank"),
            generator="incontext",
            judges=FakeJudge(sample_set).open,
            cells=open_inline,
        )
        runs = [reference.read(store, summary.run, sample_set) for summary in summaries]
    path = reference.write(NAME, sample_set, runs)
    assert path.name == "ctxbench-2-function.jsonl.gz" and reference.kinds(NAME) == (Kind.FUNCTION,)
    return theirs


def test_function_rows_are_imported_with_their_verdicts(functions: Home, home: Home) -> None:
    assert imported(home, NAME).code == 0
    theirs, ours = tables(functions), tables(home)
    assert {strategy for strategy, _ in ours} == {"icl.infile", "gold", "blank"}
    for strategy, origin in ours:
        run, row = theirs[strategy, Origin.RUN], ours[strategy, origin]
        assert row.metrics == run.metrics and row.status == run.status and row.run.samples == run.run.samples
    assert set(ours["gold", Origin.REFERENCE].metrics["pass@1"]) == {1.0}
    assert set(ours["blank", Origin.REFERENCE].metrics["pass@1"]) == {0.0}
    assert imported(home, NAME).out.count("already imported, nothing changed") == len(ours)
    runs = json.loads(run_cli("runs", "--home", str(home.root), "--format", "json").out)
    # The set need not exist. Rows without texts cannot be scored again.
    assert run_cli("rescore", "--home", str(home.root)).out.startswith("nothing to score")
    assert {row["command"].partition(" --home")[0] for row in runs} == {f"ctxbench results import --reference {NAME}"}


@pytest.mark.slow
def test_details_of_a_sample_match_its_row(functions: Home, home: Home) -> None:
    assert imported(home, NAME).code == 0
    ours = tables(home)
    with open_store(home.database) as store:
        for table in ours.values():
            samples = [detail(store, table.run.id, sample) for sample in table.sample]
            assert tuple(sample.status for sample in samples) == table.status
            passes = tuple(of.scores["ctxbench", "pass"] for sample in samples for of in sample.completions)
            assert passes == table.metrics["pass@1"]
    run = ours["gold", Origin.REFERENCE].run.id

    def exported(form: str) -> Path:
        words = ("export", run, "--format", form, "--out", str(home.root / form), "--home", str(home.root))
        assert run_cli("results", *words).code == 0
        return home.root / form

    log = json.loads(exported("inspect").read_text())
    assert log["status"] == "success" and not any("output" in sample for sample in log["samples"])
    assert {sample["scores"]["pass"]["value"] for sample in log["samples"]} == {1.0}


def test_the_digest_of_a_named_set_determines_its_kind(functions: Home, home: Home) -> None:
    make_function_set(home, name="mine")
    result = imported(home, NAME, "--samples", "mine")
    assert result.code == 0 and result.out.count("  mine  ") == 3, result
    make_function_set(home, name="other", repos=1)
    assert_fault(imported(home, NAME, "--samples", "other"), "contains other samples", "--kind function")


def test_unknown_names_and_extra_options_are_refused(written: SampleSet, home: Home) -> None:
    assert_fault(imported(home, "ctxbench2"), "did you mean ctxbench-2")
    assert_fault(imported(home, NAME, "--samples", "none"), "none")
    for words in (("--format", "ctxbench"), ("file.jsonl",), ("--strategy", "mine")):
        assert imported(home, NAME, *words).code == 2
    assert run_cli("results", "import", "--home", str(home.root)).code == 2


@pytest.fixture(scope="module")
def shipped() -> reference.ReferenceResults:
    return reference.load(NAME)


@pytest.mark.slow
def test_shipped_results_match_the_standard_set_and_this_version(shipped: reference.ReferenceResults) -> None:
    assert reference.names() == (NAME, LITE)
    members = standard.load(NAME)
    assert shipped.digest == members.digests["line"] and {sample.repo for sample in shipped.samples} == set(
        members.domains
    )
    assert len(shipped.samples) == members.per_repo["line"] * len(members.domains)
    reference._check(shipped, None)
    lite = reference.load(LITE)
    assert len(lite.samples) == 450 and len(lite.runs) == len(shipped.runs)


def test_every_shipped_run_is_whole(shipped: reference.ReferenceResults) -> None:
    assert len({run.strategy for run in shipped.runs}) == len(shipped.runs)
    for run in shipped.runs:
        columns = [
            run.status,
            run.context_tokens,
            run.calls,
            *(of for own in run.scores.values() for of in own.values()),
        ]
        assert {len(column) for column in columns} == {len(shipped.samples)}
        assert {"copyable_bits", "bits"} <= run.scores["context"].keys()
        assert all(value is not None for profile in run.scores for value in run.scores[profile].get("es", ()))


@pytest.mark.parametrize("language", ["python", "java"])
@pytest.mark.parametrize(("profile", "metric"), [("context", "copyable_bits"), ("ctxbench", "id_f1")])
def test_repocoder_beats_infile(shipped: reference.ReferenceResults, language: str, profile: str, metric: str) -> None:
    values = {
        run.strategy: [
            value
            for sample, value in zip(shipped.samples, run.scores[profile][metric], strict=True)
            if sample.language == language and value is not None
        ]
        for run in shipped.runs
    }
    assert len(values["lc.repocoder"]) == len(values["lc.infile"]) > 400
    assert fmean(values["lc.repocoder"]) > fmean(values["lc.infile"])


@pytest.mark.parametrize("kind", reference.kinds(NAME))
def test_no_shipped_file_contains_texts(kind: Kind) -> None:
    """Some prompts and completions would reveal the answers."""
    header, *lines = map(json.loads, gzip.decompress(reference._file(NAME, kind).read_bytes()).splitlines())
    columns = {"id", "benchmark", "language", "subkind", "repo", "path", "line", "column", "day", "kinds"}
    assert header.keys() == {"samples", "probes"} and header["samples"].keys() == columns
    for line in lines:
        assert set(line.pop("status")) <= {"scored", "model-failed"}
        for role, *numbers in itertools.chain.from_iterable(line.pop("calls")):
            assert role in ("draft", "summary", "final") and all(type(number) is int for number in numbers)
        for column in (line.pop("context_tokens"), *(c for of in line.pop("scores").values() for c in of.values())):
            assert not any(isinstance(value, str) for value in column)
        assert len(json.dumps(line)) < 1000, "what is left describes the run"


def test_the_results_page_shows_every_shipped_row(shipped: reference.ReferenceResults) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "results.md").read_text(encoding="utf-8")
    for language in ("python", "java"):
        here = [place for place, sample in enumerate(shipped.samples) if sample.language == language]
        for run in shipped.runs:
            gain = fmean(run.scores["context"]["copyable_bits"][place] or 0.0 for place in here)
            assert f"| `{run.strategy}` | {gain:.1f} [" in page, run.strategy
