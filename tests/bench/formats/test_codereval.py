"""CoderEval's files: the benchmark's own file, and its prompts with lists of results."""

import gzip
import json
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats import Options, Table, Task, codereval
from ctxbench.bench.formats.importing import NO_REPOSITORIES, import_set, read_tasks
from ctxbench.bench.home import Home
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Cursor
from tests.helpers.trees import write_tree

PYTHON = textwrap.dedent('''\
    import math


    class Circle:
        """A circle."""

        def area(self, scale=1):
            """Return the area.

            Args:
                scale: times what.
            """
            return math.pi * self.radius ** 2 * scale

        def grown(self):
            return self.area(2)


    class Disc:
        def area(self, scale=1):
            return 0
''')
CODE = textwrap.dedent('''\
    def area(self, scale=1):
        """Return the area.

        Args:
            scale: times what.
        """
        return math.pi * self.radius ** 2 * scale
''')
DOCSTRING = "Return the area.\n\nArgs:\n    scale: times what."
JAVA = textwrap.dedent("""\
    package ours.shapes;

    public class Circle {
        /**
         * Returns the area.
         * @param scale times what
         */
        @Deprecated
        private double area(final int scale) {
            return Math.PI * radius * radius * scale;
        }
    }
""")


def python(**changes: Any) -> dict[str, Any]:
    """Return a record of the benchmark's own file for Python. None removes a key."""
    record = {
        "_id": "62e60f43d76274f8a4026e28",
        "name": "area",
        "code": CODE,
        "docstring": DOCSTRING,
        "human_label": "Compute how large the circle is.",
        "file_content": PYTHON,
        "file_path": "shapes/round.py",
        "package": "",
        "project": "ours/shapes",
        "lineno": "7",
        "end_lineno": "13",
        "level": "class_runnable",
        "all_context": '{"import": "math", "file": "", "class": "self.radius"}',
        "oracle_context": "{ 'apis' : \"['pi']\", 'classes' : '[]', 'vars' : \"['radius']\" }",
        "dependency": "",
        "test_name": "",
        "test_lineno": "",
        **changes,
    }
    return {key: value for key, value in record.items() if value is not None}


def java(**changes: Any) -> dict[str, Any]:
    record = {
        "_id": "6367672d1a6d9265ec017c73",
        "name": "area",
        "code": "private double area(final int scale) {\n    return Math.PI * radius * radius * scale;\n}",
        "docstring": "/** \n * Returns the area.\n * @param scale times what\n */\n",
        "human_label": "Compute how large the circle is.",
        "file_content": JAVA,
        "file_name": "Circle.java",
        "class_name": "Circle",
        "package": "ours.shapes",
        "project": "shapes-master",
        "lineno": "9",
        "end_lineno": "11",
        "level": "class_runnable",
        "all_context": "",
        "oracle_context": "",
        **changes,
    }
    return {key: value for key, value in record.items() if value is not None}


def document(folder: Path, *records: Mapping[str, Any], name: str = "CoderEval4Python.json") -> str:
    path = folder / name
    path.write_text(json.dumps({"RECORDS": list(records)}))
    return str(path)


def lines(folder: Path, name: str, *records: Mapping[str, Any]) -> str:
    text = "".join(json.dumps(record) + "\n" for record in records)
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(path)


def result(**changes: Any) -> dict[str, Any]:
    """Return a line of recorded results for Python. The model's code contains GENERATED."""
    return {
        "_id": "62e60f43d76274f8a4026e28",
        "file_path": "shapes/round.py",
        "project": "ours/shapes",
        "name": "area",
        "docstring": DOCSTRING,
        "level": "class_runnable",
        "code": ["def area(self):\n    return 'GENERATED'\n"],
        "generate_results": [{"generate_code": "GENERATED", "is_pass": False, "return_code": 1}],
        **changes,
    }


def java_result() -> dict[str, Any]:
    return {
        "_id": "6367672d1a6d9265ec017c73",
        "project_name": "shapes-master",
        "method_name": "area",
        "docstring": "/** \n * Returns the area.\n * @param scale times what\n */\n",
        "code_level": "class_runnable",
        "codes": ["GENERATED"],
        "generate_results": [{"generate_code": "GENERATED", "is_pass": True, "errormessage": ""}],
    }


