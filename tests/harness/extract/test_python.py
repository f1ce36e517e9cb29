"""The function that a model's answer contains, with the file's indentation."""

import textwrap

import pytest

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Cursor, Kind
from ctxbench.harness.generators.answers import NO_CODE_TAGS, PARSE_FAILED, Extracted, after_cursor, body, extract
from tests.helpers.samples import make_sample

HEAD = 'def area(width, height):\n    """Return the area."""\n'
METHOD = '    def area(self, width):\n        """Return the area."""\n'


def make(head: str = HEAD, before: str = "import math\n\n\n", name: str = "area", tail: str = ""):
    prefix = before + head + tail
    start = before.count("\n")
    return make_sample(
        kind=Kind.FUNCTION,
        subkind="self_contained",
        name=name,
        prefix=prefix,
        suffix="\n",
        cursor=Cursor(line=prefix.count("\n"), column=len(prefix) - prefix.rfind("\n") - 1),
        span=(start, start + 3),
    )


BODY = "    return width * height"
WHOLE = HEAD + BODY


@pytest.mark.parametrize("tail", ["", "    "])
@pytest.mark.parametrize(
    "answer",
    [
        BODY,
        f"{BODY}\n",
        f"{BODY}\n\n\ndef other():\n    pass\n",
        f"{BODY}\n\n\nclass Other:\n    def area(self):\n        return 1\n",
        f"{BODY}\n# what comes next\nprint(area(1, 2))\n",
        f"{BODY}\n```\n\nThis multiplies both.",
        "return width * height",
        " return width * height",
    ],
)
def test_a_body_continues_the_head_before_or_after_its_indentation(answer: str, tail: str) -> None:
    assert extract(make(tail=tail), answer) == Extracted(text=WHOLE)


FUNCTION = "def area(width, height):\n    return width * height"
FENCED = (
    f"Sure! Here it is:\n\n```python\nimport math\n\n{FUNCTION}\n```\n\n"
    "Use it so:\n\n```python\nprint(area(1, 2))\n```\n"
)


@pytest.mark.parametrize(
    "answer",
    [
        FUNCTION,
        f"{FUNCTION}\n\n\nprint(area(1, 2))\n",
        f"Sure\n\n{FUNCTION}\n",
        f"```\n{FUNCTION}\n```",
        f"```python\n{FUNCTION}",
        FENCED,
        f"[CODE]\n{FUNCTION}\n[/CODE]",
        f"First I plan, then I write between [CODE] and [/CODE].\n[code]\n```python\n{FUNCTION}\n```\n[/code]\nbye",
        f"[CODE]\npython\n{FUNCTION}",
        f"```python\n# [CODE]\n{FUNCTION}\n# [/CODE]\n```",
        f"@cache\n{FUNCTION}\n",
        f"```python\n{FUNCTION}\n\nthis is not Python\n```",
    ],
)
def test_a_whole_function_is_found(answer: str) -> None:
    assert extract(make(), answer).text == FUNCTION
    assert extract(make(), answer).flags == (() if "[code]" in answer.lower() else (NO_CODE_TAGS,))


@pytest.mark.parametrize("tag", ["[CODE]", "[CODE]\n", "[CODE]\n[/CODE]\n"])
def test_an_empty_tag_does_not_hide_the_code_in_a_fence(tag: str) -> None:
    # Qwen2.5-Coder-0.5B wrote such answers.
    answer = f"```python\n{FUNCTION}\n```\n\n{tag}"
    assert extract(make(), answer) == Extracted(text=FUNCTION, flags=(NO_CODE_TAGS,))
    assert extract(make(), tag) == Extracted(text="", flags=(PARSE_FAILED,))


@pytest.mark.parametrize(
    "before",
    [
        "import math\n\n\n",
        "from math import pi\n",
        "LIMIT = 1\n\n\n",
        "limit: int = 1\n",
        "[PYTHON]\n",
        "Answer: below\n\n",
        "Code is below\n\n",
        '"""Areas."""\n\nimport math\n\n',
        "log = logging.getLogger(__name__)\n\n",
    ],
)
@pytest.mark.parametrize("after", ["", "\n[/PYTHON]", "\n\n\nprint(area(1, 2))\n", "\n\nIt multiplies both."])
@pytest.mark.parametrize("tail", ["", "    "])
def test_text_before_a_whole_function_is_not_a_body(before: str, after: str, tail: str) -> None:
    assert extract(make(tail=tail), f"{before}{FUNCTION}{after}") == Extracted(text=FUNCTION, flags=(NO_CODE_TAGS,))
    in_class = f"{before}class Shape:\n{textwrap.indent(FUNCTION, '    ')}{after}"
    assert textwrap.dedent(extract(make(METHOD, "class Shape:\n"), in_class).text) == FUNCTION


