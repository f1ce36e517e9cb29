import pytest

from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE
from ctxbench.strategies.infercom import calls, drafted_body, stretches
from tests.helpers.samples import make_query

PYTHON, METHOD = (make_query(name=name, language=PYTHON_LANGUAGE) for name in ("pay", "Till.pay"))
JAVA, JAVA_METHOD = (make_query(name=name, language=JAVA_LANGUAGE) for name in ("pay", "Till.pay(User)"))
FUNCTION = "def pay(user):\n    total = sum(user)\n    return total"


@pytest.mark.parametrize(
    "answer",
    [
        FUNCTION,
        f"import os\n\n{FUNCTION}\n",
        f"First a [CODE] tag.\n[CODE]\n{FUNCTION}\n[/CODE]\nDone.",
        f"[code]\n```python\n{FUNCTION}\n```\n[/code]",
        f"Here it is:\n```python\n{FUNCTION}\n```\nHope it helps.",
        f"```\ndef other():\n    pass\n```\nand\n```\n{FUNCTION}\n```",
        f"[CODE]\n{FUNCTION}",
        "class Till:\n    def pay(self, user):\n        total = sum(user)\n        return total\n",
        "total = sum(user)\nreturn total\n",
        "    total = sum(user)\n    return total\n",
        f"def pay(user):\n    pass\n\n\n{FUNCTION}",
    ],
)
def test_the_body_is_found_in_any_kind_of_answer(answer: str) -> None:
    wanted = ["total = sum(user)", "return total"]
    assert drafted_body(answer, PYTHON) == drafted_body(answer, METHOD) == wanted


def test_strings_in_a_body_are_unchanged() -> None:
    body = ['deep = """', "            deep", '"""', 'return f("""', "at the margin", '""")']
    lines = [f"    {line}" if line.startswith(("deep", "return")) else line for line in body]
    answer = "\n".join(["def pay(self):", *lines])
    method = answer.replace("    deep = ", "        deep = ").replace("    return", "        return")
    for text in (answer, method.replace("def", "    def"), "\n".join(lines)):
        assert drafted_body(text, METHOD) == drafted_body(f"```python\n{text}\n```", METHOD) == body


def test_java_bodies_are_found() -> None:
    method = "public int pay(User user) {\n    int total = user.sum();\n    return total;\n}"
    wanted = ["int total = user.sum();", "return total;"]
    for answer in (f"```java\n{method}\n```", f"[CODE]\nclass Till {{\n{method}\n}}\n[/CODE]"):
        for query in (JAVA, JAVA_METHOD):
            body = drafted_body(answer, query)
            assert [line.strip() for line in body if line.strip("} ")] == wanted
            assert calls(body) == [line for line in body if "sum" in line]


def test_an_empty_answer_has_an_empty_body() -> None:
    assert drafted_body("", PYTHON) == [""] and calls([""]) == [] and stretches([""]) == [""]


def test_calls_are_lines_that_call_something() -> None:
    body = [
        "x = f(1)",
        "y = 2",
        "",
        "if (a and b):",
        "for (int i = 0; ;) {",
        "return (x)",
        "return g (x)",
        "while(h()):",
    ]
    assert calls(body) == ["x = f(1)", "return g (x)", "while(h()):"]
    assert len(calls([f"f({i})" for i in range(30)])) == 20


def test_a_short_body_is_one_part() -> None:
    body = [f"a{i}()" for i in range(15)]
    assert stretches(body) == ["\n".join(body)]


@pytest.mark.parametrize("lines", range(16, 60))
def test_a_long_body_is_split_into_parts_of_5_to_15_lines(lines: int) -> None:
    body = [f"    b{i}()" if i % 7 else f"a{i}()" for i in range(lines)]
    parts = stretches(body)
    assert "\n".join(parts).split("\n") == body
    sizes = [part.count("\n") + 1 for part in parts]
    assert max(sizes) <= 15 and min(sizes[:-1]) >= 5


def test_parts_end_at_blank_lines() -> None:
    body = [*(["f()"] + ["    g()"] * 6), "", *(["f()"] + ["    g()"] * 9)]
    assert [part.count("\n") + 1 for part in stretches(body)] == [7, 10]
