r"""Prints a board as LaTeX in ASCII: one float per section, with booktabs tables and the section's notes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from ctxbench.harness.leaderboard.columns import TextTable
from ctxbench.harness.leaderboard.headline import title
from ctxbench.harness.leaderboard.rows import Board, Group, Standing
from ctxbench.harness.leaderboard.sections import BoardSection, sections
from ctxbench.harness.leaderboard.stats import IntervalScope

PACKAGES = r"\usepackage{booktabs,graphicx}"
_FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
"""LaTeX code that opens a box. If the box is wider than the line, it shrinks to the line's width."""
# Braces prevent LaTeX from reading a bracket or star as an argument, and from joining dashes or quotes.
_SPECIAL = {
    **{character: rf"\{character}" for character in "&%$#_{}"},
    **{character: f"{{{character}}}" for character in "[]*-'`"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "{''}",
    "\u2013": "--",
    "\u2014": "---",
    "\u2018": "{`}",
    "\u2019": "{'}",
    "\u201c": "{``}",
    "\u201d": "{''}",
    "\u2026": r"\ldots{}",
    "\u00b5": r"$\mu$",
    "\u03bc": r"$\mu$",
    "\u00b1": r"$\pm$",
    "\u00d7": r"$\times$",
    "\u2264": r"$\leq$",
    "\u2265": r"$\geq$",
    "\u2192": r"$\rightarrow$",
    "\u2212": "$-$",
    "\u00df": r"\ss{}",
    "\u00f8": r"\o{}",
    "\u00d8": r"\O{}",
    "\u00e6": r"\ae{}",
    "\u00c6": r"\AE{}",
}
_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0327": "c",
}


def latex(board: Board, *, diagnostics: bool = False, full: bool = False, by: str = "") -> str:
    """Return the board as LaTeX floats with captions, labels, tables and notes; arguments as for `render.table`."""
    groups = {title(group): group for group in board.groups}
    labels: set[str] = set()
    floats = [
        _float(section, groups.get(section.title), _label(section.title, labels))
        for section in sections(board, diagnostics=diagnostics, full=full, by=by)
    ]
    return "\n".join([f"% Needs {PACKAGES}.\n", *floats])


def escaped(text: str) -> str:
    """Return text in ASCII that LaTeX prints literally, on one line. Untranslatable characters become [U+code]."""
    return "".join(map(_character, unicodedata.normalize("NFC", text))).replace(",,", ",{},")


def _character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if character.isspace():
        return " "
    if character.isascii() and character.isprintable():
        return character
    letter, *marks = tuple(unicodedata.normalize("NFD", character))
    if len(marks) == 1 and marks[0] in _ACCENTS and letter.isascii():
        # An accent above an i or a j replaces its dot.
        base = f"\\{letter}{{}}" if letter in "ij" and marks[0] != "\u0327" else letter
        return f"\\{_ACCENTS[marks[0]]}{{{base}}}"
    return f"{{[}}U+{ord(character):04X}{{]}}"


def _float(section: BoardSection, group: Group | None, label: str) -> str:
    # All tables of a group have its rows in the same order.
    rows = group.rows if group else ()
    first = {index for index, row in enumerate(rows) if row.standing is Standing.UNBEATEN}
    lines = [
        r"\begin{table}[htbp]",
        r"  \centering\footnotesize",
        r"  \setlength{\tabcolsep}{4pt}",
        f"  \\caption[{{{escaped(section.title)}}}]{{{_caption(section, group)}}}",
        f"  \\label{{{label}}}",
    ]
    for number, text_table in enumerate(section.all_tables):
        lines += [r"  \par\medskip"] if number else []
        bold = first if number < len(section.tables) else set[int]()
        lines += [f"  {line}" for line in (_FITTED, *_tabular(text_table, bold))]
    if section.notes:
        lines += [r"  \par\medskip", r"  \begin{minipage}{\linewidth}\raggedright"]
        lines += [f"    {escaped(note)}\\par" for note in section.notes]
        lines += [r"  \end{minipage}"]
    return "\n".join([*lines, r"\end{table}", ""])


def _caption(section: BoardSection, group: Group | None) -> str:
    sentences = [f"{section.title}."]
    if group is not None:
        sizes = sorted({row.n for row in group.rows})
        n = f"n = {sizes[0]}" if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]}"
        sentences.append(f"Ranked by {group.metric}, {n}{_brackets(group)}.")
        if group.unbeaten:
            sentences.append("Bold: significantly better than another row, and worse than none.")
        if group.all_pairs:
            sentences.append("Rows that share a letter are not significantly different.")
    return escaped(" ".join(sentences))


def _brackets(group: Group) -> str:
    over = {
        estimate.over
        for row in group.rows
        if (estimate := row.metrics.get(group.metric)) and estimate.over is not IntervalScope.NONE
    }
    return f"; 95% intervals over {' or '.join(sorted(over))} in brackets" if over else ""


def _tabular(text_table: TextTable, first: set[int]) -> Iterator[str]:
    heads = text_table.heads
    yield f"\\begin{{tabular}}{{{''.join('l' if head.is_text else 'r' for head in heads)}}}"
    yield r"\toprule"
    yield f"{' & '.join(escaped(head.text) for head in heads)} \\\\"
    yield r"\midrule"
    for index, line in enumerate(text_table.lines):
        cells = [escaped(cell) if head.is_text else _number(cell) for head, cell in zip(heads, line, strict=True)]
        if index in first:
            cells = [f"\\textbf{{{cell}}}" if cell else "" for cell in cells]
        yield f"{' & '.join(cells)} \\\\"
    yield r"\bottomrule"
    yield r"\end{tabular}}"


def _number(cell: str) -> str:
    """Escape a numeric cell: a dash before a digit is a minus, a dash between digits is a range."""
    text = escaped(cell)
    text = re.sub(r"(?<=\d)\{-\}(?=\d)", "--", text)
    return re.sub(r"\{-\}(?=\d)", "$-$", text)


def _label(text: str, labels: set[str]) -> str:
    stem = "tab:" + "-".join(re.findall(r"[a-z0-9]+", text.lower()))
    label, number = stem, 2
    while label in labels:
        label, number = f"{stem}-{number}", number + 1
    labels.add(label)
    return label
