"""Checks of the documentation: commands have help, commands and links on pages are valid."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from ctxbench.bench import formats
from scripts.site import commands

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.S | re.M)


@pytest.mark.parametrize(("path", "command"), list(commands()))
def test_every_command_and_option_has_help(path: str, command: click.Command) -> None:
    assert command.help, path
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, (path, parameter.name)


@pytest.mark.parametrize(
    ("name", "installed"), [("benchmark.md", formats.sample_names), ("results.md", formats.prediction_names)]
)
def test_the_tables_of_formats_list_every_format(name: str, installed: Callable[[], tuple[str, ...]]) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    tables = re.findall(r"^\| `--format` \|.*?\n\|[-|]+\n(.*?)\n\n", text, re.S | re.M)
    for table in tables:
        first_cells = [row.split("|")[1] for row in table.splitlines()]
        assert tuple(sorted(re.findall(r"`([\w-]+)`", " ".join(first_cells)))) == installed()
    assert tables


def test_the_explained_row_comes_from_the_tutorial() -> None:
    tutorial, board = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("tutorial.md", "board.md"))
    assert all(f"\n{line}\n" in tutorial for line in blocks("text", board)[0].splitlines())


def test_readme_shows_working_code_in_its_first_35_lines() -> None:
    head = "\n".join(README.splitlines()[:35])
    assert "```sh" in head and "make quickstart" in head and "```python" in head


def test_every_make_target_that_the_docs_name_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.M))
    texts = [
        README,
        *(
            p.read_text(encoding="utf-8")
            for p in [ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")]
        ),
    ]
    named = {name for text in texts for name in re.findall(r"\bmake ([a-z-]+)`", text)}
    named |= {name for block in blocks("sh") for name in re.findall(r"^make ([a-z-]+)", block, re.M)}
    assert named and named <= targets


def named_commands() -> list[tuple[str, str, bool]]:
    """Return every command on the pages: the page, the command line, and whether the command is complete."""
    written: list[tuple[str, str, bool]] = []
    for file in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")]:
        text = file.read_text(encoding="utf-8")
        whole = [line for block in blocks("sh", text) for line in block.replace("\\\n", " ").splitlines()]
        quoted = re.findall(r"`(ctxbench [^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))
        typed = [line.strip() for line in whole if re.match(r"\s*ctxbench ", line)]
        written += [(file.name, re.split(r" [|&>;]|  #", line)[0], not re.search(r"…|\.\.\.", line)) for line in typed]
        written += [(file.name, line, False) for line in quoted]
    return written


def test_every_command_in_the_docs_is_valid() -> None:
    known = dict(commands())
    wrong = []
    for file, line, whole in named_commands():
        words = shlex.split(line, comments=True)
        path = max((" ".join(words[:n]) for n in (2, 3) if " ".join(words[:n]) in known), key=len, default="")
        if path == "ctxbench runs":
            path += " show"  # `show` may be left out
        command = known.get(path)
        if command is None:
            wrong += [] if words[1].startswith("-") or words[1] in "…" else [(file, line, "no command")]
            continue
        if isinstance(command, click.Group):
            continue
        spellings = {spelling: p for p in command.params for spelling in (*p.opts, *p.secondary_opts)}
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        wrong += [(file, line, f"no {name}") for name in sorted(given - {*spellings, "--help"})]
        if whole and "--help" not in given:
            needed = [p for p in command.params if isinstance(p, click.Option) and p.required]
            wrong += [(file, line, f"lacks {p.opts[0]}") for p in needed if not given & set(p.opts)]
    assert not wrong, "\n".join(map(str, wrong))
    assert len(named_commands()) > 100


def test_links_between_pages_are_not_broken() -> None:
    for page_file in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page_file.read_text(encoding="utf-8")):
            assert (page_file.parent / target).exists(), f"{page_file.name}: {target}"
