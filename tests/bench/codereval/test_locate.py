"""Finding the functions of CoderEval's tasks."""

import dataclasses
import textwrap

import pytest

from ctxbench.bench.codereval.locate import EXACT, INHERITED, OTHER_FILE, Located, Missed, TaskRecord, locate
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Cursor

SHAPES = textwrap.dedent('''\
    """Shapes."""


    def area(width, height=1):
        """Return the area.

        Args:
            width: one side.
        """
        # The plainest of shapes.
        return width * height
        # No more than that.


    class Circle(dict):
        @property
        def name(self):
            """Return what it is called."""
            return "circle"

        def setdefault(self, key, default=None):
            return default

        async def scaled(
            self,
            by: int,
        ) -> "Circle":
            """Return a "larger" one."""
            return self

    def one(): return 1
''')
RECORD = TaskRecord(
    id="62e60f43d76274f8a4026e28",
    project="ours/shapes",
    path="shapes/plain.py",
    name="area",
    level="self_contained",
    signature="def area(width, height=2):",
    docstring="Return the area.\n\nArgs:\n    width: one side.",
)


def found(record: TaskRecord, texts: dict[str, str] | None = None) -> Located:
    result = locate(record, texts or {"shapes/plain.py": SHAPES}, PYTHON)
    assert isinstance(result, Located), result
    return result


def missed(record: TaskRecord, texts: dict[str, str] | None = None) -> str:
    result = locate(record, texts or {"shapes/plain.py": SHAPES}, PYTHON)
    assert isinstance(result, Missed), result
    assert result.detail
    return result.reason


def changed(**values: object) -> TaskRecord:
    return dataclasses.replace(RECORD, **values)  # type: ignore[arg-type]


def test_a_function_is_found_with_its_spans() -> None:
    result = found(RECORD)
    lines = SHAPES.split("\n")
    assert (result.how, result.path, result.declaration.name, result.remark) == (EXACT, "shapes/plain.py", "area", "")
    assert result.declaration.signature == "def area(width, height=1):"
    assert lines[result.declaration.start].startswith("def area")
    assert lines[result.declaration.cursor.line].strip() == "# The plainest of shapes."
    assert lines[result.declaration.end - 1].strip() == "# No more than that."
    assert result.declaration.tail is None


def test_a_method_has_its_class_in_its_name_and_a_dedented_signature() -> None:
    result = found(changed(name="scaled", signature="async def scaled(self, by):", docstring="Return a larger one."))
    assert result.declaration.name == "Circle.scaled"
    assert result.declaration.signature == 'async def scaled(\n    self,\n    by: int,\n) -> "Circle":'
    assert result.declaration.docstring == 'Return a "larger" one.'


def test_a_recorded_path_may_differ_in_its_leading_folders() -> None:
    for record, held in (
        ("shapes/plain.py", "src/shapes/plain.py"),
        ("src/shapes/plain.py", "shapes/plain.py"),
        ("shapes/plain.py", "python/lib/shapes/plain.py"),
        ("project/shapes/plain.py", "shapes/plain.py"),
    ):
        result = found(changed(path=record), {held: SHAPES, "other.py": "x = 1\n"})
        assert (result.path, result.how) == (held, EXACT)


def test_the_same_function_in_exactly_one_other_file_is_used() -> None:
    texts = {"shapes/plain.py": "def area(width):\n    return 0\n", "shapes/more.py": SHAPES}
    result = found(RECORD, texts)
    assert (result.path, result.how) == ("shapes/more.py", OTHER_FILE)
    assert missed(RECORD, {**texts, "shapes/again.py": SHAPES}) == "ambiguous"


def test_a_docstring_may_be_inherited_from_a_built_in_class() -> None:
    record = changed(
        name="setdefault", signature="def setdefault(self, key, default=None):", docstring=str(dict.setdefault.__doc__)
    )
    result = found(record)
    assert (result.how, result.declaration.name, result.declaration.docstring) == (INHERITED, "Circle.setdefault", "")
    assert SHAPES.split("\n")[result.declaration.cursor.line].strip() == "return default"
    assert missed(dataclasses.replace(record, docstring="Something else.")) == "other_docstring"


def test_a_docstring_may_be_inherited_from_a_class_in_another_file() -> None:
    texts = {
        "shapes/plain.py": "class Square(Shape):\n    def area(self):\n        return 4\n",
        "shapes/base.py": 'class Shape:\n    def area(self):\n        """How large it is."""\n        return 0\n',
    }
    result = found(changed(signature="def area(self):", docstring="How large it is."), texts)
    assert (result.how, result.path, result.declaration.name) == (INHERITED, "shapes/plain.py", "Square.area")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"path": "shapes/round.py", "name": "perimeter"}, "no_file"),
        ({"name": "perimeter"}, "no_function"),
        ({"signature": "def area(width):"}, "other_signature"),
        ({"docstring": "Return the perimeter."}, "other_docstring"),
        ({"name": "one", "signature": "def one():", "docstring": ""}, "shares_line"),
    ],
)
def test_a_record_that_does_not_match_is_missed_with_its_reason(changes: dict[str, str], reason: str) -> None:
    assert missed(changed(**changes)) == reason


