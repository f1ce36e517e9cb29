"""The Samples page finds every sample, shows all its stored data, and never treats stored text as markup."""

import html
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.bench.types import Kind, Reference
from ctxbench.dashboard.app import STYLE
from ctxbench.dashboard.pages.samples import PHONE_STYLE
from ctxbench.harness.results import Status
from ctxbench.harness.store import Store, open_store
from ctxbench.harness.store import notes as notes_of
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.write import Mark, StoredBlock, StoredCompletion, StoredFault
from tests.dashboard.browser import app
from tests.dashboard.test_samples_views import HARMFUL, _Tags
from tests.harness.store.making import make_finished, make_generation, make_spec
from tests.harness.store.test_details import add_functions
from tests.helpers.samples import make_sample

pytestmark = pytest.mark.filterwarnings("ignore:Pyarrow will become a required dependency")

LONG = 200_000
HIDING = "\u202e\u200b\x1b[31m\0\x07"
ANSWER = "apply_tax(user.cart, rate)"


def samples_of(count: int = 4) -> list[Any]:
    """Return ordinary samples and a last one from a repository whose names would harm a page."""
    plain = [make_sample(id=f"demo/{number}") for number in range(count - 1)]
    return [*plain, make_sample(id=HARMFUL, repo=HARMFUL, path=f"{HARMFUL}\u202e.py", subkind=HARMFUL)]


def block(kind: str = "similar", text: int = 8, **changes: Any) -> StoredBlock:
    fields: dict[str, Any] = {
        "kind": kind, "places": json.dumps([["shop/tax.py", 0, 2]]), "score": 0.5, "tokens": 3, "state": "kept",
        "reason": "", "char_start": 0, "char_end": text,
    }  # fmt: skip
    return StoredBlock(**{**fields, **changes})


def completion(text: str, es: float, generation: str = "g", **changes: Any) -> StoredCompletion:
    fields: dict[str, Any] = {
        "generation_id": generation, "status": Status.SCORED, "text": text, "flags": (),
        "scores": {("ctxbench", "es"): es, ("context", "bits"): 3.0},
    }  # fmt: skip
    return StoredCompletion(**{**fields, **changes})


def store_two_runs(store: Store, digest: str) -> dict[str, str]:
    """Store two runs that agree on ``demo/0`` and differ elsewhere. The second run lacks ``demo/2``."""
    run_ids = {}
    store.add_generations([make_generation(text=f"{ANSWER}\n# more"), make_generation(
        id="bad", prompt=HARMFUL + HIDING, prompt_digest="b", text=HARMFUL + HIDING + "x" * LONG, finish=HARMFUL,
    )])  # fmt: skip
    for strategy, values in (("lc.a", (1.0, 0.25, 0.5)), ("lc.b", (1.0, 0.75, None))):
        run = store.add_run(make_spec(strategy=strategy, samples_digest=digest, coder="c"), samples_of())
        for number, value in enumerate(values):
            if value is not None:
                text = ANSWER if value == 1.0 else "apply_tax(cart, rate)"
                blocks = (block(), block("infile", char_start=8, char_end=12), block(
                    state="dropped", reason="no room", tokens=0, char_start=None, char_end=None,
                ))  # fmt: skip
                store.add_finished(run, "c", make_finished(
                    f"demo/{number}", prompt="# found\nx = ", prompt_digest="q", blocks=blocks, bits=(),
                    completions=(completion(text, value),),
                ))  # fmt: skip
        run_ids[strategy] = run
    fault = StoredFault(sample_id="demo/2", kind="machine", message=f"lost: {HARMFUL}")
    store.add_fault(store.start_attempt(run_ids["lc.b"], "full"), fault)
    return run_ids


