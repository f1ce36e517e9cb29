"""The recorded tables of the papers are complete and equal their transcription."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from ctxbench.harness import paper_tables
from ctxbench.harness.papers.presets import differences, methods, names_in, presets
from ctxbench.strategies import registry
from scripts import fidelity_page
from scripts.fidelity_page import PAGE, written
from scripts.paper_tables import OUT, converted


def test_every_row_of_every_table_is_recorded() -> None:
    assert Counter(row.table for row in paper_tables.rows()) == {
        "icl-table1": 17,
        "icl-table2": 20,
        "icl-table3": 22,
        "icl-table4": 7,
        "infercom-table3": 48,
        "infercom-table4": 12,
        "infercom-table5": 24,
        "infercom-table6": 3,
        "infercom-section6.4": 3,
    }
    assert len({row.preset for row in paper_tables.rows()}) == 156


@pytest.mark.parametrize("name", paper_tables.NAMES)
def test_every_column_of_a_row_has_either_a_number_or_a_reason(name: str) -> None:
    table = paper_tables.table(name)
    assert [row.row for row in table.rows] == list(range(1, len(table.rows) + 1))
    for row in table.rows:
        languages = {*row.printed, *row.missing}
        assert languages in ({"python", "java", "both"}, {"python"}, {"java"}), row.preset
        for language in languages:
            shown, missing = row.printed.get(language, {}), row.missing.get(language, {})
            wanted = {"overall"} if language == "both" else set(table.columns)
            assert {*shown, *missing} == wanted, row.preset
            assert not {*shown} & {*missing}
        assert {why for of in row.missing.values() for why in of.values()} <= {*paper_tables.STATUSES}
        assert row.origin in paper_tables.ORIGINS
        assert {*row.flags} <= {f"{language}.{column}" for language in row.printed for column in row.printed[language]}


def test_recorded_numbers_equal_the_printed_ones() -> None:
    found = {row.preset: row for row in paper_tables.rows()}
    filerag = found["icl-t1-filerag"]
    assert filerag.printed["java"] == {"tokens": 1020, "class": 46.0, "file": 0.0, "project": 31.82, "avg": 25.94}
    assert {*filerag.flags} == {"java.tokens"}
    ours = found["ic-t3-projbench-py-dscoder-6.7b-infile"]
    assert ours.printed == {"python": {"em": 18.45, "es": 45.39, "id_em": 23.9, "id_f1": 41.58}}
    assert set(found["ic-t5-cceval-py-infile-aim"].missing["python"].values()) == {"missing_in_available_copy"}
    assert found["ic-t6-repofuse"].printed["python"] == {"construction": 624.35, "inference": 3.46}


def test_doubtful_numbers_are_explained_in_words() -> None:
    found = {row.preset: row for row in paper_tables.rows()}
    pangu = found["icl-t3-pangu-coder-300m"]
    assert (pangu.origin, pangu.printed["python"]["file"]) == ("quoted_from_CoderEval", 9.41)
    assert pangu.flags == {"python.file": "released CoderEval predictions give 9.56 for this cell; printed 9.41"}
    assert pangu.remarks == ("its numbers fit means over 10 completions a task",)
    assert found["icl-t2-codet5p-infile-rag-s"].flags["java.tokens"].endswith("see icl-t1-infile-rag-s")
    said = [text for row in paper_tables.rows() for text in (*row.flags.values(), *row.remarks)]
    assert len(said) == 23 + 52 and all(" " in text and "_" not in text and "checks" not in text for text in said)


def test_counts_that_the_paper_does_not_print_are_inferred() -> None:
    found = {row.inferred_n for row in paper_tables.rows() if row.benchmark == "ProjBench"}
    assert found == {None, 1997, 2000}


def test_the_record_equals_the_transcription(shared: Path) -> None:
    transcription = json.loads((shared / "specs" / "paper_results.json").read_text(encoding="utf-8"))
    assert converted(transcription) == OUT.read_text(encoding="utf-8")


def test_every_preset_strategy_has_a_row_and_every_row_a_strategy() -> None:
    of_presets = {name for row in presets().values() for name in names_in(row.strategy)}
    covered = {name for name in of_presets if any(method.covers(name) for method in methods())}
    assert covered == of_presets and "lc.repofuse" in of_presets
    for method in methods():
        named = {name for name in (method.name, *method.also) if not name.endswith(".")}
        assert all(registry.get(name) for name in named)
        assert any(map(method.covers, of_presets)), f"{method.name} is in no preset"
        assert method.paper and method.equal and method.differs, method.name


def test_differences_include_those_of_a_wrapped_strategy() -> None:
    assert [method.name for method in differences(["aim(encoder=unixcoder, inner=lc.repocoder)"])] == [
        "lc.", "lc.repocoder", "aim",
    ]  # fmt: skip
    assert [method.name for method in differences(["icl.selfdoc_ragot_s"])] == ["icl.", "icl.ragot", "icl.selfdoc"]


def test_a_switch_is_a_parameter_of_the_strategy_or_an_option() -> None:
    for method in methods():
        names = [name for name in registry.names() if method.covers(name)]
        parameters = {parameter.name for name in names for parameter in registry.get(name).parameters}
        for difference in method.differs:
            is_option = "--" in difference.switch
            assert is_option or difference.switch.partition("=")[0] in {"", *parameters}, difference
            assert difference.switch not in difference.what or not difference.switch


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == written(text), "run `python -m scripts.fidelity_page`"


def test_stored_counts_are_kept_without_checkouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = json.loads(fidelity_page.COUNTS.read_text(encoding="utf-8"))
    assert len(re.findall(r"\b[0-9a-f]{40}\b", stored["notes"][0])) == 2, "the commits of both checkouts"
    for row in stored["rows"]:
        for share in row["counts"].values():
            assert share["of"] - share["equal"] == sum(share["differ"].values()) or "summary" in row["ours"]
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text(encoding="utf-8").replace("### What differs", ""), encoding="utf-8")
    monkeypatch.setattr(fidelity_page, "PAGE", page)
    monkeypatch.setattr("sys.argv", ["fidelity_page"])
    fidelity_page.main()
    assert capsys.readouterr().out.count("\n") == 1
    assert page.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")