def test_equal_functions_are_ambiguous_without_a_line_or_code() -> None:
    one = 'class {0}:\n    def area(self):\n        """Say."""\n        return {1}\n\n'
    texts = {"shapes/plain.py": one.format("A", 1) + one.format("B", 2)}
    record = changed(signature="def area(self):", docstring="Say.")
    assert missed(record, texts) == "ambiguous"
    assert found(dataclasses.replace(record, lineno=7), texts).declaration.name == "B.area"
    code = 'def area(self):\n    """Say."""\n    return 2'
    assert found(dataclasses.replace(record, code=code), texts).declaration.name == "B.area"


def test_a_wrong_line_or_code_in_the_record_adds_a_remark() -> None:
    # Spaces, quotes and indentation are ignored.
    assert found(changed(docstring="Return the\n'area'.\nArgs:\nwidth:  one side.")).how == EXACT
    assert found(changed(lineno=4)).remark == ""
    assert found(changed(lineno=9)).remark == "the function begins on line 4, not 9"
    assert found(changed(code="def area(width):\n    return 0")).remark == "the code differs from the record"


def test_a_file_that_this_python_cannot_parse_is_reported() -> None:
    result = locate(RECORD, {"shapes/plain.py": "def area(width, height=1):\n    print width\n"}, PYTHON)
    assert isinstance(result, Missed)
    assert (result.reason, "cannot be parsed" in result.detail) == ("no_function", True)


JAVA = textwrap.dedent("""\
    package ours.shapes;

    public class Shapes {
        /**
         * Returns the area of a <b>box</b>.
         *
         * @param width one side
         */
        @Deprecated
        public static int area(final int width, int[] sides) {
            return width * sides[0];
        }

        /** Returns the area of a box. */
        public static int area(List<String> names) throws Exception { // at once
            return names.size();
        }

        static class Inner {
            /** Says it. */
            private int area() {
                return new Object() {
                    int area() { return 1; }
                }.area();
            }
        }
    }
""")
JAVA_RECORD = TaskRecord(
    id="6367672d1a6d9265ec017c73",
    project="shapes-master",
    path="",
    name="area",
    level="self_contained",
    signature="@Deprecated public static int area(final int width,int[] sides){",
    docstring="/** \n * Returns the area of a <b>box</b>.\n * @param width  one side\n */\n",
)


def java(record: TaskRecord, texts: dict[str, str] | None = None) -> Located | Missed:
    return locate(record, texts or {"src/ours/shapes/Shapes.java": JAVA}, JAVA_LANGUAGE)


def test_a_java_method_is_found_by_types_names_and_javadoc() -> None:
    result = java(JAVA_RECORD)
    assert isinstance(result, Located)
    lines = JAVA.split("\n")
    assert (result.how, result.declaration.name) == (EXACT, "Shapes.area(int,int[])")
    assert lines[result.declaration.start].strip().startswith("public static int area(final")
    assert (result.declaration.cursor, lines[result.declaration.cursor.line].strip()) == (
        Cursor(line=10, column=0),
        "return width * sides[0];",
    )
    assert (result.declaration.tail, lines[result.declaration.end - 1].strip()) == (Cursor(line=11, column=0), "}")


def test_java_bodies_may_begin_on_the_line_of_the_brace() -> None:
    record = dataclasses.replace(
        JAVA_RECORD,
        signature="public static int area(List<String> names){",
        docstring="/** Returns the area of a box. */",
    )
    result = java(record)
    assert isinstance(result, Located)
    assert JAVA.split("\n")[result.declaration.cursor.line][: result.declaration.cursor.column].endswith(
        "throws Exception {"
    )


def test_java_classes_and_packages_narrow_the_search() -> None:
    record = dataclasses.replace(JAVA_RECORD, signature="private int area(){", docstring="/** Says it. */")
    twice = {"a/Shapes.java": JAVA, "b/Shapes.java": JAVA.replace("ours.shapes", "other.shapes")}
    several = java(record, twice)
    assert isinstance(several, Missed)
    assert several.reason == "ambiguous"
    one = java(dataclasses.replace(record, class_name="Shapes", package="other.shapes"), twice)
    assert isinstance(one, Located)
    assert (one.path, one.declaration.name) == ("b/Shapes.java", "Shapes.Inner.area")


def test_a_java_method_with_other_types_is_missed() -> None:
    result = java(dataclasses.replace(JAVA_RECORD, signature="public static int area(final long width,int[] sides){"))
    assert isinstance(result, Missed)
    assert result.reason == "no_file"