@pytest.mark.parametrize("before", ["", "    limit = 1\n\n", "    @cache\n", "\n"])
@pytest.mark.parametrize("after", ["", "\n\n    def other(self):\n        return 1\n", "\n\nIt multiplies both."])
def test_an_indented_method_is_not_nested_in_itself(before: str, after: str) -> None:
    answer = f"{before}{textwrap.indent(FUNCTION, '    ')}{after}"
    assert textwrap.dedent(extract(make(METHOD, "class Shape:\n"), answer).text) == FUNCTION
    assert textwrap.dedent(extract(make(), answer).text) == FUNCTION


@pytest.mark.parametrize(
    "body",
    [
        "    def area(x):\n        return 2 * x\n\n    return area(width) * height",
        "    def area(x):\n        return 2 * x\n\n    width.each(area)",
        "    return area(width - 1, height) + height",
        "    import math\n\n    return math.floor(width)",
        "    total = 1",
    ],
)
@pytest.mark.parametrize(
    "after", ["", "\n\n\ndef area(a):\n    return 0\n", "\n\n\nclass A:\n    def area(a):\n        return 0\n"]
)
def test_a_body_is_taken_despite_another_function_of_its_name(body: str, after: str) -> None:
    assert extract(make(), body + after) == Extracted(text=HEAD + body)


@pytest.mark.parametrize("first", ["self.width = width", "self.reset()", "raise NotImplementedError"])
def test_a_body_is_taken_before_a_class_with_the_same_method(first: str) -> None:
    answer = f"{first}\n\n\nclass Other:\n{METHOD}        return 1\n"
    found = extract(make(METHOD, "class Shape:\n", tail="        "), answer)
    assert found.text == f"{METHOD}        {first}"


