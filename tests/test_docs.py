"""The documentation is tested: commands have help and a place in the docs, links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from ctxbench.bench import formats
from scripts.commands_page import PAGE, commands, page

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


def test_the_page_of_commands_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


@pytest.mark.parametrize(
    ("name", "installed"), [("benchmarks.md", formats.sample_names), ("results.md", formats.prediction_names)]
)
def test_the_tables_of_formats_name_every_one(name: str, installed: Callable[[], tuple[str, ...]]) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    tables = re.findall(r"^\| `--format` \|.*?\n\|[-|]+\n(.*?)\n\n", text, re.S | re.M)
    for table in tables:
        first_cells = [row.split("|")[1] for row in table.splitlines()]
        assert tuple(sorted(re.findall(r"`([\w-]+)`", " ".join(first_cells)))) == installed()
    assert tables


def test_readme_shows_working_code_in_its_first_35_lines() -> None:
    head = "\n".join(README.splitlines()[:35])
    assert "```sh" in head and "make quickstart" in head and "```python" in head


def test_every_make_target_that_the_docs_name_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.M))
    texts = [README, *(p.read_text(encoding="utf-8") for p in [ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")])]
    named = {name for text in texts for name in re.findall(r"\bmake ([a-z-]+)`", text)}
    named |= {name for block in blocks("sh") for name in re.findall(r"^make ([a-z-]+)", block, re.M)}
    assert named and named <= targets


def test_links_between_pages_lead_somewhere() -> None:
    for page_file in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page_file.read_text(encoding="utf-8")):
            assert (page_file.parent / target).exists(), f"{page_file.name}: {target}"
