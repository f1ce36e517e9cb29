"""Properties of all profiles for any text, and the unit, comments and names of the corrected profile."""

import builtins
import functools
import math
import operator
import subprocess
import sys
from collections.abc import Callable, Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.harness.generators.incontext.lexer import space_cost
from ctxbench.harness.leaderboard import board
from ctxbench.harness.metrics import (
    PROFILES,
    Case,
    aggregate,
    info,
    mean_pass_at_k,
    metrics,
    pass_at_k,
    score,
    score_many,
)
from ctxbench.harness.metrics.ctxbench import match_identifiers, read, unit
from ctxbench.harness.metrics.published import first_statement, identifiers
from ctxbench.harness.results import Status
from tests.helpers.runs import make_table

# Texts of tokens that profiles look at, and any Unicode text, including lone surrogates.
QUOTES_AND_ENDS = ("'", '"', '"""', "f'", "\\", "\n", "\r\n", "\r", "\u2028", "\x0c", " ", "    ")
SIGNS = (*"{}()=:;#", "//", "/*", "*/", "!r")
WORDS = ("a", "b1", "1e5", "²", "naïve", "\ud800", "None", "if ", "x = ", "return ")
CODE = st.lists(st.sampled_from((*QUOTES_AND_ENDS, *SIGNS, *WORDS)), max_size=20).map("".join)
TEXT = st.one_of(CODE, st.text(st.characters(exclude_categories=[]), max_size=30))
LANGUAGE = st.sampled_from(["python", "java"])
ES_MAX = {"ctxbench": 1.0, "repocoder": 1.0, "infercom": 1.0, "rlcoder_repoeval": 1.0}


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(LANGUAGE, TEXT, TEXT, TEXT)
def test_any_text_is_scored_within_the_range(language: str, prompt: str, prediction: str, target: str) -> None:
    for profile in PROFILES:
        values = score(profile, language, prompt=prompt, prediction=prediction, ground_truth=target)
        assert tuple(values) == metrics(profile)
        for metric, value in values.items():
            if value is None:
                assert metric == "es" and profile != "ctxbench" and profile != "crosscodeeval"
            else:
                assert 0.0 <= value * info(profile, metric).factor <= 100.0
        if values.get("em") == 1.0 and profile in ES_MAX and values["es"] is not None:
            assert values["es"] == ES_MAX[profile]


@settings(max_examples=100, deadline=None)
@given(LANGUAGE, TEXT, TEXT)
def test_the_target_itself_is_exact_under_ctxbench(language: str, prompt: str, target: str) -> None:
    values = score("ctxbench", language, prompt=prompt, prediction=target, ground_truth=target)
    if target.strip():
        assert set(values.values()) == {1.0}


@given(LANGUAGE, TEXT, TEXT)
def test_identifier_match_is_symmetric(language: str, one: str, other: str) -> None:
    first, second = identifiers(language, one), identifiers(language, other)
    there, back = match_identifiers(first, second), match_identifiers(second, first)
    there["id_precision"], there["id_recall"] = there["id_recall"], there["id_precision"]
    assert there == back


def grown(prompt: str, prediction: str) -> str:
    """Cut by the definition: parse every prefix as a whole and look at every node."""
    import tree_sitter
    import tree_sitter_python

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))

    def has_error_node(node: tree_sitter.Node) -> bool:
        return node.type == "ERROR" or any(has_error_node(child) for child in node.children)

    for size in range(1, len(prediction)):
        try:
            source = (prompt + prediction[:size]).encode()
        except UnicodeEncodeError:
            return prediction
        if not has_error_node(parser.parse(source).root_node) and prediction[size] == "\n":
            return prediction[:size].rstrip()
    return prediction


@settings(max_examples=200, deadline=None)
@given(TEXT, TEXT)
@example("", "x = \ud800\ny\n")
def test_the_cut_equals_its_definition(prompt: str, prediction: str) -> None:
    assert first_statement("python", prompt, prediction) == grown(prompt, prediction)


@pytest.mark.parametrize("depth", [200, 3000])
def test_very_deep_nesting_does_not_crash_and_is_not_cut(depth: int) -> None:
    prompt = "x = " + "(" * depth + "1" + ")" * depth + "\n"
    kept = first_statement("python", prompt, "y = 1\nz = 2\n")
    assert kept == ("y = 1" if depth == 200 else "y = 1\nz = 2\n")


