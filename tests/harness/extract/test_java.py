"""Java answers: braces count in code, but not in strings and comments."""

import pytest

from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.types import Cursor, Kind
from ctxbench.harness.generators.answers import NO_CODE_TAGS, PARSE_FAILED, Extracted, after_cursor, body, extract
from tests.helpers.samples import make_sample

BEFORE = "package a;\n\nclass Box {\n    /** Returns the area. */\n"
HEAD = "    public int area(int width, int height) {\n"


def make(head: str = HEAD, name: str = "Box.area"):
    prefix = BEFORE + head
    return make_sample(
        language=JAVA,
        kind=Kind.FUNCTION,
        subkind="self_contained",
        name=name,
        path="a/Box.java",
        prefix=prefix,
        suffix="\n}\n",
        cursor=Cursor(line=prefix.count("\n"), column=0),
        span=(BEFORE.count("\n"), BEFORE.count("\n") + 3),
    )


BODY = "        return width * height;\n    }"
WHOLE = HEAD + BODY
METHOD = "public int area(int width, int height) {\n    return width * height;\n}"


@pytest.mark.parametrize(
    "answer",
    [
        f"{BODY}\n\n    int other() {{ return 1; }}\n}}\n",
        f"{BODY}\n\n    int area(int width, int height, int depth) {{ return 1; }}\n",
        BODY,
        "        return width * height;\n",
        "        return width * height;",
        f"{BODY}\n```\n",
        f"{BODY}\n```\n\nThis multiplies both.",
        f"{BODY}\n```\n\nUse it so:\n\n```java\nclass Other {{ int area(int a, int b) {{ return 0; }} }}\n```\n",
        f"{BODY}\n~~~",
        "        return width * height;\n```\nThis multiplies both.",
    ],
)
def test_a_body_continues_the_head(answer: str) -> None:
    assert extract(make(), answer) == Extracted(text=WHOLE)


def test_braces_in_strings_and_comments_do_not_count() -> None:
    body = (
        '        // }\n        /* } */\n        String s = "}\\"}" + \'}\' + """\n }\n """;\n        return 1;\n    }'
    )
    assert extract(make(), f"{body}\n    int x() {{}}\n").text == HEAD + body


def test_a_fence_in_a_comment_does_not_count() -> None:
    body = "        /*\n        ```\n        area(1, 2);\n        ```\n        */\n        return 2;\n    }"
    assert extract(make(), f"{body}\n```\nDone.") == Extracted(text=HEAD + body)


@pytest.mark.parametrize(
    "before",
    [
        "I add the missing `}`:",
        "Add `import a.b;`, or:\n\nimport a.b;",
        f"{METHOD}\n}}\n\nIn short:",
        f"class A {{\n{METHOD}\n}}\n}}\nOr",
    ],
)
def test_text_before_a_fence_is_not_a_body(before: str) -> None:
    found = extract(make(), f"{before}\n\n```java\n{METHOD}\n```\nIt multiplies both.")
    assert found == Extracted(text=METHOD, flags=(NO_CODE_TAGS,))


INNER = (
    "        return run(new Shape() {\n            int area(int width, int height) {\n                return 0;\n"
    "            }\n        });\n    }"
)


@pytest.mark.parametrize(
    "answer",
    [
        INNER,
        f"```java\n{HEAD}{INNER}\n```",
        f"Here:\n{HEAD}{INNER}\n",
        f"[CODE]\n{INNER.rpartition('}')[0].rstrip()}[/CODE]",
    ],
)
def test_a_method_of_an_anonymous_class_is_part_of_the_method(answer: str) -> None:
    assert extract(make(), answer).text == HEAD + INNER


def test_a_method_of_a_truncated_anonymous_class_is_not_the_answer() -> None:
    cut = f"```java\n{HEAD}{INNER.partition('});')[0]}"
    found = extract(make(), cut)
    assert "return run(" in found.text and found.flags == (NO_CODE_TAGS, PARSE_FAILED)


def test_braces_of_annotations_in_the_head_do_not_count() -> None:
    head = '    int area(@Named({"a"}) int width, int height) {\n'
    found = extract(make(head), BODY)
    assert found == Extracted(text=head + BODY)
    assert body(make(head), found.text) == "return width * height;"


@pytest.mark.parametrize(
    "answer",
    [
        METHOD,
        f"```java\n{METHOD}\n```",
        f"Here is the method:\n\n```java\n{METHOD}\n```\n",
        f"[CODE]\n{METHOD}\n[/CODE]",
        f'```java\n@Override\n@SuppressWarnings("x")\n{METHOD}\n```',
        f"```java\nint area(int a) {{ return area(a, a); }}\n\n{METHOD}\n\nint area(int a, int b, int c) {{ }}\n```",
    ],
)
def test_a_whole_method_is_found(answer: str) -> None:
    assert extract(make(), answer).text == METHOD
    assert extract(make(), answer).flags == (() if "[CODE]" in answer else (NO_CODE_TAGS,))


def test_a_class_around_the_method_is_dropped() -> None:
    answer = f"```java\nclass Box {{\n{WHOLE}\n\n    void use() {{ area(1, 2); new Box().area(3, 4); }}\n}}\n```"
    assert extract(make(), answer).text == WHOLE


