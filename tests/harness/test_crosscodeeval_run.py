"""CrossCodeEval from its files to scores and back, with a small project in each of two languages."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

import ctxbench
from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.schema import COMPLETION
from tests.helpers.cli import run_cli
from tests.helpers.trees import write_tree

PYTHON = {
    "shop/pay.py": (
        "from shop.tax import add_tax, round_up\n\n\ndef pay(cart, rate):\n    total = add_tax(\n        cart.sum,\n"
        "        rate,\n    )\n    return round_up(total, 2)\n"
    ),
    "shop/tax.py": (
        "def add_tax(amount, rate):\n    return amount * (1 + rate)\n\n\n"
        "def round_up(amount, places):\n    return round(amount + 0.5, places)\n"
    ),
}
JAVA = {
    "src/shop/Pay.java": (
        "package shop;\n\nclass Pay {\n    int pay(Cart cart, int rate) {\n        int total = Tax.addTax(cart.sum(),\n"
        "            rate);\n        return Tax.roundUp(total, 2);\n    }\n}\n"
    ),
    "src/shop/Tax.java": (
        "package shop;\n\nclass Tax {\n"
        "    static int addTax(int amount, int rate) {\n        return amount * rate;\n    }\n"
        "    static int roundUp(int amount, int places) {\n        return amount + places;\n    }\n}\n"
    ),
}
TASKS: dict[str, tuple[dict[str, str], str, list[str]]] = {
    "python": (PYTHON, "shop/pay.py", ["add_tax(\n        cart.sum,\n        rate,\n    )", "round_up(total, 2)"]),
    "java": (JAVA, "src/shop/Pay.java", ["addTax(cart.sum(),\n            rate);", "roundUp(total, 2);"]),
}


RETRIEVED, ORACLE = "first = found(1)", "second = found(2)"
GOES_ON = "\n    return gone\n"


def records(language: str) -> list[dict[str, Any]]:
    """Return a language's records without retrieved text. The code around each answer is copied from its file."""
    files, path, targets = TASKS[language]
    text = files[path]
    made = []
    for number, target in enumerate(targets):
        at = text.rindex(target)
        line, end = text[:at].count("\n"), text[: at + len(target)].count("\n")
        made.append(
            {
                "prompt": text[:at],
                "groundtruth": target,
                "right_context": text[at + len(target) :],
                "metadata": {
                    "task_id": f"project_cc_{language}/{number}",
                    "repository": f"owner-{language}-1234567",
                    "file": path,
                    "context_start_lineno": 0,
                    "groundtruth_start_lineno": line,
                    "right_context_start_lineno": end + 1,
                },
            }
        )
    return made


def retrieved(record: dict[str, Any], language: str, chunk: str) -> dict[str, Any]:
    path = next(path for path in TASKS[language][0] if "ax." in path)
    mark = "#" if language == "python" else "//"
    text = f"{mark} Here are some relevant code fragments from other files of the repo:\n\n"
    text += f"{mark} the below code fragment can be found in:\n{mark} {path}\n{mark} {chunk}\n\n"
    return {
        **record,
        "crossfile_context": {"text": text, "list": [{"retrieved_chunk": chunk, "filename": path, "score": 1.5}]},
    }


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Write the projects and the benchmark's files for them; return the paths of the benchmark's files."""
    written = []
    for language, (texts, _, _) in TASKS.items():
        write_tree(tmp_path / "repos" / f"owner-{language}-1234567", texts)
        plain = records(language)
        made = {
            "line_completion": plain,
            "line_completion_rg1_bm25": [retrieved(plain[0], language, RETRIEVED)],
            "line_completion_oracle_bm25": [retrieved(one, language, ORACLE) for one in plain],
        }
        for name, rows in made.items():
            path = tmp_path / language / f"{name}.jsonl"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            written.append(str(path))
    return written


def answers(tmp_path: Path) -> str:
    """Write answers for a scripted model: a language's first target plus more code if retrieved text is shown."""
    known = []
    for language, (_, _, targets) in TASKS.items():
        mark = "#" if language == "python" else "//"
        text = targets[0] + GOES_ON
        known += [{"contains": f"{mark} {chunk}", "text": text} for chunk in (RETRIEVED, ORACLE)]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in [*known, {"text": "wrong(1);\nnever"}]))
    return f"scripted(answers='{path}')"


@pytest.mark.slow
@pytest.mark.parametrize("repos", [True, False], ids=["with repositories", "prompts alone"])
def test_an_imported_set_is_run_scored_and_exported(tmp_path: Path, files: list[str], repos: bool) -> None:
    home = Home(tmp_path / "home")
    given = ["--repos", str(tmp_path / "repos")] if repos else []
    imported = run_cli("samples", "import", *files, "--format", "crosscodeeval", "--name", "cceval", *given)
    assert imported.code == 0 and "cceval: 4 samples (crosscodeeval" in imported.out, imported
    made = sets.load(home, "cceval")
    assert {sample.subkind for sample in made.samples} == {"statement"}

    shown = ("lc.crosscodeeval", "lc.crosscodeeval(layout=text)", "oracle-stored")
    specs = ("lc.infile", "lc.crosscodeeval(context=oracle_bm25)", *shown, "gold")
    chosen = [part for spec in specs for part in ("--strategy", spec)]
    ran = run_cli("run", "--samples", "cceval", "--generator", answers(tmp_path), *chosen)
    assert ran.code == 0 and ran.out.count("scored 4  model-failed 0  missing 0") == len(specs), ran
    store = open_store(home.database)
    em: dict[str, set[str]] = {spec: set() for spec in specs}
    for table in run_tables(store, profile="crosscodeeval"):
        em[table.run.strategy] |= {one for one, value in zip(table.sample, table.metrics["em"], strict=True) if value}
    with store.reading() as connection:
        texts = set(connection.execute(select(COMPLETION.c.text)).scalars())
    store.close()
    first = {"project_cc_python/0", "project_cc_java/0"}
    assert em["lc.infile"] == set() and em["gold"] == {sample.id for sample in made.samples}
    assert em["lc.crosscodeeval(context=oracle_bm25)"] == set(), "no strategy gets what was retrieved with the answer"
    assert [em[spec] for spec in shown] == [first] * 3
    assert {targets[0] + GOES_ON for _, _, targets in TASKS.values()} <= texts, "an answer is kept whole"

    out = tmp_path / "out.jsonl"
    assert run_cli("samples", "export", "cceval", "--format", "crosscodeeval", "--out", str(out)).code == 0
    seen = Path(ctxbench.__path__[0]).resolve() / "answers.jsonl"
    refused = run_cli("samples", "export", "cceval", "--format", "crosscodeeval", "--out", str(seen))
    assert refused.code == 1 and "strategies could read the answers" in refused.err and not seen.exists()
    back = run_cli("samples", "import", str(out), "--format", "crosscodeeval", "--name", "back", *given)
    assert back.code == 0, back
    assert sets.load(home, "back").samples == made.samples
    assert sets.load(home, "back").references == made.references
