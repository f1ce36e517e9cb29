"""`ctxbench samples import` and `prompt`: the input for rebuilt CoderEval sets, and prompts equal to those of a run."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from ctxbench.bench import samples as sets
from ctxbench.bench.files import write_jsonl
from ctxbench.bench.formats import Task
from ctxbench.bench.home import Home
from ctxbench.harness.store import open_store
from ctxbench.harness.store.facts import prompt_texts
from tests.bench.formats.test_importing import function
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.openai_server import serving
from tests.helpers.sets import make_set

ID = "0123456789abcdef01234567"


class Maker:
    """A fake builder of an executed set that records its arguments."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.given: dict[str, Any] = {}

    def __call__(self, tasks: list[Task], home: Home, name: str, **given: Any) -> sets.SampleSet:
        self.tasks, self.given = list(tasks), given
        sample, reference = function()
        return sets.save(home, name, [sample], [reference], {"repositories": {}, **given["about"]})


@pytest.fixture
def tasks(tmp_path: Path) -> str:
    """Write CoderEval results with one task, as its harness does; return the path."""
    fields = {"file_path": "shop/pay.py", "project": "owner/shop", "name": "total", "docstring": "Sum up."}
    recorded = {"_id": ID, **fields, "level": "class_runnable", "code": ["x"], "generate_results": []}
    write_jsonl(tmp_path / "model_out.jsonl", [recorded])
    return str(tmp_path / "model_out.jsonl")


@pytest.fixture
def prompts(tmp_path: Path) -> str:
    ids = (ID, ID.replace("0", "f"))
    rows = [
        {
            "question_id": one,
            "signature": "def total(x):",
            "docstring": "Sum up.",
            "input": 'def total(x):\n\t"""\n\tSum up.\n\t"""\n\t',
        }
        for one in ids
    ]
    write_jsonl(tmp_path / "CEPythonRaw.jsonl", rows)
    return str(tmp_path / "CEPythonRaw.jsonl")


def test_rebuild_receives_tasks_and_import_counts(tasks: str, prompts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Box:
        name = "bubblewrap"

    maker = Maker()
    monkeypatch.setattr("ctxbench.bench.codereval.rebuild.rebuild", maker)
    monkeypatch.setattr(
        "ctxbench.sandbox.registry.open_sandbox", lambda name, _: Box() if name == "bubblewrap" else None
    )
    command = ("samples", "import", tasks, prompts, "--format", "codereval", "--name", "ce", "--rebuild")
    result = run_cli(*command, "--sandbox", "bubblewrap", "--workers", "3", "--force")
    assert result.code == 0, result.err
    assert "tests run in bubblewrap" in result.err
    assert "ce: 1 samples (codereval), left out: no_task 1, digest" in result.out
    assert [task.sample.id for task in maker.tasks] == [ID]
    assert (maker.given["sandbox"].name, maker.given["workers"], maker.given["force"]) == ("bubblewrap", 3, True)
    about = maker.given["about"]
    assert about["imported_from"] == "codereval" and about["unusable"] == {"no_task": 1}
    assert [source["rows"] for source in about["sources"]] == [1, 2]


def test_the_docstring_option_selects_human_docstrings(tasks: str, prompts: str, tmp_path: Path) -> None:
    human = tmp_path / "CEPythonHumanLabel.jsonl"
    rows = [json.loads(line) for line in Path(prompts).read_text().splitlines()]
    write_jsonl(human, [{key: value.replace("Sum up", "Add one") for key, value in row.items()} for row in rows])
    command = ("samples", "import", tasks, prompts, str(human), "--format", "codereval", "--name", "ce")
    for chosen, said in (((), "Sum up."), (("--docstring", "human"), "Add one.")):
        result = run_cli(*command, *chosen, "--force")
        assert result.code == 0, result.err
        [sample] = sets.load(Home(tmp_path / "home"), "ce").samples
        assert sample.docstring == said and said in sample.prefix


@pytest.fixture
def home(tmp_path: Path, inline_cells: None) -> Home:
    home = Home(tmp_path / "home")
    make_set(home, per_repo=2)
    return home


def stored_prompts(home: Home) -> dict[str, str]:
    with open_store(home.database) as store, store.reading() as connection:
        rows = connection.execute(text("SELECT sample_id, prompt_digest FROM result")).all()
        texts = dict(prompt_texts(connection, [digest for _, digest in rows]))
    return {sample: texts[digest] for sample, digest in rows}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["lc.infile", "lc.repocoder", "lc.infercom(encoder=bm25)"])
def test_the_printed_prompt_is_the_prompt_of_a_run(home: Home, strategy: str) -> None:
    place = ("--home", str(home.root))
    with serving(answer=lambda *_: "apply_tax(cart_1, rate)") as server:
        words = ("--strategy", strategy, "--generator", f"openai:tiny@{server.url}", *place)
        printed = {
            sample: run_cli("samples", "prompt", "demo", sample, *words)
            for sample in run_cli("samples", "show", "demo", "--ids", *place).out.split()
        }
        drafts = len(server.calls)
        assert run_cli("run", "--samples", "demo", *words).code == 0
        assert len(server.calls) == drafts + len(printed), "drafts are taken from the store"
    assert stored_prompts(home) == {sample: result.out for sample, result in printed.items()}


@pytest.mark.slow
def test_origins_show_the_source_of_each_block(home: Home) -> None:
    words = ("samples", "prompt", "demo", "shop0/shop/pay.py#L4", "--strategy", "lc.repocoder")
    words = (*words, "--home", str(home.root))
    exact, origins = run_cli(*words).out, run_cli(*words, "--origins").out
    parts = origins.split("=== ")[1:]
    heads, blocks = [part.partition("\n")[0] for part in parts], [part.partition("\n")[2] for part in parts]
    similar = [(head, block) for head, block in zip(heads, blocks, strict=True) if head.startswith("similar ")]
    assert similar and all(", score " in head and " tokens" in head for head, _ in similar)
    for head, block in similar:
        path, _, lines = head.removeprefix("similar ").partition(",")[0].rpartition(":")
        start, end = map(int, lines.split("-"))
        whole = (home.repos / "shop0" / "1" / path).read_text().split("\n")
        assert next(line for line in whole[start - 1 : end] if line) in block
    whole = "".join(block for head, block in zip(heads, blocks, strict=True) if "left out" not in head)
    assert whole.startswith(exact.rstrip("\n"))


def test_an_unusable_sample_or_strategy_is_refused(home: Home) -> None:
    words = ("samples", "prompt", "demo")
    end = ("--home", str(home.root))
    assert_fault(run_cli(*words, "shop0/shop/pay.py#L5x", "--strategy", "lc.infile", *end), "did you mean")
    known = "shop0/shop/pay.py#L4"
    assert_fault(run_cli(*words, known, "--strategy", "lc.infilo", *end), "did you mean lc.infile")
    assert_fault(run_cli(*words, known, "--strategy", "icl.rag", *end), "accepts function samples")
    assert_fault(run_cli(*words, known, "--strategy", "gold", *end), "gold is a control")
