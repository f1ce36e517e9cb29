"""The board as LaTeX, read back by a small parser and by a real LaTeX if one is installed."""

import re
import shutil
import string
import subprocess
from pathlib import Path

import pytest

from ctxbench.harness.leaderboard import board, latex
from ctxbench.harness.leaderboard.rows import Standing
from ctxbench.harness.leaderboard.sections import sections
from ctxbench.harness.results import RunTable, Status
from tests.harness.leaderboard.test_board import noisy
from tests.helpers.runs import make_table

HOSTILE = r"\input{/etc/passwd}%$#_{}~^&<script>|\"'`--[x]*," + "é ĳ ǰ 中\u202e\x07\n\\end{table}"
_BACK = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    "{''}": '"',
    "$-$": "-",
    "--": "-",
    **{rf"\{one}": one for one in "&%$#_{}"},
    **{f"{{{one}}}": one for one in "[]*-'`"},
}


def plain(text: str) -> str:
    """Return the text before escaping."""
    found, rest = "", text
    while rest:
        key = next((key for key in sorted(_BACK, key=len, reverse=True) if rest.startswith(key)), rest[0])
        found, rest = found + _BACK.get(key, key), rest[len(key) :]
    return found


def cells(text: str) -> list[list[list[str]]]:
    """Return the cells of each tabular, line by line."""
    tables = []
    for body in re.findall(r"\\begin\{tabular\}\{[lr]+\}\n(.*?)\\end\{tabular\}", text, re.S):
        lines = [line.strip().removesuffix(r" \\") for line in body.splitlines() if line.endswith(r"\\")]
        split = [re.split(r"(?<!\\)&", line) for line in lines]
        tables.append([[plain(re.sub(r"^\\textbf\{(.*)\}$", r"\1", one.strip())) for one in line] for line in split])
    return tables


def many(extra: str = "random|windows") -> list[RunTable]:
    status = [Status.SCORED] * 79 + [Status.MODEL_FAILED]
    begun = [Status.SCORED] * 78 + [Status.INFRA_FAILED] * 2
    return [
        noisy("lc.infile", 0.3, generator="incontext"),
        noisy("lc.repocoder(iterations=2, window=20)", 0.45, generator="incontext", status=status),
        noisy(extra, 0.25, generator="incontext"),
        noisy("oracle", 0.9, generator="incontext", ranked=False),
        noisy("lc.begun", 0.7, generator="incontext", status=begun),
    ]


def test_every_cell_equals_that_of_the_other_formats() -> None:
    made = board(many())
    wanted = [
        [[head.text for head in table.heads], *table.lines] for section in sections(made) for table in section.tables
    ]
    assert cells(latex.latex(made)) == wanted and len(wanted) == 2


def test_only_unbeaten_rows_are_bold() -> None:
    made = board(many())
    text = latex.latex(made)
    first = [row.run.strategy for row in made.groups[0].rows if row.standing is Standing.UNBEATEN]
    assert first == ["lc.repocoder(iterations=2, window=20)"]
    bold = [line for line in text.splitlines() if r"\textbf{" in line]
    assert len(bold) == 2 and all("lc.repocoder" in line for line in bold)


def test_nothing_is_bold_if_no_rows_differ_significantly() -> None:
    made = board([noisy("lc.infile", 0.3), noisy("twin", 0.3)])
    assert [row.letters for row in made.groups[0].rows] == ["a", "a"]
    text = latex.latex(made)
    assert r"\textbf" not in text and "Bold" not in text and "share a letter" not in text
    text = latex.latex(board([noisy("lc.infile", 0.3), noisy("twin", 0.3)], all_pairs=True))
    assert r"\textbf" not in text and "Rows that share a letter are not significantly different." in text


