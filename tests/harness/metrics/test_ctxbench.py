"""The corrected profile: its unit, comments and identifiers by syntax."""

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.harness.metrics import mean_pass_at_k, pass_at_k, score
from ctxbench.harness.metrics.ctxbench import read, unit


@pytest.mark.parametrize(
    ("prompt", "prediction", "target", "kept"),
    [
        ("x = ", "f(a)\ng(b)", "f(a)", "f(a)"),
        ("x = ", "f(a)\r\ng(b)", "f(a)", "f(a)"),
        ("x = ", "\nf(a)", "f(a)", ""),
        ("x = 1\n", "\n  \n    f(a)\ng(b)", "    f(a)", "    f(a)"),
        ("x = 1\n    ", "\n    f(a)\ng(b)", "f(a)", "    f(a)"),
        ("", "f(a)\ng(b)", "f(a)\n", "f(a)"),
        ("x = ", "f(\n\n    a,\n)\ng(b)", "f(\n    a,\n)", "f(\n    a,\n)"),
        ("x = ", "f(a)\u2028g(b)\n", "f(a)", "f(a)\u2028g(b)"),
        ("x = ", "", "f(a)", ""),
        ("x = f(", "\n    a,\n\n    b)\ng()", "\n    a,\n    b)", "\n    a,\n    b)"),
        ("x = f(", "a,\n    b)\ng()", "\n    a,\n    b)", "a,\n    b)\ng()"),
        ("x = 1\n", "\n    a,\n    b)\ng()", "\n    a,\n    b)", "    a,\n    b)"),
    ],
)
def test_the_unit_is_the_line_of_the_cursor(prompt: str, prediction: str, target: str, kept: str) -> None:
    assert unit(prompt, prediction, target) == kept


@pytest.mark.parametrize(
    ("language", "before", "text", "code", "names"),
    [
        ("python", "x = ", 'f(a, "b # c") // d  # e', 'f(a, "b # c") // d  ', "f a d"),
        ("python", "s = 'ab", "c # in', y)  # out", "c # in', y)  ", "y"),
        ("python", "# note ", "more\ncode", "\ncode", "code"),
        ("python", "a = 'it # \n", "b # c", "b ", "b"),
        ("python", 'x = """\n\'\n""", ', "d  # f", "d  ", "d"),
        ("python", 'x = """\nabc\n', "d  # f", "d  ", "d"),
        ("python", 'x = """abc ', "d # f", "d # f", ""),
        ("python", "", 'f"{u.name!r:>{w}.2f} {{no}} {d["k"]}"', 'f"{u.name!r:>{w}.2f} {{no}} {d["k"]}"', "u name w d"),
        ("python", "", 'f"{x" \n y', 'f"{x" \n y', "x y"),
        ("python", "", 'f"{x:>5" + y', 'f"{x:>5" + y', "x y"),
        ("python", "", "f'{a[1:2]}' 'b' % c", "f'{a[1:2]}' 'b' % c", "a c"),
        ("python", "", "1e5 + 0x1F + 1.5.hex() + .5j + x2", "1e5 + 0x1F + 1.5.hex() + .5j + x2", "hex x2"),
        ("python", "", "match = None if Rb'\\'q' else type", "match = None if Rb'\\'q' else type", "match type"),
        ("java", "x = ", '"http://a#b" + b; // e', '"http://a#b" + b; ', "b"),
        ("java", "x = ", "int/* c */y = '\"'; $a_1", "int y = '\"'; $a_1", "y $a_1"),
        ("java", "", '"""\n a // b\n""" + c', '"""\n a // b\n""" + c', "c"),
        ("java", "f(/* why ", "not */ d); // e", " d); ", "d"),
        ("java", "", "a / b /* open", "a / b ", "a b"),
        ("java", "", "var r = true ? null : this.record", "var r = true ? null : this.record", "var r record"),
    ],
)
def test_comments_and_names_by_syntax(language: str, before: str, text: str, code: str, names: str) -> None:
    reading = read(language, before, text)
    assert (reading.code, " ".join(reading.names)) == (code, names)


def em(language: str, prediction: str, target: str, prompt: str = "x = ") -> float | None:
    return score("ctxbench", language, prompt=prompt, prediction=prediction, ground_truth=target)["em"]


@pytest.mark.parametrize(
    ("language", "prediction", "target"),
    [
        ("python", "total // len(x)", "total // batch"),
        ("python", 'f("#000")', 'f("#fff")'),
        ("java", '"http://evil.org";', '"http://a.com/x";'),
        ("python", "# any remark", "# the remark"),
    ],
)
def test_different_code_is_not_equal_where_patterns_would_say_so(language: str, prediction: str, target: str) -> None:
    assert em(language, prediction, target) == 0.0
    official = score("crosscodeeval", language, prompt="x = ", prediction=prediction, ground_truth=target)
    assert official["em"] == 1.0


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_answer_that_goes_on_below_a_full_line_is_exact(end: str) -> None:
    target = f"{end}    a,{end}    b)"
    assert em("python", target, target, prompt="x = foo(") == 1.0
    assert em("python", f"{target}{end}more()", target, prompt="x = foo(") == 1.0


def test_comments_and_what_follows_the_line_do_not_count() -> None:
    assert em("python", "f(a)  # done\nmore()", "f(a)") == 1.0
    assert em("java", "f(a); // done\nmore();", "f(a);") == 1.0


def test_texts_without_identifiers_agree() -> None:
    values = score("ctxbench", "python", prompt="x = ", prediction="1", ground_truth="2")
    assert (values["em"], values["id_em"], values["id_f1"]) == (0.0, 1.0, 1.0)
    one_sided = score("ctxbench", "python", prompt="x = ", prediction="", ground_truth="y")
    assert set(one_sided.values()) == {0.0}


def test_es_is_the_indel_ratio() -> None:
    assert score("ctxbench", "python", prompt="", prediction="foo(a, b)", ground_truth="foo(b)")["es"] == 0.8


@pytest.mark.parametrize(("n", "c", "k"), [(5, 0, 10), (5, 6, 1), (5, -1, 1), (5, 1, 0), (0, 0, 1)])
def test_pass_at_k_refuses_what_it_cannot_estimate(n: int, c: int, k: int) -> None:
    with pytest.raises(InputFault):
        pass_at_k(n, c, k)


@pytest.mark.parametrize(("n", "c"), [(5, []), ([5], [1, 2]), ([5, 3], [1, 1])])
def test_mean_pass_at_k_refuses_uneven_input(n: int | list[int], c: list[int]) -> None:
    with pytest.raises(InputFault):
        mean_pass_at_k(n, c, 4)


def test_pass_at_one_is_the_share_that_passed() -> None:
    assert pass_at_k(4, 1, 1) == 0.25
    assert mean_pass_at_k(4, [1, 3], 1) == 0.5
