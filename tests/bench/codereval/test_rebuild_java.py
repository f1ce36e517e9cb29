"""CoderEval's Java tasks rebuilt: located by name, parameters and Javadoc, judged by the repository's JUnit tests."""

import json
from pathlib import Path

import pytest

from ctxbench.bench.codereval.rebuild import rebuild
from ctxbench.bench.formats.importing import read_tasks
from ctxbench.bench.home import Home
from ctxbench.bench.judging.judge import Judge
from ctxbench.bench.judging.types import Verdict
from ctxbench.bench.repositories import manifest
from ctxbench.sandbox.types import Sandbox
from tests.helpers.java_shop import PATH, TREE

MANIFEST = """\
name = "shop"
language = "java"
license = "MIT"
version = "1"
codereval = ["shop-master"]
[[source]]
kind = "local"
path = "tree"
[tests]
"""
TOTAL = "Return what the prices come to.\n\n@param prices each of them\n@return the sum, with a rate above 100"
ASKED = {
    "total": ("public static double total(final List<Double> prices) {", f"/** {TOTAL} */"),
    "round": ("static boolean round(final int price) {", "/** Say whether a price is round: cafe. */"),
    "none": ("static void none() {", "/** Be nowhere. */"),
}


def files(folder: Path) -> list[str]:
    prompts, results = folder / "CEJavaRaw.jsonl", folder / "Model.Java.Raw_Input.jsonl_out.jsonl"
    with prompts.open("w") as raw, results.open("w") as out:
        for number, (name, (signature, doc)) in enumerate(ASKED.items()):
            one = f"{number:024x}"
            said = {"question_id": one, "input": doc + "\n" + signature, "signature": signature, "docstring": doc}
            raw.write(json.dumps(said) + "\n")
            task = {"_id": one, "project_name": "shop-master", "method_name": name, "docstring": doc}
            out.write(json.dumps({**task, "code_level": "class_runnable", "codes": [], "generate_results": []}) + "\n")
    return [str(prompts), str(results)]


@pytest.mark.long
@pytest.mark.slow
def test_java_tasks_are_rebuilt_end_to_end(tmp_path: Path, bubblewrap_sandbox: Sandbox) -> None:
    for path, content in TREE.items():
        (tmp_path / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / path).write_bytes(content.replace(b"\xe9", b"e"))
    (tmp_path / "shop.toml").write_text(MANIFEST)
    tasks, home = read_tasks("codereval", files(tmp_path)).tasks, Home(tmp_path / "home")
    made = rebuild(
        tasks,
        home,
        "ce",
        sandbox=bubblewrap_sandbox,
        lock=lambda *_: (),
        manifests=[manifest.load(str(tmp_path / "shop.toml"))],
    )
    total, rounded = made.samples
    assert (total.name, total.path, rounded.name) == ("Prices.total", PATH, "Prices.round")
    assert sum(made.manifest["unusable"].values()) == 1 and made.manifest["totals"] == {"tasks": 3, "kept": 2}
    assert made.references[total.id].tests == (
        "shop.CartTest#pays", "shop.PricesTest#adds", "shop.PricesTest#rates",
    )  # fmt: skip
    assert total.suffix is not None and total.suffix.startswith("    }\n") and total.hidden == ("src/test/",)
    with Judge(home, made, bubblewrap_sandbox, width=1) as judge:
        assert judge.judge(total, made.references[total.id].target).verdict is Verdict.PASSED
        assert judge.judge(total, "public static double total(List<Double> p) { return 1; }").verdict is Verdict.FAILED
