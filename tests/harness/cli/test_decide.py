"""`ctxbench decide`: which strategy helps on one repository, for a user and for a CI job."""

import contextlib
import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import samples
from ctxbench.bench.home import Home
from tests.helpers.cli import Result, assert_fault, run_cli
from tests.helpers.trees import write_tree

COUNT = 12
"""Files with samples."""
STRATEGIES = """
from pathlib import PurePath
from ctxbench import Context, Snippet, strategy

def shown(text):
    return Context(snippets=(Snippet(path="notes.py", text=text),))

@strategy("nothing")
def nothing(query, repo):
    return shown("# nothing")

@strategy("hint")
def hint(query, repo):
    return shown(f"# HINT {PurePath(query.path).stem}.")

@strategy("broken")
def broken(query, repo):
    raise RuntimeError("no index")
"""


def use(number: int, *, added: str = "") -> str:
    return (
        f"from shop.core import make_{number}\n\n\n{added}def use_{number}(order):\n"
        f"    total_{number} = make_{number}(order, {number * 7}, label='of {number}')\n"
        f"    return [total_{number}, make_{number}(total_{number}, {number}, label='again {number}')]\n"
    )


FILES = {
    "shop/__init__.py": "",
    "shop/core.py": "".join(
        f"def make_{n}(order, amount, *, label):\n    return order + amount\n\n\n" for n in range(COUNT)
    ),
    **{f"shop/use_{n}.py": use(n) for n in range(COUNT)},
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(STRATEGIES)
    records: list[dict[str, str]] = [
        {"contains": f"HINT use_{n}.", "text": f"make_{n}(order, {n * 7}, label='of {n}')"} for n in range(COUNT)
    ]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [*records, {"text": "?"}]))
    return write_tree(tmp_path / "shop", FILES)


def git(folder: Path, *words: str) -> None:
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True)


def arguments(shop: Path, strategies: tuple[str, ...]) -> list[str]:
    folder = shop.parent
    specs = [name if "." in name or name == "gold" else f"{folder / 'mine.py'}@{name}" for name in strategies]
    generator = f"scripted(answers='{folder / 'answers.jsonl'}')"
    place = ["--home", str(folder / "home"), "--repo", str(shop)]
    return ["decide", *place, "--generator", generator, "--workers", "1", *specs]


def run(shop: Path, *words: str, strategies: tuple[str, ...] = ("nothing", "hint")) -> Result:
    return run_cli(*arguments(shop, strategies), *words)


