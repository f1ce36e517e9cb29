"""Writes the boards of home folders, to compare versions of ctxbench: ``python -m scripts.boards OUT FOLDER...``."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from ctxbench.bench.home import Home
from ctxbench.harness.cli.main import cli
from ctxbench.harness.store import open_store
from ctxbench.harness.store.work import run_works

FORMATS = ("table", "json", "csv", "markdown", "latex")
PROFILES = ("ctxbench", "infercom", "repocoder", "crosscodeeval")
OPTIONS = (("--published", "none"), ("--published", "all"), ("--by-level",), ("--invalid", "include"), ("--k", "2"))
PAGES = ("leaderboard", "compare", "cost", "samples", "benchmark")
MOST_COMPARED = 3
_DRAWN = re.compile(r"(?:\$\$ID|data)-[0-9a-f]{32}|(?<=uuid: \")\w{5}|(?<=found/)-?\d+")
"""Random ids, or digests that depend on the script's folder."""
TOKENS = """[[rate]]
match = "*"
input = 3.0
cached = 0.5
output = 15.0
seen = 2026-01-01
"""


def boards(home: Path) -> Iterator[tuple[str, str]]:
    """Yield (file name, text) for the boards, reports and dashboard pages of a home folder, with various options."""
    rates = home / "rates.toml"
    rates.write_text(TOKENS, encoding="utf-8")
    for form in FORMATS:
        diagnosed = ((), ("--diagnostics",)) if form in ("table", "markdown", "latex") else ((),)
        for options, more in itertools.product(((), *OPTIONS, ("--prices", str(rates))), diagnosed):
            yield _named("leaderboard", form, *options, *more), _run(home, "leaderboard", *options, *more, form=form)
        for profile in PROFILES[1:]:
            yield f"profile-{profile}.{form}", _run(home, "leaderboard", "--profile", profile, form=form)
    for options in ((), ("--by-level",), ("--prices", str(rates))):
        out = home / "report.html"
        _run(home, "report", "--out", str(out), *options)
        yield _named("report", "html", *options), out.read_text(encoding="utf-8")
    yield "runs.table", _run(home, "runs")
    yield "runs.json", _run(home, "runs", form="json")
    for sample_set, ids in _sets(home).items():
        for form in ("table", "json"):
            yield _named("compare", form, sample_set), _run(home, "compare", *ids[:MOST_COMPARED], form=form)
    for page, query in itertools.product(PAGES, _queries(home)):
        yield _named("page", "txt", page, *query.values()), _page(page, query)


def _named(name: str, suffix: str, *words: str) -> str:
    stem = "-".join((name, *(Path(word).name.strip("-") for word in words)))
    return f"{''.join(letter if letter.isalnum() or letter in '-_.' else '_' for letter in stem)}.{suffix}"


def _run(home: Path, *arguments: str, form: str = "") -> str:
    options = ["--format", form] if form else []
    answer = CliRunner().invoke(cli, [*arguments, "--home", str(home), *options])
    return answer.output if answer.exit_code == 0 else f"exit code {answer.exit_code}\n{answer.output}"


def _sets(home: Path) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = defaultdict(list)
    with open_store(Home(home).database) as store:
        for run in run_works(store):
            ids[f"{run.choices.samples}-{run.choices.limit}"].append(run.id)
    return ids


def _queries(home: Path) -> list[dict[str, str]]:
    names = sorted({name.rpartition("-")[0] for name in _sets(home)})
    return [{"samples": name, **profile} for name in names for profile in ({}, {"profile": PROFILES[1]})]


def _page(page: str, query: dict[str, str]) -> str:
    from streamlit.testing.v1 import AppTest  # noqa: PLC0415 - slow to import

    script = f"from ctxbench.dashboard.app import show_page\nshow_page({page!r})\n"
    test = AppTest.from_string(script, default_timeout=300)
    test.query_params.update(query)
    test.run()
    return _DRAWN.sub("ID", "\n".join(_lines(test.main, 0)))


def _lines(element: Any, depth: int) -> Iterator[str]:
    if hasattr(element, "children"):
        for child in element.children.values():
            yield from _lines(child, depth + 1)
        return
    yield f"{' ' * depth}{element.type}: {_content(element)}"


def _content(element: Any) -> str:
    if element.type == "arrow_data_frame":
        return f"{element.proto.columns}\n{element.value.to_csv(index=False)}"
    return str(getattr(element, "proto", element))


def main(arguments: Sequence[str]) -> int:
    """Write the texts of `boards` for each home folder into a folder of its own in OUT; return 0, the exit code."""
    out, *homes = map(Path, arguments)
    for home in homes:
        folder = out / home.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        os.environ |= {"CTXBENCH_HOME": str(home.absolute()), "CTXBENCH_DB": Home(home.absolute()).database}
        for name, text in boards(home.absolute()):
            (folder / name).write_text(text, encoding="utf-8", errors="surrogatepass")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