def fill_harmful(store: Store, digest: str) -> None:
    """Store a run in which every text comes from a hostile model or repository."""
    run = store.add_run(make_spec(strategy=HARMFUL, generator=HARMFUL, samples_digest=digest), samples_of())
    text = HARMFUL + HIDING + "y" * LONG
    places = json.dumps([[HARMFUL, 0, 1]])
    blocks = (block(HARMFUL, len(text), places=places), block(
        HARMFUL, places=places, reason=HARMFUL, state="dropped", char_start=None, char_end=None,
    ))  # fmt: skip
    store.add_finished(run, "c", make_finished(
        HARMFUL, prompt=text, prompt_digest="h", blocks=blocks, bits=(),
        calls=((HARMFUL, "bad"), ("explore", "bad"), ("final", "bad")),
        flags=(HARMFUL,), completions=(completion(text, 0.5, "bad", flags=(HARMFUL, HIDING)),),
    ))  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("samples"))
    references = [
        Reference(id=sample.id, target=ANSWER if sample.id != HARMFUL else HARMFUL) for sample in samples_of()
    ]
    sample_set = sets.save(home, "demo", samples_of(), references, {"repositories": {}})
    with open_store(home.database) as store:
        store_two_runs(store, sample_set.digest)
        fill_harmful(store, sample_set.digest)
    return home


def runs(home: Home) -> dict[str, str]:
    with open_store(home.database) as store:
        return {table.run.strategy: table.run.id for table in run_tables(store)}


def sound(test: Any) -> Any:
    assert not test.exception, test.exception
    return test


def notes(test: Any) -> str:
    return "\n".join(html.unescape(re.sub(r"<[^>]+>", "", element.proto.body)) for element in test.get("html"))


