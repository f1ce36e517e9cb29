"""Writes tables and a picture of the built standard sets into docs/ and bench/standard/README.md.

``python -m scripts.standard_set_page HOME``: HOME contains the sets ``ctxbench-2`` and ``ctxbench-2-functions``, built
by ``ctxbench samples build NAME --set ctxbench-2``, the latter with ``--kind function``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ctxbench.bench import samples, standard
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.repositories.snapshot import Snapshot, is_test_or_vendored
from scripts import log_place, write_section

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, PICTURE = DOCS / "standard-set.md", DOCS / "standard-set.svg"
FILE = DOCS.parent / "bench" / "standard" / "README.md"
"""File with the complete table, whose twelve columns are too many for a page."""
NAME, FUNCTIONS = "ctxbench-2", "ctxbench-2-functions"
BEGIN, END = "<!-- table: python -m scripts.standard_set_page -->\n", "<!-- end of the table -->"
_COUNTS = ("files", "lines", "code", "usable lines", "tests", "usable functions")
_WIDTH, _HEIGHT, _EDGE = 720, 420, 60
_COLOURS = {"python": "#2a78d6", "java": "#eb6834"}
_LINES, _USABLE = (1_000.0, 100_000.0), (30.0, 10_000.0)
"""Ends of the axes: lines of the repository's files, and the lines that can be samples."""


def domains_table() -> str:
    """Return a Markdown table of domains and their repositories per language. Those of ctxbench-2-lite are bold."""
    members, lite = standard.load(NAME), standard.load(f"{NAME}-lite").domains
    language = {repository.name: str(repository.language) for repository in members.manifests}
    names: dict[str, dict[str, list[str]]] = {domain: {} for domain in sorted(set(members.domains.values()))}
    for name, domain in members.domains.items():
        names[domain].setdefault(language[name], []).append(f"**{name}**" if name in lite else name)
    lines = (
        f"| {domain.replace('-', ' ')} | {' | '.join(', '.join(of.get(spoken, [])) for spoken in _COLOURS)} |"
        for domain, of in names.items()
    )
    return "\n".join(["| domain | Python | Java |", "|---|---|---|", *lines, ""])


def code_lines(repository: Snapshot) -> int:
    """Return a repository's number of lines of code, without blank lines, comments, tests and copied projects."""
    texts = (text for path, text in repository.texts.items() if not is_test_or_vendored(path))
    return sum(_lines_with_code(text, repository.language) for text in texts)


def _lines_with_code(text: str, language: Language) -> int:
    rows: set[int] = set()
    nodes = [Source(text, language).root]
    while nodes:
        node = nodes.pop()
        nodes += node.children
        if not node.child_count and node.end_byte > node.start_byte and "comment" not in node.type:
            rows.update(range(node.start_point[0], node.end_point[0] + 1))
    return len(rows)


def table(
    repositories: Mapping[str, Mapping[str, Any]], tested: Mapping[str, Mapping[str, Any]], code: Mapping[str, int]
) -> str:
    """Return a Markdown table of repositories, from the manifests `repositories`, `tested` and line counts `code`."""
    columns = ("", "repository", "version", "released", "domain", "language", "licence", *_COUNTS)
    return "\n".join(
        [
            f"| {' | '.join(columns)} |".replace("|  |", "| |"),
            f"|---:|{'---|' * 6}{'---:|' * len(_COUNTS)}",
            *_rows(repositories, tested, code),
            "",
        ]
    )


def _rows(
    repositories: Mapping[str, Mapping[str, Any]], tested: Mapping[str, Mapping[str, Any]], code: Mapping[str, int]
) -> Iterator[str]:
    lite = standard.load(f"{NAME}-lite").domains
    members = standard.load(NAME)
    released = {repository.name: str(repository.released) for repository in members.manifests}
    for number, (name, domain) in enumerate(members.domains.items(), 1):
        entry = repositories[name]
        facts = (
            entry["version"],
            released[name],
            domain.replace("-", " "),
            entry["language"].capitalize(),
            entry["license"],
        )
        counts = [f"{count:,}" for count in (entry["files"], entry["lines"], code[name], entry["usable"])]
        counts += [f"{tested[name][key]:,}" if name in tested else "" for key in ("tests_passed", "candidates")]
        shown = f"**{name}**" if name in lite else name
        yield f"| {number} | {shown} | {' | '.join(facts)} | {' | '.join(counts)} |"


def picture(repositories: Mapping[str, Mapping[str, Any]]) -> str:
    """Return an SVG with a point per repository: its number of lines (x), and how many of them can be samples (y)."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
    ]
    for lines in (1_000, 10_000, 100_000):
        x = log_place(lines, _LINES, _EDGE, _WIDTH - _EDGE)
        parts.append(f'<path d="M{x:.0f} {_EDGE / 2:.0f}V{_HEIGHT - _EDGE}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.0f}" y="{_HEIGHT - _EDGE + 18}" text-anchor="middle">{lines:,}</text>')
    for usable in (100, 1_000, 10_000):
        y = log_place(usable, _USABLE, _HEIGHT - _EDGE, _EDGE / 2)
        parts.append(f'<path d="M{_EDGE} {y:.0f}H{_WIDTH - _EDGE}" stroke="#ddd"/>')
        parts.append(f'<text x="{_EDGE - 6}" y="{y + 4:.0f}" text-anchor="end">{usable:,}</text>')
    for name in standard.load(NAME).domains:
        entry = repositories[name]
        x = log_place(entry["lines"], _LINES, _EDGE, _WIDTH - _EDGE)
        y = log_place(entry["usable"], _USABLE, _HEIGHT - _EDGE, _EDGE / 2)
        title = f"{name}: {entry['lines']:,} lines, {entry['usable']:,} usable"
        colour = _COLOURS[entry["language"]]
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"><title>{title}</title></circle>')
    for row, (language, colour) in enumerate(_COLOURS.items()):
        parts.append(f'<circle cx="{_EDGE + 14}" cy="{_EDGE / 2 + 14 + 18 * row}" r="5" fill="{colour}"/>')
        label = language.capitalize()
        parts.append(f'<text x="{_EDGE + 24}" y="{_EDGE / 2 + 18 + 18 * row}">{label}</text>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 16}" text-anchor="middle">lines of the repository</text>')
    label = "lines that could be samples"
    parts.append(f'<text transform="translate(14 {_HEIGHT / 2}) rotate(-90)" text-anchor="middle">{label}</text></svg>')
    return "\n".join(parts) + "\n"


def main() -> None:
    """Write the tables and the picture into the docs."""
    home = Home(Path(sys.argv[1]))
    repositories, tested = (samples.manifest_of(home, name)["repositories"] for name in (NAME, FUNCTIONS))
    code = {name: code_lines(part) for name, part in samples.snapshots(home, samples.load(home, NAME)).items()}
    write_section(FILE, BEGIN, END, table(repositories, tested, code))
    write_section(PAGE, BEGIN, END, domains_table())
    PICTURE.write_text(picture(repositories), encoding="utf-8")


if __name__ == "__main__":
    main()