@pytest.mark.slow
def test_values_do_not_depend_on_the_number_of_workers() -> None:
    cases = [
        Case(language="python", prompt="x = ", prediction=f"f({i}, a)\ny", ground_truth=f"f({i % 7}, b)")
        for i in range(300)
    ]
    done: list[int] = []
    alone = score_many(cases, "crosscodeeval", 1)
    assert score_many(cases, "crosscodeeval", 2, report=done.append) == alone
    assert sum(done) == len(cases)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            "import sys; sys.modules['Levenshtein'] = None\n"
            "from ctxbench.harness.metrics import PROFILES, score\n"
            "for name in PROFILES: score(name, 'python', prompt='x = ', prediction='ab(c)\\n', ground_truth='ab(d)')\n"
            "print(score('crosscodeeval', 'python', prompt='', prediction='abcd', ground_truth='bcde')['es'])",
            "75.0",
        ),
        (
            "import ctxbench.harness.metrics, sys; "
            "print([m for m in ('numpy', 'rapidfuzz', 'tree_sitter') if m in sys.modules])",
            "[]",
        ),
    ],
    ids=["Levenshtein is never imported", "importing the metrics is cheap"],
)
def test_scoring_imports_only_needed_modules(program: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said


def test_every_metric_is_described() -> None:
    for profile in PROFILES:
        for metric in metrics(profile):
            one = info(profile, metric)
            assert one.worst == 0.0 and one.unit == "%" and not one.lower_is_better and one.source
            assert one.help.endswith(".") and len(one.description) < 130


@pytest.mark.parametrize(
    ("profile", "language", "word"), [("repocode", "python", "repocoder"), ("ctxbench", "jav", "java")]
)
def test_unknown_names_get_a_suggestion(profile: str, language: str, word: str) -> None:
    with pytest.raises(UnknownName, match=word):
        score(profile, language, prompt="", prediction="", ground_truth="")
    with pytest.raises(UnknownName, match="es"):
        info("repocoder", "ess")


def test_means_are_over_repositories_or_samples_by_profile() -> None:
    rows = [{"em": 1.0, "es": 1.0}, {"em": 0.0, "es": 0.5}, {"em": 0.0, "es": 0.0}, {"em": 1.0, "es": None}]
    repos = ["a", "a", "b", "b"]
    assert aggregate("rlcoder_repoeval", rows, repos) == {"em": 25.0, "es": 37.5}
    assert aggregate("infercom", rows, repos) == {"em": 33.33, "es": 50.0}


def worst_mean() -> float:
    status = [*[Status.SCORED] * 10, Status.INFRA_FAILED]
    [row] = board([make_table({"es": [*[0.001] * 10, None]}, "abcdefghijk", status=status)]).rows
    return row.sensitivity["es"].worst


@pytest.mark.parametrize(
    "number",
    [
        lambda: score("context_collection", "python", prompt="", prediction="return a + b", ground_truth="return b"),
        lambda: aggregate("ctxbench", [{"em": 0.1}] * 10),
        lambda: space_cost("\n       ", " "),
        worst_mean,
    ],
)
def test_no_number_depends_on_the_interpreter(number: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    def rounding(values: Iterable[float], start: float = 0) -> float:
        return functools.reduce(operator.add, values, start)

    def compensating(values: Iterable[float], start: float = 0) -> float:
        # Python 3.12 and later sum floats like this.
        terms = [start, *values]
        return math.fsum(terms) if float in map(type, terms) else rounding(terms)

    numbers = []
    for summing in (rounding, compensating):
        with monkeypatch.context() as patch:
            patch.setattr(builtins, "sum", summing)
            numbers.append(number())
    assert numbers[0] == numbers[1]


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
def test_comments_and_names_follow_the_syntax(language: str, before: str, text: str, code: str, names: str) -> None:
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
def test_different_code_that_patterns_confuse_is_not_equal(language: str, prediction: str, target: str) -> None:
    assert em(language, prediction, target) == 0.0
    official = score("crosscodeeval", language, prompt="x = ", prediction=prediction, ground_truth=target)
    assert official["em"] == 1.0


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_answer_below_the_line_of_the_cursor_can_be_exact(end: str) -> None:
    target = f"{end}    a,{end}    b)"
    assert em("python", target, target, prompt="x = foo(") == 1.0
    assert em("python", f"{target}{end}more()", target, prompt="x = foo(") == 1.0


def test_comments_and_text_after_the_line_do_not_count() -> None:
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
def test_pass_at_k_refuses_invalid_counts(n: int, c: int, k: int) -> None:
    with pytest.raises(InputFault):
        pass_at_k(n, c, k)


@pytest.mark.parametrize(("n", "c"), [(5, []), ([5], [1, 2]), ([5, 3], [1, 1])])
def test_mean_pass_at_k_refuses_uneven_input(n: int | list[int], c: list[int]) -> None:
    with pytest.raises(InputFault):
        mean_pass_at_k(n, c, 4)


def test_pass_at_one_is_the_share_that_passed() -> None:
    assert pass_at_k(4, 1, 1) == 0.25
    assert mean_pass_at_k(4, [1, 3], 1) == 0.5