def prompts(folder: Path, *more: Mapping[str, Any]) -> list[str]:
    """Write both prompt files for `result`. Return their paths."""
    signature = "def area(self, scale=1):"

    def prompt(doc: str) -> dict[str, Any]:
        shown = f'{signature}\n\t"""\n\t{doc}\n\t"""\n\t'
        return {"question_id": "62e60f43d76274f8a4026e28", "input": shown, "signature": signature, "docstring": doc}

    return [
        lines(folder, "CEPythonRaw.jsonl", prompt(DOCSTRING), *more),
        lines(folder, "CEPythonHumanLabel.jsonl", prompt("Compute how large it is."), *more),
    ]


def java_prompt(doc: str) -> dict[str, Any]:
    signature = "private double area(final int scale){"
    shown = f"{doc}\n{signature}"
    return {"question_id": java_result()["_id"], "input": shown, "signature": signature, "docstring": doc}


def imported(home: Home, *files: str, docstring: str = "raw", name: str = "set", **more: Any) -> SampleSet:
    return import_set("codereval", files, home, name, options=Options(docstring=docstring), **more)


def refused(folder: Path, record: Mapping[str, Any]) -> str:
    with pytest.raises(InputFault) as caught:
        read_tasks("codereval", [document(folder, record)])
    return str(caught.value)


def left_out(folder: Path, record: Mapping[str, Any], options: Options | None = None) -> tuple[str, str]:
    """Read a record that cannot become a sample beside a usable one. Return its reason and message."""
    told: list[str] = []
    whole = document(folder, python(_id="another", human_label="Say."), record)
    read = read_tasks("codereval", [whole], options=options, report=told.append)
    (reason,) = read.unusable
    return reason, told[0]


def test_a_task_with_its_file_becomes_a_sample(home: Home, tmp_path: Path) -> None:
    made = imported(home, document(tmp_path, python()))
    (sample,) = made.samples
    assert (sample.id, sample.benchmark, sample.subkind) == (
        "62e60f43d76274f8a4026e28",
        "codereval",
        "class_runnable",
    )
    assert (sample.repo, sample.path, sample.name) == ("ours---shapes", "shapes/round.py", "Circle.area")
    assert (sample.signature, sample.docstring) == ("def area(self, scale=1):", DOCSTRING)
    assert (sample.span, sample.cursor) == ((6, 13), Cursor(line=12, column=0))
    assert sample.prefix + "        return math.pi * self.radius ** 2 * scale\n" + (sample.suffix or "") == PYTHON
    assert made.references[sample.id].target == CODE.strip()
    assert made.manifest["remarks"] == [NO_REPOSITORIES]


def test_answers_and_labels_of_the_benchmark_are_never_shown(home: Home, tmp_path: Path) -> None:
    made = imported(home, document(tmp_path, python()))
    query = repr(made.samples[0].query())
    for hidden in ("math.pi *", "how large", "vars", "oracle", "return self.radius"):
        assert hidden not in query
    assert made.references[made.samples[0].id].fields["record"] == python()


def test_a_java_task_with_its_file_becomes_a_sample(home: Home, tmp_path: Path) -> None:
    made = imported(home, document(tmp_path, java(), name="CoderEval4Java.json"))
    (sample,) = made.samples
    assert (sample.language, sample.repo, sample.path) == (JAVA_LANGUAGE, "shapes-master", "ours/shapes/Circle.java")
    assert (sample.name, sample.signature) == ("Circle.area", "private double area(final int scale)")
    assert (sample.docstring or "").startswith("/** \n * Returns the area.")
    assert sample.prefix.endswith("private double area(final int scale) {\n")
    assert (sample.suffix or "").startswith("    }\n}")
    assert made.references[sample.id].target.startswith("private double area(")


def test_line_endings_do_not_change_the_samples(home: Home, tmp_path: Path) -> None:
    plain = imported(home, document(tmp_path, python()), name="a")
    other = imported(home, document(tmp_path, python(file_content=PYTHON.replace("\n", "\r\n"))), name="b")
    assert plain.samples == other.samples


def test_the_human_docstring_replaces_the_raw_one(home: Home, tmp_path: Path) -> None:
    made = imported(home, document(tmp_path, python(), java()), docstring="human")
    for sample in made.samples:
        assert sample.docstring == "Compute how large the circle is."
        assert sample.docstring in sample.prefix
        assert sample.prefix.count("\n") == sample.cursor.line
        assert "times what" not in repr(sample.query())
        assert "the area" not in repr(sample.query())
        assert sample.span is not None
        assert "area(" in sample.prefix.split("\n")[sample.span[0]]
    assert any("docstring human" in remark for remark in made.manifest["remarks"])


