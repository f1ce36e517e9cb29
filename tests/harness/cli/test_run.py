"""`ctxbench run` and `ctxbench generator` as a user calls them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ctxbench.bench.home import Home
from ctxbench.harness.cells import conversation
from ctxbench.strategies import resolve
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.sets import make_set

ARGUMENTS = {"--samples": "demo", "--strategy": "lc.infile", "--generator": "scripted(text=x)"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    make_set(found, repos=2, per_repo=2)
    return found


def arguments(home: Home, **changes: str) -> list[str]:
    chosen = {**ARGUMENTS, "--home": str(home.root), **{f"--{key}": value for key, value in changes.items()}}
    return ["run", *(part for pair in chosen.items() for part in pair)]


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        ("lc.infercom(encoder=minillm)", "no encoder is called 'minillm'; did you mean minilm"),
        ("aim(lc.infercom(encoder=minillm))", "no encoder is called 'minillm'"),
        ("lc.repofuse(encoder='hashed(widht=8)')", "hashed has no parameter 'widht'"),
        ("lc.repofuse(encoder='bm25(k=8)')", "bm25 has no parameter 'k'"),
    ],
)
def test_an_invalid_encoder_starts_no_run(home: Home, strategy: str, said: str) -> None:
    assert_fault(run_cli(*arguments(home, strategy=strategy)), said)
    assert_fault(run_cli("runs", "--home", str(home.root)), "no runs are stored")


def test_only_parameters_of_type_encoder_spec_name_encoders(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from ctxbench import Context, EncoderSpec, strategy\n"
        "@strategy('own')\ndef own(query, repo, *, encoder: str = 'utf-8'):\n    return Context(snippets=())\n"
        "@strategy('ours')\ndef ours(query, repo, *, by: EncoderSpec = 'minilm'):\n    return Context(snippets=())\n"
    )
    assert resolve(f"{file}@own").encoders == () and resolve(f"{file}@ours(by=bm25)").encoders == ("bm25",)


@pytest.mark.slow
def test_a_run_prints_its_counts_and_the_same_when_repeated(home: Home) -> None:
    first = run_cli(*arguments(home), "--strategy", "lc.repocoder")
    assert first.code == 0, first
    lines = first.out.splitlines()
    assert [line.split()[1] for line in lines] == ["lc.infile", "lc.repocoder"]
    assert all("scored 4  model-failed 0  missing 0" in line for line in lines)
    again = run_cli(*arguments(home, strategy="lc.{infile,repocoder}"))
    assert (again.code, again.out) == (0, first.out)


def _raising_strategy(home: Home) -> None:
    source = (
        "from ctxbench import strategy\n\n@strategy('mine')\ndef mine(query, repo):\n    raise ValueError('oh no')\n"
    )
    (home.root.parent / "mine.py").write_text(source)


@pytest.mark.parametrize(
    ("prepare", "changes", "words"),
    [
        (None, {"samples": "dmo"}, ["dmo", "did you mean demo"]),
        (None, {"strategy": "lc.infil"}, ["lc.infil", "did you mean lc.infile"]),
        (None, {"strategy": "lc.infile(limt=3)"}, ["limt", "limit"]),
        (None, {"generator": "scriptd"}, ["scriptd", "did you mean scripted"]),
        (None, {"db": "results"}, ["sqlite:///FILE"]),
        (None, {"db": "sqlite:////proc/no/such/place.db"}, ["check"]),
        (
            lambda h: (h.root / "answers.jsonl").write_text('{"text": "x"}\n{"text": '),
            {"generator": "scripted(answers='{root}/answers.jsonl')"},
            ["answers.jsonl:2", "cut off"],
        ),
        (lambda h: (h.repos / "shop1" / "1").rename(h.repos / "shop1" / "2"), {}, ["shop1", "repo fetch"]),
        (
            lambda h: (h.repos / "shop1" / "1" / "shop" / "tax.py").write_text("x = 1"),
            {},
            ["shop1", "remove that folder"],
        ),
        (_raising_strategy, {"strategy": "{root}/../mine.py@mine"}, ["4 samples", "oh no", "correct the strategy"]),
    ],
)
def test_invalid_input_is_a_one_line_fault(
    home: Home, prepare: Callable[[Home], object] | None, changes: dict[str, str], words: list[str]
) -> None:
    if prepare is not None:
        prepare(home)
    made = {key: value.replace("{root}", str(home.root)) for key, value in changes.items()}
    assert_fault(run_cli(*arguments(home, **made)), *words)


@pytest.mark.parametrize(
    "option",
    [
        *("--limit=0", "--n=0", "--workers=0", "--seed=x", "--color=red"),
        *("--temperature=nan", "--temperature=inf", "--top-p=nan", "--top-p=0"),
    ],
)
def test_wrong_usage_exits_with_code_2(home: Home, option: str) -> None:
    result = run_cli(*arguments(home), option)
    assert result.code == 2 and "Traceback" not in result.err


def test_generator_list_shows_the_parameters() -> None:
    result = run_cli("generator", "list")
    assert result.code == 0
    assert "incontext        Copy from the prompt alone" in result.out
    assert "scripted(answers='', text='', mode=fixed, delay=0.0)" in result.out


def test_generator_check_fails_a_generator_without_answers(tmp_path: Path) -> None:
    answers = tmp_path / "a.jsonl"
    answers.write_text('{"contains": "nothing of the kind", "text": "x"}\n')
    result = run_cli("generator", "check", f"scripted(answers='{answers}')")
    assert result.code == 1 and "FAIL  answers without a fault" in result.out
    assert_fault(run_cli("generator", "check", "scripted(mode=loud)"), "fixed or echo")


@pytest.mark.slow
def test_a_run_of_a_looping_strategy_stops_with_a_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "EVERY", 0.05)
    home, file = Home(tmp_path / "home"), tmp_path / "loops.py"
    make_set(home, repos=1, per_repo=6)
    file.write_text(
        "from ctxbench.strategies import *\n\n@strategy('loops')\n"
        "def loops(query: Query, repo: Repository) -> Context:\n    while True: pass\n"
    )
    how = {"strategy": f"{file}@loops", "strategy-seconds": "0.2", "workers": "1", "generator": "scripted(text=x)"}
    result = run_cli(*arguments(home, **how))
    assert_fault(
        result,
        "6 samples are missing",
        "more than 0.2 seconds",
        "--strategy-seconds",
    )
    assert "5 in a row" in result.err