def test_a_group_is_a_float_with_caption_label_and_notes() -> None:
    # Two groups have different labels even if their names differ only in punctuation.
    text = latex.latex(board([*many(), noisy("lc.infile", 0.3, generator="incontext+")]))
    assert text.isascii() and f"Needs {latex.PACKAGES}" in text
    labels = re.findall(r"\\label\{(.*?)\}", text)
    assert len(labels) == len(set(labels)) == 2 and all(re.fullmatch(r"tab:[a-z0-9-]+", one) for one in labels)
    captions = [line for line in text.splitlines() if r"\caption" in line]
    assert "Ranked by es, n = 78 to 80; 95\\% intervals over repositories in brackets." in captions[0]
    assert "Not ranked, because samples are missing (never counted as 0)" in text
    for name in ("table", "tabular", "minipage"):
        assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") > 0
    for rule in ("toprule", "midrule", "bottomrule"):
        assert text.count(f"\\{rule}") == 4


@pytest.mark.parametrize("one", sorted(string.punctuation))
def test_punctuation_is_escaped_and_printed_unchanged(one: str) -> None:
    assert plain(latex.escaped(f"x{one}{one}y{one}")).replace("{}", "") == f"x{one}{one}y{one}"


def test_other_characters_become_accents_or_code_points() -> None:
    assert latex.escaped("Müller façade ï") == r"M\"{u}ller fa\c{c}ade \"{\i{}}"
    assert latex.escaped("e\u0301") == r"\'{e}"
    assert latex.escaped("a\tb\nc") == "a b c"
    assert latex.escaped("≥ µ 中 \x07 \u202e") == r"$\geq$ $\mu$ {[}U+4E2D{]} {[}U+0007{]} {[}U+202E{]}"


def test_a_hostile_name_is_printed_as_text() -> None:
    text = latex.latex(board([noisy(HOSTILE, 0.6), noisy("lc.infile", 0.3)]))
    assert text.isascii() and text.count(r"\begin{table}") == text.count(r"\end{table}") == 1
    # Every backslash begins one of ctxbench's own commands.
    ours = set(re.findall(r"\\([a-zA-Z]+)", text.replace(r"\textbackslash{}", "")))
    assert ours <= {
        "usepackage", "begin", "end", "centering", "footnotesize", "setlength", "tabcolsep", "caption", "label", "par",
        "medskip", "toprule", "midrule", "bottomrule", "textbf", "textless", "textgreater", "textbar", "textasciitilde",
        "textasciicircum", "linewidth", "raggedright", "v", "j", "resizebox", "ifdim", "width", "else", "fi",
    }  # fmt: skip
    # A table that shrinks to the line width has its own braces.
    whole = text.replace(r"{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%", "").replace(
        "{tabular}}", "{tabular}"
    )
    assert len(text) - len(whole) > 0
    for line in whole.splitlines()[1:]:
        assert not re.search(r"(?<!\\)[%#]", line)
        depth = re.sub(r"\\[{}]", "", line)
        assert depth.count("{") == depth.count("}")


def test_boards_without_ranked_rows_or_without_rows_are_printed() -> None:
    failed = make_table({"es": [None] * 3}, "abc", status=[Status.INFRA_FAILED] * 3)
    assert "Ranked by es, n = 0." in latex.latex(board([failed]))
    assert "tabular" not in latex.latex(board([]))


@pytest.mark.slow
def test_latex_compiles_the_board(tmp_path: Path) -> None:
    made = board(
        [*many(HOSTILE), noisy("lc.infile", 0.3, generator="other"), noisy("long " * 30, 0.2, generator="other")]
    )
    text = latex.latex(made)
    engine = next(filter(None, map(shutil.which, ("pdflatex", "lualatex", "xelatex", "tectonic"))), None)
    if engine is None:
        # Without LaTeX, the parser must find as many cells in every line as in its heading.
        tables = cells(text)
        assert len(tables) == 4 and all(len(line) == len(table[0]) for table in tables for line in table)
        return
    document = f"\\documentclass{{article}}{latex.PACKAGES}\\begin{{document}}{text}\\end{{document}}"
    (tmp_path / "board.tex").write_text(document, encoding="ascii")
    options = [] if engine.endswith("tectonic") else ["-halt-on-error", "-interaction=nonstopmode"]
    command = [engine, *options, "board.tex"]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=80)
    assert done.returncode == 0, done.stdout[-2000:]
    # A table wider than the line would be cut at the edge of the page.
    assert "Overfull" not in done.stdout