@pytest.mark.parametrize(
    "label", ['Say "so".', 'A "quote"', 'It has """ in it.', "A \\d back slash.", "One.\nTwo.\n\nThree.\n" * 5]
)
def test_a_file_with_any_human_docstring_can_be_parsed(label: str, home: Home, tmp_path: Path) -> None:
    (sample,) = imported(home, document(tmp_path, python(human_label=label)), docstring="human").samples
    compile(f"{sample.prefix}        pass\n{sample.suffix}", "made", "exec")
    assert sample.prefix.count("\n") == sample.cursor.line


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60)


@settings(max_examples=50, deadline=None)
@given(label=_TEXT.filter(str.strip), docstring=_TEXT)
def test_any_docstring_is_read_back_unchanged(label: str, docstring: str) -> None:
    record = python(human_label=label, docstring=docstring)
    for chosen in ("raw", "human"):
        table = Table(name="CoderEval4Python", source="f", digest="", rows=[("f: RECORDS[0]", record)])
        (task,) = codereval.read([table], Options(docstring=chosen))
        assert isinstance(task, Task)
        assert task.sample.docstring == (label if chosen == "human" else docstring)
        assert task.sample.prefix.count("\n") == task.sample.cursor.line
        compile(f"{task.sample.prefix}        pass\n{task.sample.suffix}", "made", "exec")


@pytest.mark.parametrize("label", ["", " \n "])
def test_docstring_human_leaves_out_tasks_without_a_human_docstring(label: str, tmp_path: Path) -> None:
    reason, told = left_out(tmp_path, python(human_label=label), Options(docstring="human"))
    assert (reason, "--docstring raw" in told) == ("no_human_label", True)


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"lineno": "9"}, "the function begins on line 7, not 9"),
        ({"lineno": "100000"}, "the function begins on line 7, not 100000"),
        ({"code": CODE.replace("pi", "tau")}, "the code differs from the record"),
    ],
)
def test_wrong_lines_and_code_add_remarks(changes: dict[str, str], remark: str, home: Home, tmp_path: Path) -> None:
    made = imported(home, document(tmp_path, python(**changes)))
    assert made.samples[0].span == (6, 13)
    assert made.references[made.samples[0].id].fields["told"] == remark
    said, _ = made.manifest["remarks"]
    assert said.startswith(("wrong_lines: 1 ", "other_code: in 1 "))


def test_a_function_off_its_line_is_found_by_code_docstring_or_distance(home: Home, tmp_path: Path) -> None:
    disc = "def area(self, scale=1):\n    return 0"
    cases = [
        python(_id="code", lineno="1", code=disc, docstring="Something."),
        python(_id="docstring", lineno="19", code="def area(self):\n    pass"),
        python(_id="near", lineno="18", code="def area(self):\n    pass", docstring="Something."),
    ]
    made = imported(home, document(tmp_path, *cases))
    assert [sample.name for sample in made.samples] == ["Disc.area", "Circle.area", "Disc.area"]
    reason, told = left_out(tmp_path, python(lineno="", code="def area(self):\n    pass", docstring="Something."))
    assert (reason, "lines 7, 20" in told) == ("ambiguous", True)


def test_a_file_without_the_function_is_left_out_with_a_reason(tmp_path: Path) -> None:
    assert left_out(tmp_path, python(name="perimeter"))[0] == "no_function"
    reason, told = left_out(tmp_path, python(file_content=PYTHON + "print 1\n"))
    assert (reason, "cannot be parsed" in told) == ("no_function", True)
    one_line = "def area(self): return 1\n"
    assert left_out(tmp_path, python(file_content=one_line, lineno="1"))[0] == "shares_line"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"level": "easy"}, ("field level", "self_contained")),
        ({"lineno": "seven"}, ("field lineno", "'seven' is not a line number")),
        ({"lineno": "0"}, ("field lineno", "counted from 1")),
        ({"end_lineno": "-3"}, ("field end_lineno",)),
        ({"project": "../../etc"}, ("field project", "inside")),
        ({"file_path": None}, ("field file_path", "file_name")),
        ({"file_name": "A.java"}, ("field file_path", "either")),
        ({"file_content": " "}, ("field file_content", "empty")),
        ({"human_label": 3}, ("field human_label",)),
        ({"_id": None, "file_content": None}, ("neither a task",)),
    ],
)
def test_an_invalid_field_is_named(changes: dict[str, Any], words: tuple[str, ...], tmp_path: Path) -> None:
    said = refused(tmp_path, python(**changes))
    assert "RECORDS[0]" in said
    assert "\n" not in said
    for word in words:
        assert word in said


