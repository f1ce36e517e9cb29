"""Writes a manifest as the text of its file, with what was seen and what is doubtful as comments. Pure."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ctxbench.bench.repositories.manifest import RepoManifest, TestSuite
from ctxbench.bench.repositories.sources import DebianSource, GitSource, LocalSource, PypiSource, Source

_WIDTH = 118


def text_of(manifest: RepoManifest, remarks: Sequence[str], doubts: Sequence[str], untried: TestSuite | None) -> str:
    """Return the text of a manifest's file.

    Args:
        manifest: what it says.
        remarks: what was seen when it was tried, a line each.
        doubts: what a person should look at, a line each.
        untried: tests that could not be run; they are written as a comment, to be mended.
    """
    lines = [*_comment(remarks, "# ", "# ")]
    if doubts:
        lines += ["#", "# To be looked at:", *_comment(doubts, "# - ", "#   ")]
    lines += ["", f"name = {toml_value(manifest.name)}", f"language = {toml_value(str(manifest.language))}"]
    lines += [f"license = {toml_value(manifest.license)}", f"version = {toml_value(manifest.version)}"]
    if manifest.released is not None:
        lines.append(f"released = {toml_value(manifest.released.isoformat())}")
    if manifest.source_dir:
        lines.append(f"source_dir = {toml_value(manifest.source_dir)}")
    if manifest.exclude:
        lines.append(f"exclude = {toml_value(manifest.exclude)}")
    for source in manifest.sources:
        lines += ["", "[[source]]", *(f"{key} = {toml_value(value)}" for key, value in _source(source).items())]
    if manifest.tests is not None:
        lines += ["", "[tests]", *_suite(manifest.tests)]
    if untried is not None:
        lines += ["", "# [tests]", *(f"# {line}" for entry in _suite(untried) for line in entry.splitlines())]
    return "\n".join(lines) + "\n"


def _comment(texts: Iterable[str], first: str, further: str) -> Iterator[str]:
    for text in texts:
        plain = "".join(character if character.isprintable() else " " for character in text)
        # Names and addresses stay whole.
        yield from textwrap.wrap(
            plain,
            _WIDTH,
            initial_indent=first,
            subsequent_indent=further,
            break_on_hyphens=False,
            break_long_words=False,
        )


def _source(source: Source) -> Mapping[str, str]:
    match source:
        case PypiSource():
            return {"kind": "pypi", "name": source.name, "sha256": source.sha256}
        case DebianSource():
            return {"kind": "debian", "package": source.package, "sha256": source.sha256}
        case GitSource():
            return {"kind": "git", "url": source.url, "commit": source.commit}
        case LocalSource():
            pinned = {"sha256": source.sha256} if source.sha256 else {}
            return {"kind": "local", "path": str(source.path), **pinned}


def _suite(tests: TestSuite) -> Iterator[str]:
    for key in ("requirements", "jars"):
        if getattr(tests, key):
            yield f"{key} = {toml_value(getattr(tests, key))}"
    if tests.pythonpath != ".":
        yield f"pythonpath = {toml_value(tests.pythonpath)}"
    for key in ("paths", "arguments", "deselect", "release", "encoding", "lock"):
        if getattr(tests, key):
            yield f"{key} = {toml_value(getattr(tests, key))}"
    if not tests.wheel:
        yield "wheel = false"


def toml_value(value: str | Sequence[str]) -> str:
    """Return a text or a list of texts as TOML writes it: a long list has a line for each."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    items = [toml_value(item) for item in value]
    line = f"[{', '.join(items)}]"
    return line if len(line) < _WIDTH else "[\n" + "".join(f"    {item},\n" for item in items) + "]"
