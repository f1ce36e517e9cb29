"""Files in CoderEval's format that ask for functions of a test repository."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench.formats import Task
from ctxbench.bench.formats.importing import read_tasks


@dataclass(frozen=True)
class Asked:
    """One task, as CoderEval's authors would record it."""

    name: str
    signature: str
    docstring: str
    path: str = "shop.py"
    project: str = "me/shop"
    level: str = "self_contained"

    @property
    def id(self) -> str:
        return f"{abs(sum(ord(one) << n % 80 for n, one in enumerate(self.project + self.path + self.name))):024x}"[
            -24:
        ]


def files(folder: Path, asked: Sequence[Asked]) -> list[str]:
    """Write the prompts and a list of results. Return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    prompts, results = folder / "CEPythonRaw.jsonl", folder / "Model.Python.Raw_Input.jsonl_out.jsonl"
    with prompts.open("w") as raw, results.open("w") as out:
        for one in asked:
            start = f'{one.signature}\n\t"""\n\t{one.docstring}\n\t"""\n\t'
            said = {"question_id": one.id, "input": start, "signature": one.signature, "docstring": one.docstring}
            raw.write(json.dumps(said) + "\n")
            task = {
                "_id": one.id,
                "file_path": one.path,
                "project": one.project,
                "name": one.name,
                "docstring": one.docstring,
                "level": one.level,
                "code": ["return 'an answer of the model'"],
                "generate_results": [],
            }
            out.write(json.dumps(task) + "\n")
    return [str(prompts), str(results)]


def tasks(folder: Path, asked: Sequence[Asked]) -> tuple[Task, ...]:
    return read_tasks("codereval", files(folder, asked)).tasks