def test_a_java_file_name_outside_the_repository_is_refused(tmp_path: Path) -> None:
    assert "field file_name" in refused(tmp_path, java(file_name="../A.java"))


def test_a_list_of_results_is_read_as_tasks_without_generated_code(home: Home, tmp_path: Path) -> None:
    files = [lines(tmp_path, "Model.Python_out.jsonl.gz", result()), *prompts(tmp_path)]
    made = imported(home, *files)
    (sample,) = made.samples
    assert sample.prefix == f'def area(self, scale=1):\n\t"""\n\t{DOCSTRING}\n\t"""\n\t'
    assert (sample.cursor, sample.span, sample.suffix) == (Cursor(line=7, column=1), (0, 8), None)
    assert (sample.repo, sample.path, sample.name) == ("ours---shapes", "shapes/round.py", "area")
    reference = made.references[sample.id]
    assert (reference.target, reference.fields["no_reference"]) == ("", True)
    assert "GENERATED" not in repr((sample, reference))
    remark, _ = made.manifest["remarks"]
    assert remark.startswith("no_reference: 1 ")


def test_a_list_of_java_results_is_read_as_tasks(home: Home, tmp_path: Path) -> None:
    doc = java_result()["docstring"]
    files = [lines(tmp_path, "out.jsonl", java_result()), lines(tmp_path, "CEJavaRaw.jsonl", java_prompt(doc))]
    made = imported(home, *files)
    (sample,) = made.samples
    assert sample.prefix == java_prompt(doc)["input"]
    assert sample.span == (5, 6)
    assert "GENERATED" not in repr((sample, made.references[sample.id]))
    write_tree(tmp_path / "repos" / "shapes-master", {"src/ours/shapes/Circle.java": JAVA, "Other.java": "class O {}"})
    again = imported(home, *files, name="attached", repos=tmp_path / "repos")
    assert (again.samples[0].path, again.samples[0].name) == ("src/ours/shapes/Circle.java", "Circle.area")
    assert again.references[sample.id].target.startswith("private double area(")


def test_prompts_without_a_task_are_counted_once(home: Home, tmp_path: Path) -> None:
    extra = {"question_id": "extra", "input": "def f():\n", "signature": "def f():", "docstring": "F."}
    made = imported(home, lines(tmp_path, "out.jsonl", result()), *prompts(tmp_path, extra))
    assert made.manifest["unusable"] == {"no_task": 1}


def test_tasks_without_a_prompt_are_counted(tmp_path: Path) -> None:
    told: list[str] = []
    out = lines(tmp_path, "out.jsonl", result(), result(_id="alone"))
    read = read_tasks("codereval", [out, prompts(tmp_path)[0]], report=told.append)
    assert (dict(read.unusable), "CEPythonRaw.jsonl" in told[0]) == ({"no_prompt": 1}, True)


@pytest.mark.parametrize("language", ["Python", "Java"])
def test_following_the_first_cure_loads_human_docstrings(language: str, home: Home, tmp_path: Path) -> None:
    label, results = "Compute how large it is.", f"CodeGen.{language}.Raw_Input.jsonl_out.jsonl"
    if language == "Python":
        human, listed = prompts(tmp_path)[1], lines(tmp_path, f"{results}.gz", result())
    else:
        human = lines(tmp_path, "CEJavaHumanLabel.jsonl", java_prompt(label))
        listed = lines(tmp_path, f"{results}.gz", java_result())
    cures = {
        (human,): f"any model, which list the tasks (such as {results}), and --docstring human",
        (human, listed): f"(no_prompt 1); give --docstring human, or CE{language}Raw.jsonl too",
    }
    for files, cure in cures.items():
        with pytest.raises(InputFault, match=re.escape(cure)):
            imported(home, *files)
    (sample,) = imported(home, human, listed, docstring="human").samples
    assert sample.docstring == label and label in sample.prefix