def run_apart(shop: Path, *words: str, strategies: tuple[str, ...] = ("nothing", "hint")) -> Result:
    """Run the command in a process of its own, because a budget may interrupt or end it at any point."""
    program = "from ctxbench.harness.cli.main import main; main()"
    command = [sys.executable, "-c", program, *arguments(shop, strategies), *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return Result(ended.returncode, ended.stdout, ended.stderr)


def answers(home: Home) -> int:
    with contextlib.closing(sqlite3.connect(home.root / "results.db")) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM generation_fact").fetchone()[0])


def stored_set(home: Home) -> samples.SampleSet:
    """Return the set that was built last."""
    return samples.load(home, max(samples.names(home), key=lambda name: (home.samples / name).stat().st_mtime_ns))


def record(result: Result) -> dict[str, Any]:
    return dict(json.loads(result.out))


@pytest.mark.parametrize(
    ("strategies", "code", "words"),
    [
        (("nothing", "hint"), 0, "hint is better than"),
        (("hint", "nothing"), 11, "nothing is worse than"),
        (("nothing", "lc.infile"), 10, "lc.infile is not shown to differ from"),
        (("nothing", "lc.infile", "hint"), 0, "hint is better than"),
    ],
)
def test_the_exit_code_matches_the_decision(shop: Path, strategies: tuple[str, ...], code: int, words: str) -> None:
    result = run(shop, strategies=strategies)
    assert result.code == code, result
    sentence, claim, *_ = result.out.splitlines()
    assert words in sentence and f"over {2 * COUNT} samples in {COUNT} files of shop" in sentence
    assert claim.startswith("The answer applies only to shop")


def test_without_a_model_retrieval_is_compared_and_places_are_shown(shop: Path) -> None:
    (shop.parent / "mine.py").write_text(
        STRATEGIES + "\n@strategy('core')\ndef core(query, repo):\n"
        "    return Context(snippets=(Snippet(path='shop/core.py', text=repo.read('shop/core.py'), end=48),))\n"
    )
    (shop / "shop" / "module.py").write_text("import shop.core\n\n\nprint(shop.core, 'only the module', 1)\n")
    found = record(run(shop, "--generator", "none", "--format", "json", strategies=("nothing", "core")))
    assert found["metric"] == "definition_recall@1024" and "without a model" in found["claim"]
    # Any retrieval beats none, so such a difference decides nothing, not even in CI.
    assert (found["decision"], found["exit_code"]) == ("not_shown", 10) and "compare two engines" in found["claim"]
    assert "core finds definitions but is not shown to help" in found["sentence"]
    assert (
        f"over {2 * COUNT} samples in {COUNT} files of shop (1 left out: no definition found in " in found["sentence"]
    )
    answers_of = [list(sample["answers"].values()) for sample in found["largest_differences"]]
    assert answers_of == [["retrieved nothing", "shop/core.py:1-48"]] * 3
    assert run(shop, "--generator", "none", strategies=("core", "nothing")).code == 11


def test_json_has_the_fields_for_a_job_and_is_repeatable(shop: Path) -> None:
    first, again = (record(run(shop, "--format", "json")) for _ in range(2))
    assert (first["decision"], first["exit_code"], first["metric"]) == ("better", 0, "es")
    assert {row["strategy"].rpartition("@")[2] for row in first["strategies"]} == {"nothing", "hint"}
    assert [sample["difference"] > 0 for sample in first["largest_differences"]] == [True] * 3
    place, line = first["largest_differences"][0]["place"].split(":")
    assert first["largest_differences"][0]["reference"] in FILES[place].splitlines()[int(line) - 1]
    assert {key: first[key] for key in first if key != "seconds"} == {
        key: again[key] for key in again if key != "seconds"
    }


def test_a_new_commit_asks_the_model_only_about_changed_samples(shop: Path) -> None:
    git(shop, "init", "-q")
    git(shop, "add", "-A")
    git(shop, "commit", "-qm", "one")
    first = run(shop)
    assert first.code == 0, first
    home = Home(shop.parent / "home")
    first_set = stored_set(home)
    before = {s.id: s for s in first_set.samples}
    asked = answers(home)
    (shop / "shop" / "use_3.py").write_text(use(3, added="# moved\n\n\n"))
    (shop / "shop" / "more.py").write_text(
        "from shop.core import make_1\n\n\nnew = make_1(5, 55, label='more than five')\n"
    )
    git(shop, "add", "-A")
    git(shop, "commit", "-qm", "two")
    after = {s.id: s for s in stored_set(home).samples} if run(shop).code == 0 else {}
    for of_commit in (first_set, stored_set(home)):
        source = of_commit.manifest["repositories"]["shop"]["source"]
        assert source.startswith("git+file:")
        assert of_commit.name == f"decide-shop-{source.rpartition('@')[2][:10]}-limit200"
    moved = {(s.path, s.cursor.column, s.subkind) for s in before.values()}
    assert moved < {(s.path, s.cursor.column, s.subkind) for s in after.values()}
    same = [id_ for id_ in before if "use_3" not in id_]
    assert 0 < answers(home) - asked <= 2 * (len(after) - len(same)), "an answer a strategy and changed sample"
    assert all(after[id_].prefix == before[id_].prefix for id_ in same) and len(after) == len(before) + 1


def test_a_budget_sets_the_number_of_samples_and_is_kept(shop: Path) -> None:
    result = run(shop, "--budget", "10m")
    assert result.code == 0, result
    assert "seconds per sample" in result.err
    assert f"{2 * COUNT} samples of {COUNT} files: a difference of about" in result.err
    again = run(shop, "--budget", "10m")
    assert "seconds per sample" not in again.err and again.code == 0
    listed = run_cli("runs", "--home", str(shop.parent / "home")).out
    assert listed.count("decide-shop") == len(re.findall(rf"decide-shop-[0-9a-f]{{10}}-limit{2 * COUNT} ", listed)) == 2
    # The seconds that the model took for stored answers count too.
    slow = f"scripted(answers='{shop.parent / 'answers.jsonl'}', delay=0.1)"
    assert run(shop, "--generator", slow, "--limit", "20").code in (0, 10)
    timed = run(shop, "--generator", slow, "--budget", "9m").err
    assert all(float(seconds) >= 0.1 for seconds in re.findall(r"([\d.]+) s[,;]", timed.partition("per sample: ")[2]))
    short = run_apart(shop, "--budget", "0.01s")
    assert_fault(short, "no completion was finished", "give a much longer --budget")


@pytest.mark.parametrize("strategy", ["slow", "stuck"])
def test_a_strategy_that_is_too_slow_ends_the_command_within_its_budget(shop: Path, strategy: str) -> None:
    (shop.parent / "mine.py").write_text(
        STRATEGIES
        + "\nimport time\n@strategy('slow')\ndef slow(query, repo):\n    time.sleep(0.8)\n    return shown('# slow')\n"
        + "\n@strategy('stuck')\ndef stuck(query, repo):\n    time.sleep(60)\n    return shown('# stuck')\n"
    )
    ended = run_apart(shop, "--budget", "12s", strategies=("nothing", strategy))
    assert_fault(ended, "--budget", "give", "--generator none")


@pytest.mark.parametrize(
    ("words", "strategies", "said"),
    [
        ([], ("nothing", "nothing"), "is given twice"),
        ([], ("nothing", "gold"), "gold is a control"),
        ([], ("nothing", "broken"), "no index"),
        (["--kind", "function"], ("icl.direct", "icl.rag"), "cannot judge functions on this machine"),
        (["--metric", "esx"], ("nothing", "hint"), "did you mean es?"),
        (["--metric", "es", "--generator", "none"], ("nothing", "hint"), "definition_recall@1024"),
        (["--metric", "zz"], ("nothing", "hint"), "definition_recall@1024"),
        (["--metric", "pass@1", "--generator", "incontext"], ("nothing", "hint"), "pass@1 needs functions"),
        (["--metric", "copyable_bit", "--generator", "incontext"], ("nothing", "hint"), "did you mean copyable_bits"),
        (["--metric", "context_gain", "--generator", "incontext"], ("nothing", "hint"), "use --metric copyable_bits"),
        (["--generator", "incontex"], ("nothing", "hint"), "did you mean incontext"),
    ],
)
def test_invalid_choices_are_refused(shop: Path, words: list[str], strategies: tuple[str, ...], said: str) -> None:
    assert_fault(run(shop, *words, strategies=strategies), said)


@pytest.mark.parametrize("name", ["lc.repocoderr", "engine(rgrep)", "ripgrep", "mine.toml"])
def test_a_misspelt_name_is_reported_before_samples_are_built(shop: Path, name: str) -> None:
    result = run_cli("decide", "--home", str(shop.parent / "home"), "--repo", str(shop), "lc.infile", name)
    assert result.code == 1 and result.err.count("\n") == 1 and "did you mean" in result.err


def test_a_long_answer_is_cut_with_an_ellipsis(shop: Path) -> None:
    records = [{"contains": "HINT", "text": f"make_0(order, {'0, ' * 90}0)"}, {"text": "?"}]
    (shop.parent / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in records))
    begun = [line.partition("make_0(order, 0, 0") for line in run(shop).out.splitlines()]
    answers = [text for _, mark, text in begun if mark]
    assert answers and all(text.endswith("…") and len(text) < 170 for text in answers)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "neither Python nor Java"),
        ({"readme.txt": "hello"}, "neither Python nor Java"),
        ({"a.py": "x = 1\ny = 2\nz = 3\n"}, "no line of 'odd' can become a sample"),
    ],
)
def test_a_repository_without_usable_samples_is_a_fault(shop: Path, files: dict[str, str], said: str) -> None:
    folder = write_tree(shop.parent / "odd", files)
    folder.mkdir(exist_ok=True)
    assert_fault(run(shop, "--repo", str(folder)), said)


@pytest.mark.parametrize(
    "words",
    [
        ["--budget", "soon"],
        ["--budget", "0m"],
        ["--kind", "function", "--budget", "1m"],
        ["--limit", "0"],
        ["--limit", "9", "--budget", "1m"],
    ],
)
def test_wrong_usage_exits_with_code_2(shop: Path, words: list[str]) -> None:
    assert run(shop, *words).code == 2


def test_a_single_strategy_is_wrong_usage(shop: Path) -> None:
    assert run(shop, strategies=("nothing",)).code == 2
