"""Writes the documentation as a site, with the notebook and all commands' help: ``python -m scripts.site [FOLDER]``."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
from nbconvert import MarkdownExporter

from ctxbench.harness.cli.main import cli
from ctxbench.harness.cli.options import WithShapes

ROOT = Path(__file__).resolve().parents[1]
_NOTEBOOK = "notebook.ipynb"
_SHIM = re.compile(r'https://[^"]+/iframe-worker/shim')
"""Script that the site generator loads from another server in every page. Without it, search works from a disk."""
_HEAD = """# Commands

The `--help` text of every command.

Every command writes data to stdout and progress to stderr. The exit code is 0, 1 (a fault of the input or the machine,
in one line with its cure), 2 (a wrong call, also in one line), 3 (a bug of ctxbench) or 130 (interrupted). `--home` (or
`CTXBENCH_HOME`) is the home folder, `--db` (or `CTXBENCH_DB`) the SQLAlchemy URL of the results. `CTXBENCH_CACHE` is
another folder for the home's `cache`, so that the home folder is only read.
"""


def build(folder: Path, docs: Path = ROOT / "docs") -> None:
    """Write the site into a folder, replacing its content.

    Raises:
        SystemExit: if a page is missing or a link is broken, with the generator's output.
    """
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        pages = root / "docs"
        shutil.copytree(docs, pages)
        shutil.copy(ROOT / "mkdocs.yml", root)
        text, _ = MarkdownExporter().from_filename(str(pages / _NOTEBOOK))
        (pages / _NOTEBOOK).unlink()
        (pages / _NOTEBOOK).with_suffix(".md").write_text(text, encoding="utf-8")
        (pages / "commands.md").write_text(commands_page(), encoding="utf-8")
        for page in pages.glob("*.md"):
            linked = page.read_text(encoding="utf-8").replace(f"]({_NOTEBOOK})", "](notebook.md)")
            page.write_text(linked, encoding="utf-8")
        generator = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
        plain = {**os.environ, "NO_COLOR": "1"}
        built = subprocess.run(generator, cwd=root, env=plain, capture_output=True, text=True, check=False)
        if built.returncode:
            raise SystemExit(f"site: {built.stdout}{built.stderr}")
        for page in (root / "site").glob("*.html"):
            page.write_text(_SHIM.sub("site/site.js", page.read_text(encoding="utf-8")), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(root / "site", folder)


def commands_page() -> str:
    """Return a page with the help of all commands."""
    return _HEAD + "".join(_section(path, command) for path, command in commands())


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield (full name, command) for every command and subcommand that is not hidden."""
    yield from _walk("ctxbench", cli)


def _walk(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if path != "ctxbench":
        yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from _walk(f"{path} {name}", child)


def _section(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"\n## `{path}`\n", inspect.cleandoc(command.help or "").replace("\b\n", "") + "\n"]
    if isinstance(command, click.Group):
        return "\n".join(lines)
    lines.append(f"```text\n{path} {usage}\n```\n")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            record = parameter.get_help_record(click.Context(command))
            if record:
                lines.append(f"- `{record[0]}`: {record[1]}")
    if isinstance(command, WithShapes):
        lines += ["\nShapes:\n", *(f"- `{name}`: {shape}" for name, shape in command.shapes())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "site"))