HELPER = "    def twice(x):\n        return 2 * x\n\n    return twice(width) * height"
MARGIN = '    text = """\nat the margin\n"""\n    total = sum([\nwidth,\n])\n# a comment there\n    return total'
OTHERS = {name: FUNCTION.replace("area", name) for name in ("_area", "surface")}
LINES = "    def area(self, width):\n        return width"
IN_CLASS = make(METHOD, "class Shape:\n")
TAKEN = {
    "a method in its class keeps its lines": (
        IN_CLASS,
        f"```python\nclass Shape:\n    x = 1\n\n{LINES}\n\n    def b(self): ...\n```",
        LINES,
    ),
    "the class that a model writes around it": (
        make(METHOD, "class Own:\n"),
        f"```python\n# [CODE]\nclass Shape:\n    def __init__(self):\n        pass\n\n{LINES}\n# [/CODE]\n```",
        LINES,
    ),
    "a body in a fence is indented": (
        IN_CLASS,
        "```python\nif not width:\n    return 0\nreturn width\n```",
        f"{METHOD}        if not width:\n            return 0\n        return width",
    ),
    "a helper inside the body stays": (make(), HELPER, HEAD + HELPER),
    "a helper inside a body in a fence": (make(), f"```\n{textwrap.dedent(HELPER)}\n```", HEAD + HELPER),
    "strings and brackets at the margin are no end": (make(), f"{MARGIN}\n\ndef other(): ...\n", HEAD + MARGIN),
    "the last of several": (make(), f"```\ndef area(a, b):\n    return 0\n\n{FUNCTION}\n```", FUNCTION),
    "an underscore is forgiven": (make(), f"```\n{OTHERS['_area']}\n```", OTHERS["_area"]),
    "another function from a fence": (make(), f"```\n{OTHERS['surface']}\n```", OTHERS["surface"]),
    "async and tabs": (
        make("async def area(width):\n", ""),
        "\tawait width\n\treturn 1\nx",
        "async def area(width):\n\tawait width\n\treturn 1",
    ),
    "an exact name before a forgiven one": (
        make(),
        "[CODE]\ndef area(a):\n    return 1\n\ndef _area(a):\n    return 2\n[/CODE]",
        "def area(a):\n    return 1",
    ),
    "an exact name by lines too": (make(), f"Here it is:\n\n{FUNCTION}\n\n\n{OTHERS['_area']}", FUNCTION),
    "tabs that break become spaces": (
        make(),
        "[CODE]\ndef area(a):\n\tif a:\n        return 0\n\treturn 1\n[/CODE]",
        "def area(a):\n    if a:\n        return 0\n    return 1",
    ),
    "tabs that do not stay": (make(), "[CODE]\ndef area(a):\n\treturn 1\n[/CODE]", "def area(a):\n\treturn 1"),
    "imports and decorators stay outside": (
        make(),
        f"[CODE]\nimport os\nfrom a import b\n\n@cache\n{FUNCTION}\n[/CODE]",
        FUNCTION,
    ),
    "a line that goes on at the cursor is not moved": (
        make(METHOD, "class Shape:\n", tail="        "),
        "total = 1\n        return total\n",
        f"{METHOD}        total = 1\n        return total",
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_only_the_function_is_taken_from_an_answer(name: str) -> None:
    sample, answer, text = TAKEN[name]
    assert extract(sample, answer).text == text


@pytest.mark.parametrize(
    ("head", "answer"), [("def area():\n", '    """Return it."""\n\n\nx = 1\n'), (HEAD, '    return "\\d"')]
)
def test_a_new_docstring_and_code_with_a_warning_are_valid_bodies(head: str, answer: str) -> None:
    assert extract(make(head), answer).flags == ()


@pytest.mark.parametrize("answer", ["I cannot do that.", "    return (width *", "Sorry", "```\nwidth *\n```"])
def test_an_answer_without_a_function_is_flagged(answer: str) -> None:
    found = extract(make(), answer)
    assert found.flags[-1] == PARSE_FAILED and found.text


@pytest.mark.parametrize("answer", ["", "  \n\t", "[CODE][/CODE]", "A plan.\n[CODE]\n```python\n```\n[/CODE]"])
def test_a_blank_answer_has_no_code(answer: str) -> None:
    assert extract(make(), answer) == Extracted(text="", flags=(PARSE_FAILED,))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (WHOLE, BODY.strip()),
        (FUNCTION, BODY.strip()),
        (textwrap.indent(FUNCTION, "    "), BODY.strip()),
        ("def area(a): return 'ü' + a", "return 'ü' + a"),
        ("def area(a):\n    @b\n    def c(): ...\n    return c", "@b\ndef c(): ...\nreturn c"),
        (HEAD.rstrip(), ""),
        (HEAD + "    return (", "return ("),
        ("def other(:\n    x", "def other(:\n    x"),
    ],
)
def test_the_body_of_a_function_is_found(text: str, found: str) -> None:
    assert body(make(), text) == found


@pytest.mark.parametrize(
    ("head", "before", "tail"), [(HEAD, "", ""), (METHOD, "class A:\n", ""), (METHOD, "", "        ")]
)
def test_the_prefix_and_the_rest_are_the_whole_function(head: str, before: str, tail: str) -> None:
    made = make(head, before, tail=tail)
    whole = head + ("        " if head is METHOD else "    ") + "return 1\n"
    target = textwrap.dedent(whole)
    assert made.prefix + after_cursor(made, target) == before + whole


SHAPE = "class Shape:\n"
MOVED = f"{METHOD}        if width:\n            return 1\n        return 2"


@pytest.mark.parametrize("tail", ["", "        "])
@pytest.mark.parametrize("margin", ["", "    ", "        ", "            "])
@pytest.mark.parametrize("after", ["", "\n\nclass Other:\n    def area(self):\n        return 3\n"])
def test_a_body_is_indented_as_in_the_file(tail: str, margin: str, after: str) -> None:
    answer = textwrap.indent("if width:\n    return 1\nreturn 2", margin) + after
    if after and not margin:
        answer = answer.removesuffix(after)  # at the margin, the body and the class have the same indentation
    found = extract(make(METHOD, SHAPE, tail=tail), answer)
    assert (found.text, found.flags) == (MOVED, ())


@pytest.mark.parametrize(
    ("wanted", "written", "taken"),
    [
        ("area", "_area", True),
        ("_area", "area", True),
        ("_area", "__area", True),
        ("area", "__area__", False),
        ("__init__", "init", False),
        ("area", "surface_area", False),
    ],
)
def test_one_underscore_more_or_less_is_accepted(wanted: str, written: str, taken: bool) -> None:
    head = HEAD.replace("area(", f"{wanted}(")
    answer = f"[CODE]\ndef helper(a):\n    return 0\n\ndef {written}(a):\n    return 1\n[/CODE]"
    # If no function has the name, the first one is taken.
    assert ("return 1" in extract(make(head, name=wanted), answer).text) is taken