def test_generics_do_not_split_parameters() -> None:
    head = "    int area(Map<String, Integer> sizes, int factor) {\n"
    method = "int area(Map<String, Integer> sizes, int factor) throws Oops {\n    return 1;\n}"
    others = ["int area(Map<String, Integer> sizes) { return 2; }", "int area(int a, int b, int c) { return 3; }"]
    answer = f"```java\n{others[0]}\n{method}\n{others[1]}\n```"
    assert extract(make(head, "Box.area(Map,int)"), answer).text == method


@pytest.mark.parametrize("answer", ["I cannot.", "        if (width > 0) { while (true) {"])
def test_an_answer_without_its_closing_brace_is_flagged(answer: str) -> None:
    found = extract(make(), answer)
    assert found.text.startswith(HEAD)
    assert found.flags == (PARSE_FAILED,)


def test_the_body_of_a_method_is_found() -> None:
    assert body(make(), METHOD) == body(make(), WHOLE) == "return width * height;"
    assert body(make(), HEAD + "        if (x) {\n") == "if (x) {"


@pytest.mark.parametrize("answer", ["", "\n", "[CODE]\n[/CODE]"])
def test_a_blank_answer_has_no_code(answer: str) -> None:
    assert extract(make(), answer) == Extracted(text="", flags=(PARSE_FAILED,))


@pytest.mark.parametrize(
    "method",
    [
        "public <T extends Comparable<? super T>> Map<String, T> area(Map<String, List<T>> width, int... height)\n"
        "        throws Oops, java.io.IOException {\n    return null;\n}",
        'int area(@Named({"a", "}"}) int width, final int height) {\n    return 1;\n}',
        'String area(int width, int height) {\n    return """\n        } "quoted" {\n        """;\n}',
        "int area(int width, int height) {\n    char open = '{', quote = '\\'', close = '}';\n    return open;\n}",
        "int area(int width, int height) {\n    run(() -> {\n        if (true) { go(); }\n    });\n    return 1;\n}",
        "int area(int width, int height) {\n    // a brace: }\n    /* another: } */\n    return 1;\n}",
        "int[] area(int width, int height) {\n    return new int[] {width, height};\n}",
        "Runnable area(int width, int height) {\n    return new Runnable() {\n        public void run() {}\n    };\n}",
    ],
)
@pytest.mark.parametrize(
    "around", ["{}", "package a;\n\nclass Box {{\n    int b = area(1, 2);\n{}\n}}", "import a.b;\n\n{}"]
)
def test_braces_inside_a_method_do_not_end_it(method: str, around: str) -> None:
    found = extract(make(), f"[CODE]\n{around.format(method)}\n[/CODE]")
    assert (found.text, found.flags) == (method, ())


@pytest.mark.parametrize(
    "annotations", ["@Override ", '@SuppressWarnings({"a", "}"}) ', "@A(x = {1})\n@B(@C({2}))\n", "@A(\n    {1}\n)\n"]
)
def test_annotations_of_the_answer_are_left_out(annotations: str) -> None:
    # The file keeps its own annotations and Javadoc.
    assert extract(make(), f"[CODE]\n/** It {{@code x}}. */\n{annotations}{METHOD}\n[/CODE]").text == METHOD


@pytest.mark.parametrize(
    "remark", ["", "\nThe code is between [CODE] and [/CODE] tags.", "\n`[CODE]` and `[/CODE]`: done."]
)
def test_a_remark_that_names_the_tags_is_not_a_method(remark: str) -> None:
    assert extract(make(), f"[CODE]\n{METHOD}\n[/CODE]{remark}") == Extracted(text=METHOD)
    found = extract(make(), f"[CODE]\n{BODY}\n[/CODE]{remark}")
    assert found == Extracted(text=WHOLE)


def test_a_body_between_tags_receives_the_signature() -> None:
    found = extract(make(), "[CODE]\nint area = width * height;\nreturn area;\n[/CODE]")
    assert found.text == f"{HEAD}int area = width * height;\nreturn area;\n    }}" and found.flags == ()


BLOCK = '        String text = """\nusage\n  -h\n""";\n        return text.length();\n    }'
OLD = "        int area = width;\n//        old();\n        return area;\n    }"


@pytest.mark.parametrize("lines", [BLOCK, OLD, BLOCK.replace("\n", "\n" + 12 * " ", 3)])
def test_a_correct_body_equals_the_reference_at_any_indentation(lines: str) -> None:
    made, target = make(), JAVA.miner().lift(f"{HEAD}{lines}".split("\n"))
    moved = body(made, target)
    assert moved.startswith(("String", "int")) and "\n        return" not in moved
    for answer in (lines, f"```java\n{target}\n```", f"[CODE]\n{HEAD}{lines}\n[/CODE]"):
        assert body(made, extract(made, answer).text) == moved


@pytest.mark.parametrize("lines", [BLOCK, BLOCK.replace("\n", "\n" + 12 * " ", 3)])
def test_the_text_after_the_cursor_keeps_its_text_blocks(lines: str) -> None:
    assert after_cursor(make(), JAVA.miner().lift(f"{HEAD}{lines}".split("\n"))) == lines


def test_oddly_indented_code_keeps_its_indentation() -> None:
    odd = "        if (width > 0) {\n            return 1;\n}\n        return 0;\n    }"
    assert body(make(), extract(make(), odd).text) == odd.removesuffix("\n    }")
    assert body(make(), HEAD + odd.replace("\n}", "\n        }  /* so\n*/")) == (
        "if (width > 0) {\n    return 1;\n}  /* so\n*/\nreturn 0;"
    )
