"""``ctxbench samples import``: what the command hands to those who make sets that are executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.files import write_jsonl
from ctxbench.bench.formats import Task
from ctxbench.bench.home import Home
from tests.bench.formats.test_importing import function
from tests.helpers.cli import run_cli

ID = "0123456789abcdef01234567"


class Maker:
    """Stands in for what makes a set whose completions are executed; remembers what it was given."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.given: dict[str, Any] = {}

    def __call__(self, tasks: list[Task], home: Home, name: str, **given: Any) -> sets.SampleSet:
        self.tasks, self.given = list(tasks), given
        sample, reference = function()
        return sets.save(home, name, [sample], [reference], {"repositories": {}, **given["about"]})


@pytest.fixture
def tasks(tmp_path: Path) -> str:
    """A list of CoderEval's results, as its harness writes it: one task, and a prompt that belongs to none."""
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


def test_rebuild_is_given_the_tasks_and_the_account(tasks: str, prompts: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_docstrings_of_people(tasks: str, prompts: str, tmp_path: Path) -> None:
    human = tmp_path / "CEPythonHumanLabel.jsonl"
    rows = [json.loads(line) for line in Path(prompts).read_text().splitlines()]
    write_jsonl(human, [{key: value.replace("Sum up", "Add one") for key, value in row.items()} for row in rows])
    command = ("samples", "import", tasks, prompts, str(human), "--format", "codereval", "--name", "ce")
    for chosen, said in (((), "Sum up."), (("--docstring", "human"), "Add one.")):
        result = run_cli(*command, *chosen, "--force")
        assert result.code == 0, result.err
        [sample] = sets.load(Home(tmp_path / "home"), "ce").samples
        assert sample.docstring == said and said in sample.prefix


def test_codereval_is_written_as_one_document(tasks: str, prompts: str, tmp_path: Path) -> None:
    assert run_cli("samples", "import", tasks, prompts, "--format", "codereval", "--name", "ce").code == 0
    out = tmp_path / "ce.json"
    assert run_cli("samples", "export", "ce", "--format", "codereval", "--out", str(out)).code == 0
    assert [each["_id"] for each in json.loads(out.read_text())["RECORDS"]] == [ID]