WRAP = "def area(f):\n    def _area(*a):\n        return f(*a) + 1\n\n    return _area"


@pytest.mark.parametrize("answer", ["Here it is:\n\n{}", "{}\n\nIt adds one.", "```\n{}\n\nand so on\n```"])
def test_a_nested_function_is_part_of_its_function(answer: str) -> None:
    assert extract(make(), answer.format(WRAP)) == Extracted(text=WRAP, flags=(NO_CODE_TAGS,))


@pytest.mark.parametrize("name", ["area", "surface"])
def test_a_nested_function_alone_is_not_the_answer(name: str) -> None:
    function = WRAP.replace("area", name)
    assert extract(make(), f"```\n{function}\n\nand so on\n```").text == function
    broken = extract(make(), f"```\n{function}(\n\nand so on\n```")
    assert (broken.text, broken.flags[-1]) == (f"{function}(", PARSE_FAILED)


EXAMPLE = FUNCTION.replace("\n", '\n    """Return the area.\n\n    ```python\n    area(1, 2)\n    ```\n    """\n', 1)


@pytest.mark.parametrize(
    "answer",
    [
        "Here it is:\n\n```python\n{}\n```\n",
        "Here it is:\n\n```python\n{}\n   ```\n",
        "Here it is:\n\n{}\n\nIt multiplies both.",
        "[CODE]\n{}\n[/CODE]",
        "[CODE]\n\n```python\n{}\n```\n[/CODE]",
    ],
)
@pytest.mark.parametrize("step", ["    ", "\t"])
@pytest.mark.parametrize("indent", ["", "    "])
def test_a_fence_in_a_docstring_does_not_end_the_code(answer: str, step: str, indent: str) -> None:
    function = textwrap.indent(EXAMPLE.replace("    ", step), indent)
    found = extract(make(), answer.format(function))
    assert textwrap.dedent(found.text) == textwrap.dedent(function) and PARSE_FAILED not in found.flags


@pytest.mark.parametrize("function", [FUNCTION, EXAMPLE, EXAMPLE.replace("```python", "```")])
@pytest.mark.parametrize(
    "after", ["", "    ```", "\t```\nDone.", "\n    ```\n\nUse it so:\n\n```python\narea(1, 2)\n```\n"]
)
def test_a_fence_may_be_closed_with_indentation_or_not_at_all(function: str, after: str) -> None:
    assert extract(make(), f"So:\n\n```python\n{function}\n{after}") == Extracted(text=function, flags=(NO_CODE_TAGS,))


def test_a_function_is_found_by_lines_in_an_answer_that_does_not_parse() -> None:
    rest_of_it = "\n\nthis is (no Python\n[/CODE]"
    assert extract(make(), f"[CODE]\n{FUNCTION}{rest_of_it}").text == FUNCTION
    other = FUNCTION.replace("area", "surface")
    assert extract(make(), f"[CODE]\n{other}{rest_of_it}").text == other
    broken = extract(make(), f"[CODE]\ndef area(a):\n    return (a\n\n\nx = 1{rest_of_it}")
    assert (broken.text, broken.flags) == ("def area(a):\n    return (a", (PARSE_FAILED,))


@pytest.mark.parametrize(
    "answer",
    [
        f"[CODE]{FUNCTION}[/CODE]",
        f"[Code]\n{textwrap.indent(FUNCTION, '    ')}\n[/cODE]",
        f"[CODE]\n```\n{FUNCTION}\n```\n[/CODE]\nHere [/CODE] ends it.",
        f"I write it in [CODE] and [/CODE] tags.\n[CODE]\n{FUNCTION}",
        f"[CODE]\nclass Shape:\n{textwrap.indent(FUNCTION, '    ')}\n[/CODE]",
        f"[CODE]\n{FUNCTION}\n[/CODE]\nThe code is between [CODE] and [/CODE] tags.",
        f"[CODE]\n{FUNCTION}\n[/CODE]\nI put it between the `[CODE]` and `[/CODE]` tags, [CODE]...[/CODE].",
        f"[CODE]\n{FUNCTION}\n\nThe code stands behind [CODE].",
        f"Between [CODE] and [/CODE]:\n[CODE]\n{FUNCTION}\n[/CODE]\n[CODE]\nprint(area(1, 2))\n[/CODE]",
        f"[CODE]\n{FUNCTION}\n[/CODE]\nIts test:\n[CODE]\ndef test_area():\n    assert area(1, 2) == 2\n[/CODE]",
        f"[CODE]\ndef area(a):\n    return 0\n[/CODE]\nBetter:\n[CODE]\n{FUNCTION}\n[/CODE]",
    ],
)
def test_code_is_found_between_tags_of_every_form(answer: str) -> None:
    found = extract(make(), answer)
    assert (textwrap.dedent(found.text), found.flags) == (FUNCTION, ())