def table(test: Any, key: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = test.dataframe[key].value.to_dict("records")
    return rows


@pytest.mark.slow
def test_a_run_without_a_finished_sample_says_what_to_run(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with open_store(home.database) as store:
        store.add_run(make_spec(), samples_of())
    test = sound(app("samples", home.root))
    assert "No sample of this set is finished yet" in test.info[0].value.replace("\\", "")
    assert "ctxbench run" in test.code[0].value


@pytest.mark.slow
def test_all_parts_of_a_sample_are_shown(home: Home) -> None:
    test = sound(app("samples", home.root, run=runs(home)["lc.a"], metric="es", sample="demo/1"))
    rows = table(test, 0)
    assert [row["sample"] for row in rows] == ["demo/0", "demo/1", "demo/2", HARMFUL]
    assert [row["A"] for row in rows[:3]] == [100.0, 25.0, 50.0] and math.isnan(rows[3]["A"])
    assert [row[""] for row in rows] == ["", "▸", "", ""]
    assert rows[3]["status"] == "infra-failed" and rows[0]["place"] == "shop/checkout.py:4"
    assert {row["metric"]: row["A"] for row in table(test, 1)} == {"es (%)": 25.0, "bits (bits)": 3.0}
    blocks = table(test, 2)
    assert [(row["kind"], row["state"], row["reason"]) for row in blocks] == [
        ("similar", "kept", ""), ("infile", "kept", ""), ("similar", "dropped", "no room"),
    ]  # fmt: skip
    codes = [code.value.strip("\n") for code in test.code]
    assert "def pay(user):\n    total = ▏" in codes and ANSWER in codes and f"{ANSWER}\n# more" in codes
    assert "# found" in codes and "x = " in codes and "# found\nx = " in codes
    assert [box.label for box in test.expander if "shop/tax" in box.label.replace("\\", "").replace("\u2060", "")]
    assert "demo · shop/checkout.py:4:13 · single-line" in notes(test)
    assert "referenceapply_tax(user.cart, rate)completionapply_tax(cart, rate)" in notes(test)


@pytest.mark.slow
def test_the_steps_of_an_agent_are_listed(tmp_path: Path) -> None:
    home = Home(tmp_path)
    called = 'Where? <tool_call>{"name": "grep", "arguments": {"text": "pay"}}</tool_call>'
    with open_store(home.database) as store:
        store.add_generations([make_generation(id="s1", text=called), make_generation(id="s2", text="No." * 900)])
        calls = (("explore", "s1"), ("explore", "s2"), ("final", "g"))
        store.add_generations([make_generation()])
        run = store.add_run(make_spec(strategy="agent.explore"), samples_of())
        store.add_finished(run, "c", make_finished("demo/0", calls=calls))
    test = sound(app("samples", home.root, run=run, sample="demo/0"))
    [steps] = [table(test, at) for at in range(len(test.dataframe)) if "tool" in test.dataframe[at].value]
    assert [tuple(row.values()) for row in steps] == [
        (1, "grep", '{"text": "pay"}', "Where?"),
        (2, "none", "", ("No." * 900)[:500] + "…"),
    ]


@pytest.mark.slow
def test_two_runs_are_shown_side_by_side_with_navigation(home: Home) -> None:
    both = {"run": runs(home)["lc.a"], "other": runs(home)["lc.b"], "metric": "es"}
    test = sound(app("samples", home.root, **both))
    assert [row["A - B"] for row in table(test, 0)][:2] == [-50.0, 0.0]
    assert "infra-failed" not in notes(test)
    buttons = {button.label: button for button in test.button}
    assert buttons["Previous sample"].disabled and not buttons["Next sample"].disabled
    test = sound(app("samples", home.root, differs="A and B differ", **both))
    assert [row["sample"] for row in table(test, 0)] == ["demo/1"]
    test = sound(app("samples", home.root, order="as planned", **both))
    assert [row["A - B"] for row in table(test, 0)][:2] == [0.0, -50.0]
    test = sound(app("samples", home.root, differs="A and B differ", sample="demo/0", **both))
    [forward] = [button for button in test.button if button.label == "Next disagreement"]
    sound(forward.click().run())
    assert test.query_params["sample"] in ("demo/1", ["demo/1"])
    assert table(test, 1)[1] == {"metric": "bits (bits)", "A": 3.0, "B": 3.0}
    test = sound(app("samples", home.root, differs="A is better", **both))
    assert "No sample matches" in test.info[0].value


@pytest.mark.slow
def test_a_missing_sample_is_shown_with_its_fault(home: Home) -> None:
    test = sound(app("samples", home.root, run=runs(home)["lc.b"], sample="demo/2"))
    assert "infra-failed" in notes(test) and f"Fault of the machine: lost: {HARMFUL}" in notes(test)


@pytest.mark.slow
def test_samples_are_filtered_by_the_url(home: Home) -> None:
    run = runs(home)["lc.a"]
    for query, expected in (
        ({"words": "EMO/1"}, ["demo/1"]),
        ({"status": "infra-failed"}, [HARMFUL]),
        ({"repo": HARMFUL}, [HARMFUL]),
        ({"order": "lowest of A"}, ["demo/1", "demo/2", "demo/0", HARMFUL]),
    ):
        test = sound(app("samples", home.root, run=run, metric="es", **query))
        assert [row["sample"] for row in table(test, 0)] == expected, query
    test = sound(app("samples", home.root, run=run, words="nowhere"))
    assert "No sample matches these filters" in test.info[0].value


@pytest.mark.slow
def test_unknown_samples_and_missing_references_are_reported(home: Home, tmp_path: Path) -> None:
    test = sound(app("samples", home.root, sample="<b>none</b>"))
    assert "Run A has no sample <b>none</b>" in notes(test) and "demo · shop/checkout.py" in notes(test)
    away = Home(tmp_path)
    Path(away.root / "results.db").write_bytes(Path(home.root / "results.db").read_bytes())
    test = sound(app("samples", away.root, run=runs(home)["lc.a"], sample="demo/1"))
    assert "The reference is not on this machine" in notes(test)
    assert "apply_tax(cart, rate)" in [code.value for code in test.code]
    sample_set = sets.save(
        away,
        "demo",
        samples_of(),
        [Reference(id=sample.id, target="x") for sample in samples_of()],
        {"repositories": {}},
    )
    assert sample_set.samples
    test = sound(app("samples", away.root, run=runs(home)["lc.a"], sample="demo/1"))
    assert "The reference is not on this machine" in notes(test), "another set of that name has other answers"


@pytest.mark.slow
def test_a_changed_set_is_reported_and_the_completion_is_shown(home: Home, tmp_path: Path) -> None:
    away = Home(tmp_path)
    (away.samples / "demo").mkdir(parents=True)
    for file in ("results.db", "samples/demo/manifest.json", "samples/demo/samples.jsonl"):
        (away.root / file).write_bytes((home.root / file).read_bytes())
    answers = (home.root / "samples/demo/references.jsonl").read_text()
    (away.root / "samples/demo/references.jsonl").write_text(answers.replace("rate", "late"))
    test = sound(app("samples", away.root, run=runs(home)["lc.a"], sample="demo/1"))
    assert "was changed after it was built" in test.error[0].value
    assert "apply_tax(cart, rate)" in [code.value for code in test.code]


@pytest.mark.slow
def test_functions_come_with_their_verdicts(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with open_store(home.database) as store:
        run = add_functions(store)
        notes_of.add_marks(store, "f" * 64, [Mark(sample_id="demo/1", mark="broken", reason=HARMFUL)])
    test = sound(app("samples", home.root, sample="demo/0"))
    assert {row["sample"]: row["status"] for row in table(test, 0)} == {
        "demo/0": "scored", "demo/1": "excluded", "demo/2": "model-failed",
    }  # fmt: skip
    assert [row["A"] for row in table(test, 0)][::2] == [50.0, 0.0], "the mean over its completions"
    assert "Tests: PASSED · 3 tests run" in notes(test)
    test = sound(app("samples", home.root, run=run, sample="demo/0", completionA="2"))
    assert "Tests: FAILED (1 of 3) · 3 tests run" in notes(test)
    assert "E  assert 1 == 2" in [code.value.strip("\n") for code in test.code]
    assert f"Invalid, broken: {HARMFUL}" in notes(sound(app("samples", home.root, sample="demo/1")))
    page = sound(app("samples", home.root, verdict="FAILED"))
    assert [row["sample"] for row in table(page, 0)] == ["demo/0"]


@pytest.mark.slow
def test_functions_are_compared_by_lines(tmp_path: Path) -> None:
    home = Home(tmp_path)
    sample = make_sample(id="demo/0", kind=Kind.FUNCTION, subkind="class_runnable")
    reference = Reference(id="demo/0", target="def f():\n    return 1", tests=("tests/test_f.py::test_f",))
    sample_set = sets.save(home, "demo", [sample], [reference], {"repositories": {}})
    with open_store(home.database) as store:
        run = store.add_run(make_spec(samples_digest=sample_set.digest), [sample])
        store.add_generations([make_generation()])
        wrong = completion("def f():\n    return 2", 0.9)
        store.add_finished(run, "c", make_finished("demo/0", completions=(wrong,)))
    test = sound(app("samples", home.root))
    codes = [code.value.strip("\n") for code in test.code]
    assert "@@ -1,2 +1,2 @@\n def f():\n-    return 1\n+    return 2" in codes and "tests/test_f.py::test_f" in codes


@pytest.mark.slow
def test_stored_texts_are_never_markup(home: Home) -> None:
    test = sound(app("samples", home.root, run=runs(home)[HARMFUL], sample=HARMFUL, callA=f"1 {HARMFUL}"))
    assert table(test, 0)[3]["sample"] == HARMFUL and test.query_params["run"] in (
        runs(home)[HARMFUL], [runs(home)[HARMFUL]],
    )  # fmt: skip
    assert table(test, 0)[3]["place"] == f"{HARMFUL}⟨U+202E⟩.py:4"
    for element in test.get("html"):
        assert "\u202e" not in element.proto.body
        assert element.proto.body in (PHONE_STYLE, STYLE) or _Tags(element.proto.body).tags <= {
            "p",
            "div",
            "span",
            "code",
            "del",
            "ins",
        }
    labels = [element.label for kind in ("expander", "button", "selectbox", "text_input") for element in test.get(kind)]
    read = [
        *labels,
        *(element.value for kind in ("markdown", "caption", "header", "info") for element in test.get(kind)),
    ]
    for text in read:
        assert "**b**" not in text and "<script>" not in text and "](http" not in text and "$x$" not in text, text
    assert any("script" in text for text in read), "it is there, as text"
    for code in test.code:
        assert len(code.value) <= 30_000 and not set(code.value) & set("\u202e\u200b\x1b\0\x07"), code.value[:80]
    assert "Only the first 20,000 characters are compared" in notes(test)
    saved = [button for button in test.get("download_button") if button.label == "Save all of it"]
    assert len(saved) >= 4, "the completion, the raw output, the block and the prompt"
