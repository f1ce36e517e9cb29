"""The import pipeline of every format: repositories, hygiene and counts."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import formats
from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.files import write_jsonl
from ctxbench.bench.formats import BenchmarkFormat, Options, ctxbench
from ctxbench.bench.formats.importing import HYGIENE_OFF, PACKAGES, import_set, read_tasks
from ctxbench.bench.home import Home
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Cursor, Kind, Reference, Sample
from tests.helpers.samples import make_sample
from tests.helpers.trees import write_tree

PAY = 'class Pay:\n    def total(self, x):\n        """Sum up."""\n        return x + 1\n'
COPY = 'def total(self, x):\n  """Sum up."""\n  return x+1\n'
TARGET = 'def total(self, x):\n    """Sum up."""\n    return x + 1'
JAVA = "public class Pay {\n    public int total(int x) {\n        return x + 1;\n    }\n}\n"


def function(**changes: Any) -> tuple[Sample, Reference]:
    fields: dict[str, Any] = {
        "id": "f",
        "kind": Kind.FUNCTION,
        "subkind": "class_runnable",
        "path": "shop/pay.py",
        "cursor": Cursor(line=3, column=0),
        "prefix": 'class Pay:\n    def total(self, x):\n        """Sum up."""\n',
        "name": "Pay.total",
        "signature": "def total(self, x):",
        "docstring": "Sum up.",
        "span": (1, 4),
    }
    sample = make_sample(**{**fields, **changes})
    return sample, Reference(id=sample.id, target=TARGET)


def line(**changes: Any) -> tuple[Sample, Reference]:
    none = {"name": None, "signature": None, "docstring": None, "span": None}
    sample, _ = function(**{"id": "l", "kind": Kind.LINE, "subkind": "next-line", **none, **changes})
    return sample, Reference(id=sample.id, target="        return x + 1")


def file(tmp_path: Path, *pairs: tuple[Sample, Reference]) -> str:
    path = tmp_path / "set.jsonl"
    write_jsonl(path, ctxbench.records([one for one, _ in pairs], {other.id: other for _, other in pairs}))
    return str(path)


def imported(tmp_path: Path, *pairs: tuple[Sample, Reference], **options: Any) -> SampleSet:
    return import_set("ctxbench", [file(tmp_path, *pairs)], Home(tmp_path / "home"), "made", **options)


def test_every_installed_format_has_samples_or_predictions() -> None:
    names = "codereval context_collection crosscodeeval ctxbench infercom projbench repobench repocoder repoeval"
    assert " ".join(formats.names()) == names
    assert {*formats.names()} == {*formats.sample_names(), *formats.prediction_names()}
    assert all(formats.samples(name).shape.endswith(".") for name in formats.sample_names())
    assert all(formats.predictions(name).shape for name in formats.prediction_names())


def test_a_format_without_samples_or_predictions_is_refused() -> None:
    with pytest.raises(UnknownName, match="no format of samples is called 'infercom'"):
        formats.samples("infercom")
    with pytest.raises(UnknownName, match="no format of predictions is called 'repobench'"):
        formats.predictions("repobench")
    with pytest.raises(InputFault, match="format empty: the format has neither samples nor predictions"):
        formats.register(BenchmarkFormat(name="empty"))


def test_files_with_a_copy_of_the_reference_are_hidden(tmp_path: Path, home: Home) -> None:
    files = {"shop/pay.py": PAY, "shop/copy.py": COPY, "shop/near.py": COPY.replace("+1", "+2")}
    write_tree(tmp_path / "repos/demo", files)
    made = imported(tmp_path, function(), repos=tmp_path / "repos")
    [sample] = made.samples
    assert sample.hidden == ("shop/copy.py",)
    entry = made.manifest["repositories"]["demo"]
    assert entry["copies_hidden"] == 1 and "copies_visible" not in entry
    assert made.manifest["remarks"] == []
    assert "shop/copy.py" in sets.snapshots(home, made)["demo"].files, "only this sample does not see it"


def test_hygiene_off_keeps_copies_and_adds_a_remark(tmp_path: Path, home: Home) -> None:
    files = {"shop/pay.py": PAY, "shop/copy.py": COPY, "shop/pay_total_passk_validte.py": PAY}
    write_tree(tmp_path / "repos/demo", files)
    said: list[str] = []
    made = imported(tmp_path, function(), repos=tmp_path / "repos", hygiene=False, report=said.append)
    assert made.samples[0].hidden == ()
    assert made.manifest["repositories"]["demo"]["copies_visible"] == 2
    assert made.manifest["remarks"] == [HYGIENE_OFF] and said == [f"note: {HYGIENE_OFF}"]
    assert "shop/pay_total_passk_validte.py" in sets.snapshots(home, made)["demo"].files
    with pytest.raises(InputFault, match="add --repos FOLDER"):
        imported(tmp_path, function(), hygiene=False)


def test_installed_packages_are_searched_only_on_request(tmp_path: Path, home: Home) -> None:
    files = {"shop/pay.py": PAY, ".venv/lib/site-packages/pytz.py": COPY.replace("+1", "+2")}
    write_tree(tmp_path / "repos/demo", files)
    plain = imported(tmp_path, function(), repos=tmp_path / "repos")
    assert set(sets.snapshots(home, plain)["demo"].files) == {"shop/pay.py"} and plain.manifest["remarks"] == []
    whole = imported(tmp_path, function(), repos=tmp_path / "repos", packages=True, force=True)
    assert set(sets.snapshots(home, whole)["demo"].files) == set(files) and whole.manifest["remarks"] == [PACKAGES]
    with pytest.raises(InputFault, match="add --repos FOLDER"):
        imported(tmp_path, function(), packages=True)


def test_harness_copies_are_dropped_and_counted(tmp_path: Path, home: Home) -> None:
    files = {"shop/pay.py": PAY, "shop/pay_total_passk_validte.py": PAY, "shop/pay_total_passk_validte3.py": PAY}
    write_tree(tmp_path / "repos/demo", files)
    made = imported(tmp_path, function(), repos=tmp_path / "repos")
    assert made.manifest["repositories"]["demo"]["left_out"] == {"hygiene": 2}
    assert made.samples[0].hidden == ()
    assert set(sets.snapshots(home, made)["demo"].files) == {"shop/pay.py"}


def test_java_harness_classes_are_dropped(tmp_path: Path, home: Home) -> None:
    main = "class Pay_total { public static void main(String[] args) { System.out.print(new Pay().total(1) == 2); } }\n"
    files = {"a/Pay.java": JAVA, "a/Pay_total.java": main, "a/Pay_Demo.java": main.replace("_total", "_Demo")}
    write_tree(tmp_path / "repos/demo", {**files, "b/Pay_total.java": main, "a/Pay_x.java": "class Pay_x {}\n"})
    sample = replace(line()[0], language=JAVA_LANGUAGE, path="a/Pay.java", cursor=Cursor(line=0, column=0), prefix="")
    reference = Reference(id="l", target="public class Pay {")
    made = imported(tmp_path, (sample, reference), repos=tmp_path / "repos")
    kept = set(sets.snapshots(home, made)["demo"].files)
    assert kept == {"a/Pay.java", "a/Pay_Demo.java", "b/Pay_total.java", "a/Pay_x.java"}
    assert made.manifest["repositories"]["demo"]["left_out"] == {"hygiene": 1}


def test_lines_that_occur_in_other_files_are_kept_and_counted(tmp_path: Path) -> None:
    write_tree(tmp_path / "repos/demo", {"shop/pay.py": PAY, "shop/other.py": "def f(x):\n    return x + 1\n"})
    made = imported(tmp_path, line(), repos=tmp_path / "repos")
    assert len(made.samples) == 1 and made.samples[0].hidden == ()
    assert made.manifest["repositories"]["demo"]["verbatim_elsewhere"] == 1


def test_a_reference_that_occurs_twice_in_its_file_is_counted(tmp_path: Path) -> None:
    write_tree(tmp_path / "repos/demo", {"shop/pay.py": (PAY + "\n\n" + COPY).encode()})
    made = imported(tmp_path, function(), repos=tmp_path / "repos")
    assert made.manifest["repositories"]["demo"]["copies_in_file"] == 1


def test_the_repos_folder_may_be_the_only_repository(tmp_path: Path) -> None:
    write_tree(tmp_path / "checkout", {"setup.cfg": "", "shop/pay.py": PAY})
    made = imported(tmp_path, function(), repos=tmp_path / "checkout")
    assert made.manifest["prompts"] == "rebuilt" and len(made.samples) == 1


def test_a_repository_folder_may_omit_the_owner(tmp_path: Path) -> None:
    write_tree(tmp_path / "repos/demo", {"shop/pay.py": PAY})
    made = imported(tmp_path, function(repo="owner---demo"), repos=tmp_path / "repos")
    assert made.manifest["repositories"]["owner---demo"]["kept"] == 1


def test_tasks_of_a_missing_repository_are_counted(tmp_path: Path) -> None:
    write_tree(tmp_path / "repos/demo", {"shop/pay.py": PAY})
    said: list[str] = []
    made = imported(tmp_path, function(), line(repo="gone"), repos=tmp_path / "repos", report=said.append)
    assert made.manifest["unusable"] == {"no_repository": 1}
    assert made.manifest["totals"] == {"kept": 1, "dropped": 1}
    assert said == ["gone: 1 of 1 tasks left out (no_repository 1)"]


def test_a_set_without_any_matching_repository_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match="no-such-folder: the path is not a folder"):
        imported(tmp_path, function(), repos=tmp_path / "no-such-folder")
    write_tree(tmp_path / "repos/demo", {"shop/pay.py": "x = 1\n"})
    with pytest.raises(InputFault, match=r"no task matches the repositories \(source_mismatch 1\)"):
        imported(tmp_path, function(), repos=tmp_path / "repos")


def test_the_manifest_names_every_source_file(tmp_path: Path) -> None:
    path = file(tmp_path, function(), line())
    made = import_set("ctxbench", [path], Home(tmp_path / "home"), "made")
    [source] = made.manifest["sources"]
    assert (source["source"], source["rows"], len(source["digest"])) == (path, 2, 64)
    assert made.manifest["kind"] == "function+line"
    assert made.manifest["unusable"] == {}


def test_only_the_first_unusable_records_are_listed(tmp_path: Path) -> None:
    rows = [_repoeval(number, "") for number in range(14)] + [_repoeval(14, "x = 1")]
    path = tmp_path / "r.jsonl"
    write_jsonl(path, rows)
    said: list[str] = []
    read = read_tasks("repoeval", [str(path)], report=said.append)
    assert read.unusable == {"empty_target": 14} and len(read.tasks) == 1
    assert said[0] == f"{path}:1: demo/0 left out: empty_target"
    assert len(said) == 11 and said[-1] == "… and 4 more left out: empty_target"


def test_files_with_only_unusable_records_are_refused(tmp_path: Path, home: Home) -> None:
    path = tmp_path / "r.jsonl"
    write_jsonl(path, [_repoeval(0, " ")])
    with pytest.raises(InputFault, match=r"no task in the files \(empty_target 1\); give files of the format repoeval"):
        import_set("repoeval", [str(path)], home, "x")


def test_duplicate_ids_across_files_and_wrong_languages_are_refused(tmp_path: Path, home: Home) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "b.json"
    write_jsonl(path, [_repoeval(0, "x")])
    other.write_text(json.dumps([_repoeval(1, "x"), _repoeval(0, "y")]))
    with pytest.raises(InputFault) as caught:
        read_tasks("repoeval", [str(path), str(other)])
    assert str(caught.value).startswith(f"{other}: [1]: the id 'demo/0' is also at {path}:1")
    with pytest.raises(InputFault, match=r"a\.jsonl:1: 'demo/0' is a python sample, not java"):
        import_set("repoeval", [str(path)], home, "x", options=Options(language=JAVA_LANGUAGE))


def test_an_invalid_set_name_is_refused_before_files_are_read(home: Home) -> None:
    with pytest.raises(InputFault, match="not a valid name for a sample set"):
        import_set("ctxbench", ["gone.jsonl"], home, "../x")


def _repoeval(number: int, target: str) -> dict[str, Any]:
    metadata = {"task_id": f"demo/{number}", "ground_truth": target, "fpath_tuple": ["demo", "a.py"], "line_no": 0}
    return {"prompt": "", "metadata": metadata}