def test_a_body_between_tags_is_found_despite_remarks_about_the_tags() -> None:
    answer = f"First [CODE] and then [/CODE].\n[CODE]\n{BODY}\n[/CODE]\nIt is between [CODE] and [/CODE] tags."
    assert extract(make(), answer) == extract(make(), f"{answer} [CODE]...[/CODE]") == Extracted(text=WHOLE)


STRING = '        text = """usage:\noptions:\n        -h\n"""\n        return text'
AT_THE_MARGIN = "        total = 1\n#        old()\n        return total"
"""A comment at the margin, where editors put it when they comment out a line."""
BODIES = [STRING, AT_THE_MARGIN, STRING.replace("usage:\n", "usage:\n" + 12 * " ")]
DEEP = STRING.replace("options:", 12 * " " + "options:").replace('\n"""', '\n        """')
"""Each line of its string is indented deeper than the method."""


def reference_of(whole: str) -> str:
    return PYTHON.miner().lift(whole.split("\n")).rstrip("\n")


@pytest.mark.parametrize("lines", [*BODIES, DEEP])
def test_a_correct_body_equals_the_reference_at_any_indentation(lines: str) -> None:
    made, target = make(METHOD, SHAPE), reference_of(METHOD + lines)
    moved = body(made, target)
    assert moved.startswith(("text", "total")) and "\n        return" not in moved
    fenced = (f"```python\n{code}\n```" for code in (target, moved, METHOD + lines))
    for answer in (lines, moved, *fenced, f"[CODE]\n{METHOD}{lines}\n[/CODE]"):
        assert body(made, extract(made, answer).text) == moved


@pytest.mark.parametrize("lines", [STRING, STRING.replace("options:", 12 * " " + "options:")])
def test_the_text_after_the_cursor_keeps_its_strings(lines: str) -> None:
    made = make(METHOD, SHAPE)
    assert after_cursor(made, reference_of(METHOD + lines)) == lines


def test_a_truncated_body_keeps_its_strings() -> None:
    made, target = make(METHOD, SHAPE), reference_of(METHOD + DEEP)
    found = extract(made, DEEP.replace("return text", "return (text"))
    assert found.flags[-1] == PARSE_FAILED
    assert body(made, found.text) == body(made, target).replace("return text", "return (text")


class Kotlin(Language):
    """A language with line samples only."""


PLAIN_HEAD = "/** Doubles. */\nfun twice(n: Int): Int {\n"
PLAIN_BODY = "    return 2 * n\n}"
PLAIN = make_sample(
    language=Kotlin("kotlin"),
    kind=Kind.FUNCTION,
    subkind="untested",
    name="twice",
    path="twice.kt",
    prefix=PLAIN_HEAD,
    cursor=Cursor(line=2, column=0),
    span=(1, 4),
)


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN_BODY,
        f"Here:\n\n```kotlin\nfun twice(n: Int): Int {{\n{PLAIN_BODY}\n```",
        f"[CODE]fun twice(n: Int): Int {{\n{PLAIN_BODY}[/CODE]",
        f"{PLAIN_BODY}\n```",
        f"{PLAIN_BODY}\n```\n\nUse it so:\n\n```kotlin\ntwice(1)\n```\n",
    ],
)
def test_other_languages_take_code_or_a_continuation_unchanged(answer: str) -> None:
    function = extract(PLAIN, answer).text.rstrip("\n")
    assert function == f"fun twice(n: Int): Int {{\n{PLAIN_BODY}"
    assert body(PLAIN, function) == PLAIN_BODY


def test_other_languages_take_no_code_from_a_blank_answer() -> None:
    assert extract(PLAIN, " \n") == Extracted(text="", flags=("parse_failed",))