def test_a_renamed_file_of_human_docstrings_is_refused(tmp_path: Path) -> None:
    raw, human = prompts(tmp_path)
    Path(human).rename(raw)
    with pytest.raises(InputFault, match="HumanLabel in its name"):
        read_tasks("codereval", [lines(tmp_path, "out.jsonl", result()), raw])


def test_the_same_prompts_twice_are_refused(tmp_path: Path) -> None:
    raw, _ = prompts(tmp_path)
    again = tmp_path / "again.jsonl"
    again.write_bytes(Path(raw).read_bytes())
    with pytest.raises(InputFault, match="field question_id.*is also at"):
        read_tasks("codereval", [lines(tmp_path, "out.jsonl", result()), raw, str(again)])


def test_a_prompt_without_its_signature_is_refused(tmp_path: Path) -> None:
    odd = {"question_id": "odd", "input": "def g():\n", "signature": "def f():", "docstring": "F."}
    with pytest.raises(InputFault, match="field input: does not contain the signature"):
        read_tasks("codereval", prompts(tmp_path, odd))


@pytest.mark.parametrize(
    ("row", "field"),
    [
        (result(level="easy"), "level"),
        (result(generate_results="none"), "generate_results"),
        (result(file_path="../round.py"), "file_path"),
        (result(file_path="shapes/round.pyx"), "file_path"),
        (result(docstring=None), "docstring"),
        (result(_id=""), "_id"),
        ({**java_result(), "code_level": "hard"}, "level"),
        ({**java_result(), "project_name": "/etc"}, "project"),
        ({**java_result(), "method_name": 1}, "method_name"),
        ({"question_id": "q", "signature": "def f():", "docstring": "F."}, "input"),
        ({"question_id": "q", "input": "def f():", "signature": "", "docstring": "F."}, "signature"),
        ({"question_id": 5, "input": "def f():", "signature": "def f():", "docstring": "F."}, "question_id"),
    ],
)
def test_an_invalid_field_of_a_result_or_prompt_is_named(row: Mapping[str, Any], field: str, tmp_path: Path) -> None:
    with pytest.raises(InputFault) as caught:
        read_tasks("codereval", [lines(tmp_path, "out.jsonl", row)])
    said = str(caught.value)
    assert "out.jsonl:1" in said
    assert f"field {field}" in said
    assert caught.value.cure


@pytest.mark.parametrize("docstring", ["raw", "human"])
def test_a_listed_task_takes_its_reference_from_the_repository(docstring: str, home: Home, tmp_path: Path) -> None:
    write_tree(tmp_path / "repos" / "shapes", {"src/shapes/round.py": PYTHON, "src/shapes/__init__.py": ""})
    files = [lines(tmp_path, "out.jsonl", result(), result(_id="b", file_path="shapes/no.py", name="no"))]
    both = prompts(
        tmp_path, {"question_id": "b", "input": "def no():", "signature": "def no():", "docstring": DOCSTRING}
    )
    made = imported(home, *files, *both, docstring=docstring, repos=tmp_path / "repos")
    (sample,) = made.samples
    assert (sample.path, sample.name, sample.span) == ("src/shapes/round.py", "Circle.area", (6, 13))
    assert ("Compute how large" in sample.prefix, "times what" in sample.prefix) == (
        docstring == "human",
        docstring == "raw",
    )
    reference = made.references[sample.id]
    assert reference.target == CODE.strip()
    assert "no_reference" not in reference.fields
    assert made.manifest["unusable"] == {"no_file": 1}


@pytest.mark.slow
def test_the_released_files_are_imported(home: Home, shared: Path) -> None:
    data = shared / "codereval"
    for language, extra in (("Python", {}), ("Java", {"no_task": 9})):
        files = [data / f"PanGu-Coder.{language}.Raw_Input.jsonl_out.jsonl.gz"]
        files += [data / f"CE{language}{kind}.jsonl" for kind in ("Raw", "HumanLabel")]
        for docstring in ("raw", "human"):
            made = imported(home, *map(str, files), docstring=docstring, name=f"{language}-{docstring}")
            assert (len(made.samples), made.manifest["unusable"]) == (230, extra)
            levels = [
                sum(each.subkind == level for each in made.samples) for level in ("class_runnable", "file_runnable")
            ]
            assert levels == ([55, 68] if language == "Python" else [100, 1])
